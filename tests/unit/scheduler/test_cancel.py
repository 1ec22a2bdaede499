"""Stop and stopall: they reach a message wherever it is, count truly, and leave nothing armed behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from scheduler import End, Policy, Reason, Request, RunCancelled, Stopped, open_scheduler
from tests.unit.scheduler.probe import GROUP, Ends, Probe, Stubborn, ends_of, forever, nothing, quick

if TYPE_CHECKING:
    from collections.abc import Callable

    from scheduler import Run, Scheduler


def oldest(scheduler: Scheduler, session: str) -> Stopped:
    return scheduler.cancel_oldest(session)


def everything(scheduler: Scheduler, session: str) -> Stopped:
    return scheduler.cancel_all(session)


both = pytest.mark.parametrize("stop", [oldest, everything])


@both
async def test_a_message_in_the_debounce_window_is_stopped(
    autojump_clock: MockClock, stop: Callable[[Scheduler, str], Stopped]
) -> None:
    """The window is emptied, every message in it is told once, and nothing starts later. (Q8, L11, lesson 18)"""
    probe, ends = Probe(), Ends()
    async with open_scheduler() as scheduler:
        for number in range(3):
            scheduler.schedule(Request("dm", probe, number, on_end=ends))
        await trio.sleep(0.5)
        assert stop(scheduler, "dm") == Stopped(buffered=3)
        assert not scheduler.sessions
        assert len(scheduler.timers) == 0
        await trio.sleep(100)
    assert probe.turns == []
    assert ends.seen == [(number, End.CANCELLED) for number in range(3)]


@both
async def test_a_message_that_waits_for_a_slot_is_stopped_at_once(
    autojump_clock: MockClock, stop: Callable[[Scheduler, str], Stopped]
) -> None:
    """While every lane is full, stop answers without waiting and says what it reached. (Q2, lessons 12, 18, 19)"""
    probe, busy = Probe(), Probe(100)
    async with open_scheduler({"main": 1, "cron": 1}) as scheduler:
        for lane in ("main", "cron"):
            for number in range(5):
                scheduler.schedule(quick(busy, None, f"{lane} {number}", lane=lane))
        tickets = [scheduler.schedule(quick(probe, number)) for number in range(3)]
        await trio.sleep(1)
        asked_at = trio.current_time()
        assert stop(scheduler, "dm") == Stopped(waiting=1, queued=2)
        assert trio.current_time() == asked_at
        assert ends_of(*tickets) == [End.CANCELLED] * 3
        assert scheduler.lanes["main"].waiting == 4
        await scheduler.drain()
    assert probe.turns == []
    assert len(busy.done) == 10


async def test_stop_ends_the_oldest_run_and_others_go_on(autojump_clock: MockClock) -> None:
    """Of three runs the one that started first is cancelled; what waits keeps waiting and is counted. (L10)"""
    probe, ends = Probe(10), Ends()
    async with open_scheduler({"main": 3}) as scheduler:
        for number in range(5):
            scheduler.schedule(quick(probe, number, policy=GROUP, on_end=ends))
        await trio.sleep(1)
        assert scheduler.cancel_oldest("dm") == Stopped(running=1, left=2)
        await scheduler.drain()
    assert ends.of(0) == [End.CANCELLED]
    assert [ends.of(number) for number in range(1, 5)] == [[End.DONE]] * 4


async def test_stop_twice_stops_two_runs(autojump_clock: MockClock) -> None:
    """Each stop reaches the next oldest run, even while the one before still unwinds. (lesson 11b)"""
    probe = Probe(10, unwinds_s=1)
    async with open_scheduler({"main": 3}) as scheduler:
        tickets = [scheduler.schedule(quick(probe, number, policy=GROUP)) for number in range(2)]
        await trio.sleep(1)
        assert [scheduler.cancel_oldest("dm") for _ in range(2)] == [Stopped(running=1)] * 2
        assert scheduler.cancel_oldest("dm") == Stopped(stopping=2)
        await scheduler.drain()
    assert ends_of(*tickets) == [End.CANCELLED] * 2


async def test_stopall_reaches_window_queue_and_runs(autojump_clock: MockClock) -> None:
    """Everything of the session ends, each counted where it was found. (Q8, L10)"""
    probe, ends = Probe(10), Ends()
    async with open_scheduler({"main": 2}) as scheduler:
        for number in range(6):
            scheduler.schedule(quick(probe, number, policy=GROUP, on_end=ends))
        for number in range(6, 8):
            scheduler.schedule(quick(probe, number, policy=Policy(max_concurrent=3), on_end=ends))
        await trio.sleep(0.5)
        # Two run; a third may, but for a slot; three stand behind it; two are in the window.
        assert scheduler.cancel_all("dm") == Stopped(running=2, waiting=1, queued=3, buffered=2)
        await scheduler.drain()
    assert sorted(ends.seen) == [(number, End.CANCELLED) for number in range(8)]
    assert len(probe.turns) == 2
    assert probe.done == []


async def test_a_stopped_run_keeps_its_place_until_it_has_ended(autojump_clock: MockClock) -> None:
    """After a stop the next message of a DM starts only when the old run has unwound. (Q4, P3)"""
    probe = Probe(10, unwinds_s=0.2)
    async with open_scheduler({"main": 5}) as scheduler:
        scheduler.schedule(quick(probe, "old"))
        await trio.sleep(1)
        scheduler.cancel_all("dm")
        await scheduler.schedule(quick(probe, "new")).result()
    assert probe.starts["new"] == pytest.approx(1.2)
    assert probe.most["dm"] == 1


@both
async def test_after_a_stop_the_next_message_works(
    autojump_clock: MockClock, stop: Callable[[Scheduler, str], Stopped]
) -> None:
    """No flag of a stop is left to eat a later message, on the same worker or another. (lesson 21)"""
    probe = Probe()
    async with open_scheduler({"main": 1}) as scheduler:
        for number in range(5):
            stopped = scheduler.schedule(quick(forever))
            await trio.sleep(1)
            assert stop(scheduler, "dm").running == 1
            assert await scheduler.schedule(quick(probe, number)).result() == (number,)
            assert ends_of(stopped) == [End.CANCELLED]


@both
async def test_stop_on_an_idle_session_arms_nothing(
    autojump_clock: MockClock, stop: Callable[[Scheduler, str], Stopped]
) -> None:
    """With nothing to stop the answer says so, keeps nothing, and the next message runs. (lesson 21)"""
    async with open_scheduler() as scheduler:
        assert stop(scheduler, "dm") == Stopped()
        assert not stop(scheduler, "dm")
        assert not scheduler.sessions
        assert await scheduler.schedule(quick(Probe(), "hello")).result() == ("hello",)
        assert stop(scheduler, "dm") == Stopped()


@both
async def test_a_run_is_stopped_between_its_slot_and_its_first_step(
    autojump_clock: MockClock, stop: Callable[[Scheduler, str], Stopped]
) -> None:
    """A run that has its slot but has done nothing yet never begins. (lesson 18)"""
    probe = Probe()
    async with open_scheduler() as scheduler:
        ticket = scheduler.schedule(quick(probe, 1))
        assert stop(scheduler, "dm") == Stopped(running=1)
        await scheduler.drain()
        assert await scheduler.schedule(quick(probe, 2)).result() == (2,)
    assert ends_of(ticket) == [End.CANCELLED]
    assert probe.order == [2]


async def test_a_run_is_stopped_between_hand_over_and_its_first_step(autojump_clock: MockClock) -> None:
    """The same where the slot was handed over by the run before: whatever was not begun is not begun. (lesson 18)"""
    begun: list[int] = []
    ends = Ends()

    async def note(run: Run) -> None:
        begun.append(run.request.payload)

    async with open_scheduler({"main": 1}) as scheduler:
        for number in range(200):
            scheduler.schedule(quick(note, number, f"dm {number}", on_end=ends))
        for _ in range(3):
            await trio.lowlevel.checkpoint()  # the worker pauses now and then with the next run in its hand
        count = len(begun)
        assert 0 < count < 200
        for number in range(200):
            scheduler.cancel_all(f"dm {number}")
        await scheduler.drain()
    assert len(begun) == count
    assert ends.seen == [(n, End.DONE) for n in range(count)] + [(n, End.CANCELLED) for n in range(count + 1, 200)] + [
        (count, End.CANCELLED)
    ]


async def test_a_sleeping_run_is_stopped_within_its_sleep(autojump_clock: MockClock) -> None:
    """Stop does not wait for a timer of the run: back-off, a slow model call, a tool. (lesson 18, L12)"""
    async with open_scheduler() as scheduler:
        ticket = scheduler.schedule(quick(Probe(3600)))
        await trio.sleep(1)
        scheduler.cancel_oldest("dm")
        with pytest.raises(RunCancelled) as caught:
            await ticket.result()
        assert trio.current_time() == 1
        assert caught.value.fields == {"ticket": ticket.id, "session": "dm"}
        assert "stopped" in str(caught.value)


async def test_a_run_sees_that_it_is_cancelled_and_may_clean_up(autojump_clock: MockClock) -> None:
    """Cancellation reaches the handler as trio's own; a shielded last write still happens. (L12)"""
    written: list[tuple[bool, Reason | None]] = []

    async def careful(run: Run) -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(0.5)
                written.append((run.cancelled, run.reason))

    async with open_scheduler() as scheduler:
        ticket = scheduler.schedule(quick(careful))
        await trio.sleep(1)
        scheduler.cancel_oldest("dm")
        outcome = await ticket.wait()
    assert written == [(True, Reason.STOPPED)]
    assert (outcome.end, outcome.reason) == (End.CANCELLED, Reason.STOPPED)


