"""Bugs on purpose: each is a small patch that makes cron subtly wrong, in a way somebody could have written it.

`test_planted_bugs.py` shows that each is found. To see what one looks like from outside:
`python -m tests.simulation.cron 7 --plant claims_early`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from cron import governor, outcome, plans, run
from cron.outcome import Concluding
from cron.run import Runs
from cron.service import CronService
from store import cron_steps, memory_cron
from store.jobs import Fate, JobStatus, Next, RunState, TriggerKind, TriggerState
from store.memory_cron import MemoryCron
from tests.simulation.planting import planting_into

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from cron.governor import Decision
    from store.jobs import Change, Claim, Ended, Job, Trigger
    from tests.simulation.planting import Bug

PLANTED: dict[str, Bug] = {}


planted = planting_into(PLANTED)

# ── planning ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@planted
def plans_before_counting_the_failure() -> Iterator[Any]:
    """The next distance is that of the job before its run failed. (T3)"""
    real = governor.replan

    def replan(job: Job, *args: Any, **named: Any) -> Decision | None:
        return real(replace(job, failures=max(job.failures - 1, 0)), *args, **named)

    yield patch.object(outcome, "replan", replan)


@planted
def a_used_hint_stays() -> Iterator[Any]:
    """A proposed moment is not forgotten when it has fired. (T4)"""
    yield patch.object(governor, "clear_hints", lambda job, now: job)


@planted
def a_missed_hint_stays() -> Iterator[Any]:
    """A proposed moment is not forgotten when it was passed over."""
    yield patch.object(outcome, "clear_hints", lambda job, now: job)


@planted
def forgets_the_zone() -> Iterator[Any]:
    """After the first trigger the schedule is read as UTC. (T10)"""
    real = governor.replan

    def replan(job: Job, *args: Any, **named: Any) -> Decision | None:
        timing = replace(job.spec.timing, zone="UTC")
        return real(replace(job, spec=replace(job.spec, timing=timing)), *args, **named)

    yield patch.object(outcome, "replan", replan)


@planted
def the_clock_went_back_and_so_did_the_slots() -> Iterator[Any]:
    """What was settled last is not remembered: a clock that is set back brings slots twice."""
    real = governor.baseline

    def baseline(now: datetime, job: Job, not_before: datetime | None) -> Decision | None:
        return real(now, job, None)

    yield patch.object(governor, "baseline", baseline)


@planted
def catches_up_with_every_slot() -> Iterator[Any]:
    """After a long absence every missed slot is fired, one after the other."""
    real = Concluding._go_on

    def go_on(self: Concluding, job: Job, trigger: Trigger, *args: Any, **named: Any) -> Change:
        change = real(self, job, trigger, *args, **named)
        if not change.stretches or change.next is None:
            return change
        slot = change.stretches[0].first
        following = Next(change.next.id, slot, slot, change.next.source)
        return replace(change, job=replace(change.job, last_slot=trigger.slot), stretches=(), next=following)

    yield patch.object(Concluding, "_go_on", go_on)


# ── what became of a slot ────────────────────────────────────────────────────────────────────────────────────────────


@planted
def slots_under_a_long_run_vanish() -> Iterator[Any]:
    """What passed while a run went on is not written down."""
    real = Concluding._go_on

    def go_on(self: Concluding, *args: Any, **named: Any) -> Change:
        return replace(real(self, *args, **named), stretches=())

    yield patch.object(Concluding, "_go_on", go_on)


@planted
def a_pause_takes_the_due_slot_away() -> Iterator[Any]:
    """What is due when its job is paused goes without a trace."""
    real = plans.moved

    def moved(before: Job, job: Job, trigger: Trigger | None, *args: Any) -> Change:
        change = real(before, job, trigger, *args)
        return change if change.fate is None else replace(change, fate=None, withdraw=True)

    yield patch.object(plans, "moved", moved)


@planted
def a_pause_forgets_what_passed_under_a_run() -> Iterator[Any]:
    """Slots that passed while a run went on are forgotten when the job is paused or edited."""
    real = plans.meanwhile

    def meanwhile(*args: Any) -> Change:
        return replace(real(*args), stretches=())

    yield patch.object(plans, "meanwhile", meanwhile)


@planted
def a_long_run_makes_its_job_skip() -> Iterator[Any]:
    """A job whose run was longer than its interval is taken for running at its next slot too. (28)"""
    real = outcome.pass_over

    def pass_over(claim: Claim, *args: Any) -> str | None:
        job, interval = claim.job, timedelta(minutes=5)
        long = job.last_run_at is not None and job.last_slot is not None and job.last_slot - job.last_run_at > interval
        return outcome.ALREADY_RUNNING if long and not claim.trigger.attempt else real(claim, *args)

    yield patch.object(run, "pass_over", pass_over)


# ── attempts ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@planted
def claims_early() -> Iterator[Any]:
    """What is due within the next minute is claimed already. (T6)"""
    real = MemoryCron._claimable

    def claimable(self: MemoryCron, tenant: str, now: datetime) -> list[Trigger]:
        return real(self, tenant, now + timedelta(minutes=1))

    yield patch.object(MemoryCron, "_claimable", claimable)


@planted
def never_renews() -> Iterator[Any]:
    """Leases are not renewed: what takes longer dies. (T7)"""

    async def renew(self: Runs, mine: list[Any]) -> None:
        return None

    yield patch.object(Runs, "renew", renew)


@planted
def a_retry_begins_at_one() -> Iterator[Any]:
    """Whoever tries again forgets how often that was."""
    real = cron_steps.fated

    def fated(trigger: Trigger, fate: Fate, now: datetime) -> Trigger:
        after = real(trigger, fate, now)
        return replace(after, attempt=0) if after.state is TriggerState.PENDING else after

    yield patch.object(cron_steps, "fated", fated)


@planted
def a_shutdown_costs_an_attempt() -> Iterator[Any]:
    """What is given back counts as tried."""
    real = cron_steps.fated

    def fated(trigger: Trigger, fate: Fate, now: datetime) -> Trigger:
        return real(trigger, replace(fate, counts=True), now)

    yield patch.object(cron_steps, "fated", fated)


@planted
def a_stale_owner_settles() -> Iterator[Any]:
    """Who lost its lease and comes back late is believed."""

    def is_current(claim: Claim, trigger: Trigger | None) -> bool:
        return trigger is not None and trigger.state is TriggerState.EXECUTING

    yield patch.object(memory_cron, "is_current", is_current)


@planted
def tries_for_ever() -> Iterator[Any]:
    """A failure is always worth another attempt."""
    yield patch.object(outcome, "should_retry", lambda attempt, most, permanent: not permanent)


@planted
def runs_beside_itself() -> Iterator[Any]:
    """A job that runs may be fired once more at the same time."""

    def claimable(self: MemoryCron, tenant: str, now: datetime) -> list[Trigger]:
        found = sorted(self._triggers(tenant), key=lambda one: (one.claim_at, one.id))
        return [one for one in found if one.state.open and one.claim_at <= now]

    yield patch.object(MemoryCron, "_claimable", claimable)


# ── staying alive ────────────────────────────────────────────────────────────────────────────────────────────────────


@planted
def a_failure_ends_the_schedule() -> Iterator[Any]:
    """After a run that failed for good nothing is planned. (T9)"""
    real = Concluding._failed

    def failed(self: Concluding, *args: Any) -> Change:
        return replace(real(self, *args), next=None)

    yield patch.object(Concluding, "_failed", failed)


@planted
def deletes_a_one_shot_that_failed() -> Iterator[Any]:
    """A job that is to go after its success goes after its failure."""
    real = Concluding._failed

    def failed(self: Concluding, job: Job, trigger: Trigger, *args: Any) -> Change:
        change = real(self, job, trigger, *args)
        over = change.job.status is JobStatus.FAILED and job.spec.rules.delete_after_success
        return replace(change, remove=over)

    yield patch.object(Concluding, "_failed", failed)


@planted
def a_crash_leaves_it_executing() -> Iterator[Any]:
    """What a dead worker held is nobody's: neither its next life nor another one looks at it."""
    real = MemoryCron._claimable

    def claimable(self: MemoryCron, tenant: str, now: datetime) -> list[Trigger]:
        return [one for one in real(self, tenant, now) if one.state is TriggerState.PENDING]

    async def nothing(*args: Any) -> tuple[()]:
        return ()

    yield patch.object(MemoryCron, "_claimable", claimable)
    yield patch.object(MemoryCron, "held", nothing)
    yield patch.object(MemoryCron, "claim_orphans", nothing)


