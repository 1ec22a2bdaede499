"""Callbacks that call back in: the state is whole whenever somebody is told something."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import trio

from scheduler import End, Event, Kind, Mode, Policy, Request, open_scheduler
from tests.unit.scheduler.probe import GROUP, Ends, Probe, ends_of, forever, nothing, quick

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio.testing import MockClock

    from scheduler import Run, Scheduler, Ticket


def schedules(scheduler: Scheduler, ends: Ends, probe: Probe) -> None:
    scheduler.schedule(quick(probe, "extra", on_end=ends))


def buffers(scheduler: Scheduler, ends: Ends, probe: Probe) -> None:
    scheduler.schedule(Request("dm", probe, "extra", on_end=ends))


def interrupts(scheduler: Scheduler, ends: Ends, probe: Probe) -> None:
    scheduler.schedule(quick(probe, "extra", policy=Policy(mode=Mode.INTERRUPT, debounce_s=0), on_end=ends))


def stops(scheduler: Scheduler, ends: Ends, probe: Probe) -> None:
    scheduler.cancel_oldest("dm")


def stops_all(scheduler: Scheduler, ends: Ends, probe: Probe) -> None:
    scheduler.cancel_all("dm")


def flushes(scheduler: Scheduler, ends: Ends, probe: Probe) -> None:
    scheduler.flush("dm")


def resizes(scheduler: Scheduler, ends: Ends, probe: Probe) -> None:
    scheduler.lanes.resize("main", scheduler.lanes["main"].limit + 1)


@pytest.mark.parametrize("act", [schedules, buffers, interrupts, stops, stops_all, flushes, resizes])
@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("limit", [1, 4])
async def test_an_observer_may_call_back_in_at_any_event(
    autojump_clock: MockClock, limit: int, kind: Kind, act: Callable[[Scheduler, Ends, Probe], None]
) -> None:
    """Any verb at any event: still one run at a time, one end each, nothing left over. (lesson 5, P3, P6)"""
    ends, probe = Ends(), Probe(0.5)
    open_tickets: list[Ticket] = []
    acted = 0

    async def parent(run: Run) -> None:
        open_tickets.append(run.schedule(quick(probe, "child", f"sub {run.id}", on_end=ends)))
        await open_tickets[-1].wait()
        await probe(run)

    async with open_scheduler({"main": limit}, told_after_s=1, fenced_after_s=2) as scheduler:

        def observer(event: Event) -> None:
            nonlocal acted
            if event.kind is kind and acted < 40:  # enough, and what it schedules must come to an end
                acted += 1
                act(scheduler, ends, probe)

        scheduler.observe(observer)
        requests = [quick(parent, number, on_end=ends) for number in range(3)]
        requests += [Request("dm", probe, f"joined {number}", on_end=ends) for number in range(20)]
        requests += [quick(forever, "stopped", "other", on_end=ends)]
        open_tickets += [scheduler.schedule(request) for request in requests]
        await trio.sleep(1)
        scheduler.cancel_all("other")
        open_tickets.append(scheduler.schedule(quick(ignores, "ignores", "dm", on_end=ends)))
        scheduler.lanes.resize("main", 2)
        await trio.sleep(30)
        scheduler.cancel_oldest("dm")
        with trio.move_on_after(1000):
            await scheduler.drain()
        assert not scheduler.sessions
        assert scheduler.statistics().callback_errors == 0
        lane = scheduler.lanes["main"]
        await trio.sleep(1000)
        assert (lane.active, lane.parked, lane.waiting, lane.stuck) == (0, 0, 0, 0)
        assert not lane.lines
    assert None not in ends_of(*open_tickets)
    assert probe.most["dm"] <= 1
    told = Counter(payload for payload, _ in ends.seen if payload not in ("extra", "child"))
    assert set(told.values()) == {1}
    ran = Counter(payload for payload in probe.order if payload not in ("extra", "child"))
    assert set(ran.values()) <= {1}
    cancelled = {payload for payload, end in ends.seen if end is End.CANCELLED and payload not in ("extra", "child")}
    done = {payload for turn in probe.done for payload in turn}
    assert not cancelled & done


async def ignores(run: Run) -> None:
    with trio.CancelScope(shield=True):
        await trio.sleep(50)


async def test_an_on_end_may_do_anything(autojump_clock: MockClock) -> None:
    """Callbacks that schedule, stop and flush at every end leave each message with exactly one end. (lesson 5, P6)"""
    ends, probe = Ends(), Probe(0.5)
    async with open_scheduler({"main": 2}) as scheduler:

        def on_end(ticket: Ticket) -> None:
            ends(ticket)
            number = ticket.request.payload
            if number < 40:
                scheduler.schedule(quick(probe, number + 10, ticket.request.session, on_end=on_end, policy=GROUP))
            if number % 3 == 0:
                scheduler.cancel_oldest(ticket.request.session)
            if number % 5 == 0:
                scheduler.cancel_all("dm 1")
            scheduler.flush("dm 2")

        for number in range(10):
            scheduler.schedule(Request(f"dm {number % 3}", probe, number, on_end=on_end, sender=str(number % 2)))
        await scheduler.drain()
    assert sorted(payload for payload, _ in ends.seen) == list(range(50))


async def test_a_chain_of_messages_that_each_bring_the_next_one_is_not_recursion(autojump_clock: MockClock) -> None:
    """Five thousand ends that each schedule again do not grow the stack. (lesson 9)"""
    count = 0
    async with open_scheduler({"main": 1}) as scheduler:

        def again(_: Ticket) -> None:
            nonlocal count
            count += 1
            if count < 5000:
                scheduler.schedule(quick(nothing, on_end=again))

        scheduler.schedule(quick(nothing, on_end=again))
        await scheduler.drain()
        assert scheduler.statistics().callback_errors == 0
    assert count == 5000


async def test_many_lanes_that_start_each_other_are_not_recursion(autojump_clock: MockClock) -> None:
    """A session whose messages walk through a thousand lanes, drained at once by a resize, ends. (P8)"""
    names = [f"lane {number}" for number in range(1000)]
    probe = Probe(0)
    big = Policy(debounce_s=0, cap=5000, max_concurrent=5000)
    async with open_scheduler({"main": 1, **dict.fromkeys(names, 1)}) as scheduler:
        scheduler.schedule(quick(forever, None, "holder"))
        scheduler.schedule(quick(probe, "head", policy=big))
        for name in names:
            scheduler.schedule(quick(probe, name, policy=big, lane=name))
        scheduler.lanes.resize("main", 2)
        await trio.sleep(1)
        assert scheduler.statistics().callback_errors == 0
    assert len(probe.done) == 1001


async def test_a_dropped_messages_callback_may_stop_the_session(autojump_clock: MockClock) -> None:
    """The newcomer whose arrival led to all this is not out of reach: by the next stop at the latest it ends. (Q8)"""
    ends = Ends()
    tight = Policy(debounce_s=0, cap=1)
    async with open_scheduler({"main": 1}) as scheduler:

        def stop(_: Ticket) -> None:
            scheduler.cancel_all("dm")

        scheduler.schedule(quick(forever, None, "holder"))
        scheduler.schedule(quick(forever, "dropped", policy=tight, on_end=stop))
        scheduler.schedule(Request("dm", forever, "window", policy=Policy(cap=1)))
        new = scheduler.schedule(quick(forever, "new", policy=tight, on_end=ends))
        scheduler.cancel_all("dm")
        assert ends_of(new) == [End.CANCELLED]
        assert list(scheduler.sessions) == ["holder"]
        assert scheduler.lanes["main"].waiting == 0
    assert ends.seen == [("new", End.CANCELLED)]


async def test_a_lane_may_grow_in_the_middle_of_a_stop(autojump_clock: MockClock) -> None:
    """An observer that resizes at the first sign of a stop finds no half-emptied session in the line. (lesson 5)"""
    async with open_scheduler({"main": 1}) as scheduler:

        def grow(event: Event) -> None:
            if event.kind is Kind.CANCELLING:
                scheduler.lanes.resize("main", 5)

        scheduler.observe(grow)
        tickets = [scheduler.schedule(quick(forever, number, policy=GROUP)) for number in range(3)]
        await trio.sleep(1)
        stopped = scheduler.cancel_all("dm")
        assert (stopped.running, stopped.waiting, stopped.queued) == (1, 1, 1)
        assert scheduler.statistics().callback_errors == 0
        await scheduler.drain()
        assert await scheduler.schedule(quick(Probe(), "next")).result() == ("next",)
    assert ends_of(*tickets) == [End.CANCELLED] * 3


async def test_a_handler_may_stop_its_own_session(autojump_clock: MockClock) -> None:
    """A run that calls stopall on itself ends as cancelled at its next wait, and the session works on. (lesson 21)"""
    seen: list[Any] = []
    async with open_scheduler({"main": 1}) as scheduler:

        async def suicidal(run: Run) -> None:
            seen.append(scheduler.cancel_all("dm"))
            await trio.sleep(1)
            seen.append("went on")

        ticket = scheduler.schedule(quick(suicidal))
        waiting = scheduler.schedule(quick(nothing))
        await ticket.wait()
        assert await scheduler.schedule(quick(Probe(), "next")).result() == ("next",)
    assert ends_of(ticket, waiting) == [End.CANCELLED] * 2
    assert (seen[0].running, seen[0].queued, len(seen)) == (1, 1, 1)
