"""The lives of a store: opened, closed, killed and troubled as often as a test wants.

To add one, append to `LIVES` an object with a name and a `live` that leads to a `Life`.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

from store.memory import MemoryStore
from tests.contract.json_life import JsonLives
from tests.contract.postgres_life import PostgresLives

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    import pytest

    from store.protocols import Store
    from tests.contract.backends import Wall


class Life(Protocol):
    async def start(self, wall: Wall) -> Store:
        """A store without anything in it, whatever there was before."""

    async def reopen(self) -> Store:
        """Closed in good order and opened again."""

    async def crash(self) -> Store:
        """What is found after the process was killed and the machine lost its power."""

    async def trouble(self, kind: int) -> None:
        """Soon something fails that a store must get over: a write, a sync, a connection."""

    async def end(self) -> None:
        """Close it; nothing is left behind."""


class Lives(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def histories(self) -> int:
        """So many are played of each theme whenever the tests run."""

    def live(self, place: Path, request: pytest.FixtureRequest) -> AbstractAsyncContextManager[Life]:
        """Called while fixtures are set up, outside of trio: ask `request` here."""


class MemoryLife:
    """It cannot be closed; a crash would be its end."""

    def __init__(self, make: Callable[[Wall], Store]) -> None:
        self.make = make
        self.store: Store

    async def start(self, wall: Wall) -> Store:
        self.store = self.make(wall)
        return self.store

    async def reopen(self) -> Store:
        return self.store

    async def crash(self) -> Store:
        return self.store

    async def trouble(self, kind: int) -> None:
        pass

    async def end(self) -> None:
        pass


class Memory:
    """The model beside itself: shows that the comparison asks for nothing that cannot be given."""

    name = "memory"
    histories = 10

    @asynccontextmanager
    async def live(self, place: Path, request: pytest.FixtureRequest) -> AsyncIterator[Life]:
        yield MemoryLife(MemoryStore)


LIVES: list[Lives] = [Memory(), JsonLives(), PostgresLives()]
