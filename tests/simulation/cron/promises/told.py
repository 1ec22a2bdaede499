"""What is told and counted is true: notifications without gaps, each run with its end, the figures of a job."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from store.jobs import RunState, TriggerState
from tests.simulation.cron.promises import Promise

if TYPE_CHECKING:
    from store.jobs import Job, Trigger
    from tests.simulation.cron.rows import Key, Step


class Told(Promise):
    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._runs: Counter[Key] = Counter()
        self._failures: Counter[Key] = Counter()

    def see(self, step: Step) -> None:
        for before, after in step.triggers:
            if after is not None and before is not None and not after.state.open:
                self._ended(after)
        for known, job in step.jobs:
            if job is not None:
                self._count(known, job)

    def _ended(self, after: Trigger) -> None:
        key = after.tenant, after.job
        if after.state is TriggerState.SKIPPED:
            return
        self._runs[key] += 1
        if after.kind.planned and after.state is TriggerState.COMPLETED:
            self._failures[key] = 0
        elif after.kind.planned and after.reason != "stopped":
            self._failures[key] += 1

    def _count(self, known: Job | None, job: Job) -> None:
        if known is not None and known.status.ended and not job.status.ended:
            self._failures[job.key] = 0  # it was given a new time
        if job.runs != self._runs[job.key]:
            self._broken(f"{job.tenant} #{job.id} counts {job.runs} runs, there were {self._runs[job.key]}")
        if job.failures != self._failures[job.key]:
            self._broken(f"{job.tenant} #{job.id} counts {job.failures} failures, not {self._failures[job.key]}")

    def end(self) -> None:
        for tenant, news in self.rows.news.items():
            numbers = [one.seq for one in news]
            if numbers != list(range(1, len(numbers) + 1)):
                self._broken(f"the notifications of {tenant} are not numbered without gaps")
        kinds: dict[str, list[str]] = {}
        for news in self.rows.news.values():
            for one in news:
                kinds.setdefault(one.news.run, []).append(one.news.kind)
        for run in self.rows.runs.values():
            told = kinds.get(run.id, [])
            end = [] if run.state is RunState.RUNNING else [END[run.state]]
            if told != ["run.started", *end]:
                self._broken(f"run {run.id} of {run.tenant} #{run.job} ended as {run.state} and was told as {told}")

    def _broken(self, why: str) -> None:
        self.world.report("told", why)


END = {
    RunState.SUCCEEDED: "run.completed",
    RunState.FAILED: "run.failed",
    RunState.TIMEOUT: "run.failed",
    RunState.CANCELLED: "run.failed",
}
