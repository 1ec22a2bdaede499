"""Clocks that are set, machines that sleep, zones that change."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
import trio

from cron.errors import BadInput
from cron.options import Options
from tests.unit.cron.world import BEGINNING, WallClock, make_world

if TYPE_CHECKING:
    from cron.run import Work

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
SELDOM = Options(poll=DAY, beat=DAY, upkeep=DAY, lease=DAY)
"""For long stretches of time in which nobody sets a clock: nothing wakes the service but what is due."""


@pytest.mark.parametrize("jump", [HOUR, DAY])
async def test_a_clock_that_is_set_forward_brings_one_catch_up(autojump_clock: object, jump: timedelta) -> None:
    """Within a second of the jump, and told in the log. (R6)"""
    world = make_world()
    job = await world.add("*/10 * * * *")
    async with world.running():
        await trio.sleep(30)
        world.wall.jump(jump)
        await trio.sleep(5)
        (run,) = await world.runs(job)
        assert world.wall() - run.started_at >= timedelta(seconds=4)
        await trio.sleep(20 * 60)
    assert [facts["seconds"] for facts in world.events("clock_jumped")] == [pytest.approx(jump.total_seconds())]
    states = await world.states(job)
    assert states[:2] == ["completed", f"skipped(missed)x{jump // (10 * MINUTE) - 1}"]
    assert states[2:] == ["completed", "completed", "pending"]


@pytest.mark.parametrize("jump", [HOUR, DAY])
async def test_a_clock_that_is_set_back_fires_no_slot_twice(autojump_clock: object, jump: timedelta) -> None:
    """What has run stays run; the job waits for its next slot by the new time. (R6)"""
    world = make_world()
    job = await world.add("*/10 * * * *")
    async with world.running():
        await trio.sleep(25 * 60)
        world.wall.jump(-jump)
        await trio.sleep(jump.total_seconds() + 3600)
    slots = [trigger.slot for trigger in await world.triggers(job)]
    assert len(slots) == len(set(slots))
    assert len(await world.runs(job)) == 8
    assert world.events("clock_jumped")


async def test_a_clock_set_back_during_a_run_does_not_bring_its_slot_again(autojump_clock: object) -> None:
    """The next slot is later than the one that ran, whatever the clock says when it ends. (R6)"""
    world = make_world()

    async def slow(work: Work) -> str:
        await trio.sleep(60)
        return "ok"

    world.runner.act = slow
    job = await world.add("0 * * * *")
    async with world.running():
        await trio.sleep(3630)
        world.wall.jump(-HOUR)
        await trio.sleep(2.5 * 3600)
    triggers = await world.triggers(job)
    assert [trigger.slot - BEGINNING for trigger in triggers] == [HOUR, 2 * HOUR, 3 * HOUR]


async def test_a_daily_job_keeps_its_local_time_over_the_change(autojump_clock: object) -> None:
    """The zone is stored with the job and counts for every trigger, not only for the first. (T10, 35)"""
    world = make_world(wall=WallClock(datetime(2026, 3, 26, 12, tzinfo=UTC)), look_s=math.inf, options=SELDOM)
    job = await world.add("every day at 09:00", zone="Europe/Berlin")
    assert job.spec.timing.zone == "Europe/Berlin"
    await world.live(6 * DAY)
    starts = [f"{run.started_at:%m-%d %H:%M}" for run in await world.runs(job)]
    assert starts == ["03-27 08:00", "03-28 08:00", "03-29 07:00", "03-30 07:00", "03-31 07:00", "04-01 07:00"]


async def test_the_autumn_night_of_new_york(autojump_clock: object) -> None:
    """A fixed time fires once, an hourly job 25 times that day, and the morning's at nine. (D1)"""
    evening = WallClock(datetime(2026, 11, 1, 3, 30, tzinfo=UTC))  # before that night, there
    world = make_world(wall=evening, look_s=math.inf, options=SELDOM)
    zone = "America/New_York"
    fixed = await world.add("30 1 * * *", zone=zone)
    hourly = await world.add("0 * * * *", zone=zone)
    morning = await world.add("0 9 * * *", zone=zone)
    await world.live(timedelta(hours=25, minutes=5))
    assert [f"{run.started_at:%d %H:%M}" for run in await world.runs(fixed)] == ["01 05:30"]
    assert len(await world.runs(hourly)) == 25
    assert [f"{run.started_at:%d %H:%M}" for run in await world.runs(morning)] == ["01 14:00"]
    assert all(run.lateness == timedelta(0) for run in await world.runs(hourly))


async def test_a_changed_zone_does_not_fire_early_and_again(autojump_clock: object) -> None:
    """After an edit of the zone the job fires at its time there, once a day. (35)"""
    world = make_world(look_s=math.inf, options=SELDOM)
    job = await world.add("every day at 09:00", zone="UTC")
    async with world.running():
        await trio.sleep(3600)
        await world.jobs.edit(*job.key, zone="America/New_York")
        await trio.sleep(3 * 86400)
    starts = [f"{run.started_at:%m-%d %H:%M}" for run in await world.runs(job)]
    assert starts == ["03-02 14:00", "03-03 14:00", "03-04 14:00"]


async def test_a_far_away_job_neither_spins_nor_is_forgotten(autojump_clock: object) -> None:
    """Forty days are longer than many timers can count. (30)"""
    world = make_world(look_s=math.inf, options=SELDOM)
    job = await world.add("in 40 days")
    async with world.running() as service:
        await trio.sleep(40 * 86400 + 5)
        assert service.state().check_count < 100
    (run,) = await world.runs(job)
    assert run.lateness == timedelta(0)


async def test_a_short_interval_never_refires_inside_a_second(autojump_clock: object) -> None:
    """A run that outlasts its interval is followed a second later, not at once; shorter ones are refused. (30)"""
    world = make_world()

    async def slow(work: Work) -> str:
        await trio.sleep(1.4)
        return "ok"

    world.runner.act = slow
    with pytest.raises(BadInput, match="once a second at most"):
        await world.add("every 0.1s")
    job = await world.add("every 1s")
    await world.live(timedelta(seconds=20))
    runs = await world.runs(job)
    assert 6 <= len(runs) <= 9
    gaps = [later.started_at - earlier.ended_at for earlier, later in pairwise(runs) if earlier.ended_at]
    assert min(gaps) >= timedelta(seconds=1)


async def test_a_clock_set_forward_beyond_the_lease_kills_no_run(autojump_clock: object) -> None:
    """The process lives, so its leases are renewed before anybody looks for lost ones. (R6)"""
    world = make_world(options=Options(max_retries=0))

    async def slow(work: Work) -> str:
        await trio.sleep(60)
        return "ok"

    world.runner.act = slow
    job = await world.add("in 1 minute")
    async with world.running():
        await trio.sleep(70)
        world.wall.jump(HOUR)
        await trio.sleep(120)
    assert [run.state for run in await world.runs(job)] == ["succeeded"]


async def test_a_clock_that_was_wrong_for_a_moment_silences_no_interval(autojump_clock: object) -> None:
    """A day ahead for twenty seconds: afterwards the job goes on in its own pace. (R6, P9)"""
    world = make_world()
    job = await world.add("every 5 minutes")
    async with world.running():
        await trio.sleep(60)
        world.wall.jump(DAY)
        await trio.sleep(20)
        world.wall.jump(-DAY)
        await trio.sleep(3600)
    assert len(await world.runs(job)) >= 12
