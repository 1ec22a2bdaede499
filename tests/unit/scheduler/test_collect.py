"""Mode collect: waiting neighbours of one author become one turn, and nobody else's words get into it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from scheduler import End, Mode, Policy, open_scheduler
from tests.unit.scheduler.probe import QUICK, Ends, Probe, ends_of, quick

if TYPE_CHECKING:
    from trio.testing import MockClock

COLLECT = Policy(mode=Mode.COLLECT, debounce_s=0)


async def test_waiting_messages_become_one_turn(autojump_clock: MockClock) -> None:
    """What waited behind a run is one turn, in order, and each message ends with it exactly once. (lesson 13)"""
    probe, ends = Probe(), Ends()
    async with open_scheduler() as scheduler:
        tickets = [scheduler.schedule(quick(probe, number, policy=COLLECT, on_end=ends)) for number in range(6)]
        assert scheduler.statistics().waiting == 5
        await scheduler.drain()
        assert scheduler.statistics().waiting == 0
    assert probe.turns == [(0,), (1, 2, 3, 4, 5)]
    assert [ticket.outcome and ticket.outcome.value for ticket in tickets] == [(0,)] + [(1, 2, 3, 4, 5)] * 5
    assert ends.seen == [(number, End.DONE) for number in range(6)]


@pytest.mark.parametrize(
    "difference",
    [
        {"sender": "bob"},
        {"thread": "another topic"},
        {"lane": "cron"},
        {"policy": QUICK},
    ],
    ids=lambda difference: next(iter(difference)),
)
async def test_a_different_neighbour_ends_the_turn(autojump_clock: MockClock, difference: dict[str, Any]) -> None:
    """Sender, thread, lane and mode must be the same; a stranger in between splits the turn. (lesson 17)"""
    probe = Probe()
    same: dict[str, Any] = {"sender": "ann", "thread": "topic", "lane": "main", "policy": COLLECT}
    async with open_scheduler() as scheduler:
        scheduler.schedule(quick(probe, "running", **same))
        for number in (1, 2):
            scheduler.schedule(quick(probe, number, **same))
        scheduler.schedule(quick(probe, "stranger", **(same | difference)))
        for number in (3, 4):
            scheduler.schedule(quick(probe, number, **same))
        await scheduler.drain()
    assert probe.turns == [("running",), (1, 2), ("stranger",), (3, 4)]


async def test_another_handler_is_never_collected(autojump_clock: MockClock) -> None:
    """A message runs with its own handler, even where all else is equal."""
    one, other = Probe(), Probe()
    async with open_scheduler() as scheduler:
        scheduler.schedule(quick(one, 0, policy=COLLECT))
        scheduler.schedule(quick(one, 1, policy=COLLECT))
        scheduler.schedule(quick(other, 2, policy=COLLECT))
        await scheduler.drain()
    assert (one.turns, other.turns) == ([(0,), (1,)], [(2,)])


async def test_collecting_takes_in_whole_debounced_turns(autojump_clock: MockClock) -> None:
    """Turns that the debounce window made are collected with all their messages, in order. (P2)"""
    probe = Probe(100)
    policy = Policy(mode=Mode.COLLECT, debounce_s=1)
    async with open_scheduler() as scheduler:
        scheduler.schedule(quick(probe, 0, policy=COLLECT))
        tickets = [scheduler.schedule(quick(probe, number, policy=policy)) for number in (1, 2)]
        scheduler.flush("dm")
        tickets += [scheduler.schedule(quick(probe, number, policy=policy)) for number in (3, 4)]
        scheduler.flush("dm")
        tickets += [scheduler.schedule(quick(probe, 5, policy=COLLECT))]
        assert scheduler.session_statistics("dm").waiting == 5
        await scheduler.drain()
    assert probe.turns == [(0,), (1, 2, 3, 4, 5)]
    assert ends_of(*tickets) == [End.DONE] * 5
