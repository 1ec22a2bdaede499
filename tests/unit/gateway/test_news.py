"""What one reader reads from the store is there for all; nobody is told that there is nothing while it comes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import trio
from trio.testing import wait_all_tasks_blocked

from gateway.clock import utc_now
from gateway.news import PAGE, REMEMBERED, NewsRoom
from gateway.streams import Stream
from store.jobs import Change, Job, News
from store.memory import MemoryStore
from tests.contract.cron_rows import added

if TYPE_CHECKING:
    from store.jobs import Notification, Trigger
    from store.protocols import Store


@dataclass
class SlowCron:
    """Answers only when it may, and counts what it is asked."""

    inner: Any
    may: trio.Event = field(default_factory=trio.Event)
    asked: int = 0

    async def told(self, tenant: str) -> int:
        return int(await self.inner.told(tenant))

    async def notifications(self, tenant: str, *, after: int = 0, limit: int = 100) -> tuple[Notification, ...]:
        self.asked += 1
        page: tuple[Notification, ...] = await self.inner.notifications(tenant, after=after, limit=limit)
        await self.may.wait()
        return page


@dataclass
class SlowStore:
    cron: SlowCron


async def happens(store: MemoryStore, many: int) -> None:
    """So many things at once."""

    def change(job: Job, planned: Trigger | None, now: object) -> Change:
        return Change(job, news=tuple(News("run.skipped", "default", 1, "") for _ in range(many)))

    await store.cron.change_job("default", 1, change)


async def opened() -> tuple[MemoryStore, SlowCron, NewsRoom]:
    store = MemoryStore(utc_now)
    await added(store.cron, "a")
    slow = SlowCron(store.cron)
    return store, slow, NewsRoom(cast("Store", SlowStore(slow)))


async def test_nobody_is_told_that_there_is_nothing_while_another_is_reading(autojump_clock: object) -> None:
    """A reader that asks meanwhile waits for what comes, and gets it: it would hear of it from nobody. (A24)"""
    store, slow, room = await opened()
    one, two = Stream(), Stream()
    with room.following("default", one) as feed, room.following("default", two):
        slow.may.set()
        assert (await feed.after(0)).news == []
        slow.may = trio.Event()
        await happens(store, 1)
        feed.poke()
        found: list[list[int]] = []

        async def read(stream: Stream) -> None:
            stream.ready()
            found.append([news.seq for news in (await feed.after(0)).news])

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read, one)
            await wait_all_tasks_blocked()
            nursery.start_soon(read, two)
            await wait_all_tasks_blocked()
            slow.may.set()
        assert found == [[1], [1]]


async def test_the_store_is_read_once_for_all(autojump_clock: object) -> None:
    """However many readers there are, and whatever a single one says that it has seen. (P13)"""
    store, slow, room = await opened()
    slow.may.set()
    streams = [Stream() for _ in range(50)]
    with room.following("default", streams[0]) as feed:
        await feed.after(2**40)
        for stream in streams:
            feed.readers.add(stream)
        before = slow.asked
        await happens(store, 3)
        feed.poke()
        for _ in streams:
            assert [news.seq for news in (await feed.after(0)).news] == [1, 2, 3]
        assert slow.asked - before <= 2


async def test_a_reader_far_behind_reads_page_by_page(autojump_clock: object) -> None:
    """More than is remembered comes from the store, whole and in order, and nobody else waits for it."""
    store, slow, room = await opened()
    slow.may.set()
    many = REMEMBERED + PAGE + 50
    await happens(store, many)
    with room.following("default", Stream()) as feed:
        seen: list[int] = []
        while (read := await feed.after(seen[-1] if seen else 0)).news:
            assert len(read.news) <= PAGE
            seen += [news.seq for news in read.news]
        assert seen == list(range(1, many + 1))
        assert read.upto == many
