"""Whether the store answers, asked at most once at a time and once a second, however many want to know.

    asked ──▶ answered less than a second ago: that ──▶ else one question to the store, for all who wait
                                                          └── no answer in time: everybody goes on, the question stays

Who asks never waits longer than two seconds. A store that hangs holds up one task, whoever may knock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import trio

from store.protocols import StoreError
from store.records import DEFAULT_TENANT

if TYPE_CHECKING:
    from store.protocols import Store
    from store.records import Worker

PATIENCE_S = 2.0
FRESH_S = 1.0


@dataclass(frozen=True, slots=True)
class Seen:
    """What the store has answered; ``alive`` is whether it did."""

    alive: bool
    at: float
    took_s: float
    workers: tuple[Worker, ...] = ()


class Pulse:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._wanted = trio.Event()
        self._told = trio.Event()
        self._asked_at: float | None = None
        self._last: Seen | None = None
        self._running = False

    async def feel(self) -> Seen:
        """How the store is, within two seconds."""
        now = trio.current_time()
        if self._last is not None and now - self._last.at < FRESH_S:
            return self._last
        if self._asked_at is None or now - self._asked_at < PATIENCE_S:
            with trio.move_on_after(PATIENCE_S):
                return await self._ask()
        await trio.lowlevel.checkpoint()
        began = now if self._asked_at is None else self._asked_at
        return Seen(False, trio.current_time(), trio.current_time() - began)

    async def run(self) -> None:
        """Ask the store for those who want to know, for ever."""
        self._running = True
        try:
            while True:
                await self._wanted.wait()
                self._wanted = trio.Event()
                self._last = await self._look()
                self._told.set()
                self._told = trio.Event()
        finally:
            self._running = False

    async def _ask(self) -> Seen:
        if not self._running:
            return await self._look()
        told = self._told
        if self._asked_at is None:
            self._wanted.set()
        await told.wait()
        assert self._last is not None  # noqa: S101 - it was told
        return self._last

    async def _look(self) -> Seen:
        self._asked_at = began = trio.current_time()
        try:
            await self._store.tenant(DEFAULT_TENANT)
            workers = await self._store.workers()
        except StoreError:
            return Seen(False, trio.current_time(), trio.current_time() - began)
        finally:
            self._asked_at = None
        return Seen(True, trio.current_time(), trio.current_time() - began, workers)
