"""Nested waiting under time limits and with several tasks in one run: limits hold and clocks are fair."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from scheduler import End, Policy, Request, RunTimeout, open_scheduler
from tests.unit.scheduler.probe import Probe, Stubborn, ends_of, forever, nothing, quick

if TYPE_CHECKING:
    from trio.testing import MockClock

    from scheduler import Run


def limited(timeout_s: float) -> Policy:
    return Policy(debounce_s=0, timeout_s=timeout_s)


async def test_the_time_limit_counts_from_the_slot(autojump_clock: MockClock) -> None:
    """A message that waited for twice its time limit still gets its whole time. (lesson 3)"""
    probe = Probe(9)
    async with open_scheduler({"main": 1}) as scheduler:
        scheduler.schedule(quick(Probe(20), None, "busy"))
        ticket = scheduler.schedule(quick(probe, "job", policy=limited(10)))
        assert await ticket.result() == ("job",)
    assert probe.starts["job"] == 20


async def test_a_run_that_takes_too_long_is_cancelled(autojump_clock: MockClock) -> None:
    """It ends with RunTimeout at its limit, the run after it gets its own whole time, no timer is left. (lesson 3)"""
    async with open_scheduler({"main": 1}) as scheduler:
        first = scheduler.schedule(quick(forever, policy=limited(10)))
        second = scheduler.schedule(quick(Probe(9), "second", policy=limited(10)))
        with pytest.raises(RunTimeout) as caught:
            await first.result()
        assert trio.current_time() == 10
        assert "10" in str(caught.value)
        assert await second.result() == ("second",)
        assert trio.current_time() == 19
        assert len(scheduler.timers) == 0
    assert ends_of(first) == [End.TIMED_OUT]


async def test_waiting_to_get_a_slot_back_costs_no_time(autojump_clock: MockClock) -> None:
    """While a parent stands in line for its slot its time limit stands still. (lesson 3)"""
    async with open_scheduler({"main": 1, "cron": 1}) as scheduler:

        async def parent(run: Run) -> str:
            await run.schedule(quick(Probe(2), None, "sub", lane="cron")).result()  # 2 s of its 10
            assert trio.current_time() == 100
            await trio.sleep(7.5)
            return "in time"

        ticket = scheduler.schedule(quick(parent, policy=limited(10)))
        scheduler.schedule(quick(Probe(100), None, "newcomer"))  # takes the lent slot for 100 s
        assert await ticket.result() == "in time"


async def test_what_is_left_of_the_time_limit_counts_after_the_slot_is_back(autojump_clock: MockClock) -> None:
    """Two of ten seconds were used before the line: the run is cancelled eight seconds after it. (lesson 3)"""
    async with open_scheduler({"main": 1, "cron": 1}) as scheduler:

        async def parent(run: Run) -> None:
            await run.schedule(quick(Probe(2), None, "sub", lane="cron")).result()
            await trio.sleep_forever()

        ticket = scheduler.schedule(quick(parent, policy=limited(10)))
        scheduler.schedule(quick(Probe(100), None, "newcomer"))
        await ticket.wait()
        assert trio.current_time() == pytest.approx(108)
    assert ends_of(ticket) == [End.TIMED_OUT]


async def test_waiting_for_a_child_costs_time(autojump_clock: MockClock) -> None:
    """A parent whose child never ends is itself ended at its limit, and the child with it. (lesson 3)"""
    async with open_scheduler({"main": 1}) as scheduler:

        async def parent(run: Run) -> None:
            await run.schedule(quick(forever, None, "sub")).result()

        ticket = scheduler.schedule(quick(parent, policy=limited(10)))
        await scheduler.drain()
        assert trio.current_time() == 10
    assert ends_of(ticket) == [End.TIMED_OUT]


async def test_giving_up_on_a_child_gets_the_slot_back_first(autojump_clock: MockClock) -> None:
    """A parent that waits with a deadline of its own goes on only with a slot: limits hold. (P3)"""
    probe = Probe(10)
    async with open_scheduler({"main": 1, "cron": 1}) as scheduler:
        slow = scheduler.schedule(quick(forever, None, "slow", lane="cron"))

        async def parent(run: Run) -> str:
            with trio.move_on_after(3):
                await slow.wait()
            await probe(run)
            return "went on"

        ticket = scheduler.schedule(quick(parent, "parent"))
        scheduler.schedule(quick(probe, "newcomer", "newcomer"))
        assert await ticket.result() == "went on"
    assert probe.starts == {"newcomer": 0, "parent": 10}
    assert probe.most["all"] == 1


async def test_a_wait_that_is_cancelled_at_once_changes_nothing(autojump_clock: MockClock) -> None:
    """Waiting inside a scope that is cancelled already neither loses the slot nor doubles it. (P3)"""
    async with open_scheduler({"main": 1, "cron": 1}) as scheduler:
        slow = scheduler.schedule(quick(forever, None, "slow", lane="cron"))

        async def parent(run: Run) -> tuple[int, int]:
            for _ in range(10):
                with trio.CancelScope() as scope:
                    scope.cancel()
                    await slow.wait()
            lane = scheduler.lanes["main"]
            return lane.active, lane.parked

        assert await scheduler.schedule(quick(parent)).result() == (1, 0)
        assert scheduler.lanes["main"].active == 0


async def test_several_tasks_of_one_run_share_its_one_slot(autojump_clock: MockClock) -> None:
    """Ten children awaited at once from ten tasks: one slot lent, one slot back, lane of one. (P3, P8)"""
    probe = Probe()

    async def parent(run: Run) -> None:
        async with trio.open_nursery() as nursery:
            for number in range(10):
                nursery.start_soon(run.schedule(quick(probe, number, f"sub {number}")).result)
        lane = scheduler.lanes["main"]
        assert (lane.active, lane.parked) == (1, 0)

    async with open_scheduler({"main": 1}) as scheduler:
        ticket = scheduler.schedule(quick(parent))
        with trio.fail_after(100):
            await ticket.result()
    assert probe.most["all"] == 1
    assert len(probe.done) == 10


async def test_a_task_may_begin_to_wait_while_another_of_its_run_stands_in_line(autojump_clock: MockClock) -> None:
    """A slot that comes back while a sibling task waits for a child is lent again: no deadlock. (P8)"""
    probe = Probe(10)

    async def one(run: Run) -> None:
        await run.schedule(quick(nothing, None, "sub 1", lane="cron")).result()

    async def other(run: Run) -> None:
        await trio.sleep(5)  # by now the sibling stands in line, behind the newcomer's run
        await run.schedule(quick(probe, "child", "sub 2")).result()

    async def parent(run: Run) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(one, run)
            nursery.start_soon(other, run)

    async with open_scheduler({"main": 1, "cron": 1}) as scheduler:
        ticket = scheduler.schedule(quick(parent))
        scheduler.schedule(quick(probe, "newcomer", "newcomer"))
        with trio.move_on_after(100):
            await ticket.wait()
        assert ends_of(ticket) == [End.DONE]
    assert probe.order == ["newcomer", "child"]
    assert probe.most["all"] == 1


async def test_a_child_in_a_debounce_window_does_not_hold_the_slot(autojump_clock: MockClock) -> None:
    """The lane is free for others while a parent waits for a child that is not even queued yet. (P8)"""
    probe = Probe(0.1)

    async def parent(run: Run) -> None:
        await run.schedule(Request("sub", probe, "child", policy=Policy(debounce_s=5))).result()

    async with open_scheduler({"main": 1}) as scheduler:
        ticket = scheduler.schedule(quick(parent))
        scheduler.schedule(quick(probe, "other", "other"))
        await ticket.result()
    assert probe.starts == {"other": 0, "child": pytest.approx(5)}


async def test_a_slot_handed_to_a_run_that_is_stopped_meanwhile_is_not_lost(autojump_clock: MockClock) -> None:
    """Stopped in the very moment it gets its slot back, a parent ends and the slot goes on. (P3, P8)"""
    stubborn = Stubborn()
    async with open_scheduler({"main": 1, "cron": 1}) as scheduler:

        async def parent(run: Run) -> None:
            await run.schedule(quick(nothing, None, "sub", lane="cron")).result()
            await trio.sleep_forever()

        def stop(_: object) -> None:
            """Called when the slot's holder ends; the worker then hands the slot to the parent."""
            trio.lowlevel.current_trio_token().run_sync_soon(scheduler.cancel_all, "dm")

        ticket = scheduler.schedule(quick(parent))
        scheduler.schedule(quick(stubborn, None, "holder", on_end=stop))
        await trio.sleep(1)
        assert len(scheduler.lanes["main"].returning) == 1
        stubborn.gate.set()
        await ticket.wait()
        await scheduler.schedule(quick(nothing, None, "next")).result()
        assert scheduler.lanes["main"].active == 0
    assert ends_of(ticket) == [End.CANCELLED]
