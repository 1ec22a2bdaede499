"""What is due is claimed on the dot by a worker that has nothing else to do, while nothing goes wrong."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from store.jobs import TriggerState
from tests.simulation.cron.promises import Promise

if TYPE_CHECKING:
    from store.jobs import Trigger
    from tests.simulation.cron.rows import Key, Step
    from tests.simulation.cron.world import Life

ON_TIME = timedelta(milliseconds=2)
WARM_UP_S = 10.0


class Punctual(Promise):
    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._free_since: dict[str, float] = {}
        """Since when a worker has held nothing."""
        self._job_free_since: dict[Key, float] = {}
        self._held: dict[str, Trigger] = {}
        self.claims = self.on_time = 0

    def see(self, step: Step) -> None:
        for before, after in step.triggers:
            pending = before is not None and before.state is TriggerState.PENDING
            if before is not None and pending and after is not None and after.state is TriggerState.EXECUTING:
                self._look(before, step)
        for before, after in step.triggers:
            if before is not None and before.state is TriggerState.EXECUTING:
                self._free_since[before.owner] = self._job_free_since[before.tenant, before.job] = step.at
                self._held.pop(before.id, None)
            if after is not None and after.state is TriggerState.EXECUTING:
                self._held[after.id] = after

    def _look(self, before: Trigger, step: Step) -> None:
        self.claims += 1
        late = step.wall - before.due_at
        since = step.at - late.total_seconds()
        known_at = max(since, step.at - (step.wall - before.created_at).total_seconds())
        idle = any(self._idle(life, known_at) for life in self.world.living)
        job_free = self._job_free_since.get((before.tenant, before.job), 0.0) < known_at - WARM_UP_S
        if not idle or not job_free or not self.world.calm_since(since - WARM_UP_S - self.world.plan.look_s):
            return
        self.on_time += 1
        if step.at - known_at > ON_TIME.total_seconds():
            self.world.report(
                "on time", f"trigger {before.id} of {before.tenant} #{before.job} was claimed {late} late"
            )

    def _idle(self, life: Life, since: float) -> bool:
        busy = any(one.owner == life.worker for one in self._held.values())
        ready = life.ready_since is not None and life.ready_since < since - WARM_UP_S and not life.leaving
        return ready and not busy and self._free_since.get(life.worker, 0.0) < since - WARM_UP_S
