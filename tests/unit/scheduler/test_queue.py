"""One session's queue: order, how many at once, and who gives way when it is full."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from scheduler import Drop, End, Kind, Mode, Policy, QueueDropped, QueueFull, open_scheduler
from tests.unit.scheduler.probe import GROUP, Ends, Probe, ends_of, forever, nothing, quick

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio.testing import MockClock

    from scheduler import Event, Run, Scheduler, Ticket


def test_a_session_that_chose_nothing_has_the_documented_policy() -> None:
    """Mode queue, cap 10, drop old, debounce 800 ms, one run at a time, no time limit. (L8)"""
    assert Policy() == Policy(Mode.QUEUE, 10, Drop.OLD, 0.8, 1, shared=False, timeout_s=None)


@pytest.mark.parametrize("mode", ["queue", "followup"])
async def test_messages_of_a_session_run_in_their_order(autojump_clock: MockClock, mode: str) -> None:
    """First come, first served, whichever lane each message names and however long each takes. (L6, P2)"""
    probe = Probe()
    policy = Policy(mode=Mode(mode), debounce_s=0, cap=50)

    async def uneven(run: Run) -> None:
        probe.lasts_s = run.request.payload % 7
        await probe(run)

    async with open_scheduler() as scheduler:
        for number in range(50):
            lane = ("main", "cron", "subagent")[number % 3]
            scheduler.schedule(quick(uneven, number, policy=policy, lane=lane))
        await scheduler.drain()
    assert probe.order == list(range(50))
    assert probe.most["dm"] == 1


@pytest.mark.parametrize("limit", [1, 3])
async def test_a_session_runs_as_many_as_its_policy_allows(autojump_clock: MockClock, limit: int) -> None:
    """One run at a time in a DM, three in a group, and they get their slots in order. (L4, P2, P3)"""
    probe = Probe()
    policy = Policy(debounce_s=0, max_concurrent=limit)
    async with open_scheduler({"main": 10}) as scheduler:
        for number in range(9):
            scheduler.schedule(quick(probe, number, policy=policy))
        await scheduler.drain()
    assert probe.most["dm"] == limit
    assert [run.request.payload for run in sorted(probe.runs, key=lambda run: run.id)] == list(range(9))


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        ([0.59], 3),
        ([0.6], 1),
        ([0.6, 0.59], 1),
        ([0.7, 0.5], 1),
        ([0.7, 0.49], 3),
        ([0.7, 0.49, 0.55], 3),
        ([0.55, 0.6, 0.1, 0.9], 1),
    ],
)
async def test_a_long_history_throttles_the_session(
    autojump_clock: MockClock, used: list[float], expected: int
) -> None:
    """From 60 % of the context window one run at a time, back up only below 50 %. (L5)"""
    probe = Probe()
    async with open_scheduler({"main": 10}) as scheduler:
        gate = scheduler.schedule(quick(forever, session="group", policy=GROUP))
        for figure in used:
            scheduler.schedule(quick(nothing, session="group", policy=GROUP, context_used=figure))
        statistics = scheduler.session_statistics("group")
        assert (statistics.limit, statistics.throttled) == (expected, expected == 1)
        scheduler.cancel_all("group")
        await gate.wait()
        for number in range(6):
            scheduler.schedule(quick(probe, number, "group", policy=GROUP, context_used=used[-1]))
        if used[-1] >= 0.6 or used[-1] < 0.5:
            await scheduler.drain()
            assert probe.most["group"] == expected


async def test_a_throttle_counts_for_who_waits_for_a_slot(autojump_clock: MockClock) -> None:
    """Once the figure says one at a time, a message that already waits for a slot does not become a second. (L5, P3)"""
    probe, other = Probe(100), Probe(5)
    debounced = Policy(debounce_s=50, max_concurrent=3)
    async with open_scheduler({"main": 2}) as scheduler:
        scheduler.schedule(quick(other, None, "other"))
        scheduler.schedule(quick(probe, 1, "group", policy=GROUP))
        scheduler.schedule(quick(probe, 2, "group", policy=GROUP))  # waits for the other's slot
        await trio.sleep(1)
        scheduler.schedule(quick(probe, 3, "group", policy=debounced, context_used=0.8))
        assert scheduler.session_statistics("group").limit == 1
        await trio.sleep(30)
        assert other.done
        assert probe.alive == 1
        await scheduler.drain()
    assert probe.most["group"] == 1


async def test_a_lifted_throttle_counts_at_once(autojump_clock: MockClock) -> None:
    """When the figure has fallen, those who wait start without waiting for the newcomer's debounce window. (L5)"""
    probe = Probe(100)
    debounced = Policy(debounce_s=50, max_concurrent=3)
    async with open_scheduler({"main": 5}) as scheduler:
        scheduler.schedule(quick(probe, 1, "group", policy=GROUP, context_used=0.9))
        scheduler.schedule(quick(probe, 2, "group", policy=GROUP, context_used=0.9))
        await trio.sleep(1)
        scheduler.schedule(quick(probe, 3, "group", policy=debounced, context_used=0.1))
        await trio.sleep(1)
        assert probe.order == [1, 2]


