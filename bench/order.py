"""Whether a contender keeps the order inside a session: the same code as measured, with a handler that looks."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import trio

from bench import loads, standins

if TYPE_CHECKING:
    from bench.loads import Load
    from scheduler import Run


@dataclass(slots=True)
class Witness:
    """Fails as soon as a session's messages overlap or leave their order."""

    load: Load
    seen: int = 0
    last: dict[int, int] = field(default_factory=dict)
    busy: set[int] = field(default_factory=set)

    async def on_lanes(self, run: Run) -> None:
        await self.on_trio(run.request.payload)

    async def on_trio(self, number: int) -> None:
        self.enter(number)
        await trio.lowlevel.checkpoint()
        self.leave(number)

    async def on_asyncio(self, number: int) -> None:
        self.enter(number)
        await asyncio.sleep(0)
        self.leave(number)

    def enter(self, number: int) -> None:
        session = number % self.load.sessions
        assert session not in self.busy, f"message {number} runs beside another one of its session"
        before = self.last.get(session, session - self.load.sessions)
        assert number == before + self.load.sessions, f"message {number} came after {before}"
        assert len(self.busy) < self.load.limit, f"message {number} runs beyond the limit"
        self.last[session] = number
        self.busy.add(session)

    def leave(self, number: int) -> None:
        self.busy.remove(number % self.load.sessions)
        self.seen += 1


def check_order(load: Load) -> dict[str, int]:
    """Run every contender once, unmeasured. Returns how many messages each was seen to run."""
    witnesses = {name: Witness(load) for name in ("ours", "trio", "asyncio")}
    loads.on_lanes(load, witnesses["ours"].on_lanes)
    standins.on_trio(load, witnesses["trio"].on_trio)
    standins.on_asyncio(load, witnesses["asyncio"].on_asyncio)
    assert all(witness.seen == load.count for witness in witnesses.values())
    return {name: witness.seen for name, witness in witnesses.items()}
