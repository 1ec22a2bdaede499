"""Runs that will not end: told about, then fenced, and from then on nothing of them counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from scheduler import End, Event, Kind, Policy, Reason, Stopped, open_scheduler
from tests.unit.scheduler.probe import Ends, Probe, Stubborn, ends_of, forever, quick

if TYPE_CHECKING:
    from trio.testing import MockClock

    from scheduler import Run

WATCHED = {Kind.CANCELLING, Kind.STUCK, Kind.FENCED}


async def test_a_run_that_ignores_its_stop_is_told_then_fenced(autojump_clock: MockClock) -> None:
    """Told after 10 s, fenced after 60 s: then its message ends and its session goes on. (lesson 6, P6)"""
    stubborn, probe, events = Stubborn(), Probe(), list[Event]()
    async with open_scheduler({"main": 2}) as scheduler:
        scheduler.observe(events.append)
        old = scheduler.schedule(quick(stubborn))
        new = scheduler.schedule(quick(probe, "new"))
        await trio.sleep(1)
        scheduler.cancel_oldest("dm")
        await trio.sleep(10.5)
        assert (scheduler.lanes["main"].stuck, ends_of(old)) == (1, [None])
        await new.result()
        assert probe.starts["new"] == pytest.approx(61)
        stubborn.gate.set()
    watched = [(event.kind, event.at) for event in events if event.kind in WATCHED]
    assert watched == [(Kind.CANCELLING, 1), (Kind.STUCK, 11), (Kind.FENCED, 61)]
    assert old.outcome is not None
    assert (old.outcome.end, old.outcome.reason) == (End.CANCELLED, Reason.STOPPED)


async def test_a_fenced_run_keeps_its_lane_slot_until_it_ends(autojump_clock: MockClock) -> None:
    """The lane is not oversold: another run may start only when the fenced one has really ended. (P3)"""
    stubborn, probe = Stubborn(), Probe()
    async with open_scheduler({"main": 1}) as scheduler:
        scheduler.schedule(quick(stubborn))
        await trio.sleep(1)
        scheduler.cancel_oldest("dm")
        waiting = scheduler.schedule(quick(probe, "other", "other"))
        await trio.sleep(500)
        lane = scheduler.lanes["main"]
        assert (lane.active, lane.stuck, ends_of(waiting)) == (1, 1, [None])
        stubborn.gate.set()
        await waiting.result()
        assert probe.starts["other"] == 501
        assert (lane.active, lane.stuck) == (0, 0)


@pytest.mark.parametrize("late", ["value", "error"])
async def test_nothing_of_a_fenced_run_counts(autojump_clock: MockClock, late: str) -> None:
    """Its late value or exception is ignored, and no message ends twice. (lesson 6, P7)"""
    ends, asked = Ends(), list[object]()

    async def handler(run: Run) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(100)
        asked.extend([run.cancelled, run.seal(), run.take_steering(), run.fenced])
        asked.append(run.schedule(quick(Probe(), "child", "sub", on_end=ends)).outcome)
        if late == "error":
            raise ValueError("late")
        return "late"

    async with open_scheduler() as scheduler:
        ticket = scheduler.schedule(quick(handler, "old", on_end=ends))
        await trio.sleep(1)
        scheduler.cancel_oldest("dm")
        await trio.sleep(200)
        await scheduler.drain()
        assert scheduler.lanes["main"].active == 0
    assert ends.seen == [("old", End.CANCELLED), ("child", End.CANCELLED)]
    assert ticket.outcome is not None
    assert (ticket.outcome.value, ticket.outcome.error) == (None, None)
    assert asked[:4] == [True, False, (), True]


async def test_a_second_stop_does_not_restart_the_clock(autojump_clock: MockClock) -> None:
    """Sixty seconds count from the first stop, however often it is repeated. (P6)"""
    stubborn, ends = Stubborn(), Ends()
    async with open_scheduler() as scheduler:
        ticket = scheduler.schedule(quick(stubborn, on_end=ends))
        await trio.sleep(1)
        scheduler.cancel_oldest("dm")
        for _ in range(5):
            await trio.sleep(10)
            assert scheduler.cancel_all("dm") == Stopped(stopping=1)
        await ticket.wait()
        assert trio.current_time() == 61
        assert scheduler.cancel_all("dm") == Stopped()
        stubborn.gate.set()


async def test_a_run_that_ends_late_but_before_the_fence_is_an_ordinary_end(autojump_clock: MockClock) -> None:
    """Told about and then ended: the count of stuck runs falls again and nothing is fenced."""
    stubborn, events = Stubborn(), list[Event]()
    async with open_scheduler() as scheduler:
        scheduler.observe(events.append)
        ticket = scheduler.schedule(quick(stubborn))
        await trio.sleep(1)
        scheduler.cancel_oldest("dm")
        await trio.sleep(30)
        assert scheduler.lanes["main"].stuck == 1
        stubborn.gate.set()
        await ticket.wait()
        assert scheduler.lanes["main"].stuck == 0
        await trio.sleep(100)
        assert len(scheduler.timers) == 0
    assert Kind.FENCED not in {event.kind for event in events}
    assert ends_of(ticket) == [End.CANCELLED]


async def test_a_run_that_outlives_its_time_limit_is_fenced_too(autojump_clock: MockClock) -> None:
    """The same watch follows a timeout, and the message ends as timed out. (P6)"""
    stubborn = Stubborn()
    async with open_scheduler() as scheduler:
        ticket = scheduler.schedule(quick(stubborn, policy=Policy(debounce_s=0, timeout_s=5)))
        outcome = await ticket.wait()
        assert trio.current_time() == 65
        assert (outcome.end, outcome.reason) == (End.TIMED_OUT, Reason.TIMEOUT)
        stubborn.gate.set()


async def test_a_fenced_run_leaves_its_children_to_the_session(autojump_clock: MockClock) -> None:
    """Work that a sealed, stuck run began can still be stopped after the fence. (lesson 22)"""
    ends = Ends()

    async def sealing(run: Run) -> None:
        run.schedule(quick(forever, "child", "sub", on_end=ends))
        assert run.seal()
        with trio.CancelScope(shield=True):
            await trio.sleep(1000)

    async with open_scheduler() as scheduler:
        ticket = scheduler.schedule(quick(sealing, policy=Policy(debounce_s=0, timeout_s=5)))
        await ticket.wait()
        assert scheduler.cancel_all("dm") == Stopped(children=1)
        await scheduler.drain()
    assert ends.seen == [("child", End.CANCELLED)]


async def test_a_parked_run_that_is_fenced_gets_no_slot_back(autojump_clock: MockClock) -> None:
    """A run that sleeps through its stop in a shielded wait ends without ever taking a slot again. (P3)"""
    gate = Stubborn()
    probe = Probe(1000)
    async with open_scheduler({"main": 1, "cron": 1}) as scheduler:
        other = scheduler.schedule(quick(gate, None, "other", lane="cron"))

        async def parent(run: Run) -> None:
            with trio.CancelScope(shield=True):
                await other.wait()

        ticket = scheduler.schedule(quick(parent))
        await trio.sleep(1)
        scheduler.cancel_oldest("dm")
        scheduler.schedule(quick(probe, "next", "next"))
        await ticket.wait()
        lane = scheduler.lanes["main"]
        assert (lane.active, lane.parked, lane.stuck) == (1, 1, 1)
        gate.gate.set()
        await trio.sleep(1)
        assert (lane.active, lane.parked, lane.stuck, len(lane.returning)) == (1, 0, 0, 0)
    assert probe.most["all"] == 1


async def test_a_sealed_run_is_watched_from_its_time_limit_on(autojump_clock: MockClock) -> None:
    """A result that takes too long to write is not cancelled, but told about and at last fenced. (P6)"""
    stubborn, events = Stubborn(), list[Event]()

    async def sealing(run: Run) -> str:
        assert run.seal()
        return await stubborn(run)

    async with open_scheduler() as scheduler:
        scheduler.observe(events.append)
        ticket = scheduler.schedule(quick(sealing, policy=Policy(debounce_s=0, timeout_s=5)))
        outcome = await ticket.wait()
        stubborn.gate.set()
    watched = [(event.kind, event.at) for event in events if event.kind in WATCHED]
    assert watched == [(Kind.STUCK, 15), (Kind.FENCED, 65)]
    assert outcome.end is End.TIMED_OUT


async def test_a_sealed_run_that_ends_in_time_is_done(autojump_clock: MockClock) -> None:
    """Past its time limit but before the fence, a sealed run's value counts. (P6)"""

    async def sealing(run: Run) -> str:
        assert run.seal()
        await trio.sleep(30)
        return "written"

    async with open_scheduler() as scheduler:
        policy = Policy(debounce_s=0, timeout_s=5)
        assert await scheduler.schedule(quick(sealing, policy=policy)).result() == "written"
        assert scheduler.lanes["main"].stuck == 0


