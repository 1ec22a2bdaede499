"""What is in the store, seen after every write: each change of a row is shown to the promises.

Rows that have ended are put away after a while, as `tidy` would do later, so that the store without indexes stays fast;
here they are all still known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import trio

if TYPE_CHECKING:
    from datetime import datetime

    from store.jobs import Job, Notification, Run, Trigger
    from tests.simulation.cron.world import World

Key = tuple[str, int]


class Step(NamedTuple):
    """What one write changed: each row before and after it; None where there was none, or is none any more."""

    at: float
    wall: datetime
    jobs: list[tuple[Job | None, Job | None]]
    triggers: list[tuple[Trigger | None, Trigger | None]]
    runs: list[tuple[Run | None, Run | None]]

    def __bool__(self) -> bool:
        return bool(self.jobs or self.triggers or self.runs)


class Rows:
    def __init__(self, world: World) -> None:
        self._world = world
        self.jobs: dict[Key, Job] = {}
        self.triggers: dict[str, Trigger] = {}
        """All there ever were, but for those that were withdrawn or removed with their job."""
        self.open: dict[str, Trigger] = {}
        self.runs: dict[str, Run] = {}
        self.of_job: dict[Key, dict[str, Trigger]] = {}
        self.of_trigger: dict[str, list[str]] = {}
        """The runs of a trigger, in order."""
        self.news: dict[str, list[Notification]] = {}
        self._put_away: set[str] = set()
        self._old: set[tuple[str, str]] = set()

    def look(self) -> None:
        """Compare with what was there before, show it, remember it."""
        tables = self._world.store.cron.tables
        step = Step(trio.current_time(), self._world.wall(), [], [], [])
        for (_, name), trigger in tables.triggers.items():
            if (before := self.triggers.get(name)) is not trigger:
                step.triggers.append((before, trigger))
        for (_, name), run in tables.runs.items():
            if (was := self.runs.get(name)) is not run:
                step.runs.append((was, run))
        for key, job in tables.jobs.items():
            if (known := self.jobs.get(key)) is not job:
                step.jobs.append((known, job))
        self._missing(step)
        if not step or self._world.found is not None:
            return
        for promise in self._world.promises:
            promise.see(step)
        self._remember(step)

    def put_away(self) -> None:
        """What had ended when this was called before leaves the store; it stays known here."""
        self.look()
        tables = self._world.store.cron.tables
        ended = {key for key, one in tables.triggers.items() if not one.state.open and one.key is None}
        for key in ended & self._old:
            del tables.triggers[key]
            self._put_away.add(key[1])
        for key in [key for key, run in tables.runs.items() if run.trigger in self._put_away]:
            del tables.runs[key]
            tables.outputs.pop(key, None)
            self._put_away.add(key[1])
        for tenant, news in tables.news.items():
            self.news.setdefault(tenant, []).extend(news)
            news.clear()
        self._world.store.signs.clear()
        self._world.store.machines.clear()
        self._world.store.outbox.clear()
        self._old = ended - self._old

    def planned(self, key: Key) -> list[Trigger]:
        """Those that stand for slots of the schedule, the earliest first."""
        return sorted((one for one in self.of_job.get(key, {}).values() if one.kind.planned), key=lambda one: one.slot)

    def _missing(self, step: Step) -> None:
        tables = self._world.store.cron.tables
        for key in self.jobs.keys() - tables.jobs.keys():
            step.jobs.append((self.jobs[key], None))
        for one in self.open.values():
            if (one.tenant, one.id) not in tables.triggers:
                step.triggers.append((one, None))

    def _remember(self, step: Step) -> None:
        for before, after in step.triggers:
            if after is not None:
                self.triggers[after.id] = after
                if after.state.open:
                    self.open[after.id] = after
                else:
                    self.open.pop(after.id, None)
                self.of_job.setdefault((after.tenant, after.job), {})[after.id] = after
            elif before is not None:
                del self.triggers[before.id], self.open[before.id]
                del self.of_job[before.tenant, before.job][before.id]
                self._forget_runs(before.id)
        for was, run in step.runs:
            if run is not None:
                self.runs[run.id] = run
                if was is None:
                    self.of_trigger.setdefault(run.trigger, []).append(run.id)
        for known, job in step.jobs:
            if job is not None:
                self.jobs[job.key] = job
            elif known is not None:
                del self.jobs[known.key]
                for name in self.of_job.pop(known.key, {}):
                    del self.triggers[name]
                    self._forget_runs(name)

    def _forget_runs(self, trigger: str) -> None:
        for run in self.of_trigger.pop(trigger, ()):
            del self.runs[run]
