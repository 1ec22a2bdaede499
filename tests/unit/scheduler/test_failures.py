"""Broken handlers and callbacks: whatever they do, their message ends and the lane goes on."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
import trio

from scheduler import End, Kind, Policy, RunFailed, open_scheduler
from tests.unit.scheduler.probe import Ends, Probe, ends_of, forever, nothing, quick

if TYPE_CHECKING:
    from collections.abc import Generator

    from trio.testing import MockClock

    from scheduler import Event, Run, Scheduler, Ticket


async def raises(run: Run) -> None:
    await trio.sleep(1)
    raise ValueError("broken")


async def raises_at_once(run: Run) -> None:
    raise ValueError("broken")


async def takes_forever(run: Run) -> None:
    await trio.sleep_forever()


async def ignores_everything(run: Run) -> None:
    with trio.CancelScope(shield=True):
        await trio.sleep(200)


def stop(scheduler: Scheduler) -> None:
    scheduler.cancel_oldest("dm")


def leave(scheduler: Scheduler) -> None:
    pass


LIMIT = Policy(debounce_s=0, timeout_s=5)


@pytest.mark.parametrize(
    ("handler", "policy", "act", "end"),
    [
        (nothing, None, leave, End.DONE),
        (raises, None, leave, End.FAILED),
        (raises_at_once, None, leave, End.FAILED),
        (takes_forever, LIMIT, leave, End.TIMED_OUT),
        (takes_forever, None, stop, End.CANCELLED),
        (ignores_everything, None, stop, End.CANCELLED),
        (ignores_everything, LIMIT, leave, End.TIMED_OUT),
    ],
    ids=["done", "raise", "raise at once", "timeout", "cancel", "fence after cancel", "fence after timeout"],
)
async def test_followups_drain_whatever_way_the_run_ended(
    autojump_clock: MockClock, handler: Any, policy: Policy | None, act: Any, end: End
) -> None:
    """What waited behind a run starts in order after each of its ends. (lesson 8, P6)"""
    probe = Probe()
    async with open_scheduler({"main": 2}) as scheduler:
        first = scheduler.schedule(quick(handler, policy=policy or Policy(debounce_s=0)))
        followups = [scheduler.schedule(quick(probe, number)) for number in range(3)]
        await trio.sleep(1.5)
        act(scheduler)
        await scheduler.drain()
        assert not scheduler.sessions
    assert ends_of(first, *followups) == [end, End.DONE, End.DONE, End.DONE]
    assert probe.order == [0, 1, 2]


async def test_a_failure_carries_its_cause(autojump_clock: MockClock) -> None:
    """The ticket raises RunFailed with the handler's exception as its cause; the outcome holds it as a value. (P6)"""
    async with open_scheduler() as scheduler:
        ticket = scheduler.schedule(quick(raises))
        with pytest.raises(RunFailed, match="broken") as caught:
            await ticket.result()
        outcome = await ticket.wait()
    assert isinstance(caught.value.__cause__, ValueError)
    assert outcome.error is caught.value.__cause__


def not_async(run: Run) -> str:
    return "no awaitable"


def raises_before_it_is_one(run: Run) -> Any:
    raise KeyError("sync")


def stops_iteration(run: Run) -> Any:
    return next(iter(()))


async def stops_iteration_inside(run: Run) -> None:
    raise StopIteration


async def opens_a_nursery(run: Run) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(raises, run)
        nursery.start_soon(raises, run)


@pytest.mark.parametrize(
    ("handler", "error"),
    [
        (not_async, TypeError),
        ("not even callable", TypeError),
        (raises_before_it_is_one, KeyError),
        (stops_iteration, Exception),
        (stops_iteration_inside, RuntimeError),
        (opens_a_nursery, ExceptionGroup),
    ],
    ids=["not async", "not callable", "raises first", "StopIteration first", "StopIteration inside", "nursery"],
)
async def test_a_broken_handler_fails_its_own_message_only(
    autojump_clock: MockClock, handler: Any, error: type[Exception]
) -> None:
    """Handlers that are not what they should be end as failed, and the next message of the lane runs. (lesson 5)"""
    async with open_scheduler({"main": 1}) as scheduler:
        broken = scheduler.schedule(quick(handler))
        assert await scheduler.schedule(quick(Probe(), "next")).result() == ("next",)
        outcome = await broken.wait()
    assert outcome.end is End.FAILED
    assert isinstance(outcome.error, error)


async def test_any_awaitable_will_do(autojump_clock: MockClock) -> None:
    """A handler may return its own awaitable object instead of a coroutine."""

    class Later:
        def __init__(self, run: Run) -> None:
            self.run = run

        def __await__(self) -> Generator[Any, Any, Any]:
            yield from trio.sleep(1).__await__()  # noqa: ASYNC105 - this is how an await is spelt here
            return self.run.request.payload

    async with open_scheduler() as scheduler:
        assert await scheduler.schedule(quick(Later, "value")).result() == "value"
        assert trio.current_time() == 1


