"""Runs that wait for other runs: the slot is lent, limits hold, and what could never end is refused."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from scheduler import End, Kind, Policy, Ticket, WaitRefused, open_scheduler
from tests.unit.scheduler.probe import GROUP, Probe, Stubborn, ends_of, forever, nothing, quick

if TYPE_CHECKING:
    from scheduler import Event, Run


@pytest.mark.parametrize(("depth", "sessions"), [(1, 20), (3, 10), (40, 1)])
async def test_a_lane_of_one_never_deadlocks_on_nested_work(
    autojump_clock: MockClock, depth: int, sessions: int
) -> None:
    """Runs that schedule and await in their own lane of one all finish, three deep and deeper. (P8, lesson 1)"""
    probe = Probe()

    async def nested(run: Run) -> Any:
        if run.depth == depth:
            return await probe(run)
        return await run.schedule(quick(nested, "leaf", f"{run.request.session}/{run.depth}")).result()

    async with open_scheduler({"main": 1}) as scheduler:
        tickets = [scheduler.schedule(quick(nested, None, f"dm {number}")) for number in range(sessions)]
        with trio.fail_after(100):
            await scheduler.drain()
        lane = scheduler.lanes["main"]
        assert (lane.active, lane.parked, lane.waiting) == (0, 0, 0)
    assert [ticket.outcome and ticket.outcome.value for ticket in tickets] == [("leaf",)] * sessions
    assert probe.most["all"] == 1


async def test_lanes_of_one_that_wait_for_each_other_finish(autojump_clock: MockClock) -> None:
    """A chain that goes back and forth between two full lanes of one ends. (P8)"""
    probe = Probe(0.1)

    async def nested(run: Run) -> None:
        await probe(run)
        if run.depth < 6:
            other = "cron" if run.lane == "main" else "main"
            await run.schedule(quick(nested, None, f"{run.request.session}/{run.depth}", lane=other)).result()
            await probe(run)

    async with open_scheduler({"main": 1, "cron": 1}) as scheduler:
        tickets = [
            scheduler.schedule(quick(nested, None, f"{lane} {number}", lane=lane))
            for number in range(4)
            for lane in ("main", "cron")
        ]
        with trio.fail_after(100):
            await scheduler.drain()
    assert ends_of(*tickets) == [End.DONE] * 8
    assert probe.most["lane:main"] == 1
    assert probe.most["lane:cron"] == 1


async def test_a_parent_gets_its_slot_back_before_newcomers(autojump_clock: MockClock) -> None:
    """When the child ends, the parent goes on next, however many others wait for the slot."""
    order: list[str] = []

    async def step(run: Run) -> None:
        order.append(run.request.payload)
        await trio.sleep(1)

    async def parent(run: Run) -> None:
        await run.schedule(quick(step, "child", "sub")).result()
        order.append("parent")

    async with open_scheduler({"main": 1}) as scheduler:
        scheduler.schedule(quick(parent))
        await trio.sleep(0.5)
        for number in range(3):
            scheduler.schedule(quick(step, f"newcomer {number}", f"dm {number}"))
        await scheduler.drain()
    assert order == ["child", "parent", "newcomer 0", "newcomer 1", "newcomer 2"]


async def test_a_parent_in_line_comes_before_those_who_waited_longer(autojump_clock: MockClock) -> None:
    """A parent whose slot was taken meanwhile gets the next one, ahead of newcomers who came in before it returned."""
    probe = Probe(10)

    async def parent(run: Run) -> None:
        await run.schedule(quick(Probe(run.id), None, f"sub {run.id}", lane="cron")).result()
        await probe(run)

    async with open_scheduler({"main": 1, "cron": 5}) as scheduler:
        for number in range(2):
            scheduler.schedule(quick(parent, f"parent {number}", f"parent {number}"))
        for number in range(3):
            scheduler.schedule(quick(probe, number, f"newcomer {number}"))
        await scheduler.drain()
    assert probe.order == [0, "parent 0", "parent 1", 1, 2]
    assert probe.most["all"] == 1


async def test_a_parked_parent_keeps_its_place_in_its_session(autojump_clock: MockClock) -> None:
    """Only the lane's slot is lent: the next message of a DM still waits for the parent. (P2, P3)"""
    probe = Probe()

    async def parent(run: Run) -> None:
        await run.schedule(quick(probe, "child", "sub")).result()
        await probe(run)

    async with open_scheduler({"main": 3}) as scheduler:
        scheduler.schedule(quick(parent, "parent"))
        scheduler.schedule(quick(probe, "next"))
        await scheduler.drain()
    assert probe.order == ["child", "parent", "next"]
    assert probe.most["dm"] == 1


