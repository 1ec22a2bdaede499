"""The server crashes and comes back while callers work: they hear retriable errors at most, and lose nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

import trio

from store.postgres import open_postgres
from store.protocols import POLL, StoreUnavailable
from store.records import CHAT_LEASE, DeliveryKey, Incoming, MessageState, Note, SessionKey
from tests.postgres.databases import ask

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from store.postgres import PostgresStore
    from store.records import Lease
    from tests.postgres.server import Server

T = TypeVar("T")
CALLERS = 4
EARS = (
    "SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN %' OR (application_name = 'goclaw' AND query = 'SELECT')"
)


def delivery(caller: int, number: int) -> Incoming:
    session = SessionKey("default", "main", "fake", "bot", str(caller))
    return Incoming(DeliveryKey("fake", "bot", f"{caller}/{number}"), session, "ann", "hello")


class World:
    """Callers that each bring message after message to its end, and know what they were told."""

    def __init__(self, store: PostgresStore, lease: Lease) -> None:
        self.store = store
        self.messages = store.messages(lease)
        self.done = [0] * CALLERS
        self.polls = 0
        self.moved = trio.Event()
        self.errors: list[StoreUnavailable] = []

    async def call(self, caller: int) -> None:
        while True:
            number = self.done[caller]
            incoming, turn = delivery(caller, number), f"{caller}/{number}"
            receipts = await self.insist(self.messages.accept, [incoming])
            assert receipts is not None
            ids = [receipts[0].id]
            if receipts[0].message is not None:
                await self.insist(self.messages.begin, turn, ids)
                notes = [Note(incoming.session, turn)]
                await self.insist(self.messages.settle, turn, ids, MessageState.DONE, notes)
            self.done[caller] += 1
            self.tell()

    async def insist(self, verb: Callable[..., Awaitable[T]], *args: object) -> T:
        """Whatever is retriable is tried again, as the gateway does."""
        while True:
            try:
                return await verb(*args)
            except StoreUnavailable as error:
                self.errors.append(error)
                await trio.sleep(0.02)

    async def hear(self, words: AsyncIterator[str]) -> None:
        async for word in words:
            self.polls += word == POLL
            self.tell()

    def tell(self) -> None:
        self.moved.set()
        self.moved = trio.Event()

    async def get_on(self) -> None:
        """Every caller has ended some more messages, and the listener was told to look."""
        done, polls = list(self.done), self.polls
        with trio.fail_after(10):
            while self.polls == polls or any(now < then + 3 for now, then in zip(self.done, done, strict=True)):
                await self.moved.wait()


async def test_a_crash_of_the_server_loses_nothing(own_postgres: Server) -> None:
    """Twice restarted and once deaf: each time all callers and the listener are back within ten seconds. (R11, R12)"""
    async with open_postgres(own_postgres.dsn, connections=CALLERS) as store:
        lease = await store.acquire(CHAT_LEASE, "me", timedelta(days=1))
        assert lease is not None
        world = World(store, lease)
        async with store.listen() as words, trio.open_nursery() as nursery:
            nursery.start_soon(world.hear, words)
            for caller in range(CALLERS):
                nursery.start_soon(world.call, caller)
            for _ in range(2):
                await trio.to_thread.run_sync(own_postgres.restart)
                await world.get_on()
            ((ear,),) = await ask(own_postgres.dsn, EARS)
            await ask(own_postgres.dsn, "SELECT pg_terminate_backend($1)", ear)
            await world.get_on()
            nursery.cancel_scope.cancel()
        assert all(error.retriable for error in world.errors)
        await check_nothing_is_missing(world)


async def check_nothing_is_missing(world: World) -> None:
    replies = {reply.note.text for reply in await world.messages.outbox(100_000)}
    for caller, done in enumerate(world.done):
        assert done > 5
        receipts = await world.messages.accept([delivery(caller, number) for number in range(done)])
        assert receipts is not None
        assert {(receipt.fresh, receipt.state) for receipt in receipts} == {(False, MessageState.DONE)}
        assert {f"{caller}/{number}" for number in range(done)} <= replies
