"""People who write: texts, bursts, batches, things twice, and commands in between. Their channels never lose a message
and repeat it until it is acknowledged, also to the next process."""

from __future__ import annotations

import math
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

import trio

from store.records import DeliveryKey, Incoming
from tests.simulation import script
from tests.simulation.history import What
from tests.simulation.world import Crashed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from tests.simulation.plan import Chat, Person
    from tests.simulation.world import World

    Batch = tuple[Incoming, ...]

REPEATED_AFTER_S = 0.2


async def write(world: World) -> None:
    """Everything that everybody writes in this world; returns when all of it is acknowledged."""
    numbers = count(1)
    async with trio.open_nursery() as nursery:
        for chat in world.plan.chats:
            nursery.start_soon(Writers(world, chat, numbers, nursery).write)


async def deliver(world: World, batch: Batch, patience_s: float = math.inf) -> None:
    """Hand a batch to whoever is there, until somebody has acknowledged it."""
    session, texts = str(batch[0].session), " | ".join(incoming.text for incoming in batch)
    while True:
        life, gateway = await world.reachable()
        world.tell(What.ARRIVES, life, session=session, text=texts)
        with trio.CancelScope(deadline=trio.current_time() + patience_s) as scope:
            life.deliveries.add(scope)
            try:
                await gateway.receive(batch)
            except Crashed:
                scope.cancel()
            else:
                world.tell(What.KEPT, life, session=session, text=texts)
                return
            finally:
                life.deliveries.discard(scope)
        world.tell(What.UNHEARD, life, session=session, text=texts)
        patience_s = math.inf
        await trio.sleep(REPEATED_AFTER_S)


class Writers:
    """The people of one chat."""

    def __init__(self, world: World, chat: Chat, numbers: Iterator[int], nursery: trio.Nursery) -> None:
        self._world = world
        self._chat = chat
        self._numbers = numbers
        self._nursery = nursery
        self._random = world.random(f"chat {chat.name}")
        self._external = count(1)
        self._said: list[Batch] = []

    async def write(self) -> None:
        actions: dict[Callable[[], Awaitable[None]], int] = {
            self.text: 5,
            self.burst: 4,
            self.batch: 2,
            self.batch_with_stop: 2,
            self.again: 2,
            self.twice: 2,
            self.impatiently: 1,
            self.with_second_thoughts: 2,
            self.stop: self._world.plan.stopping,
            self.stop_all: self._world.plan.stopping,
            self.other_command: 2,
        }
        for _ in range(self._chat.actions):
            await trio.sleep(self._random.expovariate(1 / self._world.plan.hurry))
            await self._random.choices(tuple(actions), tuple(actions.values()))[0]()

    async def text(self) -> None:
        await self._deliver((self._text(),))

    async def burst(self) -> None:
        who = self._who()
        for _ in range(self._random.randint(2, 6)):
            await self._deliver((self._text(who),))
            await trio.sleep(self._random.choice((0.0, self._random.uniform(0, 0.4))))

    async def batch(self) -> None:
        await self._deliver(tuple(self._text() for _ in range(self._random.randint(2, 4))))

    async def batch_with_stop(self) -> None:
        before = [self._text() for _ in range(self._random.randint(1, 3))]
        after = [self._text() for _ in range(self._random.randint(0, 2))]
        await self._deliver((*before, self._command((*script.STOPS, *script.STOPALLS)), *after))

    async def again(self) -> None:
        """What was said earlier is delivered once more."""
        if self._said:
            await self._deliver(self._random.choice(self._said))

    async def twice(self) -> None:
        """Two or three deliveries of the same at the same time."""
        one = self._command((*script.STOPS, *script.STOPALLS)) if self._random.random() < 0.3 else self._text()
        async with trio.open_nursery() as nursery:
            for _ in range(self._random.randint(2, 3)):
                nursery.start_soon(deliver, self._world, (one,))

    async def impatiently(self) -> None:
        """The channel gives up waiting for the acknowledgement, and delivers again."""
        await deliver(self._world, (self._text(),), self._random.uniform(0, 0.5))

    async def with_second_thoughts(self) -> None:
        """Wants it stopped at once, perhaps before the text itself is acknowledged."""
        who = self._who()
        await self._deliver((self._text(who),))
        await trio.sleep(self._random.uniform(0, 0.2))
        await self._deliver((self._command((*script.STOPS, *script.STOPALLS), who),))

    async def stop(self) -> None:
        await self._deliver((self._command(script.STOPS),))

    async def stop_all(self) -> None:
        await self._deliver((self._command(script.STOPALLS),))

    async def other_command(self) -> None:
        await self._deliver((self._command(script.OTHERS),))

    async def _deliver(self, batch: Batch) -> None:
        self._said.append(batch)
        if self._chat.polled:
            await deliver(self._world, batch)
        else:
            self._nursery.start_soon(partial(deliver, self._world, batch))

    def _who(self) -> Person:
        return self._random.choice(self._chat.people)

    def _text(self, who: Person | None = None) -> Incoming:
        return self._incoming(who or self._who(), script.a_text(self._random, next(self._numbers)))

    def _command(self, texts: tuple[str, ...], who: Person | None = None) -> Incoming:
        return self._incoming(who or self._who(), self._random.choice(texts))

    def _incoming(self, who: Person, text: str) -> Incoming:
        key = DeliveryKey("sim", "", f"{self._chat.name}:{next(self._external)}")
        return Incoming(key, self._chat.key, who.name, text, group=self._chat.group, admin=who.admin)
