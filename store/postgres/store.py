"""The store in a Postgres database, for one gateway or several that share it.

Every verb is one statement or one transaction on one connection; the server's clock is everybody's. When the server
goes away a verb raises a retriable `StoreUnavailable`, and the next one that finds it back works again.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from store.jobs import KEEP_NEWS, KEEP_OUTPUTS, KEEP_RUNS
from store.postgres import migrations
from store.postgres.cron import SQL as CRON
from store.postgres.cron import PostgresCron
from store.postgres.database import Database, Limits, open_database
from store.postgres.dsn import read_dsn
from store.postgres.listen import listening
from store.postgres.messages import PostgresMessages, chat_token
from store.postgres.pairings import PostgresPairings
from store.postgres.queries import load
from store.postgres.sessions import PostgresSessions
from store.postgres.tenants import PostgresTenants
from store.postgres.workers import PostgresWorkers
from store.records import KEEP_BEATS, KEEP_READINGS, REMEMBER_KEYS, Tidied

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from datetime import datetime

    from store.records import Lease

SQL = load("upkeep")
AT_A_TIME = 1_000
"""So many rows of a kind are tidied away in one go: nobody waits long for it."""


@dataclass(frozen=True, slots=True)
class PostgresStore(PostgresSessions, PostgresTenants, PostgresPairings, PostgresWorkers):
    db: Database
    now: Callable[[], datetime | None]

    @property
    def cron(self) -> PostgresCron:
        return PostgresCron(self.db, self.now)

    def messages(self, lease: Lease | None) -> PostgresMessages:
        return PostgresMessages(self.db, self.now, chat_token(lease))

    def listen(self) -> AbstractAsyncContextManager[AsyncIterator[str]]:
        return listening(self.db)

    async def tidy(self) -> Tidied:
        row = await self.db.first(SQL["tidy"], self.now(), REMEMBER_KEYS, KEEP_BEATS, KEEP_READINGS, AT_A_TIME)
        jobs = await self.db.first(CRON["tidy_jobs"], self.now(), KEEP_RUNS, AT_A_TIME)
        rest = await self.db.first(CRON["tidy"], self.now(), KEEP_RUNS, KEEP_OUTPUTS, KEEP_NEWS, AT_A_TIME)
        knocks = await self.tidy_pairings(AT_A_TIME)
        return Tidied(row["keys"], row["beats"], row["readings"], jobs["went"] + rest["went"], knocks)


@asynccontextmanager
async def open_postgres(
    dsn: str,
    *,
    now: Callable[[], datetime] | None = None,
    connections: int = 10,
    statement_timeout: timedelta = timedelta(seconds=10),
) -> AsyncIterator[PostgresStore]:
    """The store at that DSN. An empty database is given its schema; what cannot be used raises `CannotOpen`.

    ``now`` is for tests: without it the server's clock counts.
    """
    target, limits = read_dsn(dsn), Limits(statement=statement_timeout)
    await migrations.make_ready(target, limits)
    async with open_database(target, limits, connections) as db:
        yield PostgresStore(db, now or _by_the_server)


def _by_the_server() -> None:
    """No moment: the statement takes the server's."""
