"""The world that one simulation takes place in: its plan, its lives, its history. No logic of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING

import trio

from store.memory import MemoryStore
from store.records import CHAT_LEASE
from tests.simulation.history import Event, Found, What

if TYPE_CHECKING:
    from gateway.app import Gateway
    from scheduler import Scheduler
    from tests.simulation.plan import Plan

BEGINNING = datetime(2030, 1, 1, tzinfo=UTC)


class Crashed(Exception):
    """The process that asks this is no longer there."""


def wall_time() -> datetime:
    """The world is made before its clock runs."""
    return BEGINNING + timedelta(seconds=trio.current_time() if trio.lowlevel.in_trio_run() else 0)


@dataclass(eq=False, slots=True)
class Life:
    """The gateway from one start to its end. What a dead one does is not heard of any more."""

    number: int
    dead: bool = False
    scheduler: Scheduler | None = None
    gateway: Gateway | None = None
    everything: trio.CancelScope = field(default_factory=trio.CancelScope)
    deliveries: set[trio.CancelScope] = field(default_factory=set)


class World:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.history: list[Event] = []
        self.step = 0
        self.found: Found | None = None
        self.lives = [Life(0, dead=True)]
        whole = MemoryStore(wall_time, {chat.key.tenant for chat in plan.chats})
        self.memory = whole.messages(whole.grant(CHAT_LEASE, "sim", timedelta(days=36_500)))
        self.rows: dict[int, str] = {}
        """The open messages as the store's contract has them: each with the turn that it runs in, if it does."""
        self.labels = {str(chat.key): chat.name for chat in plan.chats}
        self.everything = trio.CancelScope()
        self.over = False
        """Nothing that happens from here on is history."""
        self._up = trio.Event()

    @property
    def life(self) -> Life:
        """The newest one."""
        return self.lives[-1]

    def random(self, about: str) -> Random:
        return Random(f"{self.plan.seed} {about}")

    def tell(
        self,
        what: What,
        life: Life,
        *,
        session: str = "",
        ids: tuple[int, ...] = (),
        run: int = 0,
        text: str = "",
        detail: str = "",
    ) -> None:
        """Tell what a life does; of a dead one nothing is heard."""
        if not life.dead and not self.over:
            self.record(what, life, session=session, ids=ids, run=run, text=text, detail=detail)

    def record(
        self,
        what: What,
        life: Life,
        *,
        session: str = "",
        ids: tuple[int, ...] = (),
        run: int = 0,
        text: str = "",
        detail: str = "",
    ) -> None:
        label = self.labels.get(session, session)
        self.history.append(Event(self.step, trio.current_time(), life.number, what, label, ids, run, text, detail))

    def report(self, promise: str, why: str) -> None:
        """Keep the first broken promise; the simulation ends there."""
        if self.found is None:
            self.found = Found(promise, why, len(self.history))
            self.over = True

    def open_to_people(self, life: Life, gateway: Gateway) -> None:
        life.gateway = gateway
        self._up.set()

    def closed_to_people(self, life: Life) -> None:
        life.gateway = None
        if self._up.is_set():
            self._up = trio.Event()
        for scope in life.deliveries:
            scope.cancel()

    async def reachable(self) -> tuple[Life, Gateway]:
        """Wait for a gateway that takes messages."""
        while True:
            await self._up.wait()
            life = self.life
            if life.gateway is not None:
                return life, life.gateway