async def test_the_oldest_gives_way_when_the_queue_is_full(autojump_clock: MockClock) -> None:
    """With drop policy old the oldest waiter ends with QueueDropped, exactly once, and the rest run. (L7, lesson 16)"""
    probe, ends = Probe(), Ends()
    async with open_scheduler() as scheduler:
        tickets = [scheduler.schedule(quick(probe, number, on_end=ends)) for number in range(13)]
        assert ends_of(*tickets[:4]) == [None, End.DROPPED, End.DROPPED, None]  # 0 runs, ten wait
        with pytest.raises(QueueDropped) as caught:
            await tickets[1].result()
        assert caught.value.fields == {"ticket": tickets[1].id, "session": "dm"}
        assert caught.value.code == "queue-dropped"
        await scheduler.drain()
    assert probe.order == [0, *range(3, 13)]
    assert [ends.of(number) for number in range(4)] == [[End.DONE], [End.DROPPED], [End.DROPPED], [End.DONE]]
    assert len(ends.seen) == 13


async def test_the_newcomer_gives_way_when_the_queue_is_full(autojump_clock: MockClock) -> None:
    """With drop policy new the newcomer ends with QueueFull, at once and exactly once. (L7, lesson 16)"""
    probe, ends = Probe(), Ends()
    policy = Policy(debounce_s=0, drop=Drop.NEW)
    async with open_scheduler() as scheduler:
        tickets = [scheduler.schedule(quick(probe, number, policy=policy, on_end=ends)) for number in range(13)]
        assert ends_of(*tickets[10:]) == [None, End.REFUSED, End.REFUSED]
        with pytest.raises(QueueFull) as caught:
            await tickets[12].result()
        assert caught.value.retriable
        await scheduler.drain()
    assert probe.order == list(range(11))
    assert ends.of(11) == ends.of(12) == [End.REFUSED]
    assert len(ends.seen) == 13


async def test_a_lowered_cap_drops_as_many_as_it_takes(autojump_clock: MockClock) -> None:
    """The newest message's cap counts: six wait, one comes in with a cap of two, five have to go. (L7)"""
    probe, ends = Probe(), Ends()
    async with open_scheduler() as scheduler:
        for number in range(7):
            scheduler.schedule(quick(probe, number, on_end=ends))
        scheduler.schedule(quick(probe, 7, policy=Policy(debounce_s=0, cap=2), on_end=ends))
        assert [payload for payload, _ in ends.seen] == [1, 2, 3, 4, 5]
        await scheduler.drain()
        assert scheduler.statistics().lanes[0].waiting == 0
    assert probe.order == [0, 6, 7]


async def test_one_full_queue_drops_nothing_of_another_session(autojump_clock: MockClock) -> None:
    """The cap is each session's own. (L7)"""
    probe = Probe()
    async with open_scheduler() as scheduler:
        quiet = [scheduler.schedule(quick(probe, number, "quiet")) for number in range(11)]
        for number in range(50):
            scheduler.schedule(quick(nothing, number, "flood"))
        await scheduler.drain()
    assert ends_of(*quiet) == [End.DONE] * 11


async def test_resumed_work_skips_the_cap(autojump_clock: MockClock) -> None:
    """What is taken up again after a restart was accepted before: all of it runs, even with drop new. (Q9)"""
    probe = Probe()
    policy = Policy(drop=Drop.NEW, cap=1)
    async with open_scheduler() as scheduler:
        tickets = [scheduler.schedule(quick(probe, number, policy=policy, resumed=True)) for number in range(30)]
        await scheduler.drain()
    assert ends_of(*tickets) == [End.DONE] * 30
    assert probe.order == list(range(30))


def at_on_end(scheduler: Scheduler, come: Callable[[], None]) -> None:
    def on_end(_: Ticket) -> None:
        come()

    scheduler.schedule(quick(nothing, on_end=on_end))


def at_event(scheduler: Scheduler, come: Callable[[], None]) -> None:
    def observer(event: Event) -> None:
        if event.kind is Kind.ENDED and event.ticket == 1:
            come()

    scheduler.observe(observer)
    scheduler.schedule(quick(nothing))


def at_last_line(scheduler: Scheduler, come: Callable[[], None]) -> None:
    async def handler(run: Run) -> None:
        await trio.sleep(1)
        come()

    scheduler.schedule(quick(handler))


def at_last_line_of_a_raising_one(scheduler: Scheduler, come: Callable[[], None]) -> None:
    async def handler(run: Run) -> None:
        await trio.sleep(1)
        come()
        raise ValueError

    scheduler.schedule(quick(handler))


@pytest.mark.parametrize("arrange", [at_on_end, at_event, at_last_line, at_last_line_of_a_raising_one])
async def test_an_arrival_in_the_moment_of_the_end_is_served(
    autojump_clock: MockClock, arrange: Callable[[Scheduler, Callable[[], None]], None]
) -> None:
    """Messages that come in while the session's last run ends neither hang nor run at once. (lessons 9, 10; P2, P3)"""
    probe = Probe()
    async with open_scheduler() as scheduler:

        def come() -> None:
            for number in range(3):
                scheduler.schedule(quick(probe, number))

        arrange(scheduler, come)
        await scheduler.drain()
        assert not scheduler.sessions
    assert probe.order == [0, 1, 2]
    assert probe.most["dm"] == 1
