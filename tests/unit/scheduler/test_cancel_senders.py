"""Stop with a sender: in a group a member reaches what is theirs, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from scheduler import End, Mode, Policy, Stopped, open_scheduler
from tests.unit.scheduler.probe import GROUP, Ends, Probe, forever, quick

if TYPE_CHECKING:
    from trio.testing import MockClock

    from scheduler import Run


async def test_stop_of_a_member_ends_their_oldest_run(autojump_clock: MockClock) -> None:
    """The oldest run of that sender is cancelled, not the oldest of the group. (L10)"""
    probe, ends = Probe(10), Ends()
    async with open_scheduler({"main": 3}) as scheduler:
        for number, sender in enumerate(["ann", "bob", "bob"]):
            scheduler.schedule(quick(probe, number, "group", sender=sender, policy=GROUP, on_end=ends))
        await trio.sleep(1)
        assert scheduler.cancel_oldest("group", sender="bob") == Stopped(running=1)
        await scheduler.drain()
    assert sorted(ends.seen) == [(0, End.DONE), (1, End.CANCELLED), (2, End.DONE)]


async def test_stopall_of_a_member_leaves_everybody_else(autojump_clock: MockClock) -> None:
    """Their runs, waiting messages and window end; the others' stay, in their order, and are counted as left. (L10)"""
    probe, ends = Probe(10), Ends()
    async with open_scheduler({"main": 3}) as scheduler:
        for number, sender in enumerate(["ann", "bob", "cid", "bob", "ann", "bob"]):
            scheduler.schedule(quick(probe, number, "group", sender=sender, policy=GROUP, on_end=ends))
        window = Policy(max_concurrent=3, shared=True)
        scheduler.schedule(quick(probe, 6, "group", sender="bob", policy=window, on_end=ends))
        await trio.sleep(0.5)
        assert scheduler.cancel_all("group", sender="bob") == Stopped(running=1, queued=2, buffered=1, left=1)
        await scheduler.drain()
    assert [number for number in range(7) if ends.of(number) == [End.CANCELLED]] == [1, 3, 5, 6]
    assert [number for number in range(7) if ends.of(number) == [End.DONE]] == [0, 2, 4]


async def test_another_members_window_is_left(autojump_clock: MockClock) -> None:
    """A window belongs to its sender. (L10)"""
    probe = Probe()
    async with open_scheduler() as scheduler:
        scheduler.schedule(quick(probe, "ann's", "group", sender="ann", policy=Policy(shared=True)))
        assert scheduler.cancel_all("group", sender="bob") == Stopped(left=1)
        assert scheduler.cancel_oldest("group", sender="bob") == Stopped(left=1)
        await scheduler.drain()
    assert probe.done == [("ann's",)]


async def test_who_has_nothing_running_stops_what_waits_of_theirs(autojump_clock: MockClock) -> None:
    """With only other people's runs alive, a member's stop takes their waiting messages. (L10, lesson 18)"""
    probe = Probe(10)
    async with open_scheduler({"main": 1}) as scheduler:
        for number, sender in enumerate(["ann", "bob", "ann", "bob"]):
            scheduler.schedule(quick(probe, number, "group", sender=sender, policy=GROUP))
        await trio.sleep(1)
        assert scheduler.cancel_oldest("group", sender="bob") == Stopped(waiting=1, queued=1, left=1)
        await scheduler.drain()
    assert probe.order == [0, 2]


async def test_nested_work_belongs_to_who_asked_for_it(autojump_clock: MockClock) -> None:
    """A child is its parent's sender's, whatever its own request says, also when the parent has ended. (lesson 22)"""
    ends = Ends()

    async def parent(run: Run) -> None:
        run.schedule(quick(forever, run.owner, f"sub {run.owner}", sender="agent", on_end=ends))
        run.schedule(quick(forever, f"{run.owner} later", "group", sender="agent", policy=GROUP, on_end=ends))

    async with open_scheduler({"main": 10}) as scheduler:
        for sender in ("ann", "bob"):
            await scheduler.schedule(quick(parent, None, "group", sender=sender, policy=GROUP)).result()
        await trio.sleep(1)
        assert scheduler.cancel_all("group", sender="agent") == Stopped()
        stopped = scheduler.cancel_all("group", sender="ann")
        assert stopped.running + stopped.children == 2
        await trio.sleep(1)
        assert sorted(ends.seen) == [("ann", End.CANCELLED), ("ann later", End.CANCELLED)]
        assert scheduler.session_statistics("group").running == 1


async def test_a_members_stop_leaves_other_steering_alone(autojump_clock: MockClock) -> None:
    """Untaken steering goes with its sender's stopall only. (lesson 18)"""
    probe, ends = Probe(10), Ends()
    policy = Policy(mode=Mode.STEER, debounce_s=0, max_concurrent=3, shared=True)
    async with open_scheduler({"main": 3}) as scheduler:
        for sender in ("ann", "bob"):
            for text in ("run", "steer"):
                payload = f"{sender} {text}"
                scheduler.schedule(
                    quick(probe, payload, "group", sender=sender, policy=policy, steerable=True, on_end=ends)
                )
        assert scheduler.session_statistics("group").steering == 2
        assert scheduler.cancel_all("group", sender="ann") == Stopped(running=1, queued=1, left=1)
        await scheduler.drain()
    assert ends.of("ann run") == ends.of("ann steer") == [End.CANCELLED]
    assert ends.of("bob run") == ends.of("bob steer") == [End.DONE]


@pytest.mark.parametrize("verb", ["cancel_oldest", "cancel_all"])
async def test_a_stop_without_sender_reaches_everybody(autojump_clock: MockClock, verb: str) -> None:
    """An admin's stop is not limited to anybody's own. (L10)"""
    probe = Probe(10)
    async with open_scheduler({"main": 3}) as scheduler:
        for sender in ("ann", "bob"):
            scheduler.schedule(quick(probe, sender, "group", sender=sender, policy=GROUP))
        await trio.sleep(1)
        stopped = getattr(scheduler, verb)("group")
        assert stopped.running == (2 if verb == "cancel_all" else 1)
        await scheduler.drain()
    assert len(probe.done) == (0 if verb == "cancel_all" else 1)