async def test_a_sealed_run_is_counted_as_stuck_once(autojump_clock: MockClock) -> None:
    """A run that was told about before a shutdown is one abandoned run, not two. (P3)"""
    stubborn = Stubborn()

    async def sealing(run: Run) -> str:
        assert run.seal()
        return await stubborn(run)

    async with open_scheduler() as scheduler:
        scheduler.schedule(quick(sealing, policy=Policy(debounce_s=0, timeout_s=5)))
        await trio.sleep(20)
        assert scheduler.lanes["main"].stuck == 1
        closed = await scheduler.close(1)
        assert closed.abandoned == 1
        stubborn.gate.set()
        await trio.sleep(1)
        assert scheduler.lanes["main"].stuck == 0


async def test_a_sealed_run_cannot_slip_through_the_fence_by_waiting(autojump_clock: MockClock) -> None:
    """A run that was told about, then waits for a child and for its slot, is still fenced if it hangs then. (P6)"""
    stubborn = Stubborn()

    async def sealing(run: Run) -> None:
        assert run.seal()
        await trio.sleep(20)  # told about at 15, ten seconds after its time limit
        await run.schedule(quick(Probe(1), None, "sub", lane="cron")).wait()
        await stubborn(run)

    async with open_scheduler({"main": 1, "cron": 1}) as scheduler:
        ticket = scheduler.schedule(quick(sealing, policy=Policy(debounce_s=0, timeout_s=5)))
        scheduler.schedule(quick(Probe(10), None, "newcomer"))  # takes the lent slot until 30
        with trio.move_on_after(200):
            await ticket.wait()
        assert ends_of(ticket) == [End.TIMED_OUT]
        stubborn.gate.set()


async def test_the_fence_can_be_moved(autojump_clock: MockClock) -> None:
    """Both spans are settings of the scheduler."""
    stubborn = Stubborn()
    async with open_scheduler(told_after_s=1, fenced_after_s=2) as scheduler:
        ticket = scheduler.schedule(quick(stubborn))
        await trio.sleep(1)
        scheduler.cancel_oldest("dm")
        await ticket.wait()
        assert trio.current_time() == 3
        stubborn.gate.set()
