"""Lanes: how many runs of one kind go at once, whatever happens to the limit meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from scheduler import DEFAULT_LIMITS, End, Policy, Request, open_scheduler
from tests.unit.scheduler.probe import GROUP, Probe, ends_of, forever, nothing, quick

if TYPE_CHECKING:
    from scheduler import Run


def test_the_lanes_have_their_documented_limits() -> None:
    """Without settings a gateway has these five lanes. (L1)"""
    assert DEFAULT_LIMITS == {"main": 2, "subagent": 4, "delegate": 100, "cron": 1, "heartbeat": 1}


@pytest.mark.parametrize("lane", list(DEFAULT_LIMITS))
async def test_a_lane_runs_as_many_as_its_limit_and_never_more(autojump_clock: MockClock, lane: str) -> None:
    """With more work than slots a lane is exactly full. (L1, P3)"""
    probe = Probe()
    async with open_scheduler() as scheduler:
        for number in range(DEFAULT_LIMITS[lane] + 5):
            scheduler.schedule(quick(probe, number, f"dm {number}", lane=lane))
        await scheduler.drain()
    assert probe.most["all"] == DEFAULT_LIMITS[lane]
    assert len(probe.done) == DEFAULT_LIMITS[lane] + 5


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
async def test_groups_are_served_to_the_end_at_any_lane_size(autojump_clock: MockClock, limit: int) -> None:
    """Thirty groups with five messages each all end, on a lane of any size. (Q1, P8)"""
    probe = Probe(0.1)
    async with open_scheduler({"main": limit}) as scheduler:
        tickets = [
            scheduler.schedule(quick(probe, (group, number), f"group {group}", policy=GROUP))
            for number in range(5)
            for group in range(30)
        ]
        await scheduler.drain()
    assert ends_of(*tickets) == [End.DONE] * 150
    assert probe.most["all"] == limit
    assert max(probe.most[f"group {group}"] for group in range(30)) <= 3


async def test_four_messages_of_one_group_pass_through_two_slots(autojump_clock: MockClock) -> None:
    """A group may want more slots than its lane has, and neither it nor its neighbours hang. (Q1, P8)"""
    probe = Probe()
    async with open_scheduler() as scheduler:
        group = [scheduler.schedule(quick(probe, number, "group", policy=GROUP)) for number in range(4)]
        neighbour = scheduler.schedule(quick(probe, "neighbour", "dm"))
        with trio.fail_after(10):
            await scheduler.drain()
    assert ends_of(*group, neighbour) == [End.DONE] * 5
    assert probe.most["all"] == 2


async def test_schedule_never_waits_for_a_slot(autojump_clock: MockClock) -> None:
    """A full lane takes in a thousand messages without giving up control once. (Q13, lesson 12)"""
    probe = Probe()
    async with open_scheduler({"main": 1}) as scheduler:
        asked_at = trio.current_time()
        others_ran = False

        async def somebody_else() -> None:
            nonlocal others_ran
            others_ran = True

        async with trio.open_nursery() as nursery:
            nursery.start_soon(somebody_else)
            tickets = [scheduler.schedule(quick(probe, number, f"dm {number}")) for number in range(1000)]
            assert not others_ran
            assert ends_of(*tickets) == [None] * 1000
        assert trio.current_time() == asked_at
        assert scheduler.statistics().waiting == 999
        await scheduler.drain()
    assert probe.order == list(range(1000))


@pytest.mark.parametrize("busy", ["cron", "heartbeat", "subagent"])
async def test_a_full_lane_delays_no_other(autojump_clock: MockClock, busy: str) -> None:
    """While slow background work fills its lane and its queue, a person is served at once. (L3, lesson 4)"""
    slow, person = Probe(330), Probe()
    async with open_scheduler() as scheduler:
        for number in range(20):
            scheduler.schedule(quick(slow, number, f"job {number}", lane=busy))
        await trio.sleep(1)
        asked_at = trio.current_time()
        await scheduler.schedule(quick(person, "hello")).result()
        assert person.starts["hello"] == asked_at


async def test_an_unknown_lane_means_main(autojump_clock: MockClock) -> None:
    """A message for a lane that nobody made runs in main and counts there. (L2)"""
    probe = Probe()
    async with open_scheduler({"main": 1, "cron": 1}) as scheduler:
        scheduler.schedule(quick(probe, 1, "a", lane="main"))
        scheduler.schedule(quick(probe, 2, "b", lane="no such lane"))
        await scheduler.drain()
    assert [run.lane for run in probe.runs] == ["main", "main"]
    assert probe.most["all"] == 1


async def test_a_new_lane_can_be_made_and_an_old_one_keeps_its_limit(autojump_clock: MockClock) -> None:
    """`get_or_create` makes a lane once; asking again gives the same lane with its limit as it is now. (L2)"""
    probe = Probe()
    async with open_scheduler() as scheduler:
        lane = scheduler.lanes.get_or_create("research", 3)
        scheduler.lanes.resize("research", 2)
        assert scheduler.lanes.get_or_create("research", 9) is lane
        assert scheduler.lanes["research"] is lane
        assert lane.limit == 2
        for number in range(5):
            scheduler.schedule(quick(probe, number, f"dm {number}", lane="research"))
        await scheduler.drain()
    assert probe.most["lane:research"] == 2


async def test_the_lane_belongs_to_the_message(autojump_clock: MockClock) -> None:
    """One session's messages run in the lane that each of them names, in their order. (Q6)"""
    probe = Probe()
    async with open_scheduler() as scheduler:
        for number, lane in enumerate(["main", "cron", "main", "subagent"]):
            scheduler.schedule(quick(probe, number, lane=lane))
        await scheduler.drain()
    assert [run.lane for run in probe.runs] == ["main", "cron", "main", "subagent"]
    assert probe.order == [0, 1, 2, 3]
    assert probe.most["dm"] == 1


