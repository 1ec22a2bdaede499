"""A store that is open in a task of its own, so that any task may close it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from store.protocols import Store


class Held:
    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._closing = trio.Event()
        self._closed = trio.Event()

    async def open(self, opening: AbstractAsyncContextManager[Store]) -> Store:
        store: Store = await self._nursery.start(self._live, opening)
        return store

    async def close(self) -> None:
        self._closing.set()
        await self._closed.wait()

    async def _live(self, opening: AbstractAsyncContextManager[Store], task_status: trio.TaskStatus[Store]) -> None:
        try:
            async with opening as store:
                task_status.started(store)
                await self._closing.wait()
        finally:
            self._closed.set()
