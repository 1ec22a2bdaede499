"""Shutdown: new work is refused, running work gets its grace, what never started is handed back whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from scheduler import Closed, End, Mode, Policy, Reason, Request, SchedulerClosed, open_scheduler
from tests.unit.scheduler.probe import Ends, Probe, Stubborn, ends_of, forever, quick

if TYPE_CHECKING:
    from scheduler import Run, Scheduler, Ticket


async def test_runs_finish_within_the_grace(autojump_clock: MockClock) -> None:
    """What runs is not cancelled while there is time, and closing takes no longer than they do. (Q9)"""
    probe = Probe(5)
    async with open_scheduler() as scheduler:
        tickets = [scheduler.schedule(quick(probe, number, f"dm {number}")) for number in range(2)]
        await trio.sleep(1)
        assert await scheduler.close(60) == Closed(cancelled=0, abandoned=0, unstarted=0)
        assert trio.current_time() == 5
    assert ends_of(*tickets) == [End.DONE] * 2


async def test_what_never_started_is_handed_back(autojump_clock: MockClock) -> None:
    """Of twenty messages each either ran to its end or ends with SchedulerClosed: none lost, none half. (Q9, P1)"""
    probe, ends = Probe(5), Ends()
    async with open_scheduler({"main": 3}) as scheduler:
        tickets = [scheduler.schedule(quick(probe, number, f"dm {number % 5}", on_end=ends)) for number in range(18)]
        await trio.sleep(6)
        tickets += [scheduler.schedule(Request("window", probe, number, on_end=ends)) for number in (18, 19)]
        closed = await scheduler.close(60)
    done = [payload for payload, end in ends.seen if end is End.DONE]
    unstarted = [payload for payload, end in ends.seen if end is End.CLOSED]
    assert sorted(done + unstarted) == list(range(20))
    assert sorted(done) == sorted(probe.order)
    assert sorted(payload for turn in probe.done for payload in turn) == sorted(done)
    assert closed == Closed(cancelled=0, abandoned=0, unstarted=len(unstarted))
    assert len(unstarted) == 14
    runs = {ticket.request.payload: ticket.outcome.run for ticket in tickets if ticket.outcome is not None}
    assert all((runs[payload] == 0) == (payload in unstarted) for payload in range(20))


async def test_what_never_started_says_it_may_be_retried(autojump_clock: MockClock) -> None:
    """The error tells whoever stored the message to bring it again. (Q9)"""
    async with open_scheduler() as scheduler:
        scheduler.schedule(quick(Probe()))
        waiting = scheduler.schedule(quick(Probe()))
        await scheduler.close(10)
        with pytest.raises(SchedulerClosed) as caught:
            await waiting.result()
    assert caught.value.retriable
    assert caught.value.code == "scheduler-closed"


@pytest.mark.parametrize("when", ["grace", "after"])
@pytest.mark.parametrize("debounce_s", [0, 0.8])
async def test_new_work_is_refused_through_its_ticket(autojump_clock: MockClock, when: str, debounce_s: float) -> None:
    """Refused, not accepted and killed: the ticket ends at once, on_end is called once, nothing is kept. (lesson 7)"""
    ends, probe = Ends(), Probe()
    request = Request("late", probe, "late", policy=Policy(debounce_s=debounce_s), on_end=ends)
    async with open_scheduler() as scheduler:
        if when == "grace":
            scheduler.schedule(quick(Probe(5)))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(scheduler.close, 60)
                await trio.sleep(1)
                late = scheduler.schedule(request)
                assert ends_of(late) == [End.CLOSED]
                assert list(scheduler.sessions) == ["dm"]
        else:
            await scheduler.close(60)
            late = scheduler.schedule(request)
        with pytest.raises(SchedulerClosed):
            await late.result()
    assert ends.seen == [("late", End.CLOSED)]
    assert probe.turns == []


async def test_the_rest_is_cancelled_after_the_grace(autojump_clock: MockClock) -> None:
    """Runs that need longer are cancelled with reason closing, may unwind, and are counted. (Q9)"""
    probe = Probe(100, unwinds_s=2)
    async with open_scheduler() as scheduler:
        tickets = [scheduler.schedule(quick(probe, number, f"dm {number}")) for number in range(2)]
        await trio.sleep(1)
        assert await scheduler.close(10) == Closed(cancelled=2, abandoned=0, unstarted=0)
        assert trio.current_time() == 13
    assert ends_of(*tickets) == [End.CANCELLED] * 2
    assert {run.reason for run in probe.runs} == {Reason.CLOSING}


async def test_children_of_living_runs_are_served_during_the_grace(autojump_clock: MockClock) -> None:
    """A parent that could not finish without them gets its children run, queued before or asked for later. (Q9)"""
    probe = Probe(1)

    async def parent(run: Run) -> str:
        early = run.schedule(quick(probe, "early", "busy"))
        await trio.sleep(5)
        await run.schedule(Request("late", probe, "late")).result()
        await early.result()
        return "whole"

    async with open_scheduler() as scheduler:
        scheduler.schedule(quick(Probe(4), None, "busy"))
        ticket = scheduler.schedule(quick(parent))
        await trio.sleep(1)
        assert await scheduler.close(60) == Closed(0, 0, 0)
    assert ticket.outcome is not None
    assert ticket.outcome.value == "whole"
    assert sorted(probe.order) == ["early", "late"]


async def test_after_the_grace_children_end_with_their_parents(autojump_clock: MockClock) -> None:
    """Waiting children end as unstarted, running ones as cancelled, new ones are refused. (lesson 7)"""
    ends = Ends()
    late: list[Ticket] = []

    async def parent(run: Run) -> None:
        run.schedule(quick(forever, "runs", "sub", on_end=ends))
        run.schedule(quick(forever, "waits", "sub", on_end=ends))
        try:
            await trio.sleep_forever()
        finally:
            late.append(run.schedule(quick(forever, "late", "sub", on_end=ends)))

    async with open_scheduler() as scheduler:
        scheduler.schedule(quick(parent, "parent", on_end=ends))
        await trio.sleep(1)
        assert await scheduler.close(10) == Closed(cancelled=2, abandoned=0, unstarted=1)
    assert dict(ends.seen) == {
        "waits": End.CLOSED,
        "runs": End.CANCELLED,
        "parent": End.CANCELLED,
        "late": End.CANCELLED,
    }


async def test_a_run_that_ignores_the_shutdown_is_abandoned(autojump_clock: MockClock) -> None:
    """Closing is bounded by grace and fence; what still lives then is counted, not waited for. (P9)"""
    stubborn = Stubborn()
    async with open_scheduler() as scheduler:
        ticket = scheduler.schedule(quick(stubborn))
        await trio.sleep(1)
        assert await scheduler.close(10) == Closed(cancelled=1, abandoned=1, unstarted=0)
        assert trio.current_time() == 71
        assert ends_of(ticket) == [End.CANCELLED]
        stubborn.gate.set()


async def test_a_result_that_is_being_written_is_waited_for(autojump_clock: MockClock) -> None:
    """A sealed run is not cancelled when the grace is over, and its value counts. (P6)"""

    async def sealing(run: Run) -> str:
        assert run.seal()
        await trio.sleep(20)
        return "written"

    async with open_scheduler() as scheduler:
        ticket = scheduler.schedule(quick(sealing))
        await trio.sleep(1)
        assert await scheduler.close(10) == Closed(0, 0, 0)
        assert trio.current_time() == 20
    assert ticket.outcome is not None
    assert (ticket.outcome.end, ticket.outcome.value) == (End.DONE, "written")


async def test_untaken_steering_is_handed_back(autojump_clock: MockClock) -> None:
    """A message that waits at a run was not started: it ends as unstarted. (Q9)"""
    steer = Policy(mode=Mode.STEER, debounce_s=0)
    async with open_scheduler() as scheduler:
        running = scheduler.schedule(quick(Probe(5), None, steerable=True))
        waiting = scheduler.schedule(quick(Probe(5), policy=steer))
        await trio.sleep(1)
        assert scheduler.session_statistics("dm").steering == 1
        assert (await scheduler.close(60)).unstarted == 1
    assert ends_of(running, waiting) == [End.DONE, End.CLOSED]


async def test_an_idle_scheduler_closes_at_once(autojump_clock: MockClock) -> None:
    """Nothing to wait for, nothing waited; a second close is harmless."""
    async with open_scheduler() as scheduler:
        assert await scheduler.close(60) == Closed(0, 0, 0)
        assert await scheduler.close(60) == Closed(0, 0, 0)
        assert trio.current_time() == 0


async def test_leaving_the_block_without_close_ends_everything(autojump_clock: MockClock) -> None:
    """Runs are cancelled, waiters end as unstarted, every on_end is called once, nothing starts any more. (Q9, P6)"""
    probe, ends = Probe(100), Ends()
    async with open_scheduler({"main": 1}) as scheduler:
        for number in range(3):
            scheduler.schedule(quick(probe, number, on_end=ends))
        scheduler.schedule(quick(probe, 3, "other", on_end=ends))
        scheduler.schedule(Request("window", probe, 4, on_end=ends))
        await trio.sleep(0.5)
    assert trio.current_time() == 0.5
    assert dict(ends.seen) == {0: End.CANCELLED, 1: End.CLOSED, 2: End.CLOSED, 3: End.CLOSED, 4: End.CLOSED}
    assert len(ends.seen) == 5
    assert probe.order == [0]
    assert ends_of(scheduler.schedule(quick(probe, 5))) == [End.CLOSED]


async def test_a_body_that_raises_ends_everything_too(autojump_clock: MockClock) -> None:
    """An error in the block is raised on, and still every message has ended. (P6)"""
    probe, ends = Probe(100), Ends()

    async def break_down() -> None:
        async with open_scheduler({"main": 1}) as scheduler:
            scheduler.schedule(quick(probe, 0, on_end=ends))
            scheduler.schedule(quick(probe, 1, on_end=ends))
            await trio.sleep(1)
            raise ZeroDivisionError

    with pytest.RaisesGroup(ZeroDivisionError):
        await break_down()
    assert sorted(ends.seen) == [(0, End.CANCELLED), (1, End.CLOSED)]


async def test_cancelling_the_block_ends_everything_too(autojump_clock: MockClock) -> None:
    """When the program around it is cancelled, no message is left open. (Q9, P6)"""
    probe, ends = Probe(100), Ends()
    with trio.move_on_after(1):
        async with open_scheduler({"main": 2}) as scheduler:
            for number in range(4):
                scheduler.schedule(quick(probe, number, f"dm {number % 3}", on_end=ends))
            await trio.sleep_forever()
    assert sorted(ends.seen) == [(0, End.CANCELLED), (1, End.CANCELLED), (2, End.CLOSED), (3, End.CLOSED)]
    assert sorted(probe.order) == [0, 1]


async def test_a_callback_that_brings_a_message_back_cannot_hold_up_the_close(autojump_clock: MockClock) -> None:
    """An on_end that schedules again while closing is refused like everybody. (lesson 7)"""
    probe = Probe(1)
    refused: list[Ticket] = []

    async with open_scheduler() as scheduler:

        def again(_: Ticket) -> None:
            refused.append(scheduler.schedule(quick(probe, "again")))

        scheduler.schedule(quick(probe, "runs", on_end=again))
        scheduler.schedule(quick(probe, "waits", on_end=again))
        await wait_all_tasks_blocked()
        closed = await scheduler.close(60)
    assert closed == Closed(cancelled=0, abandoned=0, unstarted=1)
    assert ends_of(*refused) == [End.CLOSED] * 2
    assert probe.order == ["runs"]


async def test_drain_waits_for_everything_and_takes_in_more(autojump_clock: MockClock) -> None:
    """Windows, queues, runs, detached children and what comes in meanwhile: drain returns after the last one."""

    async def parent(run: Run) -> None:
        run.schedule(quick(Probe(20), None, "detached"))

    async def come_in_later(scheduler: Scheduler) -> None:
        await trio.sleep(19)
        scheduler.schedule(Request("late", Probe(10)))

    async with open_scheduler() as scheduler, trio.open_nursery() as nursery:
        await scheduler.drain()
        assert trio.current_time() == 0
        scheduler.schedule(quick(parent))
        nursery.start_soon(come_in_later, scheduler)
        await scheduler.drain()
        assert trio.current_time() == pytest.approx(29.8)
