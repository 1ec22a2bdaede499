"""Upkeep: signs of life, orphans, and schedules that would otherwise die silently."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import psutil
import pytest
import trio

from cron.options import Options
from cron.upkeep import measured
from store.jobs import Change, JobStatus
from store.records import WorkerStatus
from tests.unit.cron.world import ToldRunner, World, make_world

if TYPE_CHECKING:
    from cron.run import Work

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


async def endless(work: Work) -> str:
    await trio.sleep_forever()
    return ""


async def test_a_worker_beats_every_minute_and_leaves_in_good_order(autojump_clock: object) -> None:
    """One beat of the worker and one of each run, and what the machine looks like. (G12, G14)"""
    world = make_world(options=Options(run_timeout=HOUR))
    world.runner.act = endless
    job = await world.add("in 2 minutes")
    async with world.running():
        await trio.sleep(4 * 60 + 1)
        (run,) = await world.runs(job)
        beats = await world.store.beats("w1", 100)
        assert [worker.id for worker in await world.store.workers()] == ["w1"]
    assert len([beat for beat in beats if not beat.run]) == 5
    assert len([beat for beat in beats if beat.run == run.id]) == 2
    assert {beat.status for beat in beats if beat.run} == {WorkerStatus.BUSY}
    readings = await world.store.readings()
    assert len(readings) == 5
    assert readings[0].reading.active_runs == 1
    assert readings[0].reading.memory_mb is not None
    assert readings[0].reading.context == {"lanes": {"cron": 1}}
    assert await world.store.workers() == ()


@pytest.mark.parametrize(
    "error",
    [psutil.AccessDenied(), OSError("no /proc"), ValueError("odd"), RuntimeError("broken"), KeyError("MemTotal")],
)
def test_a_figure_that_cannot_be_read_is_left_out(error: Exception) -> None:
    """It never stops the beat. (G14)"""

    def fails() -> float:
        raise error

    assert measured(fails) is None
    assert measured(lambda: 3) == 3.0


async def test_a_run_of_a_dead_worker_is_settled_by_another(autojump_clock: object) -> None:
    """Lease over and two beats missed: failed with the reason, and tried again. (G15, G16, C19)"""
    world = make_world(options=Options(lease=10 * MINUTE, run_timeout=2 * HOUR))
    world.runner.act = endless
    job = await world.add("in 1 minute")
    await world.crash_after(2 * MINUTE)
    # The other one has no room, so that only its upkeep can find the orphan.
    other = World(world.store, world.wall, world.options, ToldRunner(limit=0), worker="w2", numbers=world.numbers)
    async with other.running():
        await trio.sleep(8 * 60)
        assert [run.state for run in await world.runs(job)] == ["running"]
        await trio.sleep(8 * 60)
    (run,) = await world.runs(job)
    assert (run.state, run.error) == ("failed", "orphaned: the worker w1 ended or was away while it ran")
    assert await world.states(job) == [f"pending({run.error})"]
    assert other.events("orphan_found")


async def test_an_orphan_past_its_timeout_has_timed_out(autojump_clock: object) -> None:
    """Its state says so. (C19)"""
    world = make_world(options=Options(lease=10 * MINUTE, run_timeout=5 * MINUTE, max_retries=0))
    world.runner.act = endless
    job = await world.add("in 1 minute")
    await world.crash_after(2 * MINUTE)
    other = World(world.store, world.wall, world.options, ToldRunner(limit=0), worker="w2", numbers=world.numbers)
    async with other.running():
        await trio.sleep(16 * 60)
    (run,) = await world.runs(job)
    assert (run.state, (await world.job(job)).status) == ("timeout", JobStatus.FAILED)


async def test_a_job_without_a_trigger_is_found_and_revived(autojump_clock: object) -> None:
    """At the start and every five minutes, and loudly: it should never happen. (P9)"""
    world = make_world()
    job = await world.add("every 1 hour")

    async def lose() -> None:
        await world.store.cron.change_job(*job.key, lambda known, trigger, now: Change(known, withdraw=True))

    await lose()
    assert (await world.job(job)).next_at is None
    async with world.running():
        assert (await world.job(job)).next_at is not None
        await lose()
        await trio.sleep(301)
        assert (await world.job(job)).next_at is not None
    assert len(world.events("dead_schedule")) == 2
    assert world.events("dead_schedule")[0] == {
        "level": "error",
        "job": None,
        "tenant": "default",
        "schedule_id": 1,
        "revived": True,
    }


async def test_a_living_schedule_is_left_alone(autojump_clock: object) -> None:
    """Paused jobs, webhooks and ended ones are not revived."""
    world = make_world()
    paused = await world.add("every 1 hour")
    await world.jobs.pause(*paused.key)
    ended = await world.add("every 1 hour")
    await world.jobs.cancel(*ended.key)
    async with world.running():
        await trio.sleep(301)
    assert world.events("dead_schedule") == []
    assert (await world.job(paused)).next_at is None
