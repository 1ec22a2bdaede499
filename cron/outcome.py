"""What follows from the end of an attempt: for its trigger, for its job, for whoever wants to hear of it. Pure.

    not attempted   missed, no work, tenant off ──▶ skipped, with every slot that it stood for
    succeeded                                   ──▶ completed; the governor plans, a one-shot is done
    failed, timeout ──▶ tries left: again after a while, same trigger
                    └─▶ none left: failed; the failure counts, the governor plans, a one-shot has failed
    agent missing                               ──▶ failed, and the job is paused
    cancelled by a shutdown                     ──▶ pending again, as if it had not begun

Called by the store under the job's lock, with the job as it is then: what was edited, hinted or paused while the run
went on counts. Slots that passed meanwhile are accounted for here, so that each ends as ran, missed or skipped (P5).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from cron.governor import Decision, after_run, clear_hints, latest, plan, replan
from cron.retry import delay, should_retry
from cron.schedule import schedule_of
from store.jobs import (
    Change,
    Fate,
    Job,
    JobStatus,
    News,
    Next,
    RunState,
    Stretch,
    TriggerKind,
    TriggerState,
)
from store.records import Note, Role, Said, SessionKey

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from cron.options import Options
    from cron.schedule import Missed
    from store.jobs import Claim, Ended, NewsKind, Trigger

ON_TIME = timedelta(minutes=1)
"""A job that is not to catch up still fires if it is no later than this."""
PUNCTUAL = timedelta(seconds=1)
"""A start takes no longer than this."""
REFIRE = timedelta(seconds=1)
FREE_SHUTDOWNS = 3
"""So many claims of a trigger may come to nothing; then a shutdown during its run is a failed attempt."""
LOOK_AGAIN = timedelta(hours=1)
"""When a job of a disabled tenant is looked at again."""
MICRO = timedelta(microseconds=1)

MISSED = "missed"
ALREADY_RUNNING = "already_running"
NO_WORK = "no_work"
TENANT_DISABLED = "tenant_disabled"
SHUTDOWN = "shutdown"
STOPPED = "stopped"


def pass_over(claim: Claim, options: Options) -> str | None:
    """Why this claim is not to be carried out, None if it is. Asked before its first attempt only."""
    job, trigger = claim.job, claim.trigger
    if not claim.tenant_enabled:
        return TENANT_DISABLED
    if not trigger.kind.planned or trigger.attempt:
        return None
    late = claim.claimed_at - (trigger.slot if trigger.kind is TriggerKind.SCHEDULE else trigger.due_at)
    if late > options.patience(job.spec):
        return MISSED
    if job.recurring and options.late_policy(job.spec) == "skip" and late > ON_TIME:
        return MISSED
    return None


def answered_in(job: Job) -> SessionKey | None:
    """The conversation that remembers what a run said; None for a run that stands alone."""
    spec = job.spec
    if spec.session == "chat":
        return spec.deliver_to
    if spec.session == "named":
        return SessionKey(spec.tenant, spec.agent, "cron", "", spec.session_name)
    return None


@dataclass(frozen=True, slots=True)
class Passed:
    """Slots that a trigger has let go by, and why."""

    reason: str
    slots: Missed


@dataclass(frozen=True, slots=True)
class Concluding:
    """The function that the store calls, with what it needs besides."""

    options: Options
    new_id: Callable[[], str]
    random: Callable[[], float]

    def __call__(self, job: Job, trigger: Trigger, ended: Ended, now: datetime) -> Change:
        if ended.state is RunState.CANCELLED and ended.reason == SHUTDOWN:
            # What was not begun keeps its place; what was begun has lost no attempt.
            if not ended.run:
                return Change(job, Fate(TriggerState.PENDING, SHUTDOWN, trigger.due_at))
            if trigger.token - trigger.attempt >= FREE_SHUTDOWNS:
                # A job that ends its own gateway would otherwise be begun anew for ever.
                error = "the gateway was shut down over it again and again"
                return self._failed(job, trigger, replace(ended, state=RunState.FAILED, error=error), now)
            news = finished_news("run.failed", job, trigger, replace(ended, error=SHUTDOWN), now, again=True)
            return Change(job, Fate(TriggerState.PENDING, SHUTDOWN, now, counts=False), news=(news,))
        if not ended.run:
            return self._passed_over(job, trigger, ended, now)
        if ended.state is RunState.SUCCEEDED:
            return self._succeeded(job, trigger, ended, now)
        return self._failed(job, trigger, ended, now)

    # ── ends ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _passed_over(self, job: Job, trigger: Trigger, ended: Ended, now: datetime) -> Change:
        reason = ended.reason
        if not trigger.kind.planned:
            return Change(job, Fate(TriggerState.SKIPPED, reason), news=(skipped_news(job, reason, trigger.slot),))
        beyond = (
            None
            if reason == NO_WORK or edited(job, ended)
            else passed(job, trigger, latest(trigger.slot, job.last_slot), now)
        )
        apart = beyond is not None and latest(trigger.slot, job.last_slot) > trigger.slot
        # What lies between was settled while it ran: then what follows is a stretch of its own.
        stretches = (Stretch(self.new_id(), *beyond, reason),) if beyond is not None and apart else ()
        last, count = (None, 1) if beyond is None or apart else (beyond.last, 1 + beyond.count)
        fate = Fate(TriggerState.SKIPPED, reason, last=last, count=count)
        news = (
            skipped_news(job, reason, trigger.slot, last, count),
            *(skipped_news(job, reason, one.first, one.last, one.count) for one in stretches),
        )
        job = replace(job, last_slot=latest(beyond.last if beyond else trigger.slot, job.last_slot))
        job = clear_hints(job, latest(now, trigger.slot))
        if not job.recurring:
            return self._one_shot_passed_over(job, trigger, fate, news)
        following = self._after_passing(job, trigger, reason, now)
        return Change(job, fate, next=following, stretches=stretches, news=news)

    def _after_passing(self, job: Job, trigger: Trigger, reason: str, now: datetime) -> Next | None:
        if job.status is not JobStatus.ACTIVE:
            return None
        if reason == NO_WORK:
            decision = replan(job, self._start_of(job, trigger, now), now, not_before=job.last_slot)
            return None if decision is None else self._next(decision)
        following = self._next(plan(now, job, not_before=job.last_slot))
        if reason == TENANT_DISABLED:
            return replace(following, due_at=max(following.due_at, now + LOOK_AGAIN))
        return following

    def _one_shot_passed_over(self, job: Job, trigger: Trigger, fate: Fate, news: tuple[News, ...]) -> Change:
        if fate.reason == TENANT_DISABLED:
            return Change(replace(job, status=JobStatus.PAUSED, reason=TENANT_DISABLED), fate, news=news)
        why = (
            f"it was due at {trigger.slot:%Y-%m-%d %H:%M} UTC and that was too long ago"
            if fate.reason == MISSED
            else fate.reason
        )
        job = replace(job, status=JobStatus.FAILED, reason=fate.reason)
        return Change(job, fate, news=news, notes=told(job, f"{called(job)} did not run: {why}."))

    def _succeeded(self, job: Job, trigger: Trigger, ended: Ended, now: datetime) -> Change:
        fate = Fate(TriggerState.COMPLETED)
        news = (finished_news("run.completed", job, trigger, ended, now),)
        notes = told(job, ended.output, ended.run) if ended.output.strip() else ()
        place = answered_in(job)
        said = () if place is None else (Said(Role.SYSTEM, job.spec.message), Said(Role.ASSISTANT, ended.output))
        change = replace(self._go_on(job, trigger, ended, now, fate, ok=True), notes=notes, said=said, said_in=place)
        if trigger.kind.planned and not job.recurring and not job.status.ended:
            done = replace(change.job, status=JobStatus.COMPLETED, reason="")
            change = replace(change, job=done, remove=job.spec.rules.delete_after_success)
        return replace(change, news=(*news, *change.news))

    def _failed(self, job: Job, trigger: Trigger, ended: Ended, now: datetime) -> Change:
        stopped = ended.state is RunState.CANCELLED
        permanent = ended.permanent or ended.agent_missing or stopped
        again = should_retry(trigger.attempt, self.options.retries(job.spec), permanent) and wanted(job, trigger)
        news = (finished_news("run.failed", job, trigger, ended, now, again=again),)
        if again:
            return Change(seen(job, ended), self._again(trigger, ended, now), news=news)
        fate = Fate(TriggerState.FAILED, STOPPED if stopped else ended.error or ended.state.value)
        change = self._go_on(job, trigger, ended, now, fate, ok=stopped)
        after = change.job
        # A run that somebody asked for moves nothing of a schedule, so it does not pause one either.
        pauses = trigger.kind.planned or job.spec.timing.kind == "webhook"
        if ended.agent_missing and pauses and not after.status.ended:
            after = replace(after, status=JobStatus.PAUSED, reason=ended.error)
            change = replace(change, next=None)
        elif trigger.kind.planned and not job.recurring and not after.status.ended:
            after = replace(after, status=JobStatus.FAILED, reason=ended.error or ended.state.value)
        notes = () if stopped else told(after, failure_text(after, trigger, ended), ended.run)
        return replace(change, job=after, notes=notes, news=(*news, *change.news))

    def _again(self, trigger: Trigger, ended: Ended, now: datetime) -> Fate:
        options = self.options
        wait = delay(max(trigger.attempt - 1, 0), base=options.retry_base, most=options.retry_max, random=self.random())
        return Fate(TriggerState.PENDING, ended.error or ended.state.value, now + wait)

    # ── what comes next ──────────────────────────────────────────────────────────────────────────────────────────────

    def _go_on(self, job: Job, trigger: Trigger, ended: Ended, now: datetime, fate: Fate, *, ok: bool) -> Change:
        """The job after an occurrence is over, with its next trigger and the slots that passed meanwhile."""
        if not trigger.kind.planned:  # beside the schedule: it moves nothing of it
            return Change(seen(replace(job, runs=job.runs + 1), ended), fate)
        started = ended.started_at or now
        before = latest(trigger.slot, job.last_slot)
        failures = job.failures
        after = after_run(job, self._start_of(job, trigger, started), now, ok, not_before=before)
        after = seen(replace(after, last_run_at=started, last_slot=before), ended)
        if ended.state is RunState.CANCELLED:
            after = replace(after, failures=failures)
        if job.status is not JobStatus.ACTIVE or not job.recurring:
            return Change(after, fate)
        gone = self._let_go(job, trigger, started, now)
        queued = job.spec.rules.overlap == "queue" and bool(gone) and gone[-1].reason == ALREADY_RUNNING
        queued = queued and not ended.agent_missing
        following: Next | None = None
        if queued:
            last = gone.pop()
            following = Next(
                self.new_id(), last.slots.last, now + REFIRE, trigger.source, TriggerKind.CATCH_UP, self._trace()
            )
            # All but the last of them: that one runs.
            rest = schedule_of(job.spec.timing).missed(last.slots.first - MICRO, last.slots.last - MICRO)
            gone += [] if rest is None else [Passed(ALREADY_RUNNING, rest)]
        if gone:
            after = replace(after, last_slot=latest(before, gone[-1].slots.last))
        if following is None:
            decision = replan(after, self._start_of(job, trigger, started), now, not_before=after.last_slot)
            following = None if decision is None else self._next(decision)
        stretches = tuple(Stretch(self.new_id(), *one.slots, one.reason) for one in gone)
        news = tuple(skipped_news(job, one.reason, *one.slots) for one in gone)
        return Change(after, fate, next=following, stretches=stretches, news=news)

    def _let_go(self, job: Job, trigger: Trigger, started: datetime, now: datetime) -> list[Passed]:
        """Before it began they were missed; after that it was running."""
        # What a pause, an edit or a settling while it ran has accounted for already lies up to the last slot.
        since = latest(trigger.slot, job.last_slot)
        began = started if trigger.attempt <= 1 else trigger.slot
        missed = passed(job, trigger, since, began)
        # A clock that was set back during the run does not bring back what had passed when it began.
        upto = max(now, started)
        # An interval is counted from the run, so none passes while it goes on.
        running = passed(job, trigger, max(began, since), upto) if job.spec.timing.kind == "cron" else None
        found = ((MISSED, missed), (ALREADY_RUNNING, running))
        return [Passed(reason, slots) for reason, slots in found if slots is not None]

    def _start_of(self, job: Job, trigger: Trigger, started: datetime) -> datetime:
        """What the next distance is counted from: the slot, unless the start was later than a start may be.

        Else every interval would drift by what a start takes, or by the jitter that many at once are spread with.
        """
        span = job.spec.timing.every or PUNCTUAL * 2
        late, forgiven = started - trigger.slot, min(self.options.max_jitter + PUNCTUAL, span / 2)
        return trigger.slot if timedelta(0) <= late <= forgiven else started

    def _next(self, decision: Decision) -> Next:
        return Next(self.new_id(), decision.at, decision.at, decision.source, trace=self._trace())

    def _trace(self) -> str:
        return self.new_id().replace("-", "")


def passed(job: Job, trigger: Trigger, after: datetime, upto: datetime) -> Missed | None:
    """Slots of the plan that was in force; a hint or a limit may have put another one in its place."""
    timing = job.spec.timing
    in_force = {"cron": "baseline-cron", "every": "baseline-interval"}.get(timing.kind)
    if trigger.source != in_force or upto <= after:
        return None
    if timing.kind == "every" and (job.failures or job.spec.rules.anchor == "completion"):
        return None  # it keeps another distance than that from slot to slot: there were none in between
    return schedule_of(timing).missed(after, upto)


def edited(job: Job, ended: Ended) -> bool:
    """The job follows another schedule by now: what passed were slots of neither."""
    return job.spec.timing != ended.claim.job.spec.timing


def wanted(job: Job, trigger: Trigger) -> bool:
    """Whether another attempt is what its owner wants: a paused job is only tried again if somebody fired it."""
    return job.status is JobStatus.ACTIVE or (job.status is JobStatus.PAUSED and not trigger.kind.planned)


def seen(job: Job, ended: Ended) -> Job:
    return replace(job, last_run=ended.run, last_state=ended.state)


# ── words and news ───────────────────────────────────────────────────────────────────────────────────────────────────


def told(job: Job, text: str, run: str = "") -> tuple[Note, ...]:
    """To where the job's answers go; a job without such a place, or one that was deleted, says nothing."""
    if job.spec.deliver_to is None or job.status is JobStatus.CANCELLED:
        return ()
    return (Note(job.spec.deliver_to, text, run=run),)


