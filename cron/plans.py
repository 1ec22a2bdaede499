"""What becomes of a job when somebody adds, edits, pauses, resumes, hints or deletes it. Pure.

Each function answers the store's question under the job's lock. Two rules run through them: what is due and has not run
is not quietly moved away, it ends as skipped with the reason; what has not come yet is planned anew without a trace.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from cron.errors import JobEnded
from cron.governor import clear_hints, latest, plan
from cron.outcome import ALREADY_RUNNING, TENANT_DISABLED, passed, skipped_news
from store.jobs import Change, Fate, Hints, JobStatus, Next, Stretch, TriggerState

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from store.cron_protocol import Decide
    from store.jobs import Job, NewJob, Trigger

    NewId = Callable[[], str]

PAUSED = "paused"
EDITED = "edited"
CANCELLED = "cancelled"


def begun(job: Job, new_id: NewId, *, at_once: bool = False) -> Change:
    """A new job and its first trigger; with ``at_once`` the first run is now."""
    following = planned(job, job.created_at, new_id)
    if following is not None and at_once:
        following = replace(following, slot=job.created_at, due_at=job.created_at)
    return Change(job, next=following)


def planned(job: Job, now: datetime, new_id: NewId) -> Next | None:
    """The trigger that an active job gets from now on; None for one that only a call fires."""
    if job.status is not JobStatus.ACTIVE or job.spec.timing.kind == "webhook":
        return None
    decision = plan(now, job, not_before=job.last_slot)
    # A one-shot whose moment has come once is due at once, also if the clock was set back since.
    used = job.last_slot is not None and decision.at <= job.last_slot
    at = now if used and not job.recurring and decision.source == "baseline-cron" else decision.at
    return Next(new_id(), at, at, decision.source, trace=new_id().replace("-", ""))


class Turn(NamedTuple):
    """What an edit does besides: the job goes on, rests, or rests until then."""

    active: bool
    until: datetime | None = None
    reason: str = ""


def edited(edit: Callable[[NewJob], NewJob], new_id: NewId, turn: Turn | None = None) -> Decide:
    """The job as it should be from now on. Its place in time moves only if its timing or its limits do.

    With a ``turn`` all of it happens at once or nothing: `JobEnded` if there is nothing to be turned.
    """

    def decide(job: Job, trigger: Trigger | None, now: datetime) -> Change | None:
        spec = edit(job.spec)
        after = replace(job, spec=spec)
        same_time = (spec.timing, spec.rules.min_interval, spec.rules.max_interval) == (
            job.spec.timing,
            job.spec.rules.min_interval,
            job.spec.rules.max_interval,
        )
        if not same_time and after.status in (JobStatus.COMPLETED, JobStatus.FAILED):
            after = replace(after, status=JobStatus.ACTIVE, reason="", failures=0)  # it has something to do again
        if turn is not None:
            after = turned(after, turn)
        same_state = (after.status, after.paused_until) == (job.status, job.paused_until)
        if same_time and same_state:
            return Change(after)
        return moved(job, after, trigger, PAUSED if same_time else EDITED, now, new_id)

    return decide


def turned(job: Job, turn: Turn) -> Job:
    if job.status.ended:
        raise JobEnded(job.id, job.status)
    if turn.active or turn.until is not None:
        return replace(job, status=JobStatus.ACTIVE, reason=turn.reason, paused_until=turn.until)
    if job.status is JobStatus.PAUSED:
        return replace(job, reason=turn.reason or job.reason)
    return replace(job, status=JobStatus.PAUSED, reason=turn.reason)


def paused(reason: str, new_id: NewId) -> Decide:
    def decide(job: Job, trigger: Trigger | None, now: datetime) -> Change | None:
        if job.status is not JobStatus.ACTIVE:
            return None
        return moved(job, replace(job, status=JobStatus.PAUSED, reason=reason), trigger, PAUSED, now, new_id)

    return decide


def paused_until(until: datetime, reason: str, new_id: NewId) -> Decide:
    """It stays active and fires then: the governor puts this over everything else."""

    def decide(job: Job, trigger: Trigger | None, now: datetime) -> Change | None:
        if job.status is not JobStatus.ACTIVE:
            return None
        return moved(job, replace(job, paused_until=until, reason=reason), trigger, PAUSED, now, new_id)

    return decide


def resumed(new_id: NewId) -> Decide:
    """Active again from now on; a one-shot whose time has passed is due at once."""

    def decide(job: Job, trigger: Trigger | None, now: datetime) -> Change | None:
        if job.status.ended or (job.status is JobStatus.ACTIVE and job.paused_until is None):
            return None
        after = replace(job, status=JobStatus.ACTIVE, reason="", paused_until=None)
        return moved(job, after, trigger, PAUSED, now, new_id)

    return decide


def hinted(hints: Hints, new_id: NewId) -> Decide:
    """What the agent proposes counts at once; where it says nothing, what was proposed before still counts."""

    def decide(job: Job, trigger: Trigger | None, now: datetime) -> Change | None:
        if job.status.ended:
            return None
        before = job.hints if job.hints.expires_at is not None and job.hints.expires_at > now else Hints()
        merged = Hints(
            hints.interval if hints.interval is not None else before.interval,
            hints.next_at if hints.next_at is not None else before.next_at,
            hints.expires_at,
            hints.reason or before.reason,
        )
        return replanned(replace(job, hints=merged), trigger, now, new_id)

    return decide


def unhinted(new_id: NewId) -> Decide:
    def decide(job: Job, trigger: Trigger | None, now: datetime) -> Change | None:
        return replanned(replace(job, hints=Hints()), trigger, now, new_id) if job.hints != Hints() else None

    return decide


def deleted(new_id: NewId, *, purge: bool) -> Decide:
    """It never fires again. Its history stays, unless that is to go too."""

    def decide(job: Job, trigger: Trigger | None, now: datetime) -> Change | None:
        if purge:
            return Change(job, remove=True)
        if job.status is JobStatus.CANCELLED:
            return None
        over = replace(job, status=JobStatus.CANCELLED, reason="")
        if trigger is None or trigger.slot > now:
            return Change(over, Fate(TriggerState.SKIPPED, CANCELLED), drop_others=CANCELLED)
        return replace(moved(job, over, trigger, CANCELLED, now, new_id), drop_others=CANCELLED)

    return decide


def woken(new_id: NewId) -> Decide:
    """After its tenant was enabled again: nothing waits for the hourly look, and one-shots go on."""

    def decide(job: Job, trigger: Trigger | None, now: datetime) -> Change | None:
        if job.status is JobStatus.PAUSED and job.reason == TENANT_DISABLED:
            active = replace(job, status=JobStatus.ACTIVE, reason="")
            return moved(job, active, trigger, TENANT_DISABLED, now, new_id)
        put_off = trigger is not None and trigger.due_at > trigger.slot and not trigger.attempt
        if job.status is JobStatus.ACTIVE and job.recurring and put_off:
            return moved(job, job, trigger, TENANT_DISABLED, now, new_id)
        return None

    return decide


def brought_back(new_id: NewId) -> Decide:
    """After the clock was set back: an interval that was counted from a time that never was is counted anew.

    A cron job waits for its slot: those before it are settled, and none is settled twice.
    """

    def decide(job: Job, trigger: Trigger | None, now: datetime) -> Change | None:
        if job.spec.timing.kind != "every" or trigger is None or has_come(trigger, now):
            return None
        following = planned(job, now, new_id)
        if following is None or following.slot >= trigger.slot:
            return None
        return Change(job, withdraw=True, next=following)

    return decide


def revived(new_id: NewId) -> Decide:
    """A job that should have a trigger and has none gets one: the schedule does not die."""

    def decide(job: Job, trigger: Trigger | None, now: datetime) -> Change | None:
        following = planned(job, now, new_id) if trigger is None else None
        return None if following is None else Change(job, next=following)

    return decide


# ── moving in time ───────────────────────────────────────────────────────────────────────────────────────────────────


def moved(before: Job, job: Job, trigger: Trigger | None, reason: str, now: datetime, new_id: NewId) -> Change:
    """The job's pending trigger gives way to what is planned now. One that executes is left to its end.

    If it was due, it ends as skipped in the name of every slot that has passed since.
    """
    if trigger is None:
        return Change(job, next=planned(job, now, new_id))
    if trigger.state is TriggerState.EXECUTING:
        return meanwhile(before, job, trigger, now, new_id)
    if not has_come(trigger, now):
        return Change(job, withdraw=True, next=planned(job, now, new_id))
    since = latest(trigger.slot, job.last_slot)
    beyond = passed(before, trigger, since, now)
    apart = beyond is not None and since > trigger.slot  # what lies between was settled while it ran
    stretches = (Stretch(new_id(), *beyond, reason),) if beyond is not None and apart else ()
    last, count = (None, 1) if beyond is None or apart else (beyond.last, 1 + beyond.count)
    job = clear_hints(replace(job, last_slot=latest(beyond.last if beyond else trigger.slot, job.last_slot)), now)
    fate = Fate(TriggerState.SKIPPED, reason, last=last, count=count)
    news = (skipped_news(job, reason, trigger.slot, last, count),)
    return Change(job, fate, next=planned(job, now, new_id), stretches=stretches, news=news)


def meanwhile(before: Job, job: Job, trigger: Trigger, now: datetime, new_id: NewId) -> Change:
    """A run goes on. What passed since its slot is settled by the plan that was in force until now."""
    in_force = before.status is JobStatus.ACTIVE and before.spec.timing.kind == "cron"
    gone = passed(before, trigger, latest(trigger.slot, job.last_slot), now) if in_force else None
    job = replace(job, last_slot=latest(now, job.last_slot))
    if gone is None:
        return Change(job)
    stretch = Stretch(new_id(), *gone, ALREADY_RUNNING)
    return Change(job, stretches=(stretch,), news=(skipped_news(job, ALREADY_RUNNING, *gone),))


def replanned(job: Job, trigger: Trigger | None, now: datetime, new_id: NewId) -> Change:
    """Another time for what has not come yet; what is due, or waits for another attempt, stays as it is."""
    if trigger is None or trigger.state is not TriggerState.PENDING or has_come(trigger, now):
        return Change(job)
    following = planned(job, now, new_id)
    return Change(job, withdraw=following is not None, next=following)


def has_come(trigger: Trigger, now: datetime) -> bool:
    """Also if the clock was set back since: what was claimed once has a history."""
    return trigger.slot <= now or trigger.token > 0
