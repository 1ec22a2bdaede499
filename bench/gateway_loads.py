"""The load that a gateway is put under, and who carries it: the gateway itself, or the verbs of its store in a row.

    people ──write──▶ who wants to write ──▶ callers, up to `batch` at once ──▶ gateway, or bare verbs
       ▲                                                                             │
       └────────────────── whoever has an answer writes the next message ◀───────────┘

So there are never more messages under way than people, and nobody is told that a queue is full.
"""

from __future__ import annotations

import math
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Protocol

import trio

from bench.store_loads import chat_lease, message, utc_now
from gateway.agents.demo import DemoAgent
from gateway.app import Parts, open_gateway
from gateway.collector import paced_collector
from gateway.crew import Crew
from gateway.loading import load_settings
from gateway.protocols import Pace
from gateway.traces import Traces
from gateway.ways import AT_ONCE
from store.files import open_json
from store.records import Cursor, MessageState, Note, Role, Said, SessionKey

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from datetime import datetime
    from pathlib import Path

    from gateway.app import Gateway
    from gateway.protocols import Delivery
    from store.files import JsonStore
    from store.protocols import MessageStore
    from store.records import Incoming

LANE = 2
"""How many turns run at once where nobody has set it."""


class Carrier(Protocol):
    """Takes messages and answers them."""

    people: People

    async def receive(self, batch: Sequence[Incoming], cursor: Cursor) -> None:
        """All of the batch is kept when this returns."""


@dataclass(frozen=True, slots=True)
class Load:
    messages: int
    chats: int = 1_000
    batch: int = 1
    """So many updates are handed in at once, if so many are there."""
    callers: int = 100


@dataclass(frozen=True, slots=True)
class Taken:
    """What a load has cost."""

    seconds: float
    cpu_s: float
    """Of all threads of this process."""


class People:
    """Everybody who writes, and when they first see that they were heard."""

    def __init__(self) -> None:
        self.delays: list[float] = []
        """From the acceptance of each message to the first sign of it."""
        self.answers = 0
        self._numbers = count(1)
        self._accepted: dict[SessionKey, float] = {}
        self._to_write = 0
        self._unanswered = 0
        self._all_answered = trio.Event()
        self._want, self._wanting = trio.open_memory_channel[int](math.inf)

    async def write(self, load: Load, carrier: Carrier) -> Taken:
        """All of the load, until its last answer is there."""
        self._to_write, self._unanswered, self._all_answered = load.messages, load.messages, trio.Event()
        for chat in range(load.chats):
            self._wants_to_write(chat)
        began, computed = perf_counter(), process_time()
        async with trio.open_nursery() as nursery:
            for _ in range(load.callers):
                nursery.start_soon(self._hand_in, load.batch, carrier)
            await self._all_answered.wait()
            nursery.cancel_scope.cancel()
        return Taken(perf_counter() - began, process_time() - computed)

    def _wants_to_write(self, chat: int) -> None:
        if self._to_write:
            self._to_write -= 1
            self._want.send_nowait(chat)

    async def _hand_in(self, most: int, carrier: Carrier) -> None:
        while True:
            chats = [await self._wanting.receive()]
            while len(chats) < most and self._wanting.statistics().current_buffer_used:
                chats.append(self._wanting.receive_nowait())
            batch = [message(next(self._numbers), chat) for chat in chats]
            await carrier.receive(batch, Cursor("bench", "bot", int(batch[-1].key.external_id)))
            now = perf_counter()
            self._accepted.update((one.session, now) for one in batch)

    def see(self, key: SessionKey) -> None:
        """A sign of any kind; only the first one for a message counts."""
        since = self._accepted.pop(key, None)
        if since is not None:
            self.delays.append(perf_counter() - since)

    def have_answer(self, key: SessionKey) -> None:
        self.see(key)
        self.answers += 1
        self._unanswered -= 1
        self._wants_to_write(int(key.chat.removeprefix("chat-")))
        if not self._unanswered:
            self._all_answered.set()


