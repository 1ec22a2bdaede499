"""Loop lag: measured while somebody looks, worst of the last minute, stalls told. On MockClock."""

from __future__ import annotations

import logging

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from gateway.metrics.lag import LOOKED_AT_S, PERIOD_S, REMEMBERED_S, STALL_S, Lag

pytestmark = pytest.mark.usefixtures("mock_clock")


@pytest.fixture
async def lag(nursery: trio.Nursery) -> Lag:
    lag = Lag()
    nursery.start_soon(lag.run)
    await wait_all_tasks_blocked()
    return lag


async def pass_by(clock: MockClock, seconds: float) -> None:
    """Let time pass in periods, nobody being late."""
    end = trio.current_time() + seconds
    while trio.current_time() < end:
        clock.jump(PERIOD_S)
        await wait_all_tasks_blocked()


async def test_nobody_is_woken_while_nobody_looks(lag: Lag, mock_clock: MockClock) -> None:
    """A gateway that is not watched sleeps: nothing is measured, and no deadline is waiting. (P13)"""
    assert trio.lowlevel.current_statistics().seconds_to_next_deadline == float("inf")
    mock_clock.jump(3600)
    await wait_all_tasks_blocked()
    assert sum(lag.late_s.counts) == 0


async def test_it_is_measured_for_a_while_after_a_look(lag: Lag, mock_clock: MockClock) -> None:
    """Twice a second for five minutes after the last look, then it sleeps again."""
    lag.look()
    await wait_all_tasks_blocked()
    await pass_by(mock_clock, LOOKED_AT_S - 10)
    lag.look()
    await pass_by(mock_clock, LOOKED_AT_S)
    measured = sum(lag.late_s.counts)
    assert measured == pytest.approx((2 * LOOKED_AT_S - 10) / PERIOD_S, abs=2)
    await pass_by(mock_clock, 60)
    assert sum(lag.late_s.counts) == measured
    assert trio.lowlevel.current_statistics().seconds_to_next_deadline == float("inf")


async def test_how_late_it_was_is_counted(lag: Lag, mock_clock: MockClock) -> None:
    """A task that is woken two seconds late was two seconds late, and the worst of the last minute is known."""
    lag.look()
    await wait_all_tasks_blocked()
    mock_clock.jump(PERIOD_S + 2)
    await wait_all_tasks_blocked()
    assert lag.late_s.total == pytest.approx(2)
    assert lag.worst_s() == pytest.approx(2)
    mock_clock.jump(PERIOD_S + 1)
    await wait_all_tasks_blocked()
    await pass_by(mock_clock, REMEMBERED_S - 2)
    assert lag.worst_s() == pytest.approx(2)
    await pass_by(mock_clock, 1.5)
    assert lag.worst_s() == pytest.approx(1)
    await pass_by(mock_clock, 10)
    assert lag.worst_s() == 0
    assert lag.stalls == 0


async def test_a_stall_is_told_and_remembered(
    lag: Lag, mock_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Half a minute in which nothing went on is a line in the log, a count, and how long ago it was. (R21)"""
    lag.look()
    await wait_all_tasks_blocked()
    assert lag.since_stall_s() == float("inf")
    with caplog.at_level(logging.WARNING, "goclaw.loop"):
        mock_clock.jump(PERIOD_S + 30)
        await wait_all_tasks_blocked()
    assert "nothing went on for 30.0 s" in caplog.text
    assert lag.stalls == 1
    assert lag.stalled_s == pytest.approx(30)
    assert lag.since_stall_s() == 0
    await pass_by(mock_clock, 12)
    assert lag.since_stall_s() == pytest.approx(12)
    assert STALL_S < 30
