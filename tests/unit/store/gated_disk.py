"""A disk on which nothing becomes durable while its gate is shut."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING

import trio.testing

from tests.faults.faulty_disk import FaultyDisk

if TYPE_CHECKING:
    from collections.abc import Iterator


class GatedDisk(FaultyDisk):
    def __init__(self) -> None:
        super().__init__()
        self.gate = Event()
        self.gate.set()
        self.syncs = 0

    def sync(self, file: int) -> None:
        self.syncs += 1
        assert self.gate.wait(60), "nobody has opened the gate"
        super().sync(file)

    @contextmanager
    def shut(self) -> Iterator[None]:
        """Opened again in any case: a thread that waits there could never be ended."""
        self.gate.clear()
        try:
            yield
        finally:
            self.gate.set()


async def all_wait() -> None:
    """Everybody else waits: for the gate, or for somebody who does."""
    await trio.testing.wait_all_tasks_blocked(0.01)
