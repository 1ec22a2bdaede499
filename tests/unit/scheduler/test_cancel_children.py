"""Stop reaches nested work: children that run, wait or are parked, at any depth, attached or left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from scheduler import End, Mode, Policy, Reason, Request, Stopped, open_scheduler
from tests.unit.scheduler.probe import QUICK, Ends, Probe, ends_of, forever, nothing, quick

if TYPE_CHECKING:
    from scheduler import Run


def nest(depth: int, leaf: Any, ends: Ends, *, wait: bool = True) -> Request:
    """A request whose run schedules the next one below it, ``depth`` levels down to ``leaf``."""

    async def handler(run: Run) -> None:
        child = run.schedule(nest(depth - 1, leaf, ends, wait=wait))
        if wait:
            await child.wait()

    session = "dm" if depth == 3 else f"sub {depth}"
    return quick(leaf if depth == 0 else handler, depth, session, on_end=ends)


@pytest.mark.parametrize("limit", [1, 2, 10])
@pytest.mark.parametrize("verb", ["cancel_oldest", "cancel_all"])
async def test_a_stop_reaches_children_three_deep(autojump_clock: MockClock, limit: int, verb: str) -> None:
    """The parent is parked, so are its child and grandchild, the deepest runs: all of them end. (lesson 22)"""
    ends, leaf = Ends(), Probe(100)
    async with open_scheduler({"main": limit}) as scheduler:
        scheduler.schedule(nest(3, leaf, ends))
        await trio.sleep(1)
        assert scheduler.lanes["main"].parked == 3
        assert getattr(scheduler, verb)("dm") == Stopped(running=1, children=3)
        await scheduler.drain()
        assert (scheduler.lanes["main"].parked, scheduler.lanes["main"].active) == (0, 0)
    assert trio.current_time() == 1
    assert sorted(ends.seen) == [(depth, End.CANCELLED) for depth in range(4)]
    assert leaf.done == []
    assert leaf.runs[0].reason is Reason.STOPPED


async def test_a_stop_reaches_children_wherever_they_wait(autojump_clock: MockClock) -> None:
    """Children in a window, in a queue, at a full lane and under way are all ended and all counted. (lesson 22)"""
    ends, probe = Ends(), Probe(100)

    async def parent(run: Run) -> None:
        for number in range(2):
            run.schedule(Request("windowed", probe, f"window {number}", on_end=ends))
        for number in range(3):
            run.schedule(quick(probe, f"own {number}", "own", on_end=ends))
        run.schedule(quick(probe, "full lane", "full lane", lane="cron", on_end=ends))
        await trio.sleep_forever()

    async with open_scheduler({"main": 2, "cron": 1}) as scheduler:
        busy = scheduler.schedule(quick(forever, None, "busy", lane="cron"))
        scheduler.schedule(quick(parent))
        await trio.sleep(0.5)
        assert scheduler.session_statistics("dm").children == 6
        assert scheduler.cancel_all("dm") == Stopped(running=1, children=6)
        await wait_all_tasks_blocked()
        assert list(scheduler.sessions) == ["busy"]
        assert ends_of(busy) == [None]
        await trio.sleep(100)
    assert probe.order == ["own 0"]
    assert len(ends.seen) == 6
    assert {end for _, end in ends.seen} == {End.CANCELLED}


async def test_a_stopped_child_leaves_its_neighbours_alone(autojump_clock: MockClock) -> None:
    """In a session that the child only shares, messages of others stay where they are. (lesson 22)"""
    probe = Probe(10)

    async def parent(run: Run) -> None:
        run.schedule(quick(probe, "child", "shared"))
        await trio.sleep_forever()

    async with open_scheduler() as scheduler:
        first = scheduler.schedule(quick(probe, "first", "shared"))
        scheduler.schedule(quick(parent))
        await wait_all_tasks_blocked()
        last = scheduler.schedule(quick(probe, "last", "shared"))
        assert scheduler.cancel_all("dm") == Stopped(running=1, children=1)
        await scheduler.drain()
    assert ends_of(first, last) == [End.DONE] * 2
    assert probe.order == ["first", "last"]


async def test_a_stop_reaches_a_run_that_waits_to_get_its_slot_back(autojump_clock: MockClock) -> None:
    """A parent in line for its slot leaves the line and ends; the lane's numbers stay right. (lesson 18)"""
    async with open_scheduler({"main": 1}) as scheduler:

        async def parent(run: Run) -> None:
            await run.schedule(quick(nothing, None, "sub", lane="cron")).wait()
            raise AssertionError("went on after its stop")

        scheduler.lanes.get_or_create("cron", 1)
        ticket = scheduler.schedule(quick(parent))
        scheduler.schedule(quick(forever, None, "newcomer"))
        await trio.sleep(1)
        lane = scheduler.lanes["main"]
        assert (lane.active, len(lane.returning)) == (1, 1)
        assert scheduler.cancel_oldest("dm") == Stopped(running=1)
        with trio.fail_after(1):
            await ticket.wait()
        assert (lane.active, lane.parked, len(lane.returning)) == (1, 0, 0)
        scheduler.cancel_all("newcomer")
        await scheduler.schedule(quick(nothing, None, "next")).result()
    assert ends_of(ticket) == [End.CANCELLED]