def called(job: Job) -> str:
    return f"Job #{job.id}" + (f" ({job.spec.name})" if job.spec.name else "")


def failure_text(job: Job, trigger: Trigger, ended: Ended) -> str:
    tries = f" after {trigger.attempt} attempts" if trigger.attempt > 1 else ""
    why = ended.error or ended.state.value
    follows = {
        JobStatus.PAUSED: f" It is paused; /cron resume {job.id} when that is mended.",
        JobStatus.FAILED: " It will not run again; /schedule makes a new one.",
    }.get(job.status, f" /cron why {job.id} tells more.")
    return f"{called(job)} failed{tries}: {why}.{follows}"


def finished_news(
    kind: NewsKind, job: Job, trigger: Trigger, ended: Ended, now: datetime, *, again: bool = False
) -> News:
    data: dict[str, object] = {
        "agent": job.spec.agent,
        "status": ended.state.value,
        "attempt": trigger.attempt,
        "trace": trigger.trace,
        "started_at": stamp(ended.started_at or now),
        "completed_at": stamp(now),
    }
    if kind == "run.completed":
        data["result_summary"] = ended.output[:SUMMARY]
    else:
        data |= {"error_message": ended.error[:SUMMARY], "again": again}
    return News(kind, job.tenant, job.id, ended.run, data)


SUMMARY = 1_000
"""So many characters go into a notification; the run has all of it."""


def skipped_news(job: Job, reason: str, first: datetime, last: datetime | None = None, count: int = 1) -> News:
    data = {"reason": reason, "first": stamp(first), "last": stamp(last or first), "count": count}
    return News("run.skipped", job.tenant, job.id, "", {"agent": job.spec.agent, "status": "skipped", **data})


def stamp(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
