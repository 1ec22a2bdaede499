"""The store as the network makes it: late, failing, and failing after the deed. Behind it is the real memory store.

    call ──▶ away? ──▶ delay? ──▶ error? ──▶ effect (atomic, rows are looked at) ──▶ delay? ──▶ error? ──▶ answer

A dead life's calls never reach the store.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import trio

from store.protocols import POLL, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.simulation.cron.world import Life, World

CHANGING = frozenset(("add_job", "change_job", "fire", "claim", "claim_orphans", "renew", "start", "settle"))
HEARD = frozenset(("add_job", "change_job", "fire", "settle"))
"""After these others may have something to claim."""


class Crashed(Exception):
    """The process that asks this is no longer there."""


class FaultyStore:
    """The connection of one life, or of the people, to the world's store."""

    def __init__(self, world: World, life: Life) -> None:
        self._world = world
        self._life = life
        self._random = world.random(f"store {life.name}")
        self._first = life.worker == "w1"
        self.cron = FaultyCron(self)

    def __getattr__(self, verb: str) -> Any:
        return partial(self.ask, self._world.store, verb)

    async def ask(self, real: object, verb: str, /, *args: Any, **named: Any) -> Any:
        await self._before(verb)
        answer = await getattr(real, verb)(*args, **named)
        if verb in CHANGING:
            self._world.rows.look()
        if verb in HEARD:
            self._world.spread(but=self._life)
        await self._after(verb)
        return answer

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[AsyncIterator[str]]:
        send, receive = trio.open_memory_channel[str](2)
        send.send_nowait(POLL)
        self._life.words.append(send)
        with send, receive:
            yield receive

    async def _before(self, verb: str) -> None:
        self._refuse_the_dead()
        if self._world.quiet:
            return
        faults, now = self._world.plan.faults, trio.current_time()
        if self._first and any(start <= now < end for start, end in faults.outages):
            await trio.lowlevel.checkpoint()
            self._fail(verb, "the store is away")
        await self._dawdle(verb)
        if self._random.random() < faults.fails_before:
            self._fail(verb, "the store stumbled")
        self._refuse_the_dead()

    async def _after(self, verb: str) -> None:
        if not self._world.quiet:
            await self._dawdle(verb)
            if self._random.random() < self._world.plan.faults.fails_after:
                self._fail(verb, "the answer got lost")
        self._refuse_the_dead()

    async def _dawdle(self, verb: str) -> None:
        faults = self._world.plan.faults
        if faults.delayed and self._random.random() < faults.delayed:
            self._world.trouble(self._life.name, f"{verb}: slow")
            await trio.sleep(self._random.uniform(0, faults.longest_s))
            self._world.trouble(self._life.name, f"{verb}: goes on")

    def _fail(self, verb: str, why: str) -> None:
        self._refuse_the_dead()
        self._world.trouble(self._life.name, f"{verb}: {why}")
        raise StoreUnavailable(why)

    def _refuse_the_dead(self) -> None:
        if self._life.dead:
            raise Crashed


class FaultyCron:
    def __init__(self, whole: FaultyStore) -> None:
        self._whole = whole

    def __getattr__(self, verb: str) -> Any:
        return partial(self._whole.ask, self._whole._world.store.cron, verb)
