"""What the scheduler tells: events in order with the right ids, statistics that add up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from scheduler import End, Event, Kind, Mode, Policy, Reason, Request, WaitTimes, open_scheduler
from scheduler.observe import wait_times
from tests.unit.scheduler.probe import GROUP, Probe, forever, nothing, quick

if TYPE_CHECKING:
    from scheduler import Run


async def test_a_message_tells_its_way(autojump_clock: MockClock) -> None:
    """Queued, started and ended come in this order with time, place, ticket and run."""
    events: list[Event] = []
    async with open_scheduler() as scheduler:
        scheduler.observe(events.append)
        ticket = scheduler.schedule(Request("dm", Probe(2), tenant="acme", lane="cron"))
        outcome = await ticket.wait()
    place = ("cron", "dm", "acme", ticket.id)
    assert [event.at for event in events] == pytest.approx([0, 0.8, 2.8])
    assert [event._replace(at=0) for event in events] == [
        Event(Kind.QUEUED, 0, *place),
        Event(Kind.STARTED, 0, *place, outcome.run, 1),
        Event(Kind.ENDED, 0, *place, outcome.run, End.DONE),
    ]


async def test_joined_messages_tell_whom_they_join(autojump_clock: MockClock) -> None:
    """Each message is told, the turn is started once with its size, each message ends under the turn's run."""
    events: list[Event] = []
    async with open_scheduler() as scheduler:
        scheduler.observe(events.append)
        for _ in range(3):
            scheduler.schedule(Request("dm", nothing))
        await scheduler.drain()
    kinds = [(event.kind, event.ticket, event.run, event.detail) for event in events]
    assert kinds == [
        (Kind.QUEUED, 1, 0, None),
        (Kind.QUEUED, 2, 0, None),
        (Kind.JOINED, 2, 0, None),
        (Kind.QUEUED, 3, 0, None),
        (Kind.JOINED, 3, 0, None),
        (Kind.STARTED, 1, 1, 3),
        (Kind.ENDED, 1, 1, End.DONE),
        (Kind.ENDED, 2, 1, End.DONE),
        (Kind.ENDED, 3, 1, End.DONE),
    ]


async def test_steering_is_told_as_joining(autojump_clock: MockClock) -> None:
    """A message that is handed to a running turn is told so."""
    events: list[Event] = []
    async with open_scheduler() as scheduler:
        scheduler.schedule(quick(Probe(), None, steerable=True))
        scheduler.observe(events.append)
        scheduler.schedule(quick(Probe(), None, policy=Policy(mode=Mode.STEER, debounce_s=0)))
        assert [(event.kind, event.ticket) for event in events] == [(Kind.QUEUED, 2), (Kind.JOINED, 2)]


async def test_nested_waiting_is_told(autojump_clock: MockClock) -> None:
    """A parent's slot is told as lent and regained, around its child's own events."""
    events: list[Event] = []

    async def parent(run: Run) -> None:
        await run.schedule(quick(Probe(), None, "sub")).result()

    async with open_scheduler({"main": 1}) as scheduler:
        scheduler.observe(events.append)
        await scheduler.schedule(quick(parent)).result()
    assert [(event.kind, event.session, event.ticket, event.run) for event in events] == [
        (Kind.QUEUED, "dm", 1, 0),
        (Kind.STARTED, "dm", 1, 1),
        (Kind.QUEUED, "sub", 2, 0),
        (Kind.LENT, "dm", 1, 1),
        (Kind.STARTED, "sub", 2, 2),
        (Kind.ENDED, "sub", 2, 2),
        (Kind.REGAINED, "dm", 1, 1),
        (Kind.ENDED, "dm", 1, 1),
    ]


async def test_a_stop_is_told_with_its_reason(autojump_clock: MockClock) -> None:
    """Cancelling comes when somebody asks, ended when the run has really ended."""
    events: list[Event] = []
    async with open_scheduler() as scheduler:
        scheduler.schedule(quick(Probe(10, unwinds_s=2)))
        await trio.sleep(1)
        scheduler.observe(events.append)
        scheduler.cancel_oldest("dm")
        await scheduler.drain()
    assert [(event.kind, event.at, event.detail) for event in events] == [
        (Kind.CANCELLING, 1, Reason.STOPPED),
        (Kind.ENDED, 3, End.CANCELLED),
    ]


async def test_a_resize_is_told(autojump_clock: MockClock) -> None:
    """The lane and its new limit; a refused one is not told."""
    events: list[Event] = []
    async with open_scheduler() as scheduler:
        scheduler.observe(events.append)
        scheduler.lanes.resize("main", 5)
        with pytest.raises(ValueError, match="main"):
            scheduler.lanes.resize("main", 0)
    assert events == [Event(Kind.RESIZED, 0, "main", detail=5)]


async def test_an_observer_can_leave(autojump_clock: MockClock) -> None:
    """Who has left hears nothing more, who is left hears everything; leaving twice is harmless."""
    gone: list[Event] = []
    stays: list[Event] = []
    async with open_scheduler() as scheduler:
        leave = scheduler.observe(gone.append)
        scheduler.observe(stays.append)
        scheduler.schedule(quick(nothing))
        await scheduler.drain()
        leave()
        leave()
        scheduler.schedule(quick(nothing))
        await scheduler.drain()
    assert (len(gone), len(stays)) == (3, 6)


