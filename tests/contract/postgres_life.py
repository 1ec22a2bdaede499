"""The lives of the store in Postgres: its connections are cut, its process goes and another one comes."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import asyncpg
import trio

from store.postgres import open_postgres
from store.postgres.bridge import Bridge, open_bridge
from tests.contract.held import Held

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    import pytest

    from store.protocols import Store
    from tests.contract.backends import Wall

CONNECTIONS = 2
TABLES = """
    SELECT tablename::name FROM pg_tables
    WHERE schemaname = current_schema() AND tablename NOT IN ('tenants', 'schema_migrations')
"""
OTHERS = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


class PostgresLife:
    def __init__(self, dsn: str, bridge: Bridge, connection: Any, nursery: trio.Nursery) -> None:
        self._dsn = dsn
        self._bridge = bridge
        self._connection = connection
        self._nursery = nursery
        self._held: Held | None = None
        self._wall: Wall

    async def start(self, wall: Wall) -> Store:
        self._wall = wall
        await self._empty()
        return await self._open()

    async def reopen(self) -> Store:
        await self._close()
        return await self._open()

    async def crash(self) -> Store:
        """Another process comes before anybody has said goodbye for the old one."""
        await self.trouble(0)
        old = self._held
        store = await self._open()
        if old is not None:
            await old.close()
        return store

    async def trouble(self, kind: int) -> None:
        """All connections of the store are cut; it is not asked anything before they are gone."""
        await self._do(f"SELECT pg_terminate_backend(pid) {OTHERS}")
        while await self._bridge.run(self._connection.fetch, f"SELECT {OTHERS}"):
            await trio.lowlevel.checkpoint()

    async def end(self) -> None:
        if self._held is not None:
            await self._close()

    async def _empty(self) -> None:
        tables = await self._bridge.run(self._connection.fetch, TABLES)
        await self._do("; ".join(f"DELETE FROM {row[0]}" for row in tables))  # noqa: S608 - the names are our own
        await self._do("DELETE FROM tenants WHERE id <> 'default'; UPDATE tenants SET enabled = true")

    async def _do(self, statement: str) -> None:
        await self._bridge.run(self._connection.execute, statement)

    async def _open(self) -> Store:
        self._held = Held(self._nursery)
        return await self._held.open(open_postgres(self._dsn, now=self._wall, connections=CONNECTIONS))

    async def _close(self) -> None:
        assert self._held is not None
        await self._held.close()
        self._held = None


class PostgresLives:
    name = "postgres"
    histories = 7

    def live(self, place: Path, request: pytest.FixtureRequest) -> AbstractAsyncContextManager[PostgresLife]:
        return live_in(request.getfixturevalue("database"))


@asynccontextmanager
async def live_in(dsn: str) -> AsyncIterator[PostgresLife]:
    async with open_bridge() as bridge:
        connection = await bridge.run(asyncpg.connect, dsn)
        async with trio.open_nursery() as nursery:
            yield PostgresLife(dsn, bridge, connection, nursery)
            nursery.cancel_scope.cancel()
        await bridge.run(connection.close)
