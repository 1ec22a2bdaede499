"""Compaction: the journal is folded into a snapshot while everybody works on, and nothing depends on when."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING

import orjson
import trio
import trio.lowlevel

from store.files import JsonStore, open_json, read_json
from store.files.snapshots import SLICE_BYTES, SLICE_ROWS
from store.records import MessageState, Note, OwnKey, Role, Said, Seen, SessionPolicy
from tests.contract.backends import Wall
from tests.contract.rows import HERE, accepted, running, sent
from tests.faults.disk_story import STORY, chat_of, content
from tests.faults.faulty_disk import FaultyDisk

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def names(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir() if "-" in path.name)


async def remember_many(store: JsonStore, count: int) -> None:
    """So many messages that have ended: the bulk of what is kept."""
    wall = Wall()

    def put(start: int) -> None:
        for number in range(start, min(start + 1000, count)):
            row = Seen(number, MessageState.DONE, wall.time)
            store.tables.put(store.tables.seen, OwnKey("default", "fake", "bot", f"old {number}"), row)

    for start in range(0, count, 1000):
        await store.journal.do(lambda start=start: put(start))  # type: ignore[misc]


async def test_it_happens_by_itself_and_the_journal_stays_small(tmp_path: Path) -> None:
    """When the journal passes its limit it is folded; what is found afterwards is the same."""
    async with open_json(tmp_path, Wall(), compact_at=4000) as store:
        for number in range(300):
            await accepted(store.messages(None), str(number))
        while store.keeper.compactions < 2:
            await accepted(store.messages(None), f"more {store.tables.seq}")
        expected = content(read_json(tmp_path))
        assert store.journal.file.size < 200_000
    assert content(read_json(tmp_path)) == expected


async def test_two_generations_are_kept(tmp_path: Path) -> None:
    """The snapshot before the newest, and all journals since, stay until the next one is complete."""
    async with open_json(tmp_path, Wall()) as store:
        for number in range(4):
            await accepted(store.messages(None), str(number))
            await store.keeper.compact()
        assert names(tmp_path) == ["journal-4.jsonl", "journal-5.jsonl", "snapshot-4.json", "snapshot-5.json"]


async def test_a_snapshot_is_a_document_that_anybody_can_read(tmp_path: Path) -> None:
    """Valid JSON with a row on each line, its number of rows and the checksum of all before it."""
    async with open_json(tmp_path, Wall()) as store:
        await accepted(store.messages(None), "a", "b")
        await store.keeper.compact()
        raw = (tmp_path / "snapshot-2.json").read_bytes()
    document = json.loads(raw)
    assert document["count"] == len(document["rows"]) == raw.count(b"\n[")
    assert document["generation"] == 2
    body = raw[: raw.rindex(b',"crc"')]
    assert document["crc"] == f"{zlib.crc32(body):08x}"
    assert sorted({table for table, _, _ in document["rows"]}) == ["message", "meta", "tenant"]


async def test_nobody_waits_for_it(tmp_path: Path) -> None:
    """Between two slices of rows everybody else has a turn: a snapshot of 20,000 rows takes at least 100 steps."""
    turns = 0

    async def count_turns(done: trio.Event) -> None:
        nonlocal turns
        while not done.is_set():
            turns += 1
            await trio.lowlevel.checkpoint()

    async with open_json(tmp_path, Wall()) as store:
        await remember_many(store, 20_000)
        async with trio.open_nursery() as nursery:
            done = trio.Event()
            nursery.start_soon(count_turns, done)
            await store.keeper.compact()
            done.set()
    assert turns >= 20_000 // SLICE_ROWS
    assert SLICE_BYTES <= 1 << 20


async def test_work_goes_on_meanwhile_and_is_found_again(tmp_path: Path) -> None:
    """Rows that are added, changed and removed while the snapshot is written are as they were left."""
    async with open_json(tmp_path, Wall()) as store:
        chat = await chat_of(store)
        await remember_many(store, 5000)
        done = trio.Event()

        async def work() -> None:
            number = 0
            while not done.is_set():
                number += 1
                ids = await running(chat, f"new {number}", turn=f"turn {number}")
                if number % 3:
                    said = [Said(Role.USER, f"line {number}")]
                    await chat.settle(f"turn {number}", ids, MessageState.DONE, [Note(HERE, "done")], said)
                for reply in await chat.outbox(1):
                    await chat.sent(reply.id)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(work)
            for _ in range(3):
                await store.keeper.compact()
            done.set()
        expected = {table.name: dict(table.rows) for table in store.tables.every.values()}
        look = read_json(tmp_path)
        assert {table.name: dict(table.rows) for table in look.tables.every.values()} == expected
        assert (look.tables.seq, look.tables.next_id) == (store.tables.seq, store.tables.next_id)


async def test_a_snapshot_that_may_have_seen_undone_changes_is_thrown_away(tmp_path: Path) -> None:
    """A write fails while it is being made: it is not used, and the next one is."""
    disk = FaultyDisk()
    async with open_json(tmp_path, Wall(), disk=disk) as store:
        await remember_many(store, 5000)
        generation = store.journal.file.generation

        async def fail_meanwhile() -> None:
            while store.journal.file.generation == generation:
                await trio.lowlevel.checkpoint()
            store.journal.failures += 1  # as the journal counts what it had to undo

        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail_meanwhile)
            await store.keeper.compact()
        assert store.keeper.compactions == 0
        assert names(tmp_path) == ["journal-1.jsonl", "journal-2.jsonl"]
        await store.keeper.compact()
        assert names(tmp_path)[-1] == "snapshot-3.json"


async def test_a_compaction_that_fails_is_tried_again_later(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The disk is full: a warning, no lost change, and after some more changes it succeeds."""
    disk = FaultyDisk()
    async with open_json(tmp_path, Wall(), disk=disk, compact_at=8000) as store:
        disk.fail(1, only="replace")
        number = 0
        while not store.keeper.compactions:
            number += 1
            await accepted(store.messages(None), str(number))
        assert disk.failed == ["replace"]
        assert "could not tidy up" in caplog.text
        assert len(read_json(tmp_path).tables.messages.rows) == number


