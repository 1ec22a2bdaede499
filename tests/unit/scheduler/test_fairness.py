"""Fairness: nobody waits long because somebody else asks a lot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from scheduler import Kind, Policy, open_scheduler
from tests.unit.scheduler.probe import QUICK, Probe, quick

if TYPE_CHECKING:
    from trio.testing import MockClock

    from scheduler import Event

FLOOD = Policy(debounce_s=0, cap=1000)


@pytest.mark.parametrize("max_concurrent", [1, 3])
async def test_a_flooding_session_delays_another_by_at_most_one_run(
    autojump_clock: MockClock, max_concurrent: int
) -> None:
    """However much a DM or a group has waiting, at most one run of it starts before another's message does."""
    probe = Probe(1)
    flood = Policy(debounce_s=0, cap=1000, max_concurrent=max_concurrent)
    started: list[str] = []

    def note(event: Event) -> None:
        if event.kind is Kind.STARTED:
            started.append(event.session)

    async with open_scheduler({"main": 1}) as scheduler:
        scheduler.observe(note)
        for number in range(100):
            scheduler.schedule(quick(probe, number, "flood", policy=flood))
        await trio.sleep(10.5)
        for patient in range(20):
            started.clear()
            await scheduler.schedule(quick(probe, ("patient", patient), "patient")).result()
            assert started.index("patient") <= 1
        await scheduler.drain()
    assert [payload for payload in probe.order if isinstance(payload, int)] == list(range(100))


async def test_sessions_take_turns(autojump_clock: MockClock) -> None:
    """Inside a tenant each session gets one turn, then the next session."""
    probe = Probe(1)
    async with open_scheduler({"main": 1}) as scheduler:
        for session in "abc":
            for _ in range(3):
                scheduler.schedule(quick(probe, session, session))
        await scheduler.drain()
    assert "".join(probe.order) == "abcabcabc"


async def test_tenants_take_turns(autojump_clock: MockClock) -> None:
    """A tenant with twenty busy sessions gets every other slot while a tenant with one session has work."""
    probe = Probe(1)
    async with open_scheduler({"main": 1}) as scheduler:
        for session in range(20):
            for _ in range(2):
                scheduler.schedule(quick(probe, "big", f"big {session}", tenant="big"))
        for _ in range(5):
            scheduler.schedule(quick(probe, "small", "small", tenant="small"))
        await scheduler.drain()
    assert probe.order[1:11] == ["big", "small"] * 5
    assert probe.order[11:] == ["big"] * 34


async def test_a_newcomer_does_not_overtake_who_waits(autojump_clock: MockClock) -> None:
    """A slot goes to who waited, not to who comes in at the moment it is free. (P2)"""
    probe = Probe(1)
    async with open_scheduler({"main": 1}) as scheduler:

        def come_in(_: object) -> None:
            scheduler.schedule(quick(probe, "newcomer", "c"))

        scheduler.schedule(quick(probe, "first", "a", on_end=come_in))
        scheduler.schedule(quick(probe, "waited", "b"))
        await scheduler.drain()
    assert probe.order == ["first", "waited", "newcomer"]


async def test_dropping_the_oldest_does_not_cost_the_place_in_line(autojump_clock: MockClock) -> None:
    """A session whose queue overflows while it waits keeps its place among the others."""
    probe = Probe(1)
    small = Policy(debounce_s=0, cap=1)
    async with open_scheduler({"main": 1}) as scheduler:
        scheduler.schedule(quick(probe, "busy", "busy"))
        scheduler.schedule(quick(probe, "dropped", "a", policy=small))
        scheduler.schedule(quick(probe, "b", "b", policy=QUICK))
        scheduler.schedule(quick(probe, "a", "a", policy=small))
        await scheduler.drain()
    assert probe.order == ["busy", "a", "b"]


async def test_a_session_that_keeps_dropping_is_served_in_its_turn(autojump_clock: MockClock) -> None:
    """Who writes on while waiting, with room for one message only, is not pushed back each time. (P8)"""
    probe = Probe(1)
    small = Policy(debounce_s=0, cap=1)
    async with open_scheduler({"main": 1}) as scheduler:
        for other in ("x", "y"):
            for _ in range(10):
                scheduler.schedule(quick(probe, other, other))
        for number in range(40):
            scheduler.schedule(quick(probe, number, "eager", policy=small))
            await trio.sleep(0.25)
        assert "".join("e" if isinstance(payload, int) else payload for payload in probe.order[:9]) == "xyexyexye"


async def test_the_line_is_freed_with_its_last_session(autojump_clock: MockClock) -> None:
    """After the work is done a lane remembers no tenant and no session. (M1)"""
    probe = Probe(1)
    async with open_scheduler({"main": 1}) as scheduler:
        for tenant in "abc":
            for session in range(3):
                scheduler.schedule(quick(probe, None, f"{tenant}{session}", tenant=tenant, policy=FLOOD))
        scheduler.cancel_all("b1")
        await scheduler.drain()
        assert not scheduler.lanes["main"].lines
        assert not scheduler.sessions