@pytest.mark.parametrize("limit", [1, 2, 5])
async def test_limits_hold_while_slots_are_lent_and_returned(autojump_clock: MockClock, limit: int) -> None:
    """Never more runs at work than the lane allows, whoever has lent, lends or gets back. (P3)"""
    probe = Probe(0.3)

    async def parent(run: Run) -> None:
        await probe(run)
        for number in range(3):
            await run.schedule(quick(probe, None, f"{run.request.session}/{number}")).result()
            await probe(run)

    async with open_scheduler({"main": limit}) as scheduler:
        tickets = [scheduler.schedule(quick(parent, None, f"dm {number}")) for number in range(12)]
        await scheduler.drain()
    assert ends_of(*tickets) == [End.DONE] * 12
    assert probe.most["all"] == limit


async def test_a_limit_lowered_while_a_run_is_parked_holds_when_it_returns(autojump_clock: MockClock) -> None:
    """A parent comes back only when the lane is below its new limit. (P3)"""
    probe, slow = Probe(10), Probe(30)

    async def parent(run: Run) -> None:
        await run.schedule(quick(Probe(5), None, f"sub {run.id}", lane="cron")).result()
        await probe(run)

    async with open_scheduler({"main": 2, "cron": 2}) as scheduler:
        for number in range(2):
            scheduler.schedule(quick(parent, number, f"dm {number}"))
        await trio.sleep(1)
        scheduler.schedule(quick(slow, None, "slow"))
        scheduler.lanes.resize("main", 1)
        await trio.sleep(1)
        assert scheduler.lanes["main"].parked == 2
        await scheduler.drain()
    assert slow.done
    assert probe.most["all"] == 1
    assert min(probe.starts.values()) >= 31


async def test_the_number_of_parked_runs_is_bounded(autojump_clock: MockClock) -> None:
    """Fifty times the limit may wait for nested work; the next one is refused and told which lane it is."""
    stubborn = Stubborn()
    refused: list[WaitRefused] = []
    async with open_scheduler({"main": 1, "cron": 1}) as scheduler:
        gate = scheduler.schedule(quick(stubborn, None, "gate", lane="cron"))

        async def parent(run: Run) -> None:
            try:
                await gate.wait()
            except WaitRefused as refusal:
                refused.append(refusal)
                raise

        tickets = [scheduler.schedule(quick(parent, None, f"dm {number}")) for number in range(51)]
        await wait_all_tasks_blocked()
        assert scheduler.lanes["main"].parked == 50
        assert [refusal.fields["lane"] for refusal in refused] == ["main"]
        assert "'main'" in str(refused[0])
        stubborn.gate.set()
        await scheduler.drain()
    assert ends_of(*tickets) == [End.DONE] * 50 + [End.FAILED]


@pytest.mark.parametrize("policy", [Policy(debounce_s=0), GROUP, Policy()], ids=["dm", "group", "debounced"])
async def test_waiting_for_ones_own_session_is_refused_at_once(autojump_clock: MockClock, policy: Policy) -> None:
    """The refusal names the session, the child stays scheduled, and the run may go on. (P8, lesson 1)"""
    refused: list[WaitRefused] = []

    async def parent(run: Run) -> str:
        ticket = run.schedule(quick(nothing, "child", policy=policy))
        try:
            await ticket.result()
        except WaitRefused as refusal:
            refused.append(refusal)
        assert trio.current_time() == 0
        return "went on"

    async with open_scheduler() as scheduler:
        ticket = scheduler.schedule(quick(parent))
        assert await ticket.result() == "went on"
        await scheduler.drain()
        assert scheduler.lanes["main"].ends[End.DONE] == 2
    assert refused[0].fields["session"] == "dm"
    assert "'dm'" in str(refused[0])


async def test_a_circle_of_waits_is_refused(autojump_clock: MockClock) -> None:
    """Through any number of other sessions: who would close the circle is refused, the others finish. (P8)"""
    refused: list[str] = []

    def link(session: str, below: Any) -> Any:
        async def handler(run: Run) -> None:
            try:
                await run.schedule(quick(below, None, session)).wait()
            except WaitRefused as refusal:
                refused.append(f"{run.request.session} -> {refusal.fields['session']}")

        return handler

    async with open_scheduler({"main": 1}) as scheduler:
        circle = link("b", link("c", link("d", link("a", nothing))))
        ticket = scheduler.schedule(quick(circle, None, "a"))
        with trio.fail_after(10):
            await scheduler.drain()
    assert ends_of(ticket) == [End.DONE]
    assert refused == ["d -> d"]