async def test_a_handler_that_swallows_its_cancellation_is_still_cancelled(autojump_clock: MockClock) -> None:
    """Whatever it returns afterwards does not count, and its worker is sound for the next run. (P7)"""

    async def swallows(run: Run) -> str:
        with trio.CancelScope() as scope:
            try:
                await trio.sleep_forever()
            except trio.Cancelled:
                scope.cancel()
                raise
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            return "nothing happened"

    async with open_scheduler({"main": 1}) as scheduler:
        ticket = scheduler.schedule(quick(swallows))
        after = [scheduler.schedule(quick(Probe(), number)) for number in range(3)]
        await trio.sleep(1)
        scheduler.cancel_oldest("dm")
        await scheduler.drain()
    assert ticket.outcome is not None
    assert (ticket.outcome.end, ticket.outcome.value) == (End.CANCELLED, None)
    assert ends_of(*after) == [End.DONE] * 3


async def test_an_error_during_the_unwinding_is_kept_beside_the_reason(autojump_clock: MockClock) -> None:
    """A cancelled run that raises something else is cancelled, and what it raised is not lost. (lesson 8)"""

    async def raises_in_nursery(run: Run) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(forever, run)
            try:
                await trio.sleep_forever()
            finally:
                raise ValueError("while unwinding")

    async with open_scheduler({"main": 1}) as scheduler:
        ticket = scheduler.schedule(quick(raises_in_nursery))
        await trio.sleep(1)
        scheduler.cancel_oldest("dm")
        assert await scheduler.schedule(quick(Probe(), "next")).result() == ("next",)
    assert ticket.outcome is not None
    assert ticket.outcome.end is End.CANCELLED
    assert isinstance(ticket.outcome.error, ExceptionGroup)


@pytest.mark.parametrize("grouped", [False, True])
async def test_the_end_of_the_program_passes_through(autojump_clock: MockClock, grouped: bool) -> None:
    """SystemExit from a handler is not swallowed, nothing starts after it, and every message has its end. (Q9, P6)"""
    probe, ends = Probe(100), Ends()

    async def exits(run: Run) -> None:
        await trio.sleep(1)
        if grouped:
            raise BaseExceptionGroup("both", [SystemExit(3), ValueError("too")])
        raise SystemExit(3)

    async def program() -> None:
        async with open_scheduler({"main": 2}) as scheduler:
            scheduler.schedule(quick(exits, "exits", "a", on_end=ends))
            scheduler.schedule(quick(probe, "beside", "b", on_end=ends))
            scheduler.schedule(quick(probe, "behind", "a", on_end=ends))
            scheduler.schedule(quick(probe, "waiting", "c", on_end=ends))
            await trio.sleep_forever()

    expected = (SystemExit, ValueError) if grouped else (SystemExit,)
    with pytest.RaisesGroup(*expected, flatten_subgroups=True):
        await program()
    assert dict(ends.seen) == {
        "exits": End.CANCELLED,
        "beside": End.CANCELLED,
        "behind": End.CLOSED,
        "waiting": End.CLOSED,
    }
    assert len(ends.seen) == 4
    assert probe.order == ["beside"]


def bad_callback(_: object) -> None:
    raise RuntimeError("callback")


async def test_raising_callbacks_leave_the_lane_draining(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """An on_end that raises at every kind of end harms nobody, and each time is counted and logged. (lesson 5)"""
    probe = Probe()
    tight = Policy(debounce_s=0, cap=1)
    async with open_scheduler({"main": 1}) as scheduler:
        with caplog.at_level(logging.CRITICAL + 1, logger="goclaw.scheduler"):
            for number in range(4):  # one runs, two are dropped, one waits
                scheduler.schedule(quick(probe, number, policy=tight, on_end=bad_callback))
            scheduler.schedule(quick(raises, None, "raises", on_end=bad_callback))
            scheduler.schedule(quick(forever, None, "stopped", on_end=bad_callback))
            scheduler.cancel_all("stopped")
            assert await scheduler.schedule(quick(probe, "last", "last")).result() == ("last",)
            await scheduler.drain()
            assert scheduler.statistics().callback_errors == 6
            assert scheduler.lanes["main"].active == 0
    assert probe.order == [0, "last", 3]


async def test_a_raising_observer_harms_nobody(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    """Runs, other observers and callers go on when an observer raises at every event. (lesson 5)"""
    seen: list[Kind] = []

    def note(event: Event) -> None:
        seen.append(event.kind)

    async with open_scheduler({"main": 1}) as scheduler:
        with caplog.at_level(logging.CRITICAL + 1, logger="goclaw.scheduler"):
            scheduler.observe(bad_callback)
            scheduler.observe(note)
            tickets: list[Ticket] = [scheduler.schedule(quick(Probe(), number)) for number in range(3)]
            stopped = scheduler.schedule(quick(forever, None, "stopped"))
            scheduler.cancel_all("stopped")
            await scheduler.drain()
        assert scheduler.statistics().callback_errors == len(seen)
    assert ends_of(*tickets, stopped) == [End.DONE] * 3 + [End.CANCELLED]
    assert seen.count(Kind.ENDED) == 4
