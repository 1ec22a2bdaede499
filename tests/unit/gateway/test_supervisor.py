"""The supervisor: a service that crashes starts again, and nobody else notices."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from gateway.supervisor import CALM_S, LONGEST_REST_S, Health, Supervisor, keep_running

if TYPE_CHECKING:
    from trio.testing import MockClock

START = datetime(2026, 3, 1, tzinfo=UTC)


def now() -> datetime:
    return START + timedelta(seconds=trio.current_time())


class Crashing:
    """Works for so long each time, then raises; after that many times it works on."""

    def __init__(self, *works_s: float, error: Exception | None = None) -> None:
        self.works_s = list(works_s)
        self.error = error or RuntimeError("oops")
        self.started: list[float] = []

    async def __call__(self) -> None:
        self.started.append(trio.current_time())
        if not self.works_s:
            await trio.sleep_forever()
        await trio.sleep(self.works_s.pop(0))
        raise self.error


async def test_a_service_may_tell_of_its_own_trouble_without_ending(autojump_clock: MockClock) -> None:
    """It rests with its error for all to see, runs again when it says so, and was never started anew."""
    async with trio.open_nursery() as nursery:
        supervisor = Supervisor(nursery, now)
        supervisor.start("telegram", trio.sleep_forever)
        await wait_all_tasks_blocked()
        supervisor.troubled("telegram", "somebody else reads")
        (troubled,) = supervisor.health()
        assert (troubled.state, troubled.error, troubled.restarts) == ("resting", "somebody else reads", 0)
        supervisor.well("telegram")
        assert supervisor.health()[0].state == "running"
        nursery.cancel_scope.cancel()


async def test_a_service_that_ends_in_the_middle_of_its_trouble_has_given_up(autojump_clock: MockClock) -> None:
    """It is told apart from one that met an error once and ended well."""
    async with trio.open_nursery() as nursery:
        supervisor = Supervisor(nursery, now)

        async def give_up() -> None:
            supervisor.troubled("telegram", "the token is wrong")

        crashed_once = Crashing(0.0)
        supervisor.start("telegram", give_up)
        supervisor.start("of a kind", partial(first_then_well, crashed_once))
        await trio.sleep(10)
        ended = {one.name: (one.state, bool(one.error)) for one in supervisor.health()}
        assert ended == {"telegram": ("given up", True), "of a kind": ("stopped", True)}


async def first_then_well(service: Crashing) -> None:
    """Ends after the last of its crashes."""
    if service.works_s:
        await service()


async def test_a_service_that_crashes_starts_again_after_a_longer_rest_each_time(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """1 s, doubling to a minute; each crash is in the log with its traceback."""
    service = Crashing(*[0] * 9)
    async with trio.open_nursery() as nursery:
        Supervisor(nursery, now).start("cron", service)
        await trio.sleep(1_000)
        nursery.cancel_scope.cancel()
    rests = [after - before for before, after in pairwise(service.started)]
    assert rests == [1, 2, 4, 8, 16, 32, LONGEST_REST_S, LONGEST_REST_S, LONGEST_REST_S]
    assert len([record for record in caplog.records if record.exc_info]) == 9
    assert caplog.records[0].getMessage() == "cron failed; starting it again in 1 s"


async def test_who_was_calm_for_long_rests_briefly(autojump_clock: MockClock) -> None:
    """A crash a day is no storm."""
    service = Crashing(0, 0, 0, CALM_S, 0)
    async with trio.open_nursery() as nursery:
        Supervisor(nursery, now).start("cron", service)
        await trio.sleep(1_000)
        nursery.cancel_scope.cancel()
    rests = [after - before for before, after in pairwise(service.started)]
    assert rests == [1, 2, 4, CALM_S + 1, 2]


async def test_health_tells_how_each_service_is(autojump_clock: MockClock) -> None:
    """Since when, how often it was started again, and why."""

    async def brief() -> None:
        await trio.sleep(1)

    async with trio.open_nursery() as nursery:
        supervisor = Supervisor(nursery, now)
        start = now()
        supervisor.start("crashing", Crashing(3, 0, error=ExceptionGroup("", [ValueError("odd")])))
        supervisor.start("brief", brief)
        assert {health.state for health in supervisor.health()} == {"starting"}
        await trio.sleep(2)
        assert supervisor.health() == (
            Health("crashing", "running", start),
            Health("brief", "stopped", start + timedelta(seconds=1)),
        )
        await trio.sleep(1.5)
        assert supervisor.health()[0] == Health(
            "crashing", "resting", start + timedelta(seconds=3), 1, "ValueError('odd')"
        )
        await trio.sleep(10)
        crashing = supervisor.health()[0]
        assert (crashing.state, crashing.restarts) == ("running", 2)
        nursery.cancel_scope.cancel()


async def test_a_crash_takes_nobody_down(autojump_clock: MockClock) -> None:
    """Not with a group either."""
    ticks = 0

    async def steady() -> None:
        nonlocal ticks
        while True:
            await trio.sleep(1)
            ticks += 1

    async with trio.open_nursery() as nursery:
        supervisor = Supervisor(nursery, now)
        supervisor.start("steady", steady)
        supervisor.start("crashing", Crashing(0, 0, error=ExceptionGroup("", [RuntimeError(), ValueError()])))
        await trio.sleep(10.5)
        nursery.cancel_scope.cancel()
    assert ticks == 10


class Over(Exception):
    """Nobody can go on after this."""


@pytest.mark.parametrize("error", [Over(), ExceptionGroup("", [ValueError(), ExceptionGroup("", [Over()])])])
async def test_what_is_fatal_passes(error: Exception, autojump_clock: MockClock) -> None:
    """However deep it is: the whole ends with it, and the service is not started again."""
    service = Crashing(1, error=error)

    async def whole() -> None:
        async with trio.open_nursery() as nursery:
            supervisor = Supervisor(nursery, now, fatal=(Over,))
            supervisor.start("store", service)
            supervisor.start("other", trio.sleep_forever)

    with pytest.raises(ExceptionGroup) as raised:
        await whole()
    assert raised.value.subgroup(Over) is not None
    assert len(service.started) == 1


async def test_a_cancellation_is_no_crash(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    """Also while it rests."""
    service = Crashing(0)
    with trio.move_on_after(0.5):
        async with trio.open_nursery() as nursery:
            supervisor = Supervisor(nursery, now)
            supervisor.start("resting", service)
            supervisor.start("running", trio.sleep_forever)
    assert len(service.started) == 1
    assert [health.state for health in supervisor.health()] == ["stopped", "stopped"]
    assert len(caplog.records) == 1


async def test_a_name_is_one_service_s_at_a_time(autojump_clock: MockClock) -> None:
    """What has stopped may be started again."""

    async def brief() -> None:
        await trio.sleep(1)

    async with trio.open_nursery() as nursery:
        supervisor = Supervisor(nursery, now)
        supervisor.start("brief", brief)
        with pytest.raises(ValueError, match="brief"):
            supervisor.start("brief", brief)
        await trio.sleep(2)
        supervisor.start("brief", brief)
        assert [health.name for health in supervisor.health()] == ["brief"]


async def test_leaving_ends_a_rest(autojump_clock: MockClock) -> None:
    """A shutdown does not wait for the next start."""
    left = trio.Event()
    service = Crashing(0)
    async with trio.open_nursery() as nursery:

        async def run() -> None:
            await keep_running(service, lambda error, rest_s: None, left=left)
            assert trio.current_time() == start

        start = trio.current_time()
        nursery.start_soon(run)
        await wait_all_tasks_blocked()
        left.set()
    assert len(service.started) == 1
