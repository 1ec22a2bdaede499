"""What a decision about a job means for its rows: the same in every store, worked out here. Pure.

loaded under the job's lock ──▶ decided by the cron room (`Change`) ──▶ `carry_out` ──▶ rows to write (`Rows`)
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from store.jobs import (
    LONGEST_MESSAGE,
    LONGEST_SUMMARY,
    Delivery,
    Job,
    JobStatus,
    News,
    Run,
    RunState,
    Trigger,
    TriggerKind,
    TriggerState,
)
from store.protocols import RuleBroken
from store.rules import check_session, check_words, copied, plain_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from store.jobs import Change, Claim, Ended, Fate, Fire, NewJob, Next, Start, Stretch
    from store.records import Note, Said, SessionKey

TRUNCATED = "…[truncated]"


@dataclass(slots=True)
class Rows:
    """What one verb leaves behind."""

    jobs: list[Job] = field(default_factory=list)
    removed: list[tuple[str, int]] = field(default_factory=list)
    """Jobs that go with their triggers, runs and outputs."""
    triggers: list[Trigger] = field(default_factory=list)
    """Those that are not open any more come before those that are."""
    withdrawn: list[Trigger] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    outputs: list[tuple[str, str, str]] = field(default_factory=list)
    """Tenant, run, all that it said."""
    notes: list[Note] = field(default_factory=list)
    said: list[tuple[SessionKey, tuple[Said, ...]]] = field(default_factory=list)
    news: list[News] = field(default_factory=list)


def new_job(number: int, new: NewJob, now: datetime) -> Job:
    return Job(number, new, now, now)


def fired(fire: Fire, job: Job, now: datetime) -> Trigger:
    return Trigger(
        fire.id, fire.tenant, fire.job, job.spec.agent, fire.kind, now, now, now, key=fire.key, trace=fire.trace
    )


def carry_out(change: Change, open_: Iterable[Trigger], about: Trigger | None, now: datetime) -> Rows:
    """The rows that a change leaves. ``open_`` are the job's open triggers, ``about`` the one that was claimed."""
    check_change(change)
    rows = Rows(notes=list(change.notes), news=list(change.news))
    remembered_in = change.said_in or change.job.spec.deliver_to
    if change.said and remembered_in is not None:
        rows.said.append((remembered_in, change.said))
    if change.remove:
        rows.removed.append(change.job.key)
        return rows
    left = {trigger.id: trigger for trigger in open_}
    planned = next((trigger for trigger in left.values() if trigger.kind.planned), None)
    pending = planned if planned is not None and planned.state is TriggerState.PENDING else None
    subject = about or pending
    if change.fate is not None and subject is not None:
        left[subject.id] = fated(subject, change.fate, now)
    if change.withdraw and pending is not None and (change.fate is None or pending is not subject):
        rows.withdrawn.append(left.pop(pending.id))
    if change.drop_others:
        for trigger in list(left.values()):
            if trigger.state is TriggerState.PENDING and (subject is None or trigger.id != subject.id):
                left[trigger.id] = skipped(trigger, change.drop_others, now)
    if change.next is not None and not any(one.kind.planned and one.state.open for one in left.values()):
        left[change.next.id] = planned_trigger(change.job, change.next, now)
    before = {trigger.id: trigger for trigger in open_}
    after = [with_agent(trigger, change.job.spec.agent) for trigger in left.values()]
    changed = [trigger for trigger in after if before.get(trigger.id) is not trigger]
    rows.triggers = [stretched(change.job, stretch, now) for stretch in change.stretches]
    rows.triggers += sorted(changed, key=lambda trigger: trigger.state.open)
    rows.jobs.append(kept_true(change.job, after, now))
    return rows


def conclude_run(run: Run, ended: Ended, change: Change, now: datetime) -> tuple[Run, str]:
    """The run as it ended, and its whole output if the summary does not hold it."""
    check_words(ended.output, ended.error)
    summary = shortened(ended.output)
    delivery = Delivery.WAITING if any(note.run == run.id for note in change.notes) else Delivery.NONE
    final = replace(
        run,
        state=ended.state,
        ended_at=now,
        summary=summary,
        error=shortened(ended.error),
        tokens_in=ended.tokens_in,
        tokens_out=ended.tokens_out,
        delivery=delivery,
    )
    return final, "" if summary == ended.output else ended.output


def settle_one(
    ended: Ended, change: Change, open_: Sequence[Trigger], trigger: Trigger, run: Run | None, now: datetime
) -> Rows:
    """Everything that the end of one claim leaves; ``trigger`` and ``run`` as they are in the store."""
    rows = carry_out(change, open_, trigger, now)
    mine = run is not None and run.trigger == trigger.id and run.state is RunState.RUNNING
    if run is not None and mine and not change.remove:
        final, output = conclude_run(run, ended, change, now)
        rows.runs.append(final)
        if output:
            rows.outputs.append((final.tenant, final.id, output))
    return rows


def leased(trigger: Trigger, worker: str, until: datetime) -> Trigger:
    """The trigger under a new claim."""
    return replace(
        trigger, state=TriggerState.EXECUTING, owner=worker, token=trigger.token + 1, leased_until=until, reason=""
    )


