"""Notifications for those who follow them: each is read from the store once and handed to all of its tenant's readers.

    store ──word──▶ feed of a tenant: the newest, in order ──▶ readers, each with its own place
                      └── a reader whose place is older than that reads from the store

Whatever the feed holds came from the store in the order of its numbers, so nobody misses one or gets one twice.
"""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import trio

from gateway.persist import persist
from store.cron_protocol import NEWS
from store.protocols import POLL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.streams import Stream
    from store.jobs import Notification
    from store.protocols import Store

REMEMBERED = 1_000
PAGE = 200


class Feed:
    """The newest notifications of one tenant, and who waits for more."""

    def __init__(self, store: Store, tenant: str) -> None:
        self._cron = store.cron
        self._tenant = tenant
        self._newest: deque[Notification] = deque(maxlen=REMEMBERED)
        self._top: int | None = None
        self._stale = True
        self._reading = trio.Lock()
        self.readers: set[Stream] = set()

    def poke(self) -> None:
        self._stale = True
        for reader in self.readers:
            reader.poke()

    async def now(self) -> int:
        """The number of the newest one: whoever begins there gets what comes from now on."""
        return await persist(partial(self._cron.told, self._tenant))

    async def after(self, number: int) -> list[Notification]:
        """Some of those that follow, in order; none if there are none yet."""
        if self._stale:
            async with self._reading:
                await self._read(number)
        if self._newest and self._newest[0].seq <= number + 1:
            if self._newest[-1].seq <= number:
                return []
            skip = number + 1 - self._newest[0].seq
            return [self._newest[place] for place in range(skip, min(skip + PAGE, len(self._newest)))]
        if self._top is not None and self._top <= number:
            return []
        return list(await persist(partial(self._cron.notifications, self._tenant, after=number, limit=PAGE)))

    async def _read(self, number: int) -> None:
        while self._stale:
            self._stale = False
            if self._top is None:
                self._top = number
            try:
                page = await persist(partial(self._cron.notifications, self._tenant, after=self._top, limit=PAGE))
            except BaseException:
                self._stale = True
                raise
            for one in page:
                if self._newest and one.seq != self._newest[-1].seq + 1:
                    self._newest.clear()
                self._newest.append(one)
                self._top = one.seq
            self._stale = self._stale or len(page) == PAGE


class NewsRoom:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._feeds: dict[str, Feed] = {}

    @contextmanager
    def following(self, tenant: str, stream: Stream) -> Iterator[Feed]:
        """The tenant's feed, which pokes the stream when there may be more; kept while somebody follows it."""
        feed = self._feeds.setdefault(tenant, Feed(self._store, tenant))
        feed.readers.add(stream)
        try:
            yield feed
        finally:
            feed.readers.discard(stream)
            if not feed.readers:
                self._feeds.pop(tenant, None)

    async def run(self) -> None:
        """Hear of what is new, for ever."""
        async with self._store.listen() as words:
            async for word in words:
                if word == POLL:
                    for feed in self._feeds.values():
                        feed.poke()
                elif word.startswith(NEWS):
                    tenant = word.removeprefix(NEWS).rpartition(":")[0]
                    if tenant in self._feeds:
                        self._feeds[tenant].poke()
