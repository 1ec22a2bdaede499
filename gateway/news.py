"""Notifications for those who follow them: each is read from the store once and handed to all of its tenant's readers.

    store ──word──▶ feed of a tenant: the newest, in order ──▶ readers, each with its own place
                      └── a reader whose place is older than that reads from the store

Whatever the feed holds came from the store in the order of its numbers, so nobody misses one or gets one twice.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import trio

from gateway.persist import persist
from store.cron_protocol import NEWS
from store.protocols import POLL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gateway.streams import Stream
    from store.jobs import Notification
    from store.protocols import Store

REMEMBERED = 1_000
PAGE = 200


class Read(NamedTuple):
    """What a reader gets, and the number up to which it has everything that is still kept."""

    news: list[Notification]
    upto: int


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

    async def after(self, number: int) -> Read:
        """Some of those that follow, in order; none if there are none yet."""
        if self._stale or self._reading.locked():  # whoever is reading just now reads for all, and pokes nobody
            async with self._reading:
                await self._read()
        top = self._top or 0
        if top <= number:
            return Read([], number)
        if self._newest and self._newest[0].seq <= number + 1:
            skip = number + 1 - self._newest[0].seq
            some = [self._newest[place] for place in range(skip, min(skip + PAGE, len(self._newest)))]
        else:
            some = list(await persist(partial(self._cron.notifications, self._tenant, after=number, limit=PAGE)))
        return Read(some, some[-1].seq if some else top)

    async def _read(self) -> None:
        while self._stale:
            self._stale = False
            try:
                if self._top is None:  # what is older than that is read by whoever asks for it
                    self._top = await self.now()
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
        self._written: OrderedDict[tuple[str, int], tuple[Notification, bytes]] = OrderedDict()

    def once(self, one: Notification, write: Callable[[Notification], bytes]) -> bytes:
        """The notification as it is written for readers: once for all of them."""
        key = one.news.tenant, one.seq
        known = self._written.get(key)
        if known is None or known[0] is not one:
            known = self._written[key] = one, write(one)
            if len(self._written) > PAGE:
                self._written.popitem(last=False)
        return known[1]

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
