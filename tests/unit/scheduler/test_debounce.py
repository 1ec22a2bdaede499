"""The debounce window: quick messages of one person are one turn, and a chatty person still gets an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from scheduler import Drop, End, Policy, Request, open_scheduler
from tests.unit.scheduler.probe import QUICK, Ends, Probe, ends_of, forever, quick

if TYPE_CHECKING:
    from trio.testing import MockClock

    from scheduler import Run


async def test_quick_messages_become_one_turn(autojump_clock: MockClock) -> None:
    """Three texts within the window are one run that holds all three in order; all end with it. (L9, lesson 13)"""
    probe, ends = Probe(), Ends()
    async with open_scheduler() as scheduler:
        tickets = []
        for text in ("first", "second", "third"):
            tickets.append(scheduler.schedule(Request("dm", probe, text, on_end=ends)))
            await trio.sleep(0.5)
        await scheduler.drain()
    assert probe.turns == [("first", "second", "third")]
    assert {ticket.outcome for ticket in tickets} == {tickets[0].outcome}
    assert ends.seen == [("first", End.DONE), ("second", End.DONE), ("third", End.DONE)]


async def test_a_lone_message_waits_for_one_window(autojump_clock: MockClock) -> None:
    """The run starts 800 ms after the message unless told otherwise. (L8)"""
    probe = Probe()
    async with open_scheduler() as scheduler:
        scheduler.schedule(Request("dm", probe, "hello"))
        await scheduler.drain()
    assert probe.starts["hello"] == pytest.approx(0.8)


async def test_each_message_restarts_the_window(autojump_clock: MockClock) -> None:
    """The window closes 800 ms after the last message, not after the first. (L9)"""
    probe = Probe()
    async with open_scheduler() as scheduler:
        scheduler.schedule(Request("dm", probe, 1))
        await trio.sleep(0.7)
        scheduler.schedule(Request("dm", probe, 2))
        await trio.sleep(0.7)
        assert probe.turns == []
        await scheduler.drain()
    assert probe.starts == {1: pytest.approx(1.5), 2: pytest.approx(1.5)}


async def test_the_window_stretches_to_five_at_most(autojump_clock: MockClock) -> None:
    """A message every half second for fifteen seconds: the first turn starts after 4 s, nothing is dropped. (Q3)"""
    probe = Probe(0.1)
    async with open_scheduler() as scheduler:
        tickets = []
        for number in range(30):
            tickets.append(scheduler.schedule(Request("dm", probe, number)))
            await trio.sleep(0.5)
        await scheduler.drain()
    assert probe.starts[0] == pytest.approx(5 * 0.8)
    assert probe.order == list(range(30))
    assert ends_of(*tickets) == [End.DONE] * 30
    assert all(probe.starts[number] - number * 0.5 <= 5 * 0.8 + 0.01 for number in range(30))


async def test_the_window_holds_twenty_messages_at_most(autojump_clock: MockClock) -> None:
    """The twentieth message closes the window at once, the twenty-first opens a new one. (Q3)"""
    probe = Probe()
    async with open_scheduler() as scheduler:
        for number in range(20):
            scheduler.schedule(Request("dm", probe, number))
        assert scheduler.session_statistics("dm").buffered == 0
        scheduler.schedule(Request("dm", probe, 20))
        await scheduler.drain()
    assert probe.turns == [tuple(range(20)), (20,)]
    assert probe.starts[0] == 0


async def test_another_sender_closes_the_window(autojump_clock: MockClock) -> None:
    """Words of two people are never one turn, and the first one's turn comes first. (lesson 17, P2)"""
    probe = Probe()
    async with open_scheduler() as scheduler:
        for sender, text in [("ann", 1), ("ann", 2), ("bob", 3), ("ann", 4)]:
            scheduler.schedule(Request("group", probe, text, sender=sender))
        await scheduler.drain()
    assert probe.turns == [(1, 2), (3,), (4,)]
    assert probe.starts[1] == 0


@pytest.mark.parametrize("difference", [{"lane": "cron"}, {"thread": "topic"}], ids=str)
async def test_another_lane_or_thread_closes_the_window(autojump_clock: MockClock, difference: dict[str, Any]) -> None:
    """A turn has one lane and one thread. (Q6, lesson 17)"""
    probe = Probe()
    async with open_scheduler() as scheduler:
        scheduler.schedule(Request("dm", probe, 1))
        scheduler.schedule(Request("dm", probe, 2, **difference))
        scheduler.schedule(Request("dm", probe, 3))
        await scheduler.drain()
    assert probe.turns == [(1,), (2,), (3,)]


async def test_another_handler_closes_the_window(autojump_clock: MockClock) -> None:
    """A message runs with its own handler."""
    one, other = Probe(), Probe()
    async with open_scheduler() as scheduler:
        scheduler.schedule(Request("dm", one, 1))
        scheduler.schedule(Request("dm", other, 2))
        await scheduler.drain()
    assert (one.turns, other.turns) == ([(1,)], [(2,)])


