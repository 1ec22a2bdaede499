"""Somebody else locks a table: verbs give up in time, say so, and work again afterwards."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import asyncpg
import pytest
import trio

from store.postgres import open_postgres
from store.postgres.bridge import open_bridge
from store.protocols import StoreUnavailable
from store.records import DeliveryKey, Incoming, SessionKey

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

HERE = SessionKey("default", "main", "fake", "bot", "here")


@asynccontextmanager
async def locked(dsn: str, table: str) -> AsyncIterator[None]:
    async with open_bridge() as bridge:
        connection = await bridge.run(asyncpg.connect, dsn)
        await bridge.run(connection.execute, f"BEGIN; LOCK TABLE {table}")
        try:
            yield
        finally:
            await bridge.run(connection.close)


async def test_a_locked_table_is_not_waited_for_for_ever(database: str) -> None:
    """A retriable error within the time that a statement has, for all who ask; then everything works. (R13)"""
    incoming = Incoming(DeliveryKey("fake", "bot", "1"), HERE, "ann", "hello")
    errors: list[StoreUnavailable] = []
    async with open_postgres(database, statement_timeout=timedelta(seconds=0.4), connections=3) as store:
        messages = store.messages(None)

        async def knock() -> None:
            with pytest.raises(StoreUnavailable) as caught:
                await messages.accept([incoming])
            errors.append(caught.value)

        with trio.fail_after(30):
            async with locked(database, "inbox"), trio.open_nursery() as nursery:
                for _ in range(6):
                    nursery.start_soon(knock)
            receipts = await messages.accept([incoming])
    assert receipts is not None
    assert receipts[0].fresh
    assert all(error.retriable for error in errors)
    assert "was locked for too long" in str(errors[0])