async def test_every_message_has_one_end_under_one_ticket(autojump_clock: MockClock) -> None:
    """However messages end, each ticket is told as queued once and as ended once. (P6)"""
    events: list[Event] = []
    async with open_scheduler({"main": 2}) as scheduler:
        scheduler.observe(events.append)
        for number in range(60):
            policy = (GROUP, Policy(cap=2), Policy(debounce_s=0, mode=Mode.INTERRUPT))[number % 3]
            scheduler.schedule(quick(Probe(2), number, f"dm {number % 7}", policy=policy))
            await trio.sleep(0.3)
            if number % 10 == 9:
                scheduler.cancel_all(f"dm {number % 4}")
        await scheduler.drain()
    for kind in (Kind.QUEUED, Kind.ENDED):
        assert sorted(event.ticket for event in events if event.kind is kind) == list(range(1, 61))


async def test_the_numbers_of_a_lane_add_up(autojump_clock: MockClock) -> None:
    """Active, parked, waiting, started and the ends by kind are what happened."""

    async def parent(run: Run) -> None:
        await run.schedule(quick(forever, None, "sub")).result()

    async def fails(run: Run) -> None:
        raise ValueError

    async with open_scheduler({"main": 2}) as scheduler:
        scheduler.schedule(quick(parent, None, "parent"))
        await trio.sleep(1)
        scheduler.schedule(quick(fails, None, "fails"))
        await trio.sleep(1)
        scheduler.schedule(quick(Probe(100), None, "long"))
        for _ in range(3):
            scheduler.schedule(quick(nothing, policy=Policy(debounce_s=0, cap=2)))
        await trio.sleep(5)
        whole = scheduler.statistics()
        (lane,) = whole.lanes
        assert (lane.name, lane.limit, lane.active, lane.parked, lane.waiting, lane.stuck) == ("main", 2, 2, 1, 2, 0)
        assert lane.started == 4
        assert {end: count for end, count in lane.ends.items() if count} == {"failed": 1, "dropped": 1}
        assert set(lane.ends) == {end.value for end in End}
        assert lane.oldest_wait_s == 5
        assert (whole.sessions, whole.running, whole.waiting, whole.callback_errors) == (4, 3, 2, 0)


async def test_the_numbers_of_a_session_add_up(autojump_clock: MockClock) -> None:
    """Window, queue, runs, stopping ones and children of one session, and nothing for one that is idle."""

    async def parent(run: Run) -> None:
        run.schedule(quick(forever, None, "sub"))
        await trio.sleep_forever()

    async with open_scheduler({"main": 10}) as scheduler:
        for _ in range(5):
            scheduler.schedule(quick(parent, policy=GROUP))
        await trio.sleep(3)
        for _ in range(2):
            scheduler.schedule(quick(forever, policy=Policy(max_concurrent=3, debounce_s=100)))
        found = scheduler.session_statistics("dm")
        assert (found.limit, found.throttled, found.buffered, found.waiting) == (3, False, 2, 2)
        assert (found.running, found.stopping, found.children, found.steering) == (3, 0, 3, 0)
        assert found.oldest_wait_s == 3
        idle = scheduler.session_statistics("nobody")
        assert (idle.running, idle.waiting, idle.buffered, idle.oldest_wait_s) == (0, 0, 0, 0)


async def test_the_wait_is_measured_from_queue_to_slot(autojump_clock: MockClock) -> None:
    """Runs of one second through one slot wait 0, 1, ... 100 seconds: the percentiles are 50, 90 and 99."""
    async with open_scheduler({"main": 1}) as scheduler:
        for number in range(101):
            scheduler.schedule(quick(Probe(1), None, f"dm {number}"))
        await trio.sleep(50.5)
        assert scheduler.statistics().lanes[0].oldest_wait_s == 50.5
        await scheduler.drain()
        (lane,) = scheduler.statistics().lanes
    assert lane.wait == WaitTimes(samples=101, p50_s=50, p90_s=90, p99_s=99)
    assert lane.oldest_wait_s == 0


async def test_debounce_is_not_waiting(autojump_clock: MockClock) -> None:
    """The window is on purpose: what counts as wait begins when it closes."""
    async with open_scheduler() as scheduler:
        await scheduler.schedule(Request("dm", nothing)).result()
        assert scheduler.statistics().lanes[0].wait == WaitTimes(1, 0, 0, 0)


def test_percentiles_of_few_samples() -> None:
    """None, one and two samples have percentiles too."""
    assert wait_times([]) == WaitTimes(0, 0, 0, 0)
    assert wait_times([3.0]) == WaitTimes(1, 3, 3, 3)
    assert wait_times([5.0, 1.0]) == WaitTimes(2, 1, 5, 5)


async def test_only_the_latest_waits_are_kept(autojump_clock: MockClock) -> None:
    """The samples are bounded, so a long life costs nothing. (M1)"""
    async with open_scheduler() as scheduler:
        for number in range(3000):
            scheduler.schedule(quick(nothing, None, f"dm {number}"))
        await scheduler.drain()
        await wait_all_tasks_blocked()
        lane = scheduler.statistics().lanes[0]
    assert (lane.started, lane.wait.samples) == (3000, 1024)
