"""Bringing a database's schema up to date, and telling how far it is.

Migrations are numbered and only ever go forward. Each is applied in a transaction of its own, under a lock, and noted
in the same transaction: of several processes that upgrade at once each step is taken by one, and the others find it
done. A database whose schema is newer than this program, or whose past differs from it, is left alone.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from store.postgres.bridge import open_bridge
from store.postgres.database import Limits, connect
from store.postgres.dsn import Target, read_dsn
from store.postgres.errors import DRIVER, cannot_open
from store.postgres.queries import Migration, load, migrations
from store.protocols import CannotOpen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

SQL = load("schema")
OLDEST_SERVER = 14
ENCODING = "UTF8"
GOODBYE_S = 2
UNHURRIED = Limits(statement=timedelta(hours=1))
"""A migration of a large table takes as long as it takes."""


@dataclass(frozen=True, slots=True)
class Upgraded:
    """The schema's version before and after; the same if there was nothing to do."""

    before: int
    after: int


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    """How far a database is. Version 0 has no tables of ours at all."""

    version: int
    newest: int
    pending: tuple[str, ...]
    server: str
    where: str


async def upgrade(dsn: str) -> Upgraded:
    """Apply every migration that is missing."""
    return await _connected(read_dsn(dsn), UNHURRIED, _upgrade)


async def status(dsn: str) -> SchemaStatus:
    """Look, and change nothing."""
    return await _connected(read_dsn(dsn), Limits(), _status)


async def make_ready(target: Target, limits: Limits) -> None:
    """The database has the newest schema when this returns. An empty one is given it, an older one is left alone."""
    found = await _connected(target, limits, _status)
    if found.version == 0:
        await _connected(target, UNHURRIED, _upgrade)
    elif found.version < found.newest:
        raise CannotOpen(
            f"the schema of the Postgres {target} is at version {found.version}, this program needs {found.newest}: "
            "run `goclaw db upgrade`",
            **target.fields,
        )


async def _connected(target: Target, limits: Limits, work: Callable[[Any, Target], Awaitable[T]]) -> T:
    """What the work on a connection of its own leads to. What the driver raises ends here, its texts included."""
    async with open_bridge() as bridge:
        try:
            return await bridge.run(_on_connection, target, limits, work)
        except (*DRIVER, UnicodeError) as error:  # the latter about the name of the host
            problem = cannot_open(error, target)
    raise problem


# ── on the event loop ────────────────────────────────────────────────────────────────────────────────────────────────


async def _on_connection(target: Target, limits: Limits, work: Callable[[Any, Target], Awaitable[T]]) -> T:
    connection = await connect(target, limits)
    try:
        if connection.get_server_version().major < OLDEST_SERVER:
            raise too_old(connection.get_settings().server_version, target)
        encoding = await connection.fetchval(SQL["encoding"])
        if encoding != ENCODING:
            raise wrong_encoding(encoding, target)
        return await work(connection, target)
    finally:
        with suppress(*DRIVER):  # the work is done, or its own error is the one to hear of
            await connection.close(timeout=GOODBYE_S)


async def _upgrade(connection: Any, target: Target) -> Upgraded:
    before = max(await _applied(connection, target), default=0)
    while await _take_a_step(connection, target):
        pass
    return Upgraded(before, max(await _applied(connection, target)))


async def _take_a_step(connection: Any, target: Target) -> bool:
    """Apply one migration; False if none is missing."""
    async with connection.transaction():
        await connection.execute(SQL["lock"])
        await connection.execute(SQL["make_list"])
        applied = await _applied(connection, target)
        missing = [one for one in migrations() if one.version not in applied]
        for migration in missing[:1]:
            await connection.execute(migration.text)
            await connection.execute(SQL["note"], migration.version, migration.name, migration.checksum)
    return len(missing) > 1


async def _status(connection: Any, target: Target) -> SchemaStatus:
    applied = await _applied(connection, target)
    known = migrations()
    return SchemaStatus(
        version=max(applied, default=0),
        newest=known[-1].version,
        pending=tuple(f"{one.version:04} {one.name}" for one in known if one.version not in applied),
        server=await connection.fetchval(SQL["server"]),
        where=str(target),
    )


async def _applied(connection: Any, target: Target) -> set[int]:
    """The versions that the database has, all of them known here and unchanged since."""
    if not await connection.fetchval(SQL["known"]):
        return set()
    rows = await connection.fetch(SQL["applied"])
    check_past({row["version"]: row["checksum"] for row in rows}, migrations(), target)
    return {row["version"] for row in rows}


def check_past(applied: dict[int, str], known: tuple[Migration, ...], target: Target) -> None:
    here = {one.version: one for one in known}
    if strange := applied.keys() - here.keys():
        raise CannotOpen(
            f"the schema of the Postgres {target} is at version {max(strange)}, which is newer than this program "
            f"({max(here)}): start the newer goclaw, or use another database",
            **target.fields,
        )
    changed = [here[version].name for version in sorted(applied) if here[version].checksum != applied[version]]
    if changed:
        raise CannotOpen(
            f"the schema of the Postgres {target} was made by another text of the migration {changed[0]!r}: "
            "use the goclaw that made it, or another database",
            **target.fields,
        )


def too_old(version: str, target: Target) -> CannotOpen:
    return CannotOpen(
        f"the Postgres at {target.host} port {target.port} is version {version}, goclaw needs {OLDEST_SERVER} or "
        "newer: upgrade the server or name another one in the DSN",
        **target.fields,
    )


def wrong_encoding(encoding: str, target: Target) -> CannotOpen:
    return CannotOpen(
        f"the Postgres {target} has the encoding {encoding}, which cannot hold every character that people write: "
        f"make another one with `createdb -E {ENCODING} -T template0 --locale=C NAME` and name it in the DSN",
        **target.fields,
    )