async def test_a_second_stop_counts_what_is_already_stopping(autojump_clock: MockClock) -> None:
    """While a run unwinds, another stop finds it stopping, tells so, and does not touch what waits behind it."""
    probe = Probe(10, unwinds_s=5)
    async with open_scheduler() as scheduler:
        scheduler.schedule(quick(probe, "old"))
        waiting = scheduler.schedule(quick(probe, "waiting"))
        await trio.sleep(1)
        assert scheduler.cancel_oldest("dm") == Stopped(running=1, left=1)
        again = scheduler.cancel_oldest("dm")
        assert again == Stopped(stopping=1, left=1)
        assert not again
        assert ends_of(waiting) == [None]
        assert scheduler.cancel_all("dm") == Stopped(stopping=1, queued=1)
        await scheduler.drain()
    assert probe.order == ["old"]


async def test_a_stop_does_not_leak_into_another_session(autojump_clock: MockClock) -> None:
    """Only the named session is touched. (lesson 22)"""
    probe = Probe()
    async with open_scheduler({"main": 1}) as scheduler:
        scheduler.schedule(quick(forever, None, "mine"))
        other = [scheduler.schedule(quick(probe, number, "other")) for number in range(2)]
        window = scheduler.schedule(Request("third", probe, "window"))
        await wait_all_tasks_blocked()
        scheduler.cancel_all("mine")
        await scheduler.drain()
    assert ends_of(*other, window) == [End.DONE] * 3


