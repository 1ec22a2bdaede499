"""What cron tells whoever counts: how late an attempt began, which slots will never run, what is tried again."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import trio

from cron.options import Options
from store.jobs import Rules
from tests.unit.cron.world import BEGINNING, ToldRunner, make_world

if TYPE_CHECKING:
    from cron.run import Work

MINUTE = timedelta(minutes=1)
RETRIES = Options(max_retries=2, retry_base=timedelta(seconds=10), retry_max=timedelta(seconds=10))


async def test_slots_that_passed_during_a_run_are_told_with_its_end(autojump_clock: object) -> None:
    """As many as the rows say, by the same reason; an end after which nothing was skipped tells none. (P5)"""
    world = make_world()

    async def long(work: Work) -> str:
        await trio.sleep(200 if work.run.started_at == BEGINNING + MINUTE else 1)
        return "ok"

    world.runner.act = long
    job = await world.add("* * * * *")
    await world.live(5.5 * MINUTE)
    assert await world.states(job) == ["completed", "skipped(already_running)x3", "completed", "pending"]
    first, second = world.events("run_succeeded")
    assert first["skipped"] == {"already_running": 3}
    assert "skipped" not in second
    assert "again_at" not in second


async def test_slots_that_nobody_was_there_for_are_told(autojump_clock: object) -> None:
    """Two hours without anybody: all slots but the last are told as missed when it comes back. (R8)"""
    world = make_world()
    job = await world.add("every 10 minutes", rules=Rules(catch_up="skip"))
    await trio.sleep(2 * 3600 + 300)
    await world.live(MINUTE)
    missed = sum(one.count for one in await world.triggers(job) if one.reason == "missed")
    assert missed == 12
    assert sum(told["skipped"]["missed"] for told in world.events("trigger_skipped")) == missed


async def test_a_try_that_is_made_again_is_told(autojump_clock: object) -> None:
    """Each failure but the last says when it is tried again."""
    world = make_world(options=RETRIES)

    async def fail(work: Work) -> str:
        raise RuntimeError("away")

    world.runner.act = fail
    await world.add("in 1 minute")
    await world.live(5 * MINUTE)
    assert ["again_at" in told for told in world.events("run_failed")] == [True, True, False]


async def test_how_late_an_attempt_began_is_told(autojump_clock: object) -> None:
    """Two are due while the lane has room for one: the second is as late as the first took."""
    world = make_world(runner=ToldRunner(limit=1))

    async def work(work: Work) -> str:
        await trio.sleep(7)
        return "ok"

    world.runner.act = work
    for name in ("one", "two"):
        await world.add("in 1 minute", name)
    await world.live(2 * MINUTE)
    late = [told["lateness_s"] for told in world.events("run_started")]
    assert late[0] == pytest.approx(0)
    assert 7 <= late[1] < 10
