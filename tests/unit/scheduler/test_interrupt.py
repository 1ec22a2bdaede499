"""Mode interrupt: the new message ends what runs and starts only once that has really ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from scheduler import End, Mode, Policy, Reason, Request, open_scheduler
from tests.unit.scheduler.probe import GROUP, QUICK, Ends, Probe, Stubborn, ends_of, forever, quick

if TYPE_CHECKING:
    from scheduler import Run, Ticket

NOW = Policy(mode=Mode.INTERRUPT, debounce_s=0)
NOW_IN_GROUP = Policy(mode=Mode.INTERRUPT, debounce_s=0, max_concurrent=3, shared=True)


async def test_the_new_run_waits_until_the_old_one_has_unwound(autojump_clock: MockClock) -> None:
    """A run that takes 200 ms to end is waited for: never two in a DM. (Q4, lesson 11, L6)"""
    probe = Probe(10, unwinds_s=0.2)
    async with open_scheduler({"main": 5}) as scheduler:
        old = scheduler.schedule(quick(probe, "old"))
        await trio.sleep(1)
        new = scheduler.schedule(quick(probe, "new", policy=NOW))
        await scheduler.drain()
    assert old.outcome is not None
    assert (old.outcome.end, old.outcome.reason) == (End.CANCELLED, Reason.INTERRUPTED)
    assert ends_of(new) == [End.DONE]
    assert probe.starts["new"] == pytest.approx(1.2)
    assert probe.most["dm"] == 1


async def test_an_interrupt_drains_the_queue(autojump_clock: MockClock) -> None:
    """What waited is ended too, and of several interrupts in a row only the last one runs. (L6)"""
    probe, ends = Probe(10, unwinds_s=0.2), Ends()
    async with open_scheduler() as scheduler:
        for number in range(3):
            scheduler.schedule(quick(probe, number, on_end=ends))
        await trio.sleep(1)
        for number in range(3, 6):
            scheduler.schedule(quick(probe, number, policy=NOW, on_end=ends))
        await scheduler.drain()
    assert probe.order == [0, 5]
    assert sorted(ends.seen) == [(number, End.CANCELLED) for number in range(5)] + [(5, End.DONE)]
    assert probe.most["dm"] == 1


async def test_in_a_group_only_the_senders_own_work_is_ended(autojump_clock: MockClock) -> None:
    """Somebody else's run, waiting message and window survive an interrupt in a shared session. (L6)"""
    probe, ends = Probe(10), Ends()
    async with open_scheduler({"main": 10}) as scheduler:
        for sender, text in [("ann", "a1"), ("bob", "b1"), ("bob", "b2"), ("ann", "a2"), ("bob", "b3")]:
            scheduler.schedule(quick(probe, text, "group", sender=sender, policy=GROUP, on_end=ends))
        await trio.sleep(1)
        before = scheduler.session_statistics("group")
        assert (before.running, before.waiting) == (3, 2)
        window = Policy(max_concurrent=3, shared=True)
        scheduler.schedule(quick(probe, "b4", "group", sender="bob", policy=window, on_end=ends))
        scheduler.schedule(quick(probe, "a3", "group", sender="ann", policy=NOW_IN_GROUP, on_end=ends))
        assert scheduler.session_statistics("group").stopping == 1
        await scheduler.drain()
    cancelled = {payload for payload, end in ends.seen if end is End.CANCELLED}
    done = {payload for payload, end in ends.seen if end is End.DONE}
    assert cancelled == {"a1", "a2"}
    assert done == {"b1", "b2", "b3", "b4", "a3"}
    assert len(ends.seen) == 7


async def test_in_a_group_the_interrupt_waits_although_places_are_free(autojump_clock: MockClock) -> None:
    """With two of three places free, the new message still waits for the dying run. (Q4, lesson 11)"""
    probe = Probe(10, unwinds_s=0.2)
    async with open_scheduler({"main": 10}) as scheduler:
        scheduler.schedule(quick(probe, "old", "group", sender="ann", policy=GROUP))
        await trio.sleep(1)
        scheduler.schedule(quick(probe, "new", "group", sender="ann", policy=NOW_IN_GROUP))
        await trio.sleep(0.1)
        assert scheduler.session_statistics("group").stopping == 1
        assert probe.order == ["old"]
        await scheduler.drain()
    assert probe.starts["new"] == pytest.approx(1.2)
    assert probe.most["group"] == 1