async def test_a_sealed_run_is_reported_as_finishing(autojump_clock: MockClock) -> None:
    """Too late to cancel is said, and the result counts; what waits behind it is drained by stopall only. (P6)"""

    async def sealing(run: Run) -> str:
        assert run.seal()
        await trio.sleep(5)
        return "sent"

    async with open_scheduler() as scheduler:
        ticket = scheduler.schedule(quick(sealing))
        waiting = scheduler.schedule(quick(nothing))
        await trio.sleep(1)
        assert scheduler.cancel_oldest("dm") == Stopped(finishing=1, left=1)
        assert ends_of(waiting) == [None]
        assert scheduler.cancel_all("dm") == Stopped(finishing=1, queued=1)
        assert await ticket.result() == "sent"


async def test_a_run_stopped_first_cannot_seal(autojump_clock: MockClock) -> None:
    """Whoever comes first decides: after a stop `seal` says no, so nothing is published. (P7)"""
    sealed: list[bool] = []

    async def handler(run: Run) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(2)
        sealed.append(run.seal())

    async with open_scheduler() as scheduler:
        ticket = scheduler.schedule(quick(handler))
        await trio.sleep(1)
        scheduler.cancel_oldest("dm")
        await ticket.wait()
    assert sealed == [False]
    assert ends_of(ticket) == [End.CANCELLED]


async def test_a_stopped_message_may_be_sent_again_by_its_callback(autojump_clock: MockClock) -> None:
    """An on_end that schedules during a stop is a new message: it is not part of that stop. (P6)"""
    probe = Probe()
    async with open_scheduler() as scheduler:

        def again(_: object) -> None:
            scheduler.schedule(quick(probe, "again"))

        scheduler.schedule(quick(forever, on_end=again))
        scheduler.schedule(quick(forever, on_end=again))
        await trio.sleep(1)
        assert scheduler.cancel_all("dm") == Stopped(running=1, queued=1)
        await scheduler.drain()
    assert probe.order == ["again"] * 2
    assert probe.most["dm"] == 1


async def test_a_stop_names_the_messages_it_reached(autojump_clock: MockClock) -> None:
    """Whoever asked can tell each sender: the requests from window, queue and runs, children included. (Q8, P6)"""

    async def parent(run: Run) -> None:
        run.schedule(quick(forever, "child", "sub"))
        await trio.sleep_forever()

    async with open_scheduler() as scheduler:
        scheduler.schedule(quick(parent, "runs"))
        scheduler.schedule(quick(parent, "waits"))
        for number in range(2):
            scheduler.schedule(Request("dm", parent, f"window {number}"))
        await trio.sleep(0.5)
        reached = scheduler.cancel_all("dm").reached
        assert sorted(request.payload for request in reached) == ["child", "runs", "waits", "window 0", "window 1"]
        assert scheduler.cancel_all("dm").reached == ()


async def test_a_stubborn_run_does_not_make_stop_wait(autojump_clock: MockClock) -> None:
    """Stop returns at once whatever the run does with it. (Q2, P7)"""
    stubborn = Stubborn()
    async with open_scheduler() as scheduler:
        scheduler.schedule(quick(stubborn))
        await trio.sleep(1)
        assert scheduler.cancel_all("dm") == Stopped(running=1)
        assert trio.current_time() == 1
        stubborn.gate.set()
