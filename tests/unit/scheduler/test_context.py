"""Contextvars: every message runs in the context it was scheduled in, never in another's, whatever the worker did."""

from __future__ import annotations

import inspect
from contextvars import Context, ContextVar, copy_context
from typing import TYPE_CHECKING, Any

import pytest
import trio

from scheduler import Policy, Request, open_scheduler
from scheduler.drive import as_coroutine, drive
from tests.unit.scheduler.probe import Probe, forever, nothing, quick

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator

    from trio.testing import MockClock

    from scheduler import Run, Ticket

trace: ContextVar[str] = ContextVar("trace", default="none")


async def test_each_message_runs_in_its_own_context(autojump_clock: MockClock) -> None:
    """Forty messages through one slot see forty contexts, though their callers have moved on. (Q5)"""
    seen: list[tuple[str, str]] = []

    async def handler(run: Run) -> None:
        before = trace.get()
        await trio.sleep(1)
        seen.append((before, trace.get()))

    async with open_scheduler({"main": 1}) as scheduler:

        async def caller(name: str) -> None:
            trace.set(name)
            scheduler.schedule(quick(handler, name, f"dm {name}"))
            trace.set("moved on")

        async with trio.open_nursery() as nursery:
            for number in range(40):
                nursery.start_soon(caller, str(number))
        await scheduler.drain()
    assert sorted(seen, key=lambda pair: int(pair[0])) == [(str(number), str(number)) for number in range(40)]


async def test_messages_of_one_session_do_not_share_a_context(autojump_clock: MockClock) -> None:
    """What one message sets is not seen by the next one of its session, nor by the caller. (Q5)"""
    seen: list[str] = []

    async def handler(run: Run) -> None:
        seen.append(trace.get())
        trace.set("left behind")
        await trio.sleep(1)
        seen.append(trace.get())

    async with open_scheduler({"main": 1}) as scheduler:
        for name in ("a", "b", "c"):
            trace.set(name)
            scheduler.schedule(quick(handler))
        trace.set("caller")
        await scheduler.drain()
        assert trace.get() == "caller"
    assert seen == ["a", "left behind", "b", "left behind", "c", "left behind"]


async def test_the_context_survives_whatever_is_awaited(autojump_clock: MockClock) -> None:
    """Over sleeps, events, nurseries and nested runs the handler and its tasks see their own context. (Q5, L12)"""
    seen: dict[str, set[str]] = {}

    async def task(note: set[str]) -> None:
        note.add(trace.get())
        await trio.sleep(0.5)
        note.add(trace.get())

    async def child(run: Run) -> None:
        seen[run.request.session].add(trace.get())
        trace.set("child's own")

    async def handler(run: Run) -> None:
        note = seen.setdefault(f"sub {run.id}", set())
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(task, note)
        with trio.move_on_after(1):
            await trio.sleep_forever()
        note.add(trace.get())
        await run.schedule(quick(child, None, f"sub {run.id}")).result()
        note.add(trace.get())

    async with open_scheduler({"main": 2}) as scheduler:
        for number in range(6):
            trace.set(f"message {number}")
            scheduler.schedule(quick(handler, None, f"dm {number}"))
        await scheduler.drain()
    assert sorted(map(sorted, seen.values())) == [[f"message {number}"] for number in range(6)]


async def test_threads_see_the_context_too() -> None:
    """Work handed to a thread sees the message's context. (Q5)"""

    async def handler(run: Run) -> tuple[str, str]:
        return await trio.to_thread.run_sync(trace.get), trace.get()

    async with open_scheduler({"main": 1}) as scheduler:
        tickets: list[Ticket] = []
        for name in ("a", "b", "c"):
            trace.set(name)
            tickets.append(scheduler.schedule(quick(handler, None, name)))
        trace.set("caller")
        assert [await ticket.result() for ticket in tickets] == [("a", "a"), ("b", "b"), ("c", "c")]


