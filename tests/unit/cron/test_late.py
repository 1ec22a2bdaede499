"""Late, long and overlapping: what becomes of slots that nobody ran."""

from __future__ import annotations

import math
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
import trio

from cron.options import Options
from store.jobs import JobStatus, Rules
from tests.unit.cron.world import BEGINNING, ToldRunner, make_world

if TYPE_CHECKING:
    from cron.run import Work

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


async def test_missed_slots_are_caught_up_with_one_run(autojump_clock: object) -> None:
    """After hours away an hourly job runs once, and the other slots are one row with first, last and count. (25, R8)"""
    world = make_world()
    job = await world.add("0 * * * *")
    await trio.sleep(5.5 * 3600)
    await world.live(MINUTE)
    assert await world.states(job) == ["completed", "skipped(missed)x4", "pending"]
    missed = (await world.triggers(job))[1]
    assert (missed.slot - BEGINNING, missed.last) == (2 * HOUR, BEGINNING + 5 * HOUR)
    assert (await world.triggers(job))[2].slot - BEGINNING == 6 * HOUR


async def test_a_job_that_shall_not_catch_up_goes_to_its_next_slot(autojump_clock: object) -> None:
    """All that were missed are one row, and nothing runs before the next slot. (25)"""
    world = make_world()
    job = await world.add("0 * * * *", rules=Rules(catch_up="skip"))
    await trio.sleep(5.5 * 3600)
    await world.live(HOUR)
    assert await world.states(job) == ["skipped(missed)x5", "completed", "pending"]
    (run,) = await world.runs(job)
    assert (run.started_at - BEGINNING, run.lateness) == (6 * HOUR, timedelta(0))


async def test_what_is_later_than_its_grace_is_missed(autojump_clock: object) -> None:
    """A daily job away for hours beyond its grace waits for the next day. (25)"""
    world = make_world()
    job = await world.add("every day at 13:00", rules=Rules(grace=HOUR))
    await trio.sleep(4 * 3600)
    await world.live(MINUTE)
    assert await world.states(job) == ["skipped(missed)", "pending"]


async def test_a_stretch_of_a_year_is_counted_at_once(autojump_clock: object) -> None:
    """However many slots were missed, there is one row and no burst. (25, 30)"""
    world = make_world(options=Options(grace=timedelta(days=1000)))
    job = await world.add("* * * * *")
    await trio.sleep(365 * 86400)
    await world.live(timedelta(seconds=30))
    states = await world.states(job)
    assert states == ["completed", f"skipped(missed)x{365 * 24 * 60 - 1}", "pending"]
    assert len(world.runner.works) == 1


async def test_an_interval_job_catches_up_once_and_keeps_its_distance(autojump_clock: object) -> None:
    """Intervals that passed are counted, not run; the next one is an interval after the late start. (25, H21)"""
    world = make_world()
    job = await world.add("every 10 minutes")
    await trio.sleep(65 * 60)
    await world.live(5 * MINUTE)
    assert await world.states(job) == ["completed", "skipped(missed)x5", "pending"]
    assert (await world.triggers(job))[-1].slot - BEGINNING == 75 * MINUTE


async def test_slots_that_pass_during_a_run_are_recorded_once(autojump_clock: object) -> None:
    """A run over several slots: one row says how many passed, and the job goes on with the next. (28, H8)"""
    world = make_world()

    async def long(work: Work) -> str:
        await trio.sleep(200 if work.run.started_at == BEGINNING + MINUTE else 1)
        return "ok"

    world.runner.act = long
    job = await world.add("* * * * *")
    await world.live(5.5 * MINUTE)
    assert await world.states(job) == ["completed", "skipped(already_running)x3", "completed", "pending"]
    assert world.runner.most == 1


async def test_a_run_longer_than_its_interval_never_overlaps_and_is_never_skipped_for_ever(
    autojump_clock: object,
) -> None:
    """Every run takes twice its interval: it still runs again and again, one at a time. (28)"""
    world = make_world(runner=ToldRunner(limit=5))

    async def long(work: Work) -> str:
        await trio.sleep(120)
        return "ok"

    world.runner.act = long
    cron = await world.add("* * * * *")
    every = await world.add("every 1 minute")
    await world.live(HOUR)
    for job in (cron, every):
        runs = await world.runs(job)
        assert len(runs) >= 15
        assert all(earlier.ended_at and later.started_at >= earlier.ended_at for earlier, later in pairwise(runs))


