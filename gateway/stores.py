"""Which store the settings ask for, and how it is opened, looked at and brought up to date.

Together with `gateway.app` this is the composition root: nobody else names a concrete store.
"""

from __future__ import annotations

import os
import socket
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import trio

from gateway.clock import utc_now
from gateway.plain import counted
from store.protocols import CannotOpen, InUse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from gateway.settings import Settings
    from store.protocols import Store

ALONE_LEASE = timedelta(days=36_500)
"""Where the directory's lock already keeps others out, the lease need not be renewed: idle costs nothing."""
PATIENCE_S = 3.0
"""So long a directory is waited for that another process has: commands without a gateway have it for a moment."""
LOOK_AGAIN_S = 0.05


@dataclass(frozen=True, slots=True)
class Opened:
    """A store, and as whom and for how long at a time this process asks for its leases."""

    store: Store
    owner: str
    lease_span: timedelta


@asynccontextmanager
async def open_store(settings: Settings, patience_s: float = PATIENCE_S) -> AsyncIterator[Opened]:
    """The store that the settings ask for, or `CannotOpen` with the reason.

    A directory that somebody has is waited for a while: it may be a command that only looks something up.
    """
    # Only the store that is used is loaded: the database's drivers take as long as all the rest.
    if settings.managed:
        from store.postgres import open_postgres

        async with open_postgres(dsn(settings)) as shared:
            yield Opened(shared, process_name(), timedelta(seconds=settings.postgres.lease))
    else:
        from store.files import open_json

        async with AsyncExitStack() as stack:
            until = trio.current_time() + patience_s
            files = None
            while files is None:
                try:
                    files = await stack.enter_async_context(open_json(data_directory(settings), utc_now))
                except InUse:
                    if trio.current_time() >= until:
                        raise
                    await trio.sleep(LOOK_AGAIN_S)
            yield Opened(files, files.identity, ALONE_LEASE)


def dsn(settings: Settings) -> str:
    return settings.postgres.dsn.get_secret_value() if settings.postgres.dsn is not None else ""


def data_directory(settings: Settings) -> Path:
    try:
        return Path(settings.data.dir).expanduser()
    except RuntimeError as error:  # there is no such user, or nobody knows where they live
        raise CannotOpen(
            f"cannot use the data directory {settings.data.dir}: {error} Set GOCLAW_DATA_DIR to another directory."
        ) from None


def process_name() -> str:
    """Unlike any other process, and yet somebody can find it by this."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """What there is to know about a store without opening it."""

    mode: str
    where: str
    ready: bool
    summary: str
    problems: tuple[str, ...]
    counts: dict[str, int | str]


async def look(settings: Settings) -> StoreStatus:
    """Look at the store that the settings name. Changes nothing."""
    return await look_at_postgres(settings) if settings.managed else look_at_files(data_directory(settings))


def look_at_files(place: Path) -> StoreStatus:
    from store.files import read_json

    if not place.exists():
        summary = f"{place}: nothing there yet; the first chat makes it"
        return StoreStatus("standalone", str(place), ready=True, summary=summary, problems=(), counts={})
    found = read_json(place)
    counts = found.counts()
    told = (
        f"{counted(counts['sessions'], 'session')}; messages: {counts['waiting']} waiting, {counts['running']} running"
    )
    summary = f"{place}: {told}; replies: {counts['unsent']} to send"
    return StoreStatus(
        "standalone", str(place), ready=True, summary=summary, problems=found.findings, counts={**counts}
    )


async def look_at_postgres(settings: Settings) -> StoreStatus:
    from store.postgres import migrations

    found = await migrations.status(dsn(settings))
    pending = tuple(f"missing: {name}; run `goclaw db upgrade`" for name in found.pending if found.version)
    state = "empty; the first start makes its tables" if not found.version else f"schema {found.version}"
    state += "" if not found.version else ", up to date" if not pending else f" of {found.newest}"
    return StoreStatus(
        mode="managed",
        where=found.where,
        ready=not pending,
        summary=f"Postgres {found.server}, {found.where}: {state}",
        problems=pending,
        counts={"version": found.version, "newest": found.newest, "server": found.server},
    )


async def upgrade(settings: Settings) -> str:
    """Bring the database's schema up to date; what was done, in words."""
    from store.postgres import migrations

    if not settings.managed:
        raise CannotOpen("there is no database to upgrade: set GOCLAW_POSTGRES_DSN. Files upgrade by themselves.")
    done = await migrations.upgrade(dsn(settings))
    if done.before == done.after:
        return f"the schema is up to date: version {done.after}"
    return f"the schema was at version {done.before} and is now at {done.after}"


async def copy_to_postgres(settings: Settings) -> str:
    """Copy everything from the files into the database; what was copied, in words."""
    from store.files import gather, open_json
    from store.postgres import adopt, open_postgres

    if not settings.managed:
        raise CannotOpen("there is no database to copy to: set GOCLAW_POSTGRES_DSN")
    place = data_directory(settings)
    if not place.is_dir():
        raise CannotOpen(f"there is nothing to copy: {place} does not exist. Is GOCLAW_DATA_DIR right?")
    async with open_json(place, utc_now) as files, open_postgres(dsn(settings)) as database:
        return str(await adopt(database, await gather(files)))
