"""Verbs act as a whole: refused ones change nothing, and what is taken out is just what was named."""

from __future__ import annotations

import asyncio  # noqa: TID251 - for an exception that is no Exception
from typing import TYPE_CHECKING, Any

import pytest
import trio

from scheduler import End, InvalidRequest, Mode, Policy, Reason, Request, WaitRefused, open_scheduler
from tests.unit.scheduler.probe import Ends, Probe, ends_of, forever, nothing, quick

if TYPE_CHECKING:
    from trio.testing import MockClock

    from scheduler import Run, Ticket


async def test_a_callback_at_the_end_of_the_block_finds_every_run_cancelled(autojump_clock: MockClock) -> None:
    """Leaving the block is one verb: its news come when all of it is done, so a stop finds nothing left to stop."""
    found: list[tuple[int, int]] = []
    async with open_scheduler({"main": 1}) as scheduler:

        def stop_too(ticket: Ticket) -> None:
            stopped = scheduler.cancel_all("dm")
            found.append((stopped.running, stopped.stopping))

        running = scheduler.schedule(quick(forever))
        scheduler.schedule(quick(nothing, on_end=stop_too))
        await trio.sleep(1)
    assert found == [(0, 1)]
    assert running.outcome is not None
    assert running.outcome.reason is Reason.CLOSING


async def test_a_newcomer_never_drops_what_was_taken_up_again(autojump_clock: MockClock) -> None:
    """What was kept over a restart is kept: the cap counts neither it nor against it. (Q9, P1)"""
    probe = Probe(1)
    small = Policy(debounce_s=0, cap=2)
    async with open_scheduler({"main": 1}) as scheduler:
        resumed = [scheduler.schedule(quick(probe, n, policy=small, resumed=True)) for n in range(6)]
        new = [scheduler.schedule(quick(probe, 10 + n, policy=small)) for n in range(3)]
        await scheduler.drain()
    assert ends_of(*resumed) == [End.DONE] * 6
    assert ends_of(*new) == [End.DROPPED, End.DONE, End.DONE]


@pytest.mark.parametrize("which", [0, 1, 2])
async def test_cancelling_one_message_of_a_turn_leaves_the_others(autojump_clock: MockClock, which: int) -> None:
    """Each message of a joined turn can be taken back alone, also the first. (Q8)"""
    turns: list[list[Any]] = []

    async def handler(run: Run) -> None:
        turns.append([request.payload for request in run.requests])

    async with open_scheduler({"main": 1}) as scheduler:
        scheduler.schedule(quick(Probe(10)))
        joined = [scheduler.schedule(Request("dm", handler, n, policy=Policy(debounce_s=1))) for n in range(3)]
        await trio.sleep(2)
        assert joined[which].cancel()
        assert not joined[which].cancel()
        await scheduler.drain()
    assert [number for number, end in enumerate(ends_of(*joined)) if end is End.CANCELLED] == [which]
    assert turns == [[n for n in range(3) if n != which]]


async def test_a_joined_message_that_steers_can_be_cancelled(autojump_clock: MockClock) -> None:
    """Also what waits to be taken by a running turn is within reach, message by message. (lesson 18)"""
    probe = Probe()
    steer = Policy(mode=Mode.STEER, debounce_s=1)
    async with open_scheduler() as scheduler:
        scheduler.schedule(Request("dm", Probe(10), policy=Policy(debounce_s=0), steerable=True))
        joined = [scheduler.schedule(Request("dm", probe, n, policy=steer)) for n in range(3)]
        await trio.sleep(2)
        assert joined[1].cancel()
        await scheduler.drain()
    assert ends_of(*joined) == [End.DONE, End.CANCELLED, End.DONE]


