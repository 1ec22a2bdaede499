"""Which store the settings ask for, and how it is opened, looked at and brought up to date.

Together with `gateway.app` this is the composition root: nobody else names a concrete store.
"""

from __future__ import annotations

import os
import socket
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from gateway.clock import utc_now
from store.protocols import CannotOpen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from gateway.settings import Settings
    from store.protocols import Store

SHARED_LEASE = timedelta(seconds=15)
ALONE_LEASE = timedelta(days=36_500)
"""Where the directory's lock already keeps others out, the lease need not be renewed: idle costs nothing."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A store, and as whom and for how long at a time this process asks for its leases."""

    store: Store
    owner: str
    lease_span: timedelta


@asynccontextmanager
async def open_store(settings: Settings) -> AsyncIterator[Opened]:
    """The store that the settings ask for, or `CannotOpen` with the reason."""
    # Only the store that is used is loaded: the database's drivers take as long as all the rest.
    if settings.managed:
        from store.postgres import open_postgres

        async with open_postgres(dsn(settings)) as shared:
            yield Opened(shared, process_name(), SHARED_LEASE)
    else:
        from store.json_store import open_json

        async with open_json(data_directory(settings), utc_now) as files:
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
