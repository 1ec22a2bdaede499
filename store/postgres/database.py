"""Connections to one Postgres database, used from trio: one call, one transaction.

No call waits for ever: the server ends a statement that takes too long or waits too long for a lock, and if not even
that is heard of, the connection is given up. A cancelled call leaves its connection as good as new, or closed.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import asyncpg
import trio

from store.postgres.bridge import Bridge, open_bridge
from store.postgres.errors import DRIVER, told
from store.postgres.queries import load
from store.postgres.text import escaped, plain

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from store.postgres.dsn import Target

T = TypeVar("T")

SQL = load("connections")
GOODBYE_S = 2
LONGEST_CONNECT_S = 10.0


class Connection(asyncpg.Connection):  # type: ignore[misc]  # asyncpg has no types
    """Nothing is left on a connection that would have to be reset before the next one uses it."""

    def get_reset_query(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long things may take."""

    statement: timedelta = timedelta(seconds=10)

    @property
    def connect_s(self) -> float:
        return min(self.statement.total_seconds(), LONGEST_CONNECT_S)

    @property
    def patience_s(self) -> float:
        """When the server should have ended a statement by itself, and something is wrong between us."""
        return self.statement.total_seconds() * 1.2 + 0.5

    def settings(self) -> dict[str, str]:
        span = int(self.statement.total_seconds() * 1000)
        return {
            "application_name": "goclaw",
            "statement_timeout": str(span),
            "lock_timeout": str(max(span // 2, 1)),
            "idle_in_transaction_session_timeout": str(span),
            "jit": "off",
            # Every verb takes a few rows in the order of an index. A table that has grown since it was last looked at
            # seems to hold few enough to be gathered and sorted instead, and then a claim reads the whole queue.
            "enable_bitmapscan": "off",
            # Planning a claim anew takes three times as long as carrying it out. What the plan for any values reads is
            # guarded in tests/postgres/test_query_plans.py.
            "plan_cache_mode": "force_generic_plan",
            # A verb that waited for a lock has to see what was committed meanwhile; a database may default to less.
            "default_transaction_isolation": "read committed",
        }


@dataclass(frozen=True, slots=True)
class Database:
    """The pool of connections behind a store."""

    bridge: Bridge
    pool: Any
    target: Target
    limits: Limits

    async def fetch(self, query: str, *args: object) -> list[Any]:
        """The rows that the statement answers with; it is a transaction of its own."""
        return await self.bridge.run(self._fetch, query, args)

    async def first(self, query: str, *args: object) -> Any:
        """The first row, None without any."""
        rows = await self.fetch(query, *args)
        return rows[0] if rows else None

    async def together(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """What the work on a connection leads to, in one transaction. It is called on the event loop."""
        return await self.bridge.run(self._together, work)

    async def _together(self, work: Callable[[Any], Awaitable[T]]) -> T:
        with told():
            async with self.pool.acquire(timeout=self.limits.patience_s) as connection, connection.transaction():
                return await work(connection)

    async def _fetch(self, query: str, args: tuple[object, ...]) -> list[Any]:
        with told():
            async with self.pool.acquire(timeout=self.limits.patience_s) as connection:
                rows: list[Any] = await connection.fetch(query, *args)
                return rows


@asynccontextmanager
async def open_database(target: Target, limits: Limits, connections: int) -> AsyncIterator[Database]:
    """A pool for the time of the block; its connections are made when they are first needed."""
    async with open_bridge() as bridge:
        pool = await bridge.run(_make_pool, target, limits, connections)
        try:
            yield Database(bridge, pool, target, limits)
        finally:
            # Every verb has ended by now; a server that does not answer is not waited for.
            with trio.move_on_after(GOODBYE_S, shield=True):
                await bridge.run(_say_goodbye, pool)


async def _make_pool(target: Target, limits: Limits, connections: int) -> Any:
    return await asyncpg.create_pool(
        **_how(target, limits),
        connection_class=Connection,
        min_size=0,
        max_size=connections,
        init=prepare,
    )


async def _say_goodbye(pool: Any) -> None:
    """Close it. If a connection was cut before, the pool drops them all instead, and nobody need hear of it."""
    with suppress(*DRIVER):
        await pool.close()


def _how(target: Target, limits: Limits) -> dict[str, Any]:
    return {
        "dsn": target.dsn,
        "timeout": limits.connect_s,
        "command_timeout": limits.patience_s,
        "server_settings": limits.settings(),
    }


async def connect(target: Target, limits: Limits) -> Any:
    """A single connection. Called on the event loop; raises what the driver raises."""
    connection = await asyncpg.connect(**_how(target, limits), connection_class=Connection)
    try:
        await prepare(connection)
    except BaseException:
        connection.terminate()
        raise
    return connection


async def prepare(connection: Any) -> None:
    """What every connection needs. A server that does not wait for its disk by default is asked to."""
    await connection.set_type_codec("text", schema="pg_catalog", encoder=escaped, decoder=plain)
    await connection.execute(SQL["durable"])