class Screen:
    """A channel that takes everything at once."""

    name = "bench"
    pace = Pace()

    def __init__(self, people: People) -> None:
        self.people = people

    async def send(self, delivery: Delivery) -> str:
        await trio.lowlevel.checkpoint()
        self.people.have_answer(delivery.session)
        return "1"

    def show(self, session: SessionKey, turn: str, text: str) -> None:
        self.people.see(session)

    def clear(self, session: SessionKey, turn: str) -> None:
        """It shows nothing that could be in the way."""

    def hint(self, session: SessionKey, text: str) -> None:
        self.people.see(session)


# ── who carries it ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True, eq=False)
class Ours:
    """The gateway, on its own store."""

    gateway: Gateway
    store: JsonStore
    traces: Traces
    people: People

    async def receive(self, batch: Sequence[Incoming], cursor: Cursor) -> None:
        await self.gateway.receive(batch, cursor)


@asynccontextmanager
async def open_ours(place: Path, lane: int, now: Callable[[], datetime] = utc_now) -> AsyncIterator[Ours]:
    """As it is started for people, but without a debounce: every message is a turn."""
    variables = {"GOCLAW_QUEUE_DEBOUNCE": "0", "GOCLAW_LANE_MAIN": str(lane)}
    settings = load_settings(variables, None).settings
    with paced_collector():
        async with open_json(place, now) as store:
            people, traces = People(), Traces(place / "logs", now)
            messages, crew = store.messages(await chat_lease(store)), Crew.of({"main": DemoAgent()})
            parts = Parts(messages, store, crew, [Screen(people)], traces=traces, now=now)
            async with open_gateway(settings, parts) as gateway:
                yield Ours(gateway, store, traces, people)


class BareVerbs:
    """The least that is as durable: the same verbs, as many at once, and no order, limit, stop or trace.

    accept ──▶ queue ──▶ so many workers: begin, answer, settle ──▶ outbox ──▶ so many senders: sent
    """

    def __init__(self, store: JsonStore, chat: MessageStore) -> None:
        self.store = store
        self.chat = chat
        self.people = People()
        self._turns = count(1)
        self._poked = trio.Event()
        self._quiet = trio.Event()
        self._put, self._accepted = trio.open_memory_channel[tuple[int, SessionKey, str]](math.inf)
        self._settled, self._unsent = trio.open_memory_channel[tuple[int, SessionKey]](math.inf)
        self._lined_up: set[int] = set()
        self._open = 0

    async def receive(self, batch: Sequence[Incoming], cursor: Cursor) -> None:
        for receipt in await self.chat.accept(batch, cursor) or ():
            assert receipt.message is not None
            self._put.send_nowait((receipt.id, receipt.message.session, receipt.message.text))

    async def work(self) -> None:
        while True:
            number, key, text = await self._accepted.receive()
            turn = f"turn-{next(self._turns)}"
            await self.chat.begin(turn, [number])
            answer = f"You said: {text}"
            said = [Said(Role.USER, text), Said(Role.ASSISTANT, answer)]
            await self.chat.settle(turn, [number], MessageState.DONE, [Note(key, answer)], said)
            self._poked.set()

    async def look(self) -> None:
        """One look at the outbox shows many replies."""
        while True:
            await self._poked.wait()
            self._poked = trio.Event()
            for reply in await self.chat.outbox(200):
                if reply.id not in self._lined_up:
                    self._lined_up.add(reply.id)
                    self._open += 1
                    self._settled.send_nowait((reply.id, reply.note.session))

    async def send(self) -> None:
        while True:
            number, key = await self._unsent.receive()
            self.people.have_answer(key)
            await self.chat.sent(number)
            self._open -= 1
            self._poked.set()
            if not self._open:
                self._quiet.set()

    async def drained(self) -> None:
        """Wait until everything that was said is marked as sent."""
        while self._open:
            self._quiet = trio.Event()
            await self._quiet.wait()


@asynccontextmanager
async def open_bare(place: Path, lane: int) -> AsyncIterator[BareVerbs]:
    with paced_collector():
        async with open_json(place, utc_now) as store, trio.open_nursery() as nursery:
            bare = BareVerbs(store, store.messages(await chat_lease(store)))
            nursery.start_soon(bare.look)
            for _ in range(lane):
                nursery.start_soon(bare.work)
            for _ in range(AT_ONCE):
                nursery.start_soon(bare.send)
            yield bare
            nursery.cancel_scope.cancel()
