"""The journal: nobody hears of what is not on the disk, and what cannot be written has never been."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest
import trio

from store.files import JsonStore, open_json, read_json
from store.protocols import RuleBroken, StoreUnavailable
from store.records import DeliveryKey, Incoming, MessageState, SessionPolicy
from tests.contract.backends import Wall
from tests.contract.rows import HERE, accepted, delivered, sent
from tests.faults.disk_story import chat_of
from tests.unit.store.gated_disk import GatedDisk, all_wait

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path


@pytest.fixture
def disk() -> GatedDisk:
    return GatedDisk()


@pytest.fixture
async def store(tmp_path: Path, disk: GatedDisk) -> AsyncIterator[JsonStore]:
    async with open_json(tmp_path, Wall(), disk=disk) as opened:
        yield opened


class Caller:
    """Somebody who asks, and what became of it."""

    def __init__(self, nursery: trio.Nursery, ask: Callable[[], Awaitable[object]]) -> None:
        self.answer: object = "none yet"
        self.scope = trio.CancelScope()
        nursery.start_soon(self._run, ask)

    async def _run(self, ask: Callable[[], Awaitable[object]]) -> None:
        with self.scope:
            try:
                self.answer = await ask()
            except StoreUnavailable as error:
                self.answer = error

    @property
    def waits(self) -> bool:
        return self.answer == "none yet"

    @property
    def refused(self) -> bool:
        return isinstance(self.answer, StoreUnavailable)


def texts(place: Path) -> list[str]:
    return [message.text for message in read_json(place).tables.messages.rows.values()]


async def test_nothing_is_acknowledged_before_it_is_on_the_disk(store: JsonStore, disk: GatedDisk) -> None:
    """The caller waits for the sync; so does a duplicate, a reader and one whom a rule refuses. (P1)"""
    chat = store.messages(None)
    async with trio.open_nursery() as nursery:
        with disk.shut():
            first = Caller(nursery, lambda: delivered(chat, sent("a")))
            await all_wait()
            others = [
                Caller(nursery, lambda: delivered(chat, sent("a"))),
                Caller(nursery, lambda: store.session(HERE)),
                Caller(nursery, lambda: store.enable_tenant("nobody", True)),
                Caller(nursery, lambda: refused(store)),
            ]
            await all_wait()
            assert [caller.waits for caller in (first, *others)] == [True] * 5
    assert [caller.waits for caller in (first, *others)] == [False] * 5


async def refused(store: JsonStore) -> str:
    with pytest.raises(RuleBroken):
        await store.delete_tenant("default")
    return "refused"


async def test_callers_share_a_sync(store: JsonStore, disk: GatedDisk) -> None:
    """While one batch is being written the next one collects: a hundred callers cost two syncs."""
    chat = store.messages(None)
    async with trio.open_nursery() as nursery:
        with disk.shut():
            before = disk.syncs
            for number in range(100):
                Caller(nursery, lambda name=str(number): delivered(chat, sent(name)))  # type: ignore[misc]
                if number == 0:
                    await all_wait()
            await all_wait()
    assert disk.syncs - before == 2
    assert len(store.tables.messages.rows) == 100


@pytest.mark.parametrize("call", ["write", "sync"])
async def test_a_failed_write_undoes_everything_behind_it(
    store: JsonStore, disk: GatedDisk, tmp_path: Path, call: str
) -> None:
    """The batch and what was collected behind it never were; all callers and all readers are told. (R23)"""
    await accepted(store.messages(None), "kept")
    policy = SessionPolicy(cap=3)
    async with trio.open_nursery() as nursery:
        with disk.shut():
            disk.fail(2 if call == "write" else 1, only=call)
            callers = [Caller(nursery, lambda: delivered(store.messages(None), sent("first")))]
            await all_wait()
            callers += [
                Caller(nursery, lambda: delivered(store.messages(None), sent("behind"))),
                Caller(nursery, lambda: store.set_policy(HERE, policy)),
            ]
            await all_wait()
            callers.append(Caller(nursery, lambda: store.session(HERE)))
            await all_wait()
    if call == "sync":
        assert [caller.refused for caller in callers] == [True] * 4
        assert [one.text for one in store.tables.messages.rows.values()] == ["kept"]
    else:  # the first batch was written before the write of the second one failed
        assert [caller.refused for caller in callers] == [False, True, True, True]
        assert [one.text for one in store.tables.messages.rows.values()] == ["kept", "first"]
    assert store.tables.sessions.rows == {}
    assert await store.session(HERE) is None
    ids = await accepted(store.messages(None), "after")
    assert ids == [len(store.tables.messages.rows)]
    assert texts(tmp_path) == [one.text for one in store.tables.messages.rows.values()]


async def test_the_error_says_what_happened_and_what_to_do(store: JsonStore, disk: GatedDisk, tmp_path: Path) -> None:
    """A full disk: the file, the reason, that nothing was done, and that freeing space is enough. (R9)"""
    disk.fail(1, error=errno.ENOSPC, only="write")
    with pytest.raises(StoreUnavailable, match="No space left on device") as caught:
        await accepted(store.messages(None), "a")
    text = str(caught.value)
    assert str(tmp_path / "journal-1.jsonl") in text
    assert "has not been done" in text
    assert "Free some space" in text
    assert caught.value.retriable
    assert caught.value.fields["errno"] == errno.ENOSPC
    assert await accepted(store.messages(None), "a") == [1]


async def test_what_was_undone_does_not_come_back(store: JsonStore, disk: GatedDisk, tmp_path: Path) -> None:
    """The sync fails and so does cutting the file: the next change goes to a new file, and the undone one is out."""
    await accepted(store.messages(None), "kept")
    disk.fail(1, times=2, only="sync truncate")
    with pytest.raises(StoreUnavailable):
        await accepted(store.messages(None), "undone")
    assert disk.failed == ["sync", "truncate"]
    assert b'"undone"' in (tmp_path / "journal-1.jsonl").read_bytes()
    await accepted(store.messages(None), "after")
    assert texts(tmp_path) == ["kept", "after"]
    assert b'"after"' in (tmp_path / "journal-2.jsonl").read_bytes()
    assert read_json(tmp_path).findings == ()


async def test_a_file_whose_sync_failed_is_not_used_again(store: JsonStore, disk: GatedDisk, tmp_path: Path) -> None:
    """The kernel may report success for what it has dropped: memory is written down anew as soon as possible."""
    disk.fail(1, only="sync")
    with pytest.raises(StoreUnavailable):
        await accepted(store.messages(None), "a")
    await accepted(store.messages(None), "a")
    while not store.keeper.compactions:
        await trio.lowlevel.checkpoint()
    look = read_json(tmp_path)
    assert [one.text for one in look.tables.messages.rows.values()] == ["a"]
    assert (tmp_path / "snapshot-3.json").exists()


async def test_a_caller_who_is_cancelled_leaves_something_whole(store: JsonStore, disk: GatedDisk) -> None:
    """The change is on its way and arrives; nobody else is disturbed."""
    async with trio.open_nursery() as nursery:
        with disk.shut():
            caller = Caller(nursery, lambda: delivered(store.messages(None), sent("a"), sent("b")))
            await all_wait()
            caller.scope.cancel()
            other = Caller(nursery, lambda: delivered(store.messages(None), sent("c")))
            await all_wait()
    assert caller.waits
    assert not other.waits
    assert [one.text for one in store.tables.messages.rows.values()] == ["a", "b", "c"]


async def test_a_caller_who_is_cancelled_before_it_asks_changes_nothing(store: JsonStore) -> None:
    """A cancelled scope gets no new work done."""
    with trio.CancelScope() as scope:
        scope.cancel()
        await accepted(store.messages(None), "a")
    assert scope.cancelled_caught
    assert store.tables.messages.rows == {}


async def test_a_shutdown_can_still_write(tmp_path: Path) -> None:
    """While everything around the store is being cancelled, a shielded settle is carried out and kept."""
    with trio.CancelScope() as scope:
        async with open_json(tmp_path, Wall()) as store:
            chat = await chat_of(store)
            ids = await accepted(chat, "a")
            await chat.begin("turn", ids)
            scope.cancel()
            with trio.CancelScope(shield=True):
                assert await chat.settle("turn", ids, MessageState.DONE, [])
    assert texts(tmp_path) == []


async def test_after_the_end_nothing_is_taken(tmp_path: Path) -> None:
    """A closed store says that it is closed, and changes nothing."""
    async with open_json(tmp_path, Wall()) as store:
        pass
    with pytest.raises(StoreUnavailable, match="closed") as caught:
        await accepted(store.messages(None), "a")
    assert not caught.value.retriable
    assert texts(tmp_path) == []


async def test_a_change_that_raises_leaves_no_trace(store: JsonStore, tmp_path: Path) -> None:
    """Half of a change is undone in memory and in the indexes, and its number is used again."""
    half = Incoming(DeliveryKey("fake", "bot", "b"), HERE, "ann", "text", group=object())  # type: ignore[arg-type]
    before = store.tables.seq
    with pytest.raises(RuleBroken, match="JSON"):
        await delivered(store.messages(None), sent("a"), half)
    assert (store.tables.seq, len(store.tables.messages.rows), store.tables.by_key) == (before, 0, {})
    assert await accepted(store.messages(None), "a") == [1]
    assert texts(tmp_path) == ["a"]


async def test_what_goes_wrong_inside_reaches_the_caller_as_it_is(tmp_path: Path) -> None:
    """The store makes no group of exceptions out of the one that ended its block."""
    with pytest.raises(KeyError, match="mine"):
        async with open_json(tmp_path, Wall()):
            raise KeyError("mine")