@pytest.mark.parametrize("verb", ["cancel_oldest", "cancel_all"])
async def test_a_stop_reaches_what_a_finished_run_left_behind(autojump_clock: MockClock, verb: str) -> None:
    """Detached work of a run that has ended still belongs to the session. (lesson 22)"""
    ends = Ends()

    async def parent(run: Run) -> None:
        run.schedule(quick(forever, "detached", "sub", on_end=ends))

    async with open_scheduler() as scheduler:
        await scheduler.schedule(quick(parent)).result()
        await trio.sleep(1)
        assert scheduler.session_statistics("dm").children == 1
        assert getattr(scheduler, verb)("dm") == Stopped(children=1)
        await scheduler.drain()
    assert ends.seen == [("detached", End.CANCELLED)]


@pytest.mark.parametrize("verb", ["cancel_oldest", "cancel_all"])
async def test_a_stop_reaches_what_finished_children_left_behind(autojump_clock: MockClock, verb: str) -> None:
    """Detached work at any depth is reached from the session where it began, though all above it ended. (lesson 22)"""
    ends, leaf = Ends(), Probe(100)
    async with open_scheduler() as scheduler:
        await scheduler.schedule(nest(3, leaf, ends, wait=False)).result()
        await trio.sleep(1)
        assert leaf.alive == 1
        assert getattr(scheduler, verb)("dm") == Stopped(children=1)
        await scheduler.drain()
    assert ends.of(0) == [End.CANCELLED]
    assert leaf.done == []


async def test_a_stop_reaches_what_the_child_of_a_living_run_left_behind(autojump_clock: MockClock) -> None:
    """A run whose child has ended but left work behind takes that work with it. (lesson 22)"""
    leaf = Probe(100)

    async def middle(run: Run) -> None:
        run.schedule(quick(leaf, "leaf", "sub sub"))

    async def parent(run: Run) -> None:
        await run.schedule(quick(middle, None, "sub")).result()
        await trio.sleep_forever()

    async with open_scheduler({"main": 3}) as scheduler:
        scheduler.schedule(quick(parent))
        await trio.sleep(1)
        assert leaf.alive == 1
        assert scheduler.cancel_all("dm") == Stopped(running=1, children=1)
        await scheduler.drain()
    assert leaf.done == []


async def test_a_stop_reaches_below_a_child_that_is_finishing(autojump_clock: MockClock) -> None:
    """A sealed child runs to its end, but what it started is ended. (lesson 22)"""
    leaf, ends = Probe(100), Ends()

    async def middle(run: Run) -> str:
        run.schedule(quick(leaf, "leaf", "sub sub", on_end=ends))
        assert run.seal()
        await trio.sleep(10)
        return "written"

    async def parent(run: Run) -> None:
        run.schedule(quick(middle, "middle", "sub", on_end=ends))
        await trio.sleep_forever()

    async with open_scheduler({"main": 3}) as scheduler:
        scheduler.schedule(quick(parent))
        await trio.sleep(1)
        scheduler.cancel_all("dm")
        await scheduler.drain()
    assert ends.of("leaf") == [End.CANCELLED]
    assert ends.of("middle") == [End.DONE]


async def test_a_stop_takes_detached_work_one_by_one(autojump_clock: MockClock) -> None:
    """Each stop ends the oldest that is left; another run of the session comes before detached work. (L10)"""
    ends = Ends()

    async def parent(run: Run) -> None:
        for number in range(2):
            run.schedule(quick(forever, number, f"sub {number}", on_end=ends))

    async with open_scheduler({"main": 5}) as scheduler:
        await scheduler.schedule(quick(parent)).result()
        scheduler.schedule(quick(forever, "run", on_end=ends))
        stops = []
        for _ in range(4):
            await trio.sleep(1)
            stops.append(scheduler.cancel_oldest("dm"))
    assert stops == [Stopped(running=1), Stopped(children=1), Stopped(children=1), Stopped()]
    assert ends.seen == [("run", End.CANCELLED), (0, End.CANCELLED), (1, End.CANCELLED)]