async def test_cancellation_keeps_the_context(autojump_clock: MockClock) -> None:
    """While a cancelled run unwinds, also when another exception is thrown in meanwhile, it sees its own. (L12)"""
    seen: list[str] = []

    async def handler(run: Run) -> None:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            seen.append(trace.get())
            try:
                await trio.sleep_forever()  # thrown in again while the first is being handled
            except trio.Cancelled:
                seen.append(trace.get())
            with trio.CancelScope(shield=True):
                await trio.sleep(1)
            seen.append(trace.get())
            raise

    async with open_scheduler() as scheduler:
        trace.set("mine")
        scheduler.schedule(quick(handler))
        trace.set("caller")
        await trio.sleep(1)
        scheduler.cancel_all("dm")
        await scheduler.drain()
    assert seen == ["mine"] * 3


async def test_a_joined_turn_runs_in_its_first_messages_context(autojump_clock: MockClock) -> None:
    """One turn has one context: that of the message that opened it. (Q5)"""
    seen: list[str] = []

    async def handler(run: Run) -> None:
        seen.append(trace.get())

    async with open_scheduler() as scheduler:
        for name in ("first", "second"):
            trace.set(name)
            scheduler.schedule(Request("dm", handler))
        trace.set("caller")
        await scheduler.drain()
    assert seen == ["first"]


async def test_a_callback_never_sees_another_messages_context(autojump_clock: MockClock) -> None:
    """An on_end, and what it schedules, knows its own message's context or none, whoever's worker calls it. (Q5)"""
    seen: list[tuple[str, str]] = []

    async def handler(run: Run) -> None:
        await trio.sleep(1)

    async def follow_up(run: Run) -> None:
        seen.append((run.request.payload, trace.get()))

    async with open_scheduler({"main": 1}) as scheduler:

        def on_end(ticket: Ticket) -> None:
            seen.append((ticket.request.payload, trace.get()))
            if ticket.request.payload == "b":
                scheduler.schedule(quick(follow_up, "b", "other"))

        for name in ("a", "b"):
            trace.set(name)
            scheduler.schedule(quick(handler, name, name, on_end=on_end))
        trace.set("caller")
        await scheduler.drain()
    assert [payload for payload, _ in seen] == ["a", "b", "b"]
    assert all(context in (payload, "none") for payload, context in seen)


async def test_a_message_that_never_ran_tells_its_end_in_its_own_context(autojump_clock: MockClock) -> None:
    """Dropped by somebody else's message or stopped by somebody else: the callback is not run as that one. (Q5)"""
    seen: list[tuple[str, str]] = []

    def on_end(ticket: Ticket) -> None:
        seen.append((ticket.request.payload, trace.get()))

    async with open_scheduler() as scheduler:
        for name in ("runs", "dropped", "stopped"):
            trace.set(name)
            scheduler.schedule(quick(forever, name, policy=Policy(debounce_s=0, cap=1), on_end=on_end))
        trace.set("caller")
        scheduler.cancel_all("dm")
        await scheduler.drain()
    assert [payload for payload, _ in seen] == ["dropped", "stopped", "runs"]
    assert all(context in (payload, "none") for payload, context in seen)


async def test_a_nested_handler_knows_which_run_it_is(autojump_clock: MockClock) -> None:
    """Scheduled inside a run, awaited inside another: each wait lends the slot of the run it belongs to. (P8)"""
    async with open_scheduler({"main": 1}) as scheduler:

        async def inner(run: Run) -> None:
            await scheduler.schedule(quick(Probe(), None, f"leaf {run.id}")).result()

        async def outer(run: Run) -> None:
            tickets = [scheduler.schedule(quick(inner, None, f"inner {number}")) for number in range(3)]
            for ticket in tickets:
                await ticket.result()

        ticket = scheduler.schedule(quick(outer))
        with trio.fail_after(60):
            await ticket.result()
            await scheduler.drain()
        assert (scheduler.lanes["main"].active, scheduler.lanes["main"].parked) == (0, 0)


