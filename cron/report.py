"""What people are told about jobs: what was scheduled, what there is, and why a job runs when it does. Pure."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from cron.durations import duration_text
from cron.governor import fresh
from cron.schedule import schedule_of
from store.jobs import Delivery, JobStatus, TriggerState

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from zoneinfo import ZoneInfo

    from store.jobs import Job, Run, Source, Trigger

NEXT_SHOWN = 3
UNHEARD = timedelta(seconds=1)
EXCERPT = 60

BECAUSE: dict[Source, str] = {
    "baseline-cron": "that is what its schedule says",
    "baseline-interval": "that is its interval after the run before",
    "ai-interval": "its agent asked for this pace",
    "ai-oneshot": "its agent asked for this moment",
    "clamped-min": "it may not run sooner than its shortest distance allows",
    "clamped-max": "it may not wait longer than its longest distance allows",
    "paused": "it is paused until then",
}
REASONS = {
    "missed": "missed: they came due while nobody could run them",
    "already_running": "passed while the run before them went on",
    "no_work": "there was nothing to do",
    "tenant_disabled": "the tenant was switched off",
    "paused": "the job was paused",
    "edited": "the job's schedule was changed",
    "cancelled": "the job was cancelled",
}


def when(moment: datetime, zone: ZoneInfo) -> str:
    """To the second only where that tells more than the minute."""
    return f"{moment.astimezone(zone):%a %Y-%m-%d %H:%M}{f':{moment.second:02}' if moment.second else ''}"


def created(job: Job, now: datetime) -> str:
    """Words, zone and the next times, so that a misunderstanding shows at once."""
    schedule = schedule_of(job.spec.timing)
    lines = [f"Scheduled #{job.id}: {schedule.words()}"]
    fires = [when(moment, schedule.zone) for moment in upcoming(job, now)]
    if fires:
        lines.append(f"Next: {', '.join(fires)} ({schedule.zone.key})")
    lines.append(f"Message: {excerpt(job.spec.message, 200)}")
    lines.append(f"/cron cancel {job.id} takes it back.")
    return "\n".join(lines)


def upcoming(job: Job, now: datetime, count: int = NEXT_SHOWN) -> list[datetime]:
    """The next fires as far as they are known: the planned one, then what the schedule says."""
    if job.status is not JobStatus.ACTIVE or job.next_at is None:
        return []
    later = schedule_of(job.spec.timing).fires(max(job.next_at, now), count - 1) if job.recurring else ()
    return [job.next_at, *later][:count]


def listed(jobs: Sequence[Job], now: datetime) -> str:
    if not jobs:
        return "Nothing is scheduled. For instance: /schedule every weekday at 9am: what is new?"
    return "\n".join(line(job, now) for job in jobs)


def line(job: Job, now: datetime) -> str:
    schedule = schedule_of(job.spec.timing)
    state: str = job.status
    if job.next_at is not None and job.status is JobStatus.ACTIVE:
        state = f"next {when(job.next_at, schedule.zone)}" if job.next_at > now else "due now"
    name = f"{job.spec.name}: " if job.spec.name else ""
    last = f", last {job.last_state}" if job.last_state is not None else ""
    return f"#{job.id} {schedule.words()}; {state}{last}. {name}{excerpt(job.spec.message)}"


def why(job: Job, runs: Sequence[Run], triggers: Sequence[Trigger], now: datetime) -> str:
    """Why the last run and the next one are when they are. ``runs`` newest first, ``triggers`` latest slot first."""
    schedule = schedule_of(job.spec.timing)
    lines = [f"Job #{job.id}{f' ({job.spec.name})' if job.spec.name else ''}: {schedule.words()}"]
    lines.append(f"Last run: {last_run(runs[0], schedule.zone)}" if runs else "It has not run yet.")
    lines.append(next_run(job, triggers, schedule.zone, now))
    passed = [trigger for trigger in triggers if trigger.state is TriggerState.SKIPPED][:2]
    lines += [f"Skipped: {skipped(trigger, schedule.zone)}" for trigger in passed]
    return "\n".join(lines)


def last_run(run: Run, zone: ZoneInfo) -> str:
    late = f", {duration_text(rounded(run.lateness))} late" if run.lateness >= UNHEARD else ""
    by = {"manual": "somebody asked for it", "webhook": "a call fired it", "catch-up": "slots had passed before it"}
    because = by.get(run.kind) or (BECAUSE[run.source] if run.source is not None else "it was fired by hand")
    took = "" if run.ended_at is None else how_long(run.ended_at - run.started_at)
    attempt = f", attempt {run.attempt}" if run.attempt > 1 else ""
    ended = f": {run.error}" if run.error else ""
    return f"{when(run.started_at, zone)}{late}, because {because}; {run.state}{took}{attempt}{ended}.{delivered(run)}"


def how_long(span: timedelta) -> str:
    return f" after {duration_text(rounded(span))}" if span >= UNHEARD else " at once"


def delivered(run: Run) -> str:
    return {
        Delivery.NONE: "",
        Delivery.WAITING: " What it said is on its way.",
        Delivery.DELIVERED: " What it said was delivered.",
        Delivery.FAILED: f" What it said could not be delivered: {run.delivery_error}.",
    }[run.delivery]


def next_run(job: Job, triggers: Sequence[Trigger], zone: ZoneInfo, now: datetime) -> str:
    open_ = next((trigger for trigger in triggers if trigger.state.open and trigger.kind.planned), None)
    if job.status is not JobStatus.ACTIVE:
        return f"There is no next run: it is {job.status}{f' ({job.reason})' if job.reason else ''}."
    if open_ is None:
        return (
            "There is no next run: only a call fires it."
            if job.spec.timing.kind == "webhook"
            else "It is being planned."
        )
    if open_.state is TriggerState.EXECUTING:
        return f"It is running now, attempt {max(open_.attempt, 1)}."
    text = f"Next run: {when(open_.due_at, zone)} ({zone.key}), because "
    if open_.attempt:
        return f"{text}attempt {open_.attempt} failed ({open_.reason}) and it is tried again."
    because = BECAUSE[open_.source] if open_.source is not None else "it was planned so"
    if open_.source == "baseline-interval" and job.failures:
        row = "a failure" if job.failures == 1 else f"{job.failures} failures in a row"
        because += f", {2 ** min(job.failures, 5)} times as long after {row}"
    if open_.source in ("ai-interval", "ai-oneshot") and fresh(job.hints, now) and job.hints.reason:
        because += f": {job.hints.reason}"
    return f"{text}{because}."


def skipped(trigger: Trigger, zone: ZoneInfo) -> str:
    because = REASONS.get(trigger.reason, trigger.reason)
    if trigger.count > 1 and trigger.last is not None:
        return f"{trigger.count} times from {when(trigger.slot, zone)} to {when(trigger.last, zone)}: {because}."
    return f"{when(trigger.slot, zone)}: {because}."


def rounded(span: timedelta) -> timedelta:
    """To what people want to know."""
    return timedelta(seconds=max(round(span.total_seconds()), 1))


def excerpt(text: str, length: int = EXCERPT) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= length else f"{flat[: length - 1].rstrip()}…"