async def test_two_sessions_that_wait_for_each_others_queue_do_not_hang(autojump_clock: MockClock) -> None:
    """Two runs that each await a message in the other's session: one of them is refused. (P8)"""
    refused: list[str] = []
    async with open_scheduler({"main": 2}) as scheduler:

        async def visit(run: Run) -> None:
            await trio.sleep(1)
            try:
                await scheduler.schedule(quick(nothing, None, run.request.payload)).wait()
            except WaitRefused:
                refused.append(run.request.session)

        tickets = [scheduler.schedule(quick(visit, "b", "a")), scheduler.schedule(quick(visit, "a", "b"))]
        with trio.fail_after(10):
            await scheduler.drain()
    assert ends_of(*tickets) == [End.DONE] * 2
    assert len(refused) == 1


async def test_waiting_from_outside_lends_nothing(autojump_clock: MockClock) -> None:
    """A task that belongs to no run just waits, also for a session that it has used. (Q13)"""
    events: list[Event] = []
    async with open_scheduler({"main": 1}) as scheduler:
        scheduler.observe(events.append)
        tickets = [scheduler.schedule(quick(Probe(), number)) for number in range(3)]
        async with trio.open_nursery() as nursery:
            for ticket in tickets * 2:
                nursery.start_soon(ticket.wait)
    assert Kind.LENT not in {event.kind for event in events}


async def test_a_task_that_outlives_its_run_waits_as_nobody(autojump_clock: MockClock) -> None:
    """Work left in somebody else's nursery neither lends nor gets the slot of the run it came from. (P3)"""
    ended = trio.Event()
    values: list[Any] = []
    async with open_scheduler({"main": 1}) as scheduler, trio.open_nursery() as outside:

        async def left_behind() -> None:
            await ended.wait()
            values.append(await scheduler.schedule(quick(Probe(), "child", "dm")).result())

        async def waits_already(ticket: Ticket) -> None:
            values.append(await ticket.result())

        async def parent(run: Run) -> None:
            outside.start_soon(left_behind)
            outside.start_soon(waits_already, run.schedule(quick(Probe(5), "first", "sub", lane="main")))
            await trio.sleep(1)

        await scheduler.schedule(quick(parent)).result()
        ended.set()
        await scheduler.drain()
        lane = scheduler.lanes["main"]
        assert (lane.active, lane.parked, len(lane.returning)) == (0, 0, 0)
    assert sorted(values) == [("child",), ("first",)]


async def test_a_stopped_run_that_waits_in_its_cleanup_does_not_lock_the_lane(autojump_clock: MockClock) -> None:
    """Even a shielded wait of a cancelled run for work in its own lane of one comes to an end. (P8)"""
    waited: list[Ticket] = []

    async def parent(run: Run) -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.move_on_after(1000, shield=True):
                await waited[0].wait()

    async with open_scheduler({"main": 1}) as scheduler:
        ticket = scheduler.schedule(quick(parent))
        await trio.sleep(1)
        waited.append(scheduler.schedule(quick(Probe(), None, "other")))
        scheduler.cancel_oldest("dm")
        await trio.sleep(200)
        assert ends_of(ticket, *waited) == [End.CANCELLED, End.DONE]
        assert scheduler.lanes["main"].active == 0


async def test_a_stopped_run_does_not_lose_its_slot_by_trying_to_wait(autojump_clock: MockClock) -> None:
    """A cancelled run whose cleanup begins with a wait that is refused to it keeps its slot until it ends. (P3, Q4)"""
    probe = Probe(10)
    waited: list[Ticket] = []

    async def parent(run: Run) -> None:
        try:
            await trio.sleep_forever()
        finally:
            try:
                await waited[0].wait()  # cancelled at once
            finally:
                with trio.CancelScope(shield=True):
                    await probe(run)

    async with open_scheduler({"main": 1, "cron": 1}) as scheduler:
        waited.append(scheduler.schedule(quick(forever, None, "slow", lane="cron")))
        scheduler.schedule(quick(parent, "parent"))
        await trio.sleep(1)
        scheduler.schedule(quick(probe, "newcomer", "newcomer"))
        scheduler.cancel_oldest("dm")
        await trio.sleep(100)
    assert probe.starts == {"parent": 1, "newcomer": 11}
    assert probe.most["all"] == 1


async def test_asking_again_and_again_with_a_deadline_keeps_nothing(autojump_clock: MockClock) -> None:
    """A run that looks after its child every second leaves no trace of each look. (M1)"""
    counts: list[int] = []

    async def parent(run: Run) -> None:
        child = run.schedule(quick(Probe(1000), None, "sub", lane="cron"))
        for look in range(900):
            with trio.move_on_after(1):
                await child.wait()
            if look % 300 == 0:
                counts.append(sys.getrefcount(run))

    async with open_scheduler({"main": 1, "cron": 1}) as scheduler:
        await scheduler.schedule(quick(parent)).result()
    assert counts == [counts[0]] * 3
