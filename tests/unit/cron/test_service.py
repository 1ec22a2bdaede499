"""The service: starts, looks, claims no more than can begin, and ends in good order. On MockClock."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import trio

from cron.errors import AlreadyRunning, SchedulerShutdownError
from cron.options import Options
from cron.service import AT_ONCE, Status
from tests.unit.cron.world import BEGINNING, ToldRunner, make_world

if TYPE_CHECKING:
    from cron.run import Work

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


async def test_an_interval_job_runs_start_to_start_without_drift(autojump_clock: object) -> None:
    """However long its runs take, the next one begins an interval after the one before began. (31, C18)"""
    world = make_world()

    async def slow(work: Work) -> str:
        await trio.sleep(7)
        return "ok"

    world.runner.act = slow
    job = await world.add("every 10 minutes")
    await world.live(65 * MINUTE)
    starts = [run.started_at - BEGINNING for run in await world.runs(job)]
    assert starts == [10 * MINUTE * n for n in range(1, 7)]
    assert all(run.lateness == timedelta(0) for run in await world.runs(job))


async def test_a_second_start_is_refused(autojump_clock: object) -> None:
    """Starting twice is an error, and the first one goes on. (H2)"""
    world = make_world()
    async with world.running() as service:
        with pytest.raises(AlreadyRunning, match="already running"):
            await service.run()
        assert service.is_running
    assert service.status is Status.STOPPED


async def test_the_state_counts_looks_and_triggers(autojump_clock: object) -> None:
    """Nothing before the start; afterwards when it began, how often it looked and how much it fired. (H2)"""
    world = make_world()
    assert world.service.state() == (Status.STOPPED, None, 0, 0, None)
    await world.add("every 1 minute")
    async with world.running() as service:
        await trio.sleep(150)
        state = service.state()
    assert state.status is Status.RUNNING
    assert state.started_at == BEGINNING
    assert state.trigger_count == 2
    assert state.check_count >= 150
    assert state.last_check_at is not None
    assert state.last_check_at - BEGINNING >= timedelta(seconds=149)


async def test_a_stop_waits_for_what_runs(autojump_clock: object) -> None:
    """Nothing new begins, what runs finishes and is settled. (H18)"""
    world = make_world()

    async def slow(work: Work) -> str:
        await trio.sleep(20)
        return "ok"

    world.runner.act = slow
    job = await world.add("every 1 minute")
    async with world.running() as service:
        await trio.sleep(65)
        assert service.running() == 1
        await service.stop(within=timedelta(seconds=30))
        assert service.running() == 0
        assert trio.current_time() == pytest.approx(80)
    assert [run.state for run in await world.runs(job)] == ["succeeded"]


async def test_a_stop_that_takes_too_long_says_how_many_were_left(autojump_clock: object) -> None:
    """They are given back at no cost of an attempt, and run again after the next start. (H18)"""
    world = make_world(runner=ToldRunner(limit=3))

    async def endless(work: Work) -> str:
        await trio.sleep_forever()
        return ""

    world.runner.act = endless
    jobs = [await world.add("every 1 minute", str(number)) for number in range(3)]
    async with world.running() as service:
        await trio.sleep(65)
        with pytest.raises(
            SchedulerShutdownError, match=r"timed out after 5000ms with 3 job\(s\) still running"
        ) as told:
            await service.stop(within=timedelta(seconds=5))
    assert told.value.running == 3
    assert told.value.timed_out
    for job in jobs:
        (trigger,) = await world.triggers(job)
        assert (trigger.state, trigger.attempt) == ("pending", 0)
        assert [run.state for run in await world.runs(job)] == ["cancelled"]
    world.runner.act = None
    await world.live(timedelta(seconds=10))
    assert [run.state for job in jobs for run in await world.runs(job)] == ["cancelled", "succeeded"] * 3


async def test_an_idle_service_stops_at_once(autojump_clock: object) -> None:
    """Sleeping does not hold up a stop. (H4)"""
    world = make_world()
    await world.add("every 1 hour")
    async with world.running() as service:
        await trio.sleep(0.5)
        await service.stop()
        assert trio.current_time() == pytest.approx(0.5)


async def test_a_stop_before_it_was_ready_is_a_stop(autojump_clock: object) -> None:
    """A store that does not answer at the start does not keep anybody from stopping it."""
    world = make_world()
    with pytest.MonkeyPatch.context() as patch:

        async def never(self: object, worker: str) -> None:
            await trio.sleep_forever()

        patch.setattr(type(world.store.cron), "held", never)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(nursery.start, world.service.run)
            await trio.sleep(1)
            await world.service.stop()
    assert world.service.status is Status.STOPPED


async def test_no_more_is_claimed_than_can_begin(autojump_clock: object) -> None:
    """Leases do not tick in a queue: with two slots two are leased, and the rest waits in the store. (P3, G6)"""
    world = make_world(runner=ToldRunner(limit=2), options=Options(jitter_threshold=100))

    async def slow(work: Work) -> str:
        await trio.sleep(5)
        return "ok"

    world.runner.act = slow
    for number in range(6):
        await world.add("in 1 minute", str(number))
    async with world.running():
        await trio.sleep(61)
        counts = await world.store.cron.counts("default")
        assert (counts.executing, counts.pending) == (2, 4)
        await trio.sleep(30)
    assert world.runner.most == 2
    assert len(world.runner.done) == 6


async def test_a_full_lane_is_claimed_a_few_at_a_time(autojump_clock: object) -> None:
    """No question is for more than a short step can lease, and yet all of them begin at once."""
    world = make_world(runner=ToldRunner(limit=100), options=Options(jitter_threshold=100))
    asked: list[int] = []
    claim = type(world.store.cron).claim

    async def note(self: Any, worker: str, limit: int, *others: Any, **more: Any) -> Any:
        asked.append(limit)
        return await claim(self, worker, limit, *others, **more)

    for number in range(2 * AT_ONCE + 1):
        await world.add("in 1 minute", str(number))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(world.store.cron), "claim", note)
        await world.live(2 * MINUTE)
    assert max(asked) == AT_ONCE
    assert [work.run.started_at - BEGINNING for work in world.runner.works] == [MINUTE] * (2 * AT_ONCE + 1)


async def test_an_agent_has_no_more_runs_than_it_may(autojump_clock: object) -> None:
    """Its other jobs wait, those of other agents do not. (H17, H8)"""
    world = make_world(runner=ToldRunner(limit=10), options=Options(agents={"busy": 1}, jitter_threshold=100))

    async def slow(work: Work) -> str:
        await trio.sleep(5)
        return "ok"

    world.runner.act = slow
    for number in range(3):
        await world.add("in 1 minute", str(number), agent="busy")
        await world.add("in 1 minute", str(number), agent="free")
    async with world.running() as service:
        await trio.sleep(62)
        assert service.running("busy") == 1
        assert service.running("free") == 3
        await trio.sleep(30)
        assert service.running() == 0
    assert len(world.runner.done) == 6


async def test_many_claimed_at_once_are_spread(autojump_clock: object) -> None:
    """More than the threshold at once begin over half a minute; few begin at once. (G7)"""
    draws = iter([0.0, 0.25, 0.5, 1.0] + [0.5] * 100)
    world = make_world(runner=ToldRunner(limit=10), random=lambda: next(draws))
    for number in range(4):
        await world.add("in 1 minute", str(number))
    job = await world.add("in 5 minutes", "alone")
    await world.live(10 * MINUTE)
    started = sorted(work.run.started_at - BEGINNING for work in world.runner.works)
    assert started[:4] == [MINUTE + timedelta(seconds=s) for s in (0, 7.5, 15, 30)]
    (alone,) = await world.runs(job)
    assert alone.started_at - BEGINNING == 5 * MINUTE


async def test_a_poke_wakes_the_sleeping_loop(autojump_clock: object) -> None:
    """A new job that is due sooner than all others is not slept over. (36)"""
    world = make_world()
    await world.add("every 6 hours")
    async with world.running():
        await trio.sleep(100.25)
        job = await world.add("in 1 minute")
        await trio.sleep(61)
        (run,) = await world.runs(job)
    assert run.lateness == timedelta(0)


async def test_an_idle_service_asks_the_store_only_to_poll(autojump_clock: object) -> None:
    """With nothing due an hour of looks costs no question but the polls. (P13, N2)"""
    world = make_world()
    await world.add("every 6 hours")
    asked = 0
    next_due = type(world.store.cron).next_due

    async def counting(self: object) -> object:
        nonlocal asked
        asked += 1
        return await next_due(self)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(world.store.cron), "next_due", counting)
        async with world.running() as service:
            await trio.sleep(3600)
            checks = service.state().check_count
    assert checks >= 3600
    assert asked <= 3600 / 30 + 5