async def test_a_stopped_parent_gets_no_new_children(autojump_clock: MockClock) -> None:
    """What a run schedules after it was stopped ends at once: a stop cannot be outrun. (lesson 22, P7)"""
    late: list[Any] = []

    async def parent(run: Run) -> None:
        try:
            await trio.sleep_forever()
        finally:
            late.append(run.schedule(quick(Probe(), "late", "sub")))

    kept: list[Run] = []

    async def keep(run: Run) -> None:
        kept.append(run)

    async with open_scheduler() as scheduler:
        scheduler.schedule(quick(parent))
        await trio.sleep(1)
        scheduler.cancel_all("dm")
        await scheduler.drain()
        await scheduler.schedule(quick(keep)).result()
        late.append(kept[0].schedule(quick(Probe(), "too late", "sub")))
        assert not scheduler.sessions
    assert ends_of(*late) == [End.CANCELLED] * 2


async def test_children_of_a_run_that_took_too_long_are_cancelled(autojump_clock: MockClock) -> None:
    """A parent's time limit ends its children too; for them it is a cancellation, they had no limit. (lesson 22)"""
    ends = Ends()

    async def parent(run: Run) -> None:
        run.schedule(quick(forever, "runs", "sub 1", on_end=ends))
        run.schedule(quick(forever, "waits", "sub 1", on_end=ends))
        await trio.sleep_forever()

    async with open_scheduler() as scheduler:
        scheduler.schedule(quick(parent, "parent", policy=Policy(debounce_s=0, timeout_s=5), on_end=ends))
        await scheduler.drain()
    assert trio.current_time() == 5
    assert sorted(ends.seen) == [("parent", End.TIMED_OUT), ("runs", End.CANCELLED), ("waits", End.CANCELLED)]


@pytest.mark.parametrize("mode", list(Mode))
async def test_a_child_may_have_any_mode(autojump_clock: MockClock, mode: Mode) -> None:
    """A parent whose time is up takes a child with it that still waits in its window, whatever its mode. (lesson 22)"""
    ends = Ends()
    window = Policy(mode=mode, debounce_s=50)

    async def parent(run: Run) -> None:
        run.schedule(Request("sub", forever, "child", policy=window, on_end=ends))
        await trio.sleep_forever()

    async with open_scheduler() as scheduler:
        scheduler.schedule(quick(parent, policy=Policy(debounce_s=0, timeout_s=5)))
        await scheduler.drain()
        assert await scheduler.schedule(quick(Probe(), "next", policy=QUICK)).result() == ("next",)
    assert ends.seen == [("child", End.CANCELLED)]


async def test_a_child_in_the_same_session_is_counted_once(autojump_clock: MockClock) -> None:
    """A run found both in the session and below another run of it was not stopping already: it is one run. (Q8)"""
    group = Policy(debounce_s=0, max_concurrent=3)

    async def parent(run: Run) -> None:
        run.schedule(quick(forever, "child", policy=group))
        await trio.sleep_forever()

    async with open_scheduler({"main": 5}) as scheduler:
        scheduler.schedule(quick(parent, policy=group))
        await trio.sleep(1)
        stopped = scheduler.cancel_all("dm")
        assert (stopped.running + stopped.children, stopped.stopping) == (2, 0)
        assert len(stopped.reached) == 2
        again = scheduler.cancel_all("dm")
        assert (again.running, again.children, again.stopping) == (0, 0, 2)


async def test_joined_children_are_counted_one_by_one(autojump_clock: MockClock) -> None:
    """Three messages that wait as one turn are three stopped messages, each told once. (Q8)"""
    probe, ends = Probe(), Ends()

    async def parent(run: Run) -> None:
        for number in range(3):
            run.schedule(Request("sub", probe, number, on_end=ends))
        await trio.sleep_forever()

    async with open_scheduler({"main": 2}) as scheduler:
        scheduler.schedule(quick(forever, None, "sub"))
        scheduler.schedule(quick(parent))
        await trio.sleep(2)  # joined, and waiting in the queue of a busy session
        assert scheduler.session_statistics("sub").waiting == 3
        assert scheduler.cancel_all("dm") == Stopped(running=1, children=3)
        assert scheduler.session_statistics("sub").waiting == 0
        assert scheduler.lanes["main"].waiting == 0
    assert sorted(ends.seen) == [(number, End.CANCELLED) for number in range(3)]