async def test_an_interrupt_also_waits_for_a_run_stopped_before(autojump_clock: MockClock) -> None:
    """A run that was dying already when the interrupt came in is waited for as well. (Q4)"""
    probe = Probe(10, unwinds_s=0.2)
    async with open_scheduler({"main": 10}) as scheduler:
        scheduler.schedule(quick(probe, "old", "group", policy=GROUP))
        await trio.sleep(1)
        scheduler.cancel_oldest("group")
        await trio.sleep(0.1)
        scheduler.schedule(quick(probe, "new", "group", policy=NOW_IN_GROUP))
        await scheduler.drain()
    assert probe.starts["new"] == pytest.approx(1.2)


@pytest.mark.parametrize("debounce_s", [0, 0.8])
async def test_an_interrupt_of_an_idle_session_is_an_ordinary_message(
    autojump_clock: MockClock, debounce_s: float
) -> None:
    """With nothing to end, the message runs, its session is known, and it is never two with the next one. (Q4, P3)"""
    probe = Probe(10)
    policy = Policy(mode=Mode.INTERRUPT, debounce_s=debounce_s)
    async with open_scheduler({"main": 5}) as scheduler:
        first = scheduler.schedule(quick(probe, 1, policy=policy))
        assert scheduler.statistics().sessions == 1
        await trio.sleep(2)
        assert scheduler.session_statistics("dm").running == 1
        scheduler.schedule(quick(probe, 2))
        await trio.sleep(2)
        assert probe.most["dm"] == 1
        await scheduler.drain()
    assert ends_of(first) == [End.DONE]
    assert probe.order == [1, 2]


@pytest.mark.parametrize("debounce_s", [0, 0.8])
async def test_an_interrupt_of_an_idle_session_can_be_stopped(autojump_clock: MockClock, debounce_s: float) -> None:
    """The first message of a session is reached by stop in its window and in its run, interrupt or not. (Q8)"""
    policy = Policy(mode=Mode.INTERRUPT, debounce_s=debounce_s)
    async with open_scheduler() as scheduler:
        ticket = scheduler.schedule(quick(forever, policy=policy))
        assert scheduler.cancel_all("dm")
        with trio.fail_after(5):
            await ticket.wait()
    assert ends_of(ticket) == [End.CANCELLED]


async def test_quick_interrupts_are_one_turn(autojump_clock: MockClock) -> None:
    """The sender's own open window is what is being said now: the next quick message joins it. (L9)"""
    probe = Probe(10, unwinds_s=0.2)
    policy = Policy(mode=Mode.INTERRUPT)
    async with open_scheduler() as scheduler:
        scheduler.schedule(quick(probe, "old"))
        await trio.sleep(1)
        for number in range(3):
            scheduler.schedule(quick(probe, number, policy=policy))
        await scheduler.drain()
    assert probe.turns == [("old",), (0, 1, 2)]


async def test_a_joined_interrupt_holds_up_the_whole_turn(autojump_clock: MockClock) -> None:
    """Where a later message of a turn interrupts, the turn waits for the dying run, also with places free. (Q4)"""
    probe = Probe(10, unwinds_s=5)
    first = Policy(max_concurrent=3, shared=True)
    second = Policy(mode=Mode.INTERRUPT, max_concurrent=3, shared=True)
    async with open_scheduler({"main": 10}) as scheduler:
        scheduler.schedule(quick(probe, "old", "group", sender="ann", policy=GROUP))
        await trio.sleep(1)
        scheduler.schedule(quick(probe, "well", "group", sender="ann", policy=first))
        scheduler.schedule(quick(probe, "stop that", "group", sender="ann", policy=second))
        await scheduler.drain()
    assert probe.turns == [("old",), ("well", "stop that")]
    assert probe.starts["well"] == pytest.approx(6)
    assert probe.most["group"] == 1


async def test_quick_interrupts_of_an_idle_session_are_one_turn(autojump_clock: MockClock) -> None:
    """Joining does not depend on there being anything to interrupt. (L9)"""
    probe = Probe()
    policy = Policy(mode=Mode.INTERRUPT)
    async with open_scheduler() as scheduler:
        for number in range(3):
            scheduler.schedule(quick(probe, number, policy=policy))
        await scheduler.drain()
    assert probe.turns == [(0, 1, 2)]