def started(start: Start, trigger: Trigger, now: datetime) -> tuple[Trigger, Run, News]:
    """The first row of an attempt, and what is told of it."""
    again = replace(trigger, attempt=trigger.attempt + 1)
    run = Run(
        id=start.run,
        tenant=trigger.tenant,
        job=trigger.job,
        trigger=trigger.id,
        attempt=again.attempt,
        agent=trigger.agent,
        kind=trigger.kind,
        source=trigger.source,
        worker=trigger.owner,
        trace=trigger.trace,
        started_at=now,
        lateness=max(now - trigger.due_at, timedelta(0)),
    )
    return again, run, started_news(run)


def started_news(run: Run) -> News:
    data = {"agent": run.agent, "status": run.state.value, "attempt": run.attempt, "trace": run.trace}
    return News("run.started", run.tenant, run.job, run.id, data)


def is_current(claim: Claim, trigger: Trigger | None) -> bool:
    """Nobody else has claimed it since, and it has not been settled."""
    return is_own(claim, trigger) and trigger is not None and trigger.state is TriggerState.EXECUTING


def is_own(claim: Claim, trigger: Trigger | None) -> bool:
    """The newest claim of this trigger is this one, settled or not."""
    return trigger is not None and trigger.token == claim.trigger.token


def wants_trigger(job: Job) -> bool:
    """An active job that fires by itself has an open planned trigger."""
    return job.status is JobStatus.ACTIVE and job.spec.timing.kind != "webhook"


# ── single rows ──────────────────────────────────────────────────────────────────────────────────────────────────────


def fated(trigger: Trigger, fate: Fate, now: datetime) -> Trigger:
    attempt = trigger.attempt if fate.counts else max(trigger.attempt - 1, 0)
    if fate.again_at is not None:
        return replace(
            trigger,
            state=TriggerState.PENDING,
            reason=fate.reason,
            due_at=fate.again_at,
            attempt=attempt,
            owner="",
            leased_until=None,
        )
    return replace(
        trigger,
        state=fate.state,
        reason=fate.reason,
        attempt=attempt,
        leased_until=None,
        last=fate.last,
        count=fate.count,
        ended_at=now,
    )


def skipped(trigger: Trigger, reason: str, now: datetime) -> Trigger:
    return replace(trigger, state=TriggerState.SKIPPED, reason=reason, leased_until=None, ended_at=now)


def planned_trigger(job: Job, plan: Next, now: datetime) -> Trigger:
    return Trigger(
        plan.id,
        job.tenant,
        job.id,
        job.spec.agent,
        plan.kind,
        plan.slot,
        plan.due_at,
        now,
        source=plan.source,
        trace=plan.trace,
    )


def stretched(job: Job, stretch: Stretch, now: datetime) -> Trigger:
    return Trigger(
        stretch.id,
        job.tenant,
        job.id,
        job.spec.agent,
        TriggerKind.SCHEDULE,
        stretch.first,
        stretch.first,
        now,
        state=TriggerState.SKIPPED,
        reason=stretch.reason,
        last=stretch.last,
        count=stretch.count,
        ended_at=now,
    )


def with_agent(trigger: Trigger, agent: str) -> Trigger:
    return replace(trigger, agent=agent) if trigger.state.open and trigger.agent != agent else trigger


def kept_true(job: Job, triggers: Iterable[Trigger], now: datetime) -> Job:
    planned = next((one for one in triggers if one.kind.planned and one.state.open), None)
    at, source = (None, None) if planned is None else (planned.due_at, planned.source)
    return replace(job, next_at=at, next_source=source, updated_at=now)


def shortened(text: str, most: int = LONGEST_SUMMARY) -> str:
    """At most so many bytes of it, whole characters, marked if something is missing."""
    raw = text.encode()
    if len(raw) <= most:
        return text
    return raw[: most - len(TRUNCATED.encode())].decode(errors="ignore") + TRUNCATED


# ── rules ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def check_new(new: NewJob) -> None:
    check_words(new.uid, new.tenant, new.agent, new.name, new.session_name, new.work_source, new.owner)
    check_words(new.message, new.timing.zone, new.timing.cron)
    if not new.message.strip() or len(new.message.encode()) > LONGEST_MESSAGE:
        raise RuleBroken(f"a job's message has 1 to {LONGEST_MESSAGE} bytes, this one {len(new.message.encode())}")
    if new.deliver_to is not None:
        check_session(new.deliver_to)
        if new.deliver_to.tenant != new.tenant:
            raise RuleBroken("the answers of a job stay with its tenant", tenant=new.tenant)


def check_change(change: Change) -> None:
    """All of it, before anything of it is written."""
    job, fate, plan = change.job, change.fate, change.next
    check_new(job.spec)
    check_words(job.reason, job.hints.reason, job.last_run, change.drop_others, "" if fate is None else fate.reason)
    check_words(*(() if plan is None else (plan.id, plan.trace)))
    check_words(*(text for stretch in change.stretches for text in (stretch.id, stretch.reason)))
    places = [note.session for note in change.notes] + ([] if change.said_in is None else [change.said_in])
    for place in places:
        check_session(place)
    check_words(*(text for note in change.notes for text in (note.text, note.run)))
    copied(change.said)
    for news in change.news:
        check_words(news.tenant, news.run)
        plain_json(news.data)
    if any(
        tenant != job.tenant for tenant in [*(place.tenant for place in places), *(one.tenant for one in change.news)]
    ):
        raise RuleBroken("what a job says stays with its tenant", tenant=job.tenant)