async def test_jitter_does_not_make_intervals_drift(autojump_clock: object) -> None:
    """Spread or not, the next slot is an interval after the slot before. (31)"""
    world = make_world(runner=ToldRunner(limit=10), random=lambda: 1.0)
    jobs = [await world.add("every 10 minutes", str(number)) for number in range(5)]
    await world.live(35 * MINUTE)
    for job in jobs:
        assert [one.slot - BEGINNING for one in await world.triggers(job)] == [10 * MINUTE * n for n in (1, 2, 3, 4)]


async def test_queueing_fires_once_after_a_long_run(autojump_clock: object) -> None:
    """With overlap queue the last slot that passed runs afterwards, and the others are one row. (H8)"""
    world = make_world()

    async def long(work: Work) -> str:
        await trio.sleep(200 if work.run.started_at == BEGINNING + MINUTE else 1)
        return "ok"

    world.runner.act = long
    job = await world.add("* * * * *", rules=Rules(overlap="queue"))
    await world.live(timedelta(seconds=290))
    assert (await world.states(job))[:3] == ["completed", "skipped(already_running)x2", "completed"]
    caught_up = (await world.triggers(job))[2]
    assert (caught_up.kind, caught_up.slot - BEGINNING) == ("catch-up", 4 * MINUTE)


@pytest.mark.parametrize("hang", [True, False])
async def test_one_slow_or_hanging_job_stops_no_other(autojump_clock: object, hang: bool) -> None:
    """Each run has its own task: with a second slot all others stay on time. (J3, 29)"""
    world = make_world(runner=ToldRunner(limit=2))

    async def act(work: Work) -> str:
        if work.prompt == "slow":
            await trio.sleep(math.inf if hang else 599)
        return "ok"

    world.runner.act = act
    await world.add("in 1 minute", "slow")
    job = await world.add("* * * * *", "quick")
    await world.live(9.5 * MINUTE)
    runs = await world.runs(job)
    assert len(runs) == 9
    assert all(run.lateness == timedelta(0) for run in runs)


async def test_a_hanging_run_ends_by_its_timeout_and_the_schedule_goes_on(autojump_clock: object) -> None:
    """Ten minutes by default; it is told as a timeout, and the next slot runs. (C6, 29)"""
    world = make_world(options=Options(max_retries=0))
    hung: list[str] = []

    async def act(work: Work) -> str:
        if not hung:
            hung.append(work.run.id)
            await trio.sleep_forever()
        return "ok"

    world.runner.act = act
    job = await world.add("*/30 * * * *")
    await world.live(timedelta(hours=1, minutes=5))
    assert [run.state for run in await world.runs(job)] == ["timeout", "succeeded"]
    first = (await world.runs(job))[0]
    assert first.ended_at is not None
    assert first.ended_at - first.started_at == 10 * MINUTE


async def test_run_now_runs_beside_the_schedule_and_moves_nothing_of_it(autojump_clock: object) -> None:
    """It begins at once, never deadlocks, and leaves next time, last run and failures as they were. (J1, C22)"""
    world = make_world(options=Options(max_retries=0))

    async def fails(work: Work) -> str:
        await trio.lowlevel.checkpoint()
        raise RuntimeError("no")

    world.runner.act = fails
    job = await world.add("every 1 hour")
    async with world.running():
        await trio.sleep(60.5)
        await world.jobs.run_now(*job.key)
        await trio.sleep(1)
        (run,) = await world.runs(job)
        after = await world.job(job)
    assert (run.kind, run.lateness, run.state) == ("manual", timedelta(0), "failed")
    assert (after.next_at, after.failures, after.last_run_at) == (job.next_at, 0, None)
    assert after.status is JobStatus.ACTIVE


async def test_run_now_of_a_running_job_waits_for_it(autojump_clock: object) -> None:
    """The same job never runs beside itself; the one that was asked for follows. (H17, J1)"""
    world = make_world(runner=ToldRunner(limit=3))

    async def slow(work: Work) -> str:
        await trio.sleep(10)
        return "ok"

    world.runner.act = slow
    job = await world.add("every 1 hour")
    async with world.running():
        await world.jobs.run_now(*job.key, key="a")
        await world.jobs.run_now(*job.key, key="b")
        await world.jobs.run_now(*job.key, key="a")
        await trio.sleep(30)
    first, second = await world.runs(job)
    assert second.started_at >= (first.ended_at or first.started_at)
    assert world.runner.most == 1
