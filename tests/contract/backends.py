"""The stores that the contract is held against.

To add one, write an async context manager that opens it empty, with `wall` as its clock and `place` as a directory of
its own, and append it to `BACKENDS`. No test asks which store it has before it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from store.memory import MemoryStore
from store.protocols import MessageStore


class Wall:
    """A wall clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.time = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def pass_by(self, span: timedelta) -> None:
        self.time += span


Backend = Callable[[Wall, Path], AbstractAsyncContextManager[MessageStore]]


@asynccontextmanager
async def memory(wall: Wall, place: Path) -> AsyncIterator[MessageStore]:
    yield MemoryStore(wall)


BACKENDS: list[Backend] = [memory]
