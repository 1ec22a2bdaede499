"""The stores that the contract is held against.

To add one, append to `BACKENDS` an object with a name and an `open` that leads to the store, empty, with `wall` as its
clock and `place` as a directory of its own. What else it needs, a fresh database for instance, it asks of `request`.
No test asks which store it has before it.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from store.files import open_json
from store.memory import MemoryStore
from store.postgres import open_postgres

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    import pytest

    from store.protocols import Store


class Wall:
    """A wall clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.time = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def pass_by(self, span: timedelta) -> None:
        self.time += span


class Backend(Protocol):
    @property
    def name(self) -> str: ...

    def open(self, wall: Wall, place: Path, request: pytest.FixtureRequest) -> AbstractAsyncContextManager[Store]:
        """Called while fixtures are set up, outside of trio: ask `request` here, and open the store in what returns."""


class Memory:
    name = "memory"

    @asynccontextmanager
    async def open(self, wall: Wall, place: Path, request: pytest.FixtureRequest) -> AsyncIterator[Store]:
        yield MemoryStore(wall)


class Json:
    name = "json"

    @asynccontextmanager
    async def open(self, wall: Wall, place: Path, request: pytest.FixtureRequest) -> AsyncIterator[Store]:
        async with open_json(place, wall) as opened:
            yield opened


class Postgres:
    name = "postgres"

    def open(self, wall: Wall, place: Path, request: pytest.FixtureRequest) -> AbstractAsyncContextManager[Store]:
        dsn: str = request.getfixturevalue("database")
        return open_postgres(dsn, now=wall)


BACKENDS: list[Backend] = [Memory(), Json(), Postgres()]