async def test_nested_messages_join_only_their_siblings(autojump_clock: MockClock) -> None:
    """Children of different runs, and a person's own message, are never one turn: each can be stopped alone. (Q8)"""
    probe = Probe()

    async def parent(run: Run) -> None:
        for number in range(2):
            run.schedule(Request("shared", probe, f"{run.request.payload}{number}"))
        await trio.sleep(10)

    async with open_scheduler() as scheduler:
        scheduler.schedule(quick(parent, "a", "a"))
        await trio.sleep(0.1)
        scheduler.schedule(quick(parent, "b", "b"))
        await trio.sleep(0.1)
        scheduler.schedule(Request("shared", probe, "own"))
        scheduler.cancel_all("b")
        await scheduler.drain()
    assert probe.turns == [("a0", "a1"), ("own",)]


async def test_windows_of_different_sessions_are_apart(autojump_clock: MockClock) -> None:
    """One sender in two sessions has two windows. (lesson 17)"""
    probe = Probe()
    async with open_scheduler() as scheduler:
        for number in range(4):
            scheduler.schedule(Request(f"chat {number % 2}", probe, number, sender="ann"))
        await scheduler.drain()
    assert sorted(probe.turns) == [(0, 2), (1, 3)]


async def test_nothing_overtakes_a_flushed_window(autojump_clock: MockClock) -> None:
    """A command flushes first: buffered text runs before it, and at once. (lesson 14, P2)"""
    probe = Probe()
    async with open_scheduler() as scheduler:
        scheduler.schedule(Request("dm", probe, "text"))
        scheduler.schedule(Request("dm", probe, "more text"))
        scheduler.flush("dm")
        scheduler.schedule(Request("dm", probe, "after"))
        scheduler.flush("no such session")
        await scheduler.drain()
    assert probe.turns == [("text", "more text"), ("after",)]
    assert probe.starts["text"] == 0


@pytest.mark.parametrize("resumed", [True, False])
async def test_a_message_without_debounce_does_not_overtake_the_window(
    autojump_clock: MockClock, resumed: bool
) -> None:
    """What needs no debounce closes the window and follows it. (lesson 14, P2)"""
    probe = Probe()
    policy = Policy() if resumed else QUICK
    async with open_scheduler() as scheduler:
        scheduler.schedule(Request("dm", probe, "buffered"))
        scheduler.schedule(Request("dm", probe, "direct", policy=policy, resumed=resumed))
        await scheduler.drain()
    assert probe.turns == [("buffered",), ("direct",)]
    assert probe.starts == {"buffered": 0, "direct": 1}


async def test_resumed_messages_do_not_join(autojump_clock: MockClock) -> None:
    """Work taken up again after a restart is run turn by turn as it was stored. (Q9)"""
    probe = Probe()
    async with open_scheduler() as scheduler:
        for number in range(3):
            scheduler.schedule(Request("dm", probe, number, resumed=True))
        await scheduler.drain()
    assert probe.turns == [(0,), (1,), (2,)]
    assert probe.starts[0] == 0


async def test_a_shortened_debounce_counts_for_the_open_window(autojump_clock: MockClock) -> None:
    """The newest message's policy counts: a window that was opened for ten seconds closes after its half second."""
    probe = Probe()
    async with open_scheduler() as scheduler:
        scheduler.schedule(Request("dm", probe, 1, policy=Policy(debounce_s=10)))
        scheduler.schedule(Request("dm", probe, 2, policy=Policy(debounce_s=0.5)))
        await scheduler.drain()
    assert probe.turns == [(1, 2)]
    assert probe.starts[2] == pytest.approx(0.5)


async def test_a_full_queue_refuses_before_the_window_opens(autojump_clock: MockClock) -> None:
    """With drop new the newcomer hears of it at once, not after the debounce time. (L7, lesson 16)"""
    policy = Policy(drop=Drop.NEW, cap=1)
    async with open_scheduler() as scheduler:
        scheduler.schedule(quick(forever))
        scheduler.schedule(quick(forever))
        refused = scheduler.schedule(Request("dm", forever, policy=policy))
        assert ends_of(refused) == [End.REFUSED]
        assert scheduler.session_statistics("dm").buffered == 0


async def test_a_joined_turn_that_gives_way_tells_every_message_once(autojump_clock: MockClock) -> None:
    """When a turn of three messages is pushed out of the queue, all three are told, once each. (L7, lesson 16)"""
    ends = Ends()
    async with open_scheduler() as scheduler:
        scheduler.schedule(quick(forever))
        for number in range(3):
            scheduler.schedule(Request("dm", forever, number, on_end=ends))
        await trio.sleep(1)
        assert scheduler.session_statistics("dm").waiting == 3
        scheduler.schedule(quick(forever, policy=Policy(debounce_s=0, cap=1)))
        assert ends.seen == [(number, End.DROPPED) for number in range(3)]
        assert scheduler.session_statistics("dm").waiting == 1
