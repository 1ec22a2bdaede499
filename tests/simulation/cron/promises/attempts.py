"""P4: one trigger per slot, attempts numbered and never overlapping, at most one succeeds; the stale settle nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from store.jobs import RunState, TriggerState
from tests.simulation.cron.promises import Promise

if TYPE_CHECKING:
    from datetime import datetime

    from store.jobs import Run, Trigger
    from tests.simulation.cron.rows import Step

LONG_S = 1.5


class Attempts(Promise):
    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._token: dict[str, int] = {}
        """Under which token a run was begun."""
        self._slots: dict[tuple[str, int, datetime], str] = {}
        """Which trigger a slot of a schedule has."""

    def see(self, step: Step) -> None:
        for before, after in step.triggers:
            if after is None and before is not None:
                self._slots.pop((before.tenant, before.job, before.slot), None)
                removed = any(
                    job is None and known and known.key == (before.tenant, before.job) for known, job in step.jobs
                )
                if before.token and not removed:
                    self._broken(f"trigger {before.id} of {before.tenant} #{before.job} vanished after it was claimed")
        for before, after in step.triggers:
            if after is not None:
                self._trigger(before, after, step)
        for was, run in step.runs:
            if run is not None:
                self._run(was, run, step)

    def _trigger(self, before: Trigger | None, after: Trigger, step: Step) -> None:
        if before is None:
            if after.kind.planned and after.source in (None, "baseline-cron"):
                self._new(after)
            return
        if not before.state.open:
            self._broken(f"trigger {after.id} had ended as {before.state} and is {after.state}")
        if after.token != before.token:
            self._claimed(before, after, step)
        elif before.state is TriggerState.PENDING and after.state is TriggerState.EXECUTING:
            self._broken(f"trigger {after.id} executes without a new token")
        if after.state is TriggerState.SKIPPED and not after.reason:
            self._broken(f"trigger {after.id} was skipped without a reason")

    def _new(self, after: Trigger) -> None:
        other = self._slots.setdefault((after.tenant, after.job, after.slot), after.id)
        if other != after.id:
            self._broken(f"slot {after.slot} of {after.tenant} #{after.job} has two triggers: {other}, {after.id}")

    def _claimed(self, before: Trigger, after: Trigger, step: Step) -> None:
        if after.token != before.token + 1:
            self._broken(f"trigger {after.id}: token {before.token} became {after.token}")
        if step.wall < before.claim_at:
            self._broken(f"trigger {after.id} was claimed {before.claim_at - step.wall} early")

    def _run(self, was: Run | None, run: Run, step: Step) -> None:
        if was is None:
            self._started(run)
        elif was.state is not RunState.RUNNING:
            self._broken(f"run {run.id} had ended as {was.state} and is {run.state}")
        elif run.state is RunState.SUCCEEDED:
            self._succeeded(run)
        elif run.state is RunState.FAILED and "lease was lost" in run.error:
            self._lost(run, step)

    def _started(self, run: Run) -> None:
        trigger = self.rows.triggers[run.trigger]
        self._token[run.id] = trigger.token
        earlier = [self.rows.runs[one] for one in self.rows.of_trigger.get(run.trigger, ())]
        last = earlier[-1] if earlier else None
        costs = last is not None and last.state is not RunState.CANCELLED
        expected = 1 if last is None else last.attempt + costs
        if run.attempt != expected:
            self._broken(f"attempt {run.attempt} of trigger {run.trigger} begins: expected {expected}")
        job = self.rows.jobs[run.tenant, run.job]
        if run.attempt > self.world.plan.options.retries(job.spec) + 1:
            self._broken(f"attempt {run.attempt} of trigger {run.trigger} is one too many")
        if any(one.state is RunState.SUCCEEDED for one in earlier):
            self._broken(f"trigger {run.trigger} had succeeded and begins anew")
        beside = [
            name
            for other in self.rows.open.values()
            if (other.tenant, other.job) == (run.tenant, run.job)
            for name in self.rows.of_trigger.get(other.id, ())
            if self.rows.runs[name].state is RunState.RUNNING
        ]
        if beside:
            self._broken(f"run {run.id} of {run.tenant} #{run.job} begins while {beside[0]} has not ended")
        going_on = [name for name, key in self.world.going_on.items() if key == (run.tenant, run.job)]
        if going_on and self.world.jumped_at == float("-inf"):
            self._broken(f"run {run.id} of {run.tenant} #{run.job} begins while {going_on[0]} is carried out")

    def _succeeded(self, run: Run) -> None:
        trigger = self.rows.triggers[run.trigger]
        if trigger.state is not TriggerState.EXECUTING or trigger.token != self._token[run.id]:
            self._broken(f"run {run.id} succeeded under token {self._token[run.id]}, its trigger has {trigger.token}")
        if self.world.seen[run.id].how != "returned":
            self._broken(f"run {run.id} succeeded, but the runner {self.world.seen[run.id].how or 'was not done'}")

    def _lost(self, run: Run, step: Step) -> None:
        """A lease that is renewed is not lost for nothing."""
        lease_s = self.world.plan.options.lease.total_seconds()
        if self.world.calm_since(step.at - LONG_S * lease_s):
            self._broken(f"run {run.id} lost its lease for no reason")

    def end(self) -> None:
        for run in self.rows.runs.values():
            seen = self.world.seen.get(run.id)
            if run.state is RunState.RUNNING and (seen is None or seen.ended is not None):
                self._broken(f"run {run.id} of {run.tenant} #{run.job} runs for ever")
        for trigger in self.rows.open.values():
            late = self.world.wall() - trigger.claim_at
            if late > timedelta(minutes=2):
                self._broken(f"trigger {trigger.id} of {trigger.tenant} #{trigger.job} is {trigger.state}, {late} late")

    def _broken(self, why: str) -> None:
        self.world.report("P4", why)