async def test_closing_from_inside_a_run_is_refused_and_harms_nothing(autojump_clock: MockClock) -> None:
    """A run that closes the scheduler would wait for itself: refused before anything has changed. (P8)"""
    ends = Ends()
    async with open_scheduler({"main": 1}) as scheduler:

        async def closer(run: Run) -> None:
            with pytest.raises(WaitRefused, match="itself included"):
                await scheduler.close(1)

        first = scheduler.schedule(quick(closer, "closer", on_end=ends))
        second = scheduler.schedule(quick(nothing, "next", on_end=ends))
        await scheduler.drain()
    assert ends_of(first, second) == [End.DONE, End.DONE]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("context_used", None),
        ("context_used", "0.7"),
        ("tenant", []),
        ("policy", None),
        ("policy", "queue"),
        ("lane", 3),
    ],
)
async def test_a_request_that_cannot_be_meant_changes_nothing(field: str, value: Any) -> None:
    """A bad field is named together with its value, and nothing of the message is left behind."""
    async with open_scheduler() as scheduler:
        fields: dict[str, Any] = {"policy": Policy(debounce_s=0), field: value}
        with pytest.raises(InvalidRequest, match=field):
            scheduler.schedule(Request("dm", nothing, **fields))
        assert not scheduler.sessions
        assert await scheduler.schedule(quick(nothing)).result() is None


async def test_limits_and_spans_are_checked_wherever_they_come_in() -> None:
    """An existing lane does not make a bad limit good, and the fence cannot come before the warning."""
    async with open_scheduler() as scheduler:
        with pytest.raises(InvalidRequest, match="-5"):
            scheduler.lanes.get_or_create("main", -5)
    with pytest.raises(InvalidRequest, match="told_after_s"):
        async with open_scheduler(told_after_s=-1):
            pass
    with pytest.raises(InvalidRequest, match="fenced_after_s"):
        async with open_scheduler(fenced_after_s=1):
            pass


async def test_an_exception_of_another_kind_fails_its_own_message_only() -> None:
    """What is no Exception but ends nothing either (a foreign cancellation) is the end of its message. (lesson 5)"""

    async def odd(run: Run) -> None:
        raise asyncio.CancelledError

    async with open_scheduler() as scheduler:
        first, second = scheduler.schedule(quick(odd)), scheduler.schedule(quick(nothing))
        await scheduler.drain()
    assert ends_of(first, second) == [End.FAILED, End.DONE]


async def test_the_oldest_waiter_may_wait_behind_its_own_session(autojump_clock: MockClock) -> None:
    """The figure covers everybody whom `waiting` counts, not only those at the head of their session."""
    async with open_scheduler() as scheduler:
        scheduler.schedule(quick(Probe(300)))
        scheduler.schedule(quick(nothing))
        scheduler.schedule(Request("other", nothing, policy=Policy(debounce_s=50)))
        await trio.sleep(30)
        statistics = scheduler.statistics()
        main = next(lane for lane in statistics.lanes if lane.name == "main")
        assert (main.waiting, main.oldest_wait_s, statistics.buffered) == (1, 30, 1)


async def test_a_stop_gets_past_detached_work_that_is_finishing(autojump_clock: MockClock) -> None:
    """A detached child whose result is being written does not shield the next one from a stop. (lesson 22)"""
    ends = Ends()

    async def sealed(run: Run) -> None:
        assert run.seal()
        await trio.sleep(100)

    async def parent(run: Run) -> None:
        run.schedule(quick(sealed, "sealed", "sub 1", on_end=ends))
        run.schedule(quick(forever, "other", "sub 2", on_end=ends))

    async with open_scheduler({"main": 5}) as scheduler:
        scheduler.schedule(quick(parent))
        await trio.sleep(1)
        assert scheduler.cancel_oldest("dm").children == 1
        await scheduler.drain()
    assert sorted(ends.seen) == [("other", End.CANCELLED), ("sealed", End.DONE)]


async def test_untaken_steering_of_two_runs_keeps_its_order(autojump_clock: MockClock) -> None:
    """What two runs leave untaken waits in the order in which it was written, whichever run ends first. (P2)"""
    started: list[str] = []
    room = Policy(mode=Mode.STEER, debounce_s=0, max_concurrent=3)

    async def note(run: Run) -> None:
        started.append(run.request.payload)

    async def seals(run: Run) -> None:
        await trio.sleep(2)
        assert run.seal()
        await trio.sleep(2)

    async with open_scheduler({"main": 5}) as scheduler:
        first = Policy(debounce_s=0, max_concurrent=3)
        scheduler.schedule(Request("room", Probe(10), policy=first, steerable=True))
        scheduler.schedule(Request("room", seals, policy=first, steerable=True))
        await trio.sleep(1)
        scheduler.schedule(Request("room", note, "first", policy=room))
        await trio.sleep(2)
        scheduler.schedule(Request("room", note, "second", policy=room, context_used=0.6))
        await scheduler.drain()
    assert started == ["first", "second"]
