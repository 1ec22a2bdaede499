"""When a job runs next, and why then. Pure: no clock, no chance, the same answer to the same question.

    candidates   baseline       cron: its next occurrence; interval: now + interval x 2^min(failures, 5)
         │       interval hint  now + what the agent proposed          ⎫ only while
         │       one-shot hint  that moment, or now if it has passed   ⎭ not expired
         ▼
    choice       both hints     the earlier of them; the baseline does not count
         │       interval hint  that, even where the baseline is sooner
         │       one-shot hint  the earlier of it and the baseline
         │       no hint        the baseline
         ▼
    limits       sooner than now + min: clamped-min; then, later than now + max: clamped-max
         ▼
    pause        until a moment still to come: then, whatever was said above

`now` is when the run started, so that the length of runs does not move the ones after it. What the run changed, its
outcome and the hints that it used up, is applied before anything is planned: a first failure already counts, and a
one-shot hint fires once (test_a_used_hint_does_not_fire_again, test_the_first_failure_doubles_the_distance).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from cron.schedule import schedule_of
from store.jobs import Hints

if TYPE_CHECKING:
    from store.jobs import Job, Source

MOST_DOUBLINGS = 5
SHORTEST_GAP = timedelta(seconds=1)
"""Between the end of a run and the next one, where the planned time has passed."""
FAR = datetime(9999, 1, 1, tzinfo=UTC)
"""Where sums end that no date can hold."""


class Decision(NamedTuple):
    at: datetime
    source: Source


def plan(now: datetime, job: Job, *, not_before: datetime | None = None) -> Decision:
    """The next run, as seen at ``now``. Never before it.

    ``not_before`` is the occurrence that was used last: a clock that went back does not bring a cron slot twice.
    Raises ValueError for a job that has neither a baseline nor hints: only a call fires it.
    """
    decision = decide(now.astimezone(UTC), job, not_before)
    if decision is None:
        raise ValueError(f"job {job.id} of tenant {job.tenant!r} has nothing to plan by: only a call fires it")
    return decision


def decide(now: datetime, job: Job, not_before: datetime | None) -> Decision | None:
    if job.spec.timing.kind == "at":  # a moment that somebody named: neither a pace nor a limit moves it
        chosen = baseline(now, job, not_before)
        if chosen is not None and job.paused_until is not None and job.paused_until > now:
            return Decision(max(job.paused_until, chosen.at), "paused")
        return chosen
    chosen = choose(now, job, not_before)
    if chosen is not None and job.paused_until is not None and job.paused_until > now:
        return Decision(job.paused_until, "paused")
    return chosen and clamp(now, job, chosen)


def choose(now: datetime, job: Job, not_before: datetime | None) -> Decision | None:
    interval = once = None
    if fresh(job.hints, now):
        if job.hints.interval is not None:
            interval = Decision(later(now, job.hints.interval), "ai-interval")
        if job.hints.next_at is not None:
            once = Decision(max(job.hints.next_at, now), "ai-oneshot")
    steady = interval or baseline(now, job, not_before)
    if steady is None or once is None:
        return steady or once
    return once if once.at < steady.at else steady  # at the same moment the steady one gives the name


def baseline(now: datetime, job: Job, not_before: datetime | None) -> Decision | None:
    timing = job.spec.timing
    if timing.cron:
        following = schedule_of(timing).next_after(latest(now, not_before))
        assert following is not None  # noqa: S101 - an expression that would never fire is refused when it is read
        return Decision(following, "baseline-cron")
    if timing.every is not None:
        factor = 2 ** min(job.failures, MOST_DOUBLINGS)
        return Decision(later(now, timing.every, factor), "baseline-interval")
    if timing.at is not None:
        # Of the seven names this is the nearest: a moment of the calendar, which no failure moves.
        return Decision(max(timing.at, now), "baseline-cron")
    return None


def clamp(now: datetime, job: Job, chosen: Decision) -> Decision:
    least, most = job.spec.rules.min_interval, job.spec.rules.max_interval
    if least is not None and chosen.at < later(now, least):
        chosen = Decision(later(now, least), "clamped-min")
    if most is not None and chosen.at > later(now, most):
        chosen = Decision(later(now, most), "clamped-max")
    return chosen


def replan(job: Job, started: datetime, ended: datetime, *, not_before: datetime | None = None) -> Decision | None:
    """The run after one that is over, or None if there is none. ``job`` has its outcome counted and used hints gone.

    Planned from the start of the run, or from its end if the job is anchored there. Where that time has passed when
    the run ends, what follows the calendar takes its next occurrence, and a distance is kept from the end.
    """
    if job.spec.timing.kind == "at":
        return None
    started, ended = started.astimezone(UTC), ended.astimezone(UTC)
    # The earlier of the two: a clock set back during the run must not put the next one off by as much.
    base = ended if job.spec.rules.anchor == "completion" else min(started, ended)
    used = latest(started, not_before)
    decision = decide(base, job, used)
    if decision is None or decision.at >= ended:
        return decision
    if decision.source in ("baseline-cron", "paused"):
        return decide(ended, job, used)
    return Decision(later(ended, max(decision.at - base, SHORTEST_GAP)), decision.source)


def after_run(job: Job, started: datetime, ended: datetime, ok: bool, *, not_before: datetime | None = None) -> Job:
    """The job after a run: outcome first, then hints, then the plan. What nothing fires again has no next time."""
    job = replace(job, last_run_at=started, failures=0 if ok else job.failures + 1, runs=job.runs + 1)
    job = clear_hints(job, latest(started, not_before))
    decision = replan(job, started, ended, not_before=not_before)
    at, source = decision or (None, None)
    return replace(job, next_at=at, next_source=source)


def clear_hints(job: Job, now: datetime) -> Job:
    """Without the hints that are over: all of them once they have expired, a one-shot when its moment has come."""
    hints = job.hints
    if hints.expires_at is not None and hints.expires_at <= now:
        return replace(job, hints=Hints())
    if hints.next_at is not None and hints.next_at <= now:
        return replace(job, hints=replace(hints, next_at=None))
    return job


def fresh(hints: Hints, now: datetime) -> bool:
    """A hint without an end does not count: nobody would ever take it back."""
    return hints.expires_at is not None and hints.expires_at > now


def latest(moment: datetime, other: datetime | None) -> datetime:
    return moment if other is None else max(moment, other)


def later(moment: datetime, span: timedelta, times: int = 1) -> datetime:
    try:
        return moment + span * times
    except OverflowError:
        return FAR
