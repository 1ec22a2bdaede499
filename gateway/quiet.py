"""Counts work that is under way outside of the lanes, so that an end can wait until it is done."""

from __future__ import annotations

import trio


class Quiet:
    def __init__(self) -> None:
        self._under_way = 0
        self._event = trio.Event()
        self._event.set()

    def begin(self) -> None:
        if self._under_way == 0:
            self._event = trio.Event()
        self._under_way += 1

    def end(self) -> None:
        self._under_way -= 1
        if self._under_way == 0:
            self._event.set()

    @property
    def now(self) -> bool:
        return self._under_way == 0

    async def wait(self) -> None:
        while self._under_way:
            await self._event.wait()