async def test_a_new_head_waits_in_its_own_lane(autojump_clock: MockClock) -> None:
    """When the head of a queue is dropped, the next one waits where it belongs, not where the head stood. (Q6)"""
    probe = Probe()
    small = Policy(debounce_s=0, cap=1)
    async with open_scheduler() as scheduler:
        scheduler.schedule(quick(forever, session="job", lane="cron"))
        first = scheduler.schedule(quick(probe, 1, policy=small, lane="cron"))
        second = scheduler.schedule(quick(probe, 2, policy=small, lane="main"))
        await second.wait()
        assert ends_of(first, second) == [End.DROPPED, End.DONE]
        assert scheduler.lanes["cron"].waiting == 0


async def test_a_raised_limit_counts_at_once(autojump_clock: MockClock) -> None:
    """Who waits for a slot starts in the moment the limit is raised. (P3)"""
    probe = Probe(10)
    async with open_scheduler({"main": 1}) as scheduler:
        for number in range(5):
            scheduler.schedule(quick(probe, number, f"dm {number}"))
        await trio.sleep(1)
        assert probe.alive == 1
        scheduler.lanes.resize("main", 4)
        await wait_all_tasks_blocked()
        assert probe.alive == 4
        await scheduler.drain()
    assert probe.most["all"] == 4


async def test_a_lowered_limit_kills_nothing_and_holds_from_then_on(autojump_clock: MockClock) -> None:
    """Running work ends by itself; nothing new starts until the lane is below its new limit. (P3)"""
    first, second = Probe(10), Probe(1)
    async with open_scheduler({"main": 3}) as scheduler:
        for number in range(3):
            scheduler.schedule(quick(first, number, f"old {number}"))
        for number in range(4):
            scheduler.schedule(quick(second, number, f"new {number}"))
        await trio.sleep(1)
        scheduler.lanes.resize("main", 1)
        await scheduler.drain()
    assert len(first.done) == 3
    assert len(second.done) == 4
    assert min(second.starts.values()) >= max(first.starts.values()) + 10
    assert second.most["all"] == 1


async def test_cron_jobs_really_overlap(autojump_clock: MockClock) -> None:
    """A cron lane of four runs four agent turns at once, their nested work included. (lesson 2)"""
    turns = Probe(10)

    async def job(run: Run) -> None:
        nested = Request(f"turn of {run.id}", turns, run.id, lane="main", policy=run.request.policy)
        await run.schedule(nested).result()

    async with open_scheduler({"cron": 4, "main": 4}) as scheduler:
        for number in range(4):
            scheduler.schedule(quick(job, number, f"job {number}", lane="cron"))
        await scheduler.drain()
    assert turns.most["all"] == 4


async def test_a_flood_of_runs_that_never_wait_lets_others_in(autojump_clock: MockClock) -> None:
    """Handlers without a single await do not keep everybody else out until the last of them is done. (Q2)"""
    ended = 0

    def count(_: object) -> None:
        nonlocal ended
        ended += 1

    async with open_scheduler({"main": 1}) as scheduler:
        for number in range(1000):
            scheduler.schedule(quick(nothing, number, f"dm {number}", on_end=count))
        for _ in range(3):
            await trio.lowlevel.checkpoint()
        assert 0 < ended < 1000
        await scheduler.drain()
    assert ended == 1000


async def test_equal_requests_are_different_messages(autojump_clock: MockClock) -> None:
    """Ids are the scheduler's own: the same request ten times over keeps limits and stop intact. (Q12)"""
    probe = Probe()
    request = quick(probe, "same", "group", policy=GROUP)
    async with open_scheduler({"main": 10}) as scheduler:
        tickets = [scheduler.schedule(request) for _ in range(10)]
        await trio.sleep(0.5)
        assert probe.alive == 3
        stopped = scheduler.cancel_all("group")
        assert (stopped.running, stopped.messages) == (3, 7)
        await scheduler.drain()
    assert len({ticket.id for ticket in tickets}) == 10
    assert len({run.id for run in probe.runs}) == 3
    assert ends_of(*tickets) == [End.CANCELLED] * 10
