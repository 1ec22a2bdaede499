"""Leases: renewed while their owner lives, over when it does not, and a stale owner changes nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import trio

from cron.options import Options
from store.jobs import JobStatus
from store.protocols import StoreUnavailable
from tests.unit.cron.world import BEGINNING, ToldRunner, World, make_world

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cron.run import Work
    from store.jobs import Claim

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


async def test_a_run_longer_than_its_lease_runs_once(autojump_clock: object) -> None:
    """The lease is renewed at a third of its span, so nobody else takes the trigger. (T7)"""
    world = make_world(options=Options(lease=MINUTE, run_timeout=HOUR))
    other = World(world.store, world.wall, world.options, ToldRunner(), worker="w2", numbers=world.numbers)

    async def long(work: Work) -> str:
        await trio.sleep(600)
        return "ok"

    world.runner.act = other.runner.act = long
    job = await world.add("in 1 minute")
    async with world.running(), other.running():
        await trio.sleep(900)
    assert [run.state for run in await world.runs(job)] == ["succeeded"]


async def test_an_owner_that_cannot_renew_lets_its_run_die_in_time(autojump_clock: object) -> None:
    """A second before the lease is over the run is cancelled; another owner tries again, and one succeeds. (T19, P4)"""
    world = make_world(options=Options(lease=MINUTE, run_timeout=HOUR))
    other = World(world.store, world.wall, world.options, ToldRunner(), worker="w2", numbers=world.numbers)
    died: list[float] = []

    async def long(work: Work) -> str:
        try:
            await trio.sleep(600)
        finally:
            died.append(trio.current_time())
        return "ok"

    world.runner.act = long
    job = await world.add("in 1 minute")

    async def away(claims: Sequence[Claim], span: timedelta) -> tuple[bool, ...]:
        await trio.lowlevel.checkpoint()
        raise StoreUnavailable("the database is away")

    async def refused(*args: object, **named: object) -> tuple[bool, ...]:
        await trio.lowlevel.checkpoint()
        raise StoreUnavailable("the database is away")

    async with world.running():
        await trio.sleep(65)
        line = Cut(world.store.cron, renew=away, settle=refused, claim=refused)
        world.service._cron = world.service._runs._store = line  # type: ignore[assignment]
        async with other.running():
            await trio.sleep(120)
    assert died == [pytest.approx(119)]
    runs = await world.runs(job)
    assert [(run.worker, run.attempt, run.state) for run in runs] == [("w1", 1, "failed"), ("w2", 2, "succeeded")]
    assert runs[1].started_at >= BEGINNING + 2 * MINUTE


class Cut:
    """A store of which some verbs cannot be reached."""

    def __init__(self, cron: object, **cut: object) -> None:
        self.__dict__.update(cut)
        self.cron = cron

    def __getattr__(self, name: str) -> object:
        return getattr(self.cron, name)


async def test_a_lost_answer_to_a_claim_loses_no_trigger(autojump_clock: object) -> None:
    """What was leased to this worker although it never heard so is found at the next look. (P9)"""
    world = make_world()
    job = await world.add("in 1 minute")
    lost = 0
    claim = world.store.cron.claim

    async def forgets(*args: object, **named: object) -> object:
        nonlocal lost
        claims = await claim(*args, **named)  # type: ignore[arg-type]
        if claims and not lost:
            lost += 1
            raise StoreUnavailable("the connection is gone")
        return claims

    world.service._cron = Cut(world.store.cron, claim=forgets)  # type: ignore[assignment]
    async with world.running():
        await trio.sleep(65)
    assert lost == 1
    (run,) = await world.runs(job)
    assert (run.state, run.attempt) == ("succeeded", 1)
    assert run.lateness <= timedelta(seconds=2)
    assert world.events("check_failed")


async def test_a_stumbling_store_delays_nothing_but_itself(autojump_clock: object) -> None:
    """An error in one check is told and the loop goes on. (H3, C1)"""
    world = make_world()
    job = await world.add("every 1 minute")
    failures = 0
    next_due = world.store.cron.next_due

    async def fails() -> object:
        nonlocal failures
        failures += 1
        if failures % 2:
            raise StoreUnavailable("try again")
        return await next_due()

    world.service._cron = Cut(world.store.cron, next_due=fails)  # type: ignore[assignment]
    async with world.running():
        await trio.sleep(5 * 60 + 5)
    assert len(await world.runs(job)) == 5
    told = world.events("check_failed")
    assert told
    assert told[0]["error"].startswith("Error during schedule check:")


async def test_what_was_claimed_and_not_begun_costs_no_attempt(autojump_clock: object) -> None:
    """A shutdown while many wait their turn gives them back as they were, at once: nothing new begins. (H18)"""
    world = make_world(runner=ToldRunner(limit=10), random=lambda: 1.0)
    jobs = [await world.add("in 1 minute", str(number)) for number in range(5)]
    async with world.running() as service:
        await trio.sleep(65)
        assert service.running() == 5
        await service.stop()
        assert trio.current_time() < 66
    for job in jobs:
        (trigger,) = await world.triggers(job)
        assert (trigger.state, trigger.attempt, trigger.due_at) == ("pending", 0, job.next_at)
        assert await world.runs(job) == []


async def test_a_job_that_ends_its_own_gateway_is_not_begun_for_ever(autojump_clock: object) -> None:
    """A few shutdowns are free; then they are attempts, and attempts come to an end. (39)"""
    world = make_world()

    async def ends_everything(work: Work) -> str:
        world.service._everything.cancel()
        await trio.sleep_forever()
        return ""

    world.runner.act = ends_everything
    job = await world.add("in 1 minute")
    for _ in range(30):
        world.service = world.make_service()
        with trio.move_on_after(120):
            await world.service.run()
    assert (await world.job(job)).status is JobStatus.FAILED
    assert len(await world.runs(job)) <= 3 + 4


async def test_a_life_that_ends_at_once_says_so_to_the_store(autojump_clock: object) -> None:
    """Cancelled from outside, runs are given back: the next life begins them anew without waiting for a lease."""
    world = make_world()

    async def endless(work: Work) -> str:
        await trio.sleep_forever()
        return ""

    world.runner.act = endless
    job = await world.add("in 1 minute")
    await world.live(2 * MINUTE)
    assert [run.state for run in await world.runs(job)] == ["cancelled"]
    world.runner.act = None
    await world.live(timedelta(seconds=2))
    assert [run.state for run in await world.runs(job)] == ["cancelled", "succeeded"]
    assert (await world.runs(job))[1].attempt == 1
    assert (await world.job(job)).status is JobStatus.COMPLETED


async def test_a_crash_does_not_block_a_recurring_job(autojump_clock: object) -> None:
    """What a dead process had running is recorded as failed, and the schedule goes on. (27, H20, J5)"""
    world = make_world(options=Options(max_retries=0))

    async def endless(work: Work) -> str:
        await trio.sleep_forever()
        return ""

    world.runner.act = endless
    job = await world.add("*/10 * * * *")
    await world.crash_after(15 * MINUTE)
    world.runner.act = None
    await world.live(10 * MINUTE)
    first, second = await world.runs(job)
    assert (first.state, second.state) == ("failed", "succeeded")
    assert first.error == "orphaned: the worker w1 ended or was away while it ran"
    assert second.started_at - BEGINNING == 20 * MINUTE
