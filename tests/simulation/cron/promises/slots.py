"""P5: every slot ends as ran, missed or skipped, once; what is told about a stretch is true.

A slot need not be accounted for where another plan was in force: before the job was made, while it was not active, and
while a hint, a limit or a pause decided. What people changed is taken from the rows, what the slots are from the walker
that knows cron by brute force only.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from cron.governor import latest
from store.jobs import JobStatus, TriggerKind, TriggerState
from tests.simulation.cron.promises import Promise
from tests.unit.cron.walker import Window

if TYPE_CHECKING:
    from store.jobs import Job, Timing, Trigger
    from tests.simulation.cron.rows import Key, Step

FAR = datetime(9999, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
TICK = timedelta(milliseconds=1)


@lru_cache(maxsize=64)
def window(zone: str, start: datetime, end: datetime) -> Window:
    return Window(zone, start, end)


@lru_cache(maxsize=4096)
def slots_of(timing: Timing, start: datetime, end: datetime) -> list[datetime]:
    return window(timing.zone, start, end).fires(timing.cron)


class Regime(NamedTuple):
    """A timing that was in force from one moment of the wall clock to another."""

    timing: Timing
    start: datetime
    end: datetime


class Slots(Promise):
    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._regimes: dict[Key, list[Regime]] = {}
        self._excused: dict[Key, list[tuple[datetime, datetime]]] = {}
        self._idle_since: dict[Key, datetime] = {}
        self._ended: dict[str, datetime] = {}
        self.checked = 0

    def see(self, step: Step) -> None:
        for before, after in step.triggers:
            if after is not None and before is None and after.kind.planned:
                self._new(after, step)
            if after is None and before is not None and before.source not in (None, "baseline-cron"):
                spans = self._excused.setdefault((before.tenant, before.job), [])
                spans.append((before.created_at, max(step.wall, before.created_at)))
            if after is not None and not after.state.open:
                self._ended[after.id] = max(step.wall, after.slot)
        for known, job in step.jobs:
            if job is not None:
                self._job(known, job, step)

    def _new(self, after: Trigger, step: Step) -> None:
        if after.state is TriggerState.SKIPPED:
            self._stretch(after)
        elif after.kind is TriggerKind.SCHEDULE and after.slot < after.created_at - TICK:
            self._broken(f"{named(after)} is planned for {after.slot}, which has passed")
        elif after.source == "baseline-interval" and after.slot != after.created_at:  # the first may be at once
            self._interval(after, step)

    def _stretch(self, row: Trigger) -> None:
        """A slot that was skipped because of a run came after one that was."""
        open_ = [one for one in self.rows.open.values() if (one.tenant, one.job) == (row.tenant, row.job)]
        running = any(one.state is TriggerState.EXECUTING and one.slot < row.slot for one in open_)
        if row.reason == "already_running" and not running:
            self._broken(f"{named(row)}: {row.slot} was skipped as already running, and nothing was")

    def _interval(self, after: Trigger, step: Step) -> None:
        """The distance is the job's own, doubled for each failure, counted from a start, an end or now."""
        job = next((now for _, now in step.jobs if now is not None and now.key == (after.tenant, after.job)), None)
        every = None if job is None else job.spec.timing.every
        if job is None or every is None:
            return
        distance = every * 2 ** min(job.failures, 5)
        ended = [one for one, now in step.triggers if one is not None and now is not None and not now.state.open]
        bases = [step.wall, *(one.slot for one in ended)]
        bases += [self.rows.runs[name].started_at for one in ended for name in self.rows.of_trigger.get(one.id, ())]
        if all(abs(base + distance - after.slot) > timedelta(seconds=2) for base in bases):
            self._broken(f"{named(after)} is planned for {after.slot}: that is not {distance} after anything")

    def _job(self, known: Job | None, job: Job, step: Step) -> None:
        regimes = self._regimes.setdefault(job.key, [])
        excused = self._excused.setdefault(job.key, [])
        if known is None:
            excused.append((datetime.min.replace(tzinfo=UTC), step.wall))
        if job.status is not JobStatus.ACTIVE:  # whatever the clock does meanwhile
            self._idle_since[job.key] = min(step.wall, self._idle_since.get(job.key, FAR))
        elif job.key in self._idle_since:
            excused.append((self._idle_since.pop(job.key), step.wall))
        if known is None or known.spec.timing != job.spec.timing:
            if known is not None:
                regimes[-1] = regimes[-1]._replace(end=step.wall)
                # What the clock has seen already is not planned again, whatever the new timing says.
                excused.append((step.wall, latest(step.wall, known.last_slot)))
            regimes.append(Regime(job.spec.timing, step.wall, FAR))

    # ── at the end ───────────────────────────────────────────────────────────────────────────────────────────────────

    def end(self) -> None:
        for key, regimes in self._regimes.items():
            if key in self.rows.jobs:
                self._account(key, regimes)

    def _account(self, key: Key, regimes: list[Regime]) -> None:
        rows = self.rows.planned(key)
        accounted: dict[datetime, Trigger] = {}
        start = min([self.world.plan.beginning, *(one.start for one in regimes), *(row.slot for row in rows)])
        end = max([start + 2 * DAY, self.world.wall(), *(row.last or row.slot for row in rows)])
        start, end = midnight(start) - DAY, midnight(end) + DAY
        known = {one.timing: slots_of(one.timing, start, end) for one in regimes if one.timing.cron}
        other = any(not one.timing.cron for one in regimes)
        for row in rows:
            self._row(row, known, accounted, other=other)
        upto = min([row.slot for row in rows if row.state.open] or [self.world.wall()])
        excused = [*self._excused[key], *self._other_plans(key), (self._idle_since.get(key, FAR), FAR)]
        for regime in regimes:
            for slot in known.get(regime.timing, ()):
                if not regime.start < slot <= min(regime.end, upto) or slot in accounted:
                    continue
                if not any(first <= slot <= last for first, last in excused):
                    self._broken(f"{key[0]} #{key[1]}: nothing tells what became of {slot} ({regime.timing.cron})")
        self.checked += len(accounted)

    def _row(
        self, row: Trigger, known: dict[Timing, list[datetime]], accounted: dict[datetime, Trigger], *, other: bool
    ) -> None:
        if row.source not in (None, "baseline-cron") or not known:
            return
        last = row.last or row.slot
        fits = [
            found
            for slots in known.values()
            if (found := slots[bisect_left(slots, row.slot) : bisect_right(slots, last)])
            and (found[0], found[-1], len(found)) == (row.slot, last, row.count)
        ]
        if not fits:
            if row.slot != row.created_at and not other:  # the first run may be at once
                self._broken(
                    f"{named(row)} stands for {row.count} slots from {row.slot} to {last}: no schedule has them"
                )
            return
        for slot in fits[0]:
            if slot in accounted:
                self._broken(f"{named(row)}: {slot} was accounted for by {accounted[slot].id} already")
            accounted[slot] = row

    def _other_plans(self, key: Key) -> list[tuple[datetime, datetime]]:
        return [
            (min(row.created_at, row.slot), self._ended.get(row.id, FAR))
            for row in self.rows.planned(key)
            if row.source not in (None, "baseline-cron") or row.slot == row.created_at
        ]

    def _broken(self, why: str) -> None:
        self.world.report("P5", why)


def midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def named(row: Trigger) -> str:
    return f"trigger {row.id} of {row.tenant} #{row.job}"
