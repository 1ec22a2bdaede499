"""The bus: everybody hears what they asked for, nobody holds up anybody."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from gateway.events import Bus, Event, Listener

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def new_bus(buffer: int = 100) -> Bus:
    return Bus(lambda: NOW, buffer=buffer)


async def take(listener: Listener, number: int) -> list[Event]:
    return [await anext(listener) for _ in range(number)]


async def test_a_listener_hears_everything_in_order() -> None:
    """With number, time and all that it is about."""
    bus = new_bus()
    async with bus.listen() as heard:
        bus.publish("run.started", tenant="t", session="s", run="r", trace="x", data={"lane": "main"})
        bus.publish("run.ended")
        first, second = await take(heard, 2)
    assert first == Event(1, NOW, "run.started", "t", "s", "r", "x", {"lane": "main"})
    assert (second.seq, second.kind, second.data) == (2, "run.ended", {})


async def test_a_listener_hears_only_what_it_asked_for() -> None:
    """Kinds, a tenant, or both; nothing of other tenants. (P11)"""
    bus = new_bus()
    async with bus.listen(["a"]) as kinds, bus.listen(tenant="t") as tenants, bus.listen(["a"], "t") as both:
        for kind, tenant in [("a", "t"), ("b", "t"), ("a", "u"), ("b", "u"), ("a", "")]:
            bus.publish(kind, tenant=tenant)
        assert [event.seq for event in await take(kinds, 3)] == [1, 3, 5]
        assert [event.seq for event in await take(tenants, 2)] == [1, 2]
        assert [event.seq for event in await take(both, 1)] == [1]
        for listener in (kinds, tenants, both):
            with trio.move_on_after(0) as scope:
                await anext(listener)
            assert scope.cancelled_caught


async def test_a_listener_waits_for_what_comes(autojump_clock: MockClock) -> None:
    """Without looking again and again."""
    bus = new_bus()
    heard: list[int] = []

    async def hear() -> None:
        async with bus.listen() as events:
            while True:
                heard.append((await anext(events)).seq)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(hear)
        await wait_all_tasks_blocked()
        for _ in range(3):
            bus.publish("x")
            await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert heard == [1, 2, 3]


async def test_a_slow_listener_loses_its_oldest_and_is_told() -> None:
    """The publisher never waits, other listeners lose nothing."""
    bus = new_bus(buffer=5)
    async with bus.listen() as slow, bus.listen(["b"]) as other:
        for _ in range(12):
            bus.publish("a")
        bus.publish("b")
        assert [event.seq for event in await take(slow, 5)] == [9, 10, 11, 12, 13]
        assert (slow.lost(), slow.lost(), other.lost()) == (8, 0, 0)
        assert (await anext(other)).seq == 13


async def test_a_listener_that_raises_harms_nobody() -> None:
    """It is gone; everybody else hears on."""
    bus = new_bus()
    async with bus.listen() as heard:
        with pytest.raises(RuntimeError, match="mine"):
            async with bus.listen():
                raise RuntimeError("mine")
        bus.publish("x")
        assert (await anext(heard)).kind == "x"
    assert bus.listeners == 0


async def test_without_listeners_not_even_the_clock_is_asked() -> None:
    """Publishing costs next to nothing; numbers go on all the same."""

    def now() -> datetime:
        raise AssertionError

    bus = Bus(now)
    async with bus.listen(["other"]):
        bus.publish("x")
    bus.publish("x")
    bus._now = lambda: NOW
    async with bus.listen() as heard:
        bus.publish("x")
        assert (await anext(heard)).seq == 3


async def test_listeners_may_come_and_go_while_events_are_told() -> None:
    """Who left hears nothing more, who comes hears what comes after."""
    bus = new_bus()
    async with bus.listen() as first:
        bus.publish("x")
        async with bus.listen() as second:
            bus.publish("x")
            assert (await anext(second)).seq == 2
        bus.publish("x")
        assert [event.seq for event in await take(first, 3)] == [1, 2, 3]
