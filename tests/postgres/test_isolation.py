"""Whatever a database was set to by others, an owner whose lease is over writes nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import asyncpg
import pytest
import trio

from store.postgres import open_postgres
from store.postgres.bridge import open_bridge
from store.records import CHAT_LEASE, DeliveryKey, Incoming, SessionKey
from tests.postgres.databases import ask

if TYPE_CHECKING:
    from store.records import Message

HERE = SessionKey("default", "main", "fake", "bot", "here")
GRANTED = "UPDATE leases SET owner = 'other', token = token + 1 WHERE name = 'chat'"
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('lease chat', 0))"
WAITS = """
SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
WHERE datname = current_database() AND locktype = 'advisory' AND NOT granted
"""


@pytest.mark.parametrize("level", ["read committed", "repeatable read", "serializable"])
async def test_a_write_that_waits_for_a_grant_sees_it(database: str, level: str) -> None:
    """The write has begun before the grant and comes to its turn after it: then nothing is written. (R11)"""
    name = urlsplit(database).path.removeprefix("/")
    await ask(database, f"ALTER DATABASE \"{name}\" SET default_transaction_isolation = '{level}'")
    begun: list[tuple[Message, ...]] = []
    async with open_postgres(database) as store, open_bridge() as bridge:
        messages = store.messages(await store.acquire(CHAT_LEASE, "me", timedelta(days=1)))
        (receipt,) = await messages.accept([Incoming(DeliveryKey("fake", "bot", "1"), HERE, "ann", "hello")]) or ()

        async def begin() -> None:
            begun.append(await messages.begin("turn", [receipt.id]))

        connection = await bridge.run(asyncpg.connect, database)
        try:
            await bridge.run(connection.execute, f"BEGIN ISOLATION LEVEL READ COMMITTED; {LOCK}")
            with trio.fail_after(30):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(begin)
                    while not await ask(database, WAITS):
                        await trio.lowlevel.checkpoint()
                    await bridge.run(connection.execute, f"{GRANTED}; COMMIT")
        finally:
            await bridge.run(connection.close)
    assert begun == [()]
    assert [tuple(row) for row in await ask(database, "SELECT state, turn FROM inbox")] == [("accepted", "")]