# ── drive() by itself ────────────────────────────────────────────────────────────────────────────────────────────


class Trap:
    """Something to await that yields itself and returns what it is sent."""

    def __await__(self) -> Generator[Trap, Any, Any]:
        return (yield self)


async def driven(context: Context, coroutine: Coroutine[Any, Any, Any]) -> Any:
    trap = context.run(coroutine.send, None)
    return await drive(context, coroutine, trap)


def context_with(value: str) -> Context:
    context = copy_context()
    context.run(trace.set, value)
    return context


def test_drive_passes_values_both_ways_in_the_context() -> None:
    """What the coroutine yields comes out, what is sent goes in, each step in the given context. (Q5)"""
    trap, seen = Trap(), list[str]()

    async def body() -> str:
        for _ in range(2):
            seen.append(f"{await trap} {trace.get()}")
        return "end"

    outside = driven(context_with("inside"), body())
    assert outside.send(None) is trap
    assert outside.send("one") is trap
    with pytest.raises(StopIteration) as stop:
        outside.send("two")
    assert stop.value.value == "end"
    assert seen == ["one inside", "two inside"]
    assert trace.get() == "none"


def test_drive_throws_into_the_coroutine() -> None:
    """An exception thrown in is the coroutine's to handle, with its own context and no foreign one chained to it."""
    seen: list[Any] = []

    async def body() -> str:
        try:
            await Trap()
        except KeyError as first:
            try:
                await Trap()
            except ValueError as second:
                seen.extend([first.__context__, second.__context__ is first, trace.get()])
        return str(await Trap())

    outside = driven(context_with("inside"), body())
    outside.send(None)
    outside.throw(KeyError())
    outside.throw(ValueError())
    with pytest.raises(StopIteration) as stop:
        outside.send("last")
    assert stop.value.value == "last"
    assert seen == [None, True, "inside"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, GeneratorExit, trio.ClosedResourceError])
def test_what_the_coroutine_raises_comes_out(error: type[BaseException]) -> None:
    """Raised by itself or thrown in and not handled, with the same exception object."""
    mine = error()

    async def body() -> None:
        await Trap()
        raise mine

    outside = driven(copy_context(), body())
    outside.send(None)
    with pytest.raises(error) as caught:
        outside.send(None)
    assert caught.value is mine

    async def passes() -> None:
        await Trap()

    outside = driven(copy_context(), passes())
    outside.send(None)
    with pytest.raises(error) as caught:
        outside.throw(mine)
    assert caught.value is mine


def test_closing_drive_closes_the_coroutine() -> None:
    """A coroutine that is given up runs its cleanup, in its context, and is not left pending."""
    seen: list[str] = []

    async def body() -> None:
        try:
            await Trap()
        finally:
            seen.append(trace.get())

    coroutine = body()
    outside = driven(context_with("inside"), coroutine)
    outside.send(None)
    outside.close()
    assert seen == ["inside"]
    assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED


def test_any_awaitable_becomes_a_coroutine() -> None:
    """A handler may return whatever can be awaited; there is something to send to and to close."""
    coroutine = as_coroutine(Trap())
    assert isinstance(coroutine.send(None), Trap)
    with pytest.raises(StopIteration) as stop:
        coroutine.send("value")
    assert stop.value.value == "value"


async def test_a_run_without_a_single_await_has_its_context_too() -> None:
    """The first step is taken without drive, in the same context. (Q5)"""

    async def handler(run: Run) -> str:
        return trace.get()

    async with open_scheduler() as scheduler:
        trace.set("mine")
        ticket = scheduler.schedule(quick(handler, policy=Policy(debounce_s=0)))
        scheduler.schedule(quick(nothing))
        trace.set("caller")
        assert await ticket.result() == "mine"
