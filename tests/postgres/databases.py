"""Fresh databases on a server: each is cloned from one template that has every migration.

Several test processes share the server, so the template is made under a lock, once for the run whose name it bears.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg
import trio

from store.postgres import migrations
from store.postgres.bridge import open_bridge

if TYPE_CHECKING:
    from collections.abc import Iterator

MAKING = 7_203_551


@dataclass(frozen=True, slots=True)
class Databases:
    """Those of one test run on one server."""

    dsn: str
    run: str
    strategy: str = ""
    """How a database is cloned; the server's own way if nothing is said, which older ones do not understand."""

    @property
    def template(self) -> str:
        return f"goclaw_test_{self.run}"

    @contextmanager
    def empty(self, options: str = "") -> Iterator[str]:
        """The DSN of a database without anything in it."""
        with self._made("template0", options) as dsn:
            yield dsn

    @contextmanager
    def fresh(self) -> Iterator[str]:
        """The DSN of a database with the newest schema and no rows."""
        with self._made(self.template) as dsn:
            yield dsn

    @contextmanager
    def _made(self, template: str, options: str = "") -> Iterator[str]:
        name = f"{self.template}_{uuid4().hex[:12]}"
        execute(self.dsn, f'CREATE DATABASE "{name}" TEMPLATE "{template}" {self.strategy} {options}')
        try:
            yield named(self.dsn, name)
        finally:
            execute(self.dsn, f'DROP DATABASE "{name}" WITH (FORCE)')

    def make_template(self) -> None:
        """Once for all processes of the run; whoever comes second waits until it is whole."""
        trio.run(self._make_template)

    async def _make_template(self) -> None:
        async with open_bridge() as bridge:
            connection = await bridge.run(asyncpg.connect, self.dsn)
            await bridge.run(connection.execute, f"SELECT pg_advisory_lock({MAKING})")
            known = f"SELECT FROM pg_database WHERE datname = '{self.template}'"
            if not await bridge.run(connection.fetch, known):
                raw = f"{self.template}_raw"
                await bridge.run(connection.execute, f'CREATE DATABASE "{raw}" TEMPLATE template0')
                await migrations.upgrade(named(self.dsn, raw))
                await bridge.run(connection.execute, f'ALTER DATABASE "{raw}" RENAME TO "{self.template}"')
            await bridge.run(connection.close)

    def drop_template(self) -> None:
        execute(self.dsn, f'DROP DATABASE IF EXISTS "{self.template}" WITH (FORCE)')


def named(dsn: str, database: str) -> str:
    """The same server, another database."""
    return urlunsplit(urlsplit(dsn)._replace(path=f"/{database}"))


def execute(dsn: str, statement: str) -> None:
    """For what is not inside a trio program."""
    trio.run(ask, dsn, statement)


async def ask(dsn: str, statement: str, *args: object) -> list[Any]:
    """What a connection of its own is answered."""
    async with open_bridge() as bridge:
        connection = await bridge.run(asyncpg.connect, dsn)
        try:
            rows: list[Any] = await bridge.run(connection.fetch, statement, *args)
        finally:
            await bridge.run(connection.close)
        return rows


async def run_script(dsn: str, statements: str) -> None:
    """Several statements at once, whose answers nobody wants."""
    async with open_bridge() as bridge:
        connection = await bridge.run(asyncpg.connect, dsn)
        try:
            await bridge.run(connection.execute, statements)
        finally:
            await bridge.run(connection.close)
