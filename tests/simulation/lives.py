"""The lives of the gateway: each is opened on the same store, watched from outside, and ended gently or not."""

from __future__ import annotations

from contextlib import asynccontextmanager
from enum import Enum
from typing import TYPE_CHECKING

import trio

from gateway.app import Parts, open_gateway
from gateway.crew import Crew
from scheduler import Kind, open_scheduler
from tests.simulation.faulty_store import FaultyStore
from tests.simulation.history import What
from tests.simulation.recording_channel import RecordingChannel
from tests.simulation.seeded_agent import SeededAgent
from tests.simulation.world import Life

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping
    from contextlib import AbstractAsyncContextManager

    from scheduler import Event, Request, Scheduler, Ticket
    from tests.simulation.plan import Fate
    from tests.simulation.world import World


class Process:
    """One life as the operator sees it: it can be asked to end, and it can be killed."""

    def __init__(self, world: World, nursery: trio.Nursery) -> None:
        self._world = world
        self._asked_to_end = trio.Event()
        self._over = trio.Event()
        self.life = Life(len(world.lives))
        world.lives.append(self.life)
        nursery.start_soon(self._live)

    def crash(self) -> None:
        self._world.tell(What.CRASHED, self.life)
        self.life.dead = True
        self._world.closed_to_people(self.life)
        self.life.everything.cancel()

    async def close(self) -> None:
        self._asked_to_end.set()
        await self._over.wait()

    async def end(self, fate: Fate) -> None:
        await trio.sleep(fate.after_s)
        if fate.how == "crash":
            self.crash()
        else:
            await self.close()
        await trio.sleep(fate.down_s)

    async def _live(self) -> None:
        world, life = self._world, self.life
        crew = Crew.of({"main": SeededAgent(world, life)})
        parts = Parts(FaultyStore(world, life), world.memory.whole, crew, [RecordingChannel(world, life)])
        try:
            with life.everything:
                async with open_gateway(world.plan.settings, parts) as gateway:
                    world.open_to_people(life, gateway)
                    await self._asked_to_end.wait()
                    world.tell(What.CLOSING, life)
                    await gateway.close()
                    world.closed_to_people(life)
                world.tell(What.CLOSED, life)
        except Exception as error:  # noqa: BLE001 - what ends a living gateway is a finding, not an accident
            if not life.dead:
                world.report("alive", f"the gateway ended with {error!r}")
        self._over.set()


class Watcher:
    """Tells the history what a scheduler tells, with the messages' own numbers."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._tickets: dict[tuple[int, int], Ticket] = {}  # by life and number
        self._held: list[tuple[Life, Event]] | None = None

    def opener(self) -> Callable[..., AbstractAsyncContextManager[Scheduler]]:
        """`open_scheduler`, watched from before the first message on."""

        @asynccontextmanager
        async def open_watched(limits: Mapping[str, int]) -> AsyncIterator[Scheduler]:
            async with open_scheduler(limits) as scheduler:
                life = self._world.life
                life.scheduler = scheduler
                self._world.tell(What.OPENED, life, text=f"main {limits['main']}, subagent {limits['subagent']}")
                scheduler.observe(lambda event: self._hear(life, event))
                yield scheduler

        return open_watched

    def scheduling(self, schedule: Callable[..., Ticket]) -> Callable[..., Ticket]:
        """`Scheduler.schedule`: what it tells is passed on as soon as the ticket is known."""

        def schedule_watched(*args: object) -> Ticket:
            self._held = []
            try:
                ticket = schedule(*args)
            finally:
                held, self._held = self._held, None
            self._tickets[self._world.life.number, ticket.id] = ticket
            for life, event in held:
                self._tell(life, event)
            return ticket

        return schedule_watched

    def _hear(self, life: Life, event: Event) -> None:
        if self._held is None:
            self._tell(life, event)
        else:
            self._held.append((life, event))

    def _tell(self, life: Life, event: Event) -> None:
        what = TOLD_AS.get(event.kind)
        if what is None:
            return
        ticket = self._tickets.get((life.number, event.ticket))
        ids = () if ticket is None else numbers([ticket.request])
        if what is What.STARTED and ids:
            ids = self._turn(life, event)
        if what is What.JOINED and ticket is not None and ticket._run is not None:
            what = What.STEERED
        detail = event.detail.value if isinstance(event.detail, Enum) else str(event.detail or "")
        self._world.tell(what, life, session=event.session, ids=ids, run=event.run, detail=detail)

    def _turn(self, life: Life, event: Event) -> tuple[int, ...]:
        run = self._tickets[life.number, event.ticket]._run
        assert run is not None
        return numbers(run.requests)


def numbers(requests: Iterable[Request]) -> tuple[int, ...]:
    """The messages' own numbers; helpers have none."""
    return tuple(request.payload.id for request in requests if request.payload is not None)


TOLD_AS = {
    Kind.QUEUED: What.QUEUED,
    Kind.JOINED: What.JOINED,
    Kind.STARTED: What.STARTED,
    Kind.CANCELLING: What.CANCELLING,
    Kind.STUCK: What.STUCK,
    Kind.FENCED: What.FENCED,
    Kind.ENDED: What.ENDED,
}
