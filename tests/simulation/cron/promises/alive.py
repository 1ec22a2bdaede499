"""P9: an active job that fires by itself has exactly one open planned trigger, always, and it fires."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from store.jobs import JobStatus, TriggerState
from tests.simulation.cron.promises import Promise

if TYPE_CHECKING:
    from store.jobs import Trigger
    from tests.simulation.cron.rows import Key, Step


class Alive(Promise):
    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._due: dict[str, Trigger] = {}
        self._oneshots: dict[Key, int] = {}
        self._quiet: dict[Key, list[str]] = {}
        """Planned triggers of a job that were claimed in the quiet hours."""

    def see(self, step: Step) -> None:
        for known, job in step.jobs:
            if job is None and known is not None:
                self._removed(known.key)
            elif job is not None and job.status is JobStatus.ACTIVE:
                self._planned(job.key, step)
        for before, after in step.triggers:
            if after is not None and before is not None and after.token != before.token:
                self._due.pop(after.id, None)
                if self.world.quiet and after.kind.planned:
                    self._quiet.setdefault((after.tenant, after.job), []).append(after.id)
            if before is not None and after is not None and not after.state.open and after.source == "ai-oneshot":
                self._hint_used((after.tenant, after.job))

    def _planned(self, key: Key, step: Step) -> None:
        open_ = {one.id: one for one in self.rows.open.values() if (one.tenant, one.job) == key}
        for before, after in step.triggers:
            if after is not None and after.state.open:
                open_[after.id] = after
            elif (gone := after or before) is not None:
                open_.pop(gone.id, None)
        planned = [one for one in open_.values() if one.kind.planned and (one.tenant, one.job) == key]
        if len(planned) != 1:
            self._broken(f"{key[0]} #{key[1]} is active and has {len(planned)} open planned triggers")

    def _removed(self, key: Key) -> None:
        done = any(one.job == key and one.how == "returned" for one in self.world.seen.values())
        if key not in self.world.purged and not done:
            self._broken(f"{key[0]} #{key[1]} was removed, and it has never succeeded")

    def _hint_used(self, key: Key) -> None:
        self._oneshots[key] = self._oneshots.get(key, 0) + 1
        if self._oneshots[key] > self.world.hinted.get(key, 0):
            self._broken(f"{key[0]} #{key[1]}: a hint for one run led to two")

    def quiet(self) -> None:
        """What is due within the quiet hours will have been claimed when they end."""
        patience = timedelta(seconds=self.world.plan.quiet_s) - timedelta(minutes=10)
        until = self.world.wall() + patience
        self._due = {one.id: one for one in self.rows.open.values() if one.claim_at <= until}

    def end(self) -> None:
        for key, claimed in self._quiet.items():
            if len(claimed) > 1 and key in self.rows.jobs and not any(map(self.rows.of_trigger.get, claimed)):
                self._broken(f"{key[0]} #{key[1]} was due {len(claimed)} times in the quiet hours and never ran")
        for one in self._due.values():
            job = self.rows.jobs.get((one.tenant, one.job))
            if job is not None and one.id in self.rows.open and one.state is TriggerState.PENDING:
                self._broken(f"{one.tenant} #{one.job}: {one.id} was due at {one.due_at} and has not fired")

    def _broken(self, why: str) -> None:
        self.world.report("P9", why)