async def test_in_a_dm_an_interrupt_ends_the_other_senders_window(autojump_clock: MockClock) -> None:
    """In a session that is not shared everything gives way, also what another name has in the window."""
    probe, ends = Probe(), Ends()
    async with open_scheduler() as scheduler:
        scheduler.schedule(Request("dm", probe, "window", sender="bob", on_end=ends))
        scheduler.schedule(quick(probe, "new", sender="ann", policy=NOW, on_end=ends))
        await scheduler.drain()
    assert ends.seen == [("window", End.CANCELLED), ("new", End.DONE)]


async def test_an_interrupt_reaches_the_children_of_what_it_ends(autojump_clock: MockClock) -> None:
    """Nested work of the old run ends with it, before the new run starts. (lesson 22)"""
    nested, probe = Probe(50, unwinds_s=0.2), Probe()

    async def parent(run: Run) -> None:
        await run.schedule(quick(nested, "child", "sub")).wait()

    async with open_scheduler() as scheduler:
        scheduler.schedule(quick(parent))
        await trio.sleep(1)
        await scheduler.schedule(quick(probe, "new", policy=NOW)).result()
    assert nested.runs[0].reason is Reason.INTERRUPTED
    assert nested.done == []


async def test_an_interrupt_waits_for_a_result_that_is_being_written(autojump_clock: MockClock) -> None:
    """A sealed run is not cancelled: its result counts, and the new message starts after it. (P6)"""

    async def sealing(run: Run) -> str:
        assert run.seal()
        await trio.sleep(3)
        return "written"

    probe = Probe()
    async with open_scheduler() as scheduler:
        old = scheduler.schedule(quick(sealing))
        await trio.sleep(1)
        scheduler.schedule(quick(probe, "new", policy=NOW))
        await scheduler.drain()
    assert old.outcome is not None
    assert (old.outcome.end, old.outcome.value) == (End.DONE, "written")
    assert probe.starts["new"] == pytest.approx(3)


async def test_an_interrupt_goes_ahead_when_the_old_run_is_fenced(autojump_clock: MockClock) -> None:
    """A run that ignores its cancellation holds the new message up for a minute, not for ever. (Q4, lesson 6)"""
    stubborn, probe = Stubborn(), Probe()
    async with open_scheduler({"main": 2}) as scheduler:
        scheduler.schedule(quick(stubborn))
        await trio.sleep(1)
        await scheduler.schedule(quick(probe, "new", policy=NOW)).result()
        assert probe.starts["new"] == pytest.approx(61)
        stubborn.gate.set()


async def test_a_refused_interrupt_ends_nothing(autojump_clock: MockClock) -> None:
    """While the scheduler closes, an interrupt is refused before it touches anything. (lesson 7)"""
    probe = Probe(10)
    async with open_scheduler() as scheduler:
        old = scheduler.schedule(quick(probe, "old"))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(scheduler.close, 60)
            await wait_all_tasks_blocked()
            new = scheduler.schedule(quick(probe, "new", policy=NOW))
    assert ends_of(old, new) == [End.DONE, End.CLOSED]


async def test_a_drained_message_may_write_again(autojump_clock: MockClock) -> None:
    """An on_end that schedules into the same session during the interrupt loses neither window. (P6)"""
    probe, ends = Probe(5), Ends()
    debounced = Policy(mode=Mode.INTERRUPT, debounce_s=1)
    async with open_scheduler() as scheduler:

        def write_again(ticket: Ticket) -> None:
            scheduler.schedule(Request("dm", probe, "again", sender="bob", policy=Policy(), on_end=ends))

        scheduler.schedule(quick(forever))
        scheduler.schedule(quick(probe, "drained", on_end=write_again))
        scheduler.schedule(Request("dm", probe, "window", policy=Policy(debounce_s=1), on_end=ends))
        scheduler.schedule(quick(probe, "new", policy=debounced, on_end=ends))
        stopped = scheduler.cancel_all("dm")
        assert stopped.messages == 3
        await scheduler.drain()
    assert probe.turns == []
    assert sorted(ends.seen) == [("again", End.CANCELLED), ("new", End.CANCELLED), ("window", End.CANCELLED)]


async def test_a_policy_without_interrupt_ends_nothing(autojump_clock: MockClock) -> None:
    """Only the newcomer's own mode decides: what came as interrupt is not a mode of the session. (L6)"""
    probe = Probe()
    async with open_scheduler() as scheduler:
        tickets = [scheduler.schedule(quick(probe, 0, policy=NOW))]
        tickets += [scheduler.schedule(quick(probe, number, policy=QUICK)) for number in (1, 2)]
        await scheduler.drain()
    assert ends_of(*tickets) == [End.DONE] * 3