@planted
def a_poke_is_lost() -> Iterator[Any]:
    """Whoever sleeps does not hear that something is due sooner. (36)"""

    def poke(self: CronService) -> None:
        self._look = True

    yield patch.object(CronService, "poke", poke)


@planted
def an_older_claim_takes_the_newer_one_along() -> Iterator[Any]:
    """A worker that claims again what it lost stumbles over its own older claim. (found by seed 19)"""

    async def carry(self: Runs, held: Any, wait_s: float = 0.0) -> None:
        try:
            ended = await self._attempt(held, wait_s)
            if ended is not None:
                await self._settle(held, ended)
        finally:
            del self.holding[held.claim.trigger.id]
            self._freed()

    yield patch.object(Runs, "carry", carry)


@planted
def a_slow_answer_makes_late() -> Iterator[Any]:
    """What the store said about the next due time counts from when the answer came. (found by seed 22)"""
    real = CronService._plan_sleep

    async def plan_sleep(self: CronService, *, full: bool) -> None:
        asked_at = self._now()
        await real(self, full=full)
        if self._due_at is not None:
            self._due_at += self._now() - asked_at

    yield patch.object(CronService, "_plan_sleep", plan_sleep)


# ── telling ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@planted
def a_run_that_was_given_back_has_no_end() -> Iterator[Any]:
    """A run that a shutdown ended is told as started only."""
    real = Concluding.__call__

    def call(self: Concluding, job: Job, trigger: Trigger, ended: Ended, now: datetime) -> Change:
        change = real(self, job, trigger, ended, now)
        return replace(change, news=()) if ended.state is RunState.CANCELLED and ended.reason else change

    yield patch.object(Concluding, "__call__", call)


@planted
def manual_runs_move_the_schedule() -> Iterator[Any]:
    """A run that somebody asked for counts as the slot that comes next."""
    real = Concluding._go_on

    def go_on(self: Concluding, job: Job, trigger: Trigger, *args: Any, **named: Any) -> Change:
        change = real(self, job, trigger, *args, **named)
        if trigger.kind is TriggerKind.MANUAL and job.next_at is not None:
            return replace(change, withdraw=True, next=self._next(governor.plan(job.next_at, job)))
        return change

    yield patch.object(Concluding, "_go_on", go_on)
