"""The Nth call to the disk fails, for every N: who asked is told, nothing is half done, and it goes on by itself."""

from __future__ import annotations

import errno
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import pytest

from store.files import JsonStore, open_json, read_json
from store.memory import MemoryStore
from store.protocols import CannotOpen, StoreUnavailable
from tests.contract.backends import Wall
from tests.contract.picture import normal, picture
from tests.faults.disk_story import STORY, chat_of, content
from tests.faults.faulty_disk import FaultyDisk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from store.protocols import MessageStore
    from tests.faults.disk_story import Step

T = TypeVar("T")

COMPACT_AFTER = (9, 17, 21)
"""After these steps the journal is folded into a snapshot, too."""
MANY = 1_000_000


class Life:
    """A store on a faulty disk, and beside it the model, which is told of what succeeded."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.disk = FaultyDisk()
        self.wall = Wall()
        self.model = MemoryStore(self.wall)
        self.told: list[str] = []

    @asynccontextmanager
    async def open(self) -> AsyncIterator[JsonStore]:
        """Opened at the second attempt at the latest: by then the disk is well again."""
        try:
            opening = open_json(self.place, self.wall, disk=self.disk)
            store = await opening.__aenter__()
        except (CannotOpen, StoreUnavailable) as error:
            self.hit(error)
            opening = open_json(self.place, self.wall, disk=self.disk)
            store = await opening.__aenter__()
        try:
            yield store
        finally:
            await opening.__aexit__(None, None, None)

    def hit(self, error: CannotOpen | StoreUnavailable) -> None:
        """Somebody was told: the message names what failed, where, and that something is to be done."""
        assert self.disk.failed
        assert str(self.place) in str(error)
        assert "Free some space" in str(error) or "free some space" in str(error) or "ook after the disk" in str(error)
        self.told.append(str(error))
        self.disk.heal()

    async def insist(self, call: Callable[[], Awaitable[T]]) -> T:
        """Ask again until it succeeds: what was under way when the disk was healed may still fail."""
        for _ in range(5):
            try:
                return await call()
            except StoreUnavailable as error:
                self.hit(error)
        return await call()

    async def do(self, step: Step, store: JsonStore, chat: MessageStore, model_chat: MessageStore) -> None:
        """The verb succeeds, or has done nothing; then the directory shows the state before it or after it."""
        before = content(read_json(self.place))
        try:
            answer = await step(store, chat)
        except StoreUnavailable as error:
            self.hit(error)
            assert content_of(store) == before
            found = content(read_json(self.place))
            answer = await self.insist(lambda: step(store, chat))
            assert found in (before, content(read_json(self.place)))
        assert normal(answer) == normal(await step(self.model, model_chat))

    async def compare(self, store: JsonStore, chat: MessageStore, model_chat: MessageStore) -> None:
        """Reading fails too, and succeeds the next time."""
        found = await self.insist(lambda: picture(store, chat))
        assert normal(found) == normal(await picture(self.model, model_chat))


def content_of(store: JsonStore) -> object:
    """What memory says, through the same eyes."""
    look = read_json(store.journal.file.place)
    return content(type(look)(store.tables, (), look.transcripts))


async def live(place: Path, nth: int, error: int, times: int) -> Life:
    life = Life(place)
    model_chat = await chat_of(life.model)
    life.disk.fail(nth, error=error, times=times)
    async with life.open() as store:
        chat = await life.insist(lambda: chat_of(store))
        for number, step in enumerate(STORY):
            await life.do(step, store, chat, model_chat)
            if number in COMPACT_AFTER:
                await compact(life, store)
        await life.compare(store, chat, model_chat)
    failed = list(life.disk.failed)
    life.disk.heal()
    async with open_json(place, life.wall, disk=life.disk) as store:
        chat = await chat_of(store)
        model_chat = await chat_of(life.model)
        await life.compare(store, chat, model_chat)
        assert [finding for finding in store.findings if "damaged" in finding or "LOST" in finding] == []
    life.disk.failed = failed
    return life


async def compact(life: Life, store: JsonStore) -> None:
    """Nobody waits for it; what fails is tried again later, and nothing is lost meanwhile."""
    before = content(read_json(life.place))
    try:
        await store.keeper.compact()
    except (OSError, StoreUnavailable):
        assert life.disk.failed
        life.disk.heal()
    assert content_of(store) == before
    assert content(read_json(life.place)) == before


async def sweep(place: Path, error: int, times: int, step: int) -> int:
    """Until no call is left that could fail; returns how many there were."""
    for nth in range(1, MANY, step):
        life = await live(place / str(nth), nth, error, times)
        if not life.disk.failed:
            return nth
    raise AssertionError("it never ends")


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("times", [1, MANY], ids=["once", "until healed"])
async def test_any_call_may_fail(tmp_path: Path, error: int, times: int) -> None:
    """A clear error or success; before or after, never half; afterwards all is as the model says. (R9, R23)"""
    assert await sweep(tmp_path, error, times, step=19) > 100


@pytest.mark.faults
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("times", [1, 2, 3, MANY], ids=["once", "twice", "thrice", "until healed"])
async def test_every_call_may_fail(tmp_path: Path, error: int, times: int) -> None:
    """The same for each of them, one by one. (R9, R23)"""
    assert await sweep(tmp_path, error, times, step=1) > 100
