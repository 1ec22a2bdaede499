"""What a crash, a bad sector or a careless hand does to snapshots, transcripts and what lies beside them."""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING

import pytest
import trio

from store.files import open_json, read_json
from store.files.frames import pack
from store.records import Role, Said
from tests.contract.backends import Wall
from tests.contract.rows import HERE
from tests.faults.damage import files, flipped, found, newest, opened, set_aside
from tests.faults.disk_story import content

if TYPE_CHECKING:
    from pathlib import Path


# ── snapshots ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("damage", ["truncated", "garbage", "empty", "flipped", "no rows"])
async def test_a_damaged_snapshot_costs_nothing(written: Path, damage: str) -> None:
    """It is set aside, and the one before it and the journals give the same state. (R10, J2)"""
    snapshot = newest(written, "snapshot-*.json")
    expected, whole = content(read_json(written)), snapshot.read_bytes()
    snapshot.write_bytes(
        {
            "truncated": whole[: len(whole) // 2],
            "garbage": b"\x00\xff" * 500,
            "empty": b"",
            "flipped": flipped(whole, len(whole) // 3),
            "no rows": b'{"rows": []}\n',
        }[damage]
    )
    damaged = snapshot.read_bytes()
    async with opened(written) as (store, says):
        assert says == expected
        assert any(snapshot.name in finding and "damaged" in finding for finding in store.findings)
    (aside,) = found(written, "*.corrupt-*")
    assert aside.name == f"{snapshot.name}.corrupt-20260301T120000Z"
    assert aside.read_bytes() == damaged
    look = read_json(written)
    assert (content(look), look.findings) == (expected, ())


async def test_a_snapshot_that_is_damaged_anywhere_is_known_as_such(written: Path) -> None:
    """Any flipped bit, and any missing end: the state is the same as before."""
    snapshot = newest(written, "snapshot-*.json")
    expected, whole = content(read_json(written)), snapshot.read_bytes()
    for offset in range(0, len(whole), 41):
        snapshot.write_bytes(flipped(whole, offset))
        assert content(read_json(written)) == expected
        snapshot.write_bytes(whole[:offset])
        assert content(read_json(written)) == expected


async def test_without_any_snapshot_what_is_left_is_used_and_the_loss_is_told(written: Path) -> None:
    """Never an empty store without a word, and nothing is overwritten. (J2)"""
    for snapshot in found(written, "snapshot-*.json"):
        snapshot.write_bytes(b"garbage")
    names = sorted(path.name for path in found(written, "snapshot-*.json"))
    async with open_json(written, Wall()) as store:
        assert any("LOST" in finding for finding in store.findings)
        assert store.tables.messages.rows
        assert await store.tenant("default") is not None
    assert set_aside(written) == names


async def test_when_nothing_can_be_read_that_is_said_loudly(written: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An empty store is opened beside what was set aside, and the log warns of it. (J2)"""
    for path in [*found(written, "snapshot-*.json"), *found(written, "journal-*.jsonl")]:
        path.write_bytes(b"garbage\n" * 100)
    async with open_json(written, Wall()) as store:
        assert not store.tables.messages.rows
        assert any("LOST" in finding for finding in store.findings)
    assert "LOST" in caplog.text
    assert len(set_aside(written)) == 4


async def test_unfinished_files_are_removed_and_reported(written: Path) -> None:
    """An orphan temporary file is never read. (lesson 34)"""
    expected = content(read_json(written))
    orphan = written / "snapshot-99.json.tmp"
    orphan.write_bytes(b'{"goclaw":"snapshot"')
    async with opened(written) as (store, says):
        assert says == expected
        assert [orphan.name in finding for finding in store.findings] == [True]
    assert not orphan.exists()


async def test_what_is_not_ours_is_left_alone(written: Path) -> None:
    """A directory may hold other things: nothing is removed, read or stumbled over because of how its name ends."""
    theirs = {name: name.encode() for name in FOREIGN}
    for name, text in theirs.items():
        (written / name).write_bytes(text)
    (written / "x.tmp").mkdir()
    (written / "snapshot-99.json.tmp").mkdir()
    expected = content(read_json(written))
    async with opened(written) as (store, says):
        assert says == expected
        assert store.findings == ()
        for _ in range(3):
            await store.keeper.compact()
    assert {name: (written / name).read_bytes() for name in FOREIGN} == theirs
    assert (written / "x.tmp").is_dir()


FOREIGN = (
    "thesis.tmp",
    "snapshot.tmp",
    "my snapshot-1.json.tmp",
    "journal-1.jsonl.tmp",
    "journal-7.json",
    "snapshot-7.jsonl",
    "journal-01.jsonl",
    "snapshot-03.json",
)


async def test_the_unfinished_files_are_those_that_goclaw_begins(written: Path) -> None:
    """Both kinds of files that are written under another name first."""
    for name in ("sessions.json.tmp", "snapshot-12.json.tmp"):
        (written / name).write_bytes(b"half")
    async with open_json(written, Wall()) as store:
        assert len(store.findings) == 2
    assert found(written, "*.tmp") == []


@pytest.mark.parametrize("field", ["seq", "next", "schema"])
async def test_a_snapshot_with_odd_numbers_is_damage(written: Path, field: str) -> None:
    """Its checksum fits, and still it is not what goclaw writes."""
    snapshot = newest(written, "snapshot-*.json")
    expected = content(read_json(written))
    document = re.sub(rb'"%b":[0-9]+' % field.encode(), b'"%b":null' % field.encode(), snapshot.read_bytes())
    body = document.rpartition(b',"crc":"')[0]
    snapshot.write_bytes(body + b',"crc":"%08x"}\n' % zlib.crc32(body))
    async with opened(written) as (_, says):
        assert says == expected
    assert set_aside(written) == [snapshot.name]


async def test_a_journal_that_was_only_just_begun_is_no_damage(written: Path) -> None:
    """A crash while a new file was made leaves an empty or half written first line."""
    expected = content(read_json(written))
    number = int(newest(written, "journal-*.jsonl").stem.split("-")[1])
    header = pack({"journal": number + 1, "schema": 1, "after": 1234})
    for begun in (b"", b"0123", b'0123abcd {"journal":', header[:-6], header[:-1]):
        (written / f"journal-{number + 1}.jsonl").write_bytes(begun)
        async with opened(written) as (store, says):
            assert says == expected
            assert len(store.findings) == 1
        assert set_aside(written) == []


async def test_looking_changes_nothing(written: Path) -> None:
    """`read_json` takes no lock, removes nothing and sets nothing aside, whatever it finds."""
    (written / "snapshot-99.json.tmp").write_bytes(b"half")
    newest(written, "snapshot-*.json").write_bytes(b"garbage")
    before = files(written)
    async with open_json(written.parent / "other", Wall()):
        assert len(read_json(written).findings) == 2
    assert files(written) == before


# ── transcripts ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("damage", ["flipped", "shorter", "gone"])
async def test_a_damaged_transcript_keeps_its_good_lines(written: Path, damage: str) -> None:
    """The rest can be read at once; the file is set aside and the loss is told."""
    look = read_json(written)
    kept = look.tables.sessions.rows[HERE]
    file = written / "sessions" / kept.file
    whole = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(flipped(whole, 30) if damage == "flipped" else whole[:-20])
    left = {"flipped": [2], "shorter": [1], "gone": []}[damage]
    async with open_json(written, Wall()) as store:
        assert [line.number for line in await store.transcript(HERE)] == left
        while not store.findings:
            await trio.lowlevel.checkpoint()
        assert [line.number for line in await store.transcript(HERE)] == left
        assert "damaged" in store.findings[0]
    assert set_aside(written) == ([] if damage == "gone" else [kept.file])
    look = read_json(written)
    assert [line.number for line in look.lines(HERE)] == left


async def test_what_was_never_finished_in_a_transcript_is_cut(written: Path) -> None:
    """A crash after the file was written and before the journal knows: the bytes do not count."""
    kept = read_json(written).tables.sessions.rows[HERE]
    file = written / "sessions" / kept.file
    with file.open("ab") as more:
        more.write(b"half a li")
    async with open_json(written, Wall()) as store:
        assert [line.number for line in await store.transcript(HERE)] == [1, 2]
        before = await store.transcript(HERE)
        await store.remember(HERE, [before[0].said])
        await store.keeper.compact()
        assert [line.number for line in await store.transcript(HERE)] == [1, 2, 3]
        assert store.findings == ()
    assert b"half" not in file.read_bytes()


async def test_a_transcript_that_nobody_knows_is_set_aside(written: Path) -> None:
    """A file in the way of a new transcript is kept under another name, never overwritten."""
    kept = read_json(written).tables.sessions.rows[HERE]
    async with open_json(written, Wall()) as store:
        await store.forget(HERE)
    foreign = written / "sessions" / kept.file
    assert not foreign.exists()
    foreign.write_bytes(b"somebody's")
    async with open_json(written, Wall()) as store:
        await store.remember(HERE, [Said(Role.USER, "hello")])
        await store.keeper.compact()
        assert "set aside" in store.findings[0]
        assert [line.number for line in await store.transcript(HERE)] == [1]
    (aside,) = found(written, "*.corrupt-*")
    assert aside.read_bytes() == b"somebody's"