async def test_the_export_tells_people_what_there_is(tmp_path: Path) -> None:
    """Sessions with their policy, their figure and what waits; it is written at the end, and never read back."""
    async with open_json(tmp_path, Wall()) as store:
        chat = await chat_of(store)
        await store.set_policy(HERE, SessionPolicy(mode="collect"))
        ids = await running(chat, "a")
        await accepted(chat, "b", "c")
        await chat.settle("turn", ids, MessageState.DONE, [Note(HERE, "answer")], [Said(Role.USER, "a")], 0.5)
        await chat.accept([sent("d")])
    document = orjson.loads((tmp_path / "sessions.json").read_bytes())
    (entry,) = document["sessions"]
    assert document["written_at"] == "2026-03-01T12:00:00Z"
    assert entry.pop("transcript").startswith("sessions/")
    assert entry == {
        "session": "default:main:fake:bot:here::0",
        "policy": {"mode": "collect"},
        "context": 0.5,
        "lines": 1,
        "trimmed": 0,
        "updated_at": "2026-03-01T12:00:00Z",
        "waiting": 3,
        "running": 0,
        "unsent": 1,
    }
    (tmp_path / "sessions.json").write_bytes(b"nonsense")
    assert read_json(tmp_path).findings == ()


async def test_the_whole_story_survives_compaction_at_every_step(tmp_path: Path) -> None:
    """Whenever the journal is folded, the directory says the same before and after."""
    async with open_json(tmp_path, Wall()) as store:
        chat = await chat_of(store)
        for step in STORY:
            await step(store, chat)
            before = content(read_json(tmp_path))
            await store.keeper.compact()
            assert content(read_json(tmp_path)) == before
