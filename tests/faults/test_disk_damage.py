"""What a crash, a bad sector or a careless hand does to the files: handled, reported, nothing overwritten."""

from __future__ import annotations

import re
import shutil
import zlib
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import trio

from store.files import JsonStore, Look, open_json, read_json
from store.files.frames import pack
from store.files.transcripts import Transcripts
from store.records import Role, Said
from tests.contract.backends import Wall
from tests.contract.rows import HERE, accepted, delivered, sent
from tests.faults.disk_story import STORY, chat_of, content

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


async def write_story(place: Path, *, upto: int = len(STORY), compact_after: tuple[int, ...] = ()) -> list[object]:
    """Live the story there; what the directory said after each change, from the empty store on."""
    told: list[object] = []
    async with open_json(place, Wall()) as store:
        chat = await chat_of(store)
        told.append(content(read_json(place)))
        for number, step in enumerate(STORY[:upto]):
            await step(store, chat)
            told.append(content(read_json(place)))
            if number in compact_after:
                await store.keeper.compact()
    return told


@asynccontextmanager
async def opened(place: Path) -> AsyncIterator[tuple[JsonStore, object]]:
    """The store as it was recovered, and what it says."""
    async with open_json(place, Wall()) as store:
        yield store, content(Look(store.tables, (), Transcripts(store.keeper.disk, place)))


def copy(place: Path, name: str) -> Path:
    return shutil.copytree(place, place.parent / name)


def newest(place: Path, pattern: str) -> Path:
    return max(place.glob(pattern), key=lambda path: int(path.stem.split("-")[1]))


def found(place: Path, pattern: str) -> list[Path]:
    return sorted(place.rglob(pattern))


def files(place: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in found(place, "*") if path.is_file()}


def set_aside(place: Path) -> list[str]:
    return sorted(path.name.split(".corrupt-")[0] for path in found(place, "*.corrupt-*"))


@pytest.fixture
async def written(tmp_path: Path) -> Path:
    """A directory with two snapshots, journals and transcripts."""
    await write_story(tmp_path / "written", compact_after=(6, 12))
    return tmp_path / "written"


# ── the journal ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_torn_last_line_is_dropped_wherever_it_is_torn(tmp_path: Path) -> None:
    """Cut anywhere in its last line, the journal gives the state before that line, and says so. (R10)"""
    place = tmp_path / "torn"
    told = await write_story(place, upto=3)
    journal = newest(place, "journal-*.jsonl")
    whole = journal.read_bytes()
    start = whole.rindex(b"\n", 0, len(whole) - 1) + 1
    for cut in range(start, len(whole)):
        journal.write_bytes(whole[:cut])
        look = read_json(place)
        assert content(look) == told[2]
        assert len(look.findings) == (cut > start)
    journal.write_bytes(whole)
    assert content(read_json(place)) == told[3]


async def test_after_a_torn_line_the_store_goes_on(tmp_path: Path) -> None:
    """The rest of the line is cut off, and what is written next is found again. (R10)"""
    place = tmp_path / "torn"
    await write_story(place, upto=3)
    journal = newest(place, "journal-*.jsonl")
    journal.write_bytes(journal.read_bytes()[:-5])
    async with open_json(place, Wall()) as store:
        (finding,) = store.findings
        assert "torn" in finding
        assert journal.name in finding
        await accepted(await chat_of(store), "again")
    look = read_json(place)
    assert look.findings == ()
    assert [one.text for one in look.tables.messages.rows.values()] == ["again"]
    assert set_aside(place) == []


async def test_a_flipped_bit_costs_one_change(written: Path) -> None:
    """Wherever a journal is damaged, it is set aside, all other lines count, and the next start finds nothing wrong."""
    journal = newest(written, "journal-*.jsonl")
    whole = journal.read_bytes()
    expected = content(read_json(written))
    for offset in range(0, len(whole) - 1, 97):
        place = copy(written, f"flipped {offset}")
        (place / journal.name).write_bytes(flipped(whole, offset))
        async with opened(place) as (store, _):
            assert store.findings
            assert await delivered(await chat_of(store), sent("new"))
            assert set_aside(place) == [journal.name]
        assert read_json(place).findings == ()
    assert content(read_json(written)) == expected


def flipped(data: bytes, offset: int) -> bytes:
    return data[:offset] + bytes([data[offset] ^ 0x10]) + data[offset + 1 :]


async def one_by_one(place: Path, texts: str) -> Path:
    """The journal of a store that has accepted these, and never made a snapshot."""
    async with open_json(place, Wall()) as store:
        for text in texts:
            await accepted(store.messages(None), text)
    return newest(place, "journal-*.jsonl")


def with_bad_end(whole: bytes, damage: str) -> bytes:
    """The last three of five messages cannot be read any more."""
    lines = whole.splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if b'"text":"c"' in line)
    good, last = b"".join(lines[:first]), lines[first:]
    return {
        "flipped": good + b"".join(flipped(line, 30) for line in last),
        "zeros": good + bytes(len(b"".join(last))),
        "half a line, zeros": good + last[0][:40] + bytes(500),
        "garbage": good + b"\xff" * 700,
        "another's line": good + b"remember: call Ann",
        "no line feed": good + b"".join(last)[:-1].replace(b"\n", b" "),
    }[damage]


@pytest.mark.parametrize(
    "damage", ["flipped", "zeros", "half a line, zeros", "garbage", "another's line", "no line feed"]
)
async def test_an_end_that_cannot_be_read_is_kept_as_it_was(tmp_path: Path, damage: str) -> None:
    """More than one unfinished line may be damage: nothing is destroyed, nothing is promised, the good lines count."""
    journal = await one_by_one(tmp_path / "place", "abcde")
    damaged = with_bad_end(journal.read_bytes(), damage)
    journal.write_bytes(damaged)
    async with open_json(tmp_path / "place", Wall()) as store:
        assert [one.text for one in store.tables.messages.rows.values()] == ["a", "b"]
        end, kept = store.findings
        (aside,) = found(tmp_path, "*.corrupt-*")
        assert aside.read_bytes() == damaged
        assert "or damage; what it held is lost" in end
        assert kept == f"{journal.name} is kept as {aside.name}"
        await accepted(store.messages(None), "f")
    look = read_json(tmp_path / "place")
    assert look.findings == ()
    assert [one.text for one in look.tables.messages.rows.values()] == ["a", "b", "f"]


async def test_a_last_line_feed_that_was_overwritten_is_no_torn_line(tmp_path: Path) -> None:
    """Whatever took its place: what is there is kept."""
    journal = await one_by_one(tmp_path / "place", "ab")
    whole = journal.read_bytes()
    for last in (b"J", b"*", b"\x1a", b" "):
        place = copy(tmp_path / "place", f"last {last!r}")
        (place / journal.name).write_bytes(whole[:-1] + last)
        async with open_json(place, Wall()) as store:
            assert any("or damage" in finding for finding in store.findings)
        assert set_aside(place) == [journal.name]


async def test_a_journal_that_lost_its_end_before_another_is_kept(tmp_path: Path) -> None:
    """What the next journal counts on is missing: that is said, and the file is set aside."""
    journal = await one_by_one(tmp_path / "place", "ab")
    whole = journal.read_bytes()
    seq = read_json(tmp_path / "place").tables.seq
    journal.with_name("journal-2.jsonl").write_bytes(pack({"journal": 2, "schema": 1, "after": seq}))
    assert read_json(tmp_path / "place").findings == ()
    journal.write_bytes(whole[:-9])
    async with open_json(tmp_path / "place", Wall()) as store:
        assert any("MISSING" in finding for finding in store.findings)
    (aside,) = found(tmp_path, "*.corrupt-*")
    assert aside.read_bytes() == whole[:-9]


HEADERS: list[dict[str, object]] = [
    {"journal": 1, "schema": None, "after": 0},
    {"journal": 1, "schema": "1", "after": 0},
    {"journal": 1, "schema": [1], "after": 0},
    {"journal": 1, "schema": -1, "after": 0},
    {"journal": 1, "after": 0},
    {"journal": 1, "schema": 1},
    {"journal": 1, "schema": 1, "after": None},
    {"journal": None, "schema": 1, "after": 0},
]


@pytest.mark.parametrize("header", HEADERS, ids=str)
async def test_an_odd_header_is_damage(tmp_path: Path, header: dict[str, object]) -> None:
    """Its checksum fits and it says nothing that makes sense: the lines behind it count."""
    journal = await one_by_one(tmp_path / "place", "ab")
    _, _, lines = journal.read_bytes().partition(b"\n")
    journal.write_bytes(pack(header) + lines)
    async with open_json(tmp_path / "place", Wall()) as store:
        assert [one.text for one in store.tables.messages.rows.values()] == ["a", "b"]
        assert any("1 of its lines" in finding for finding in store.findings)
    assert set_aside(tmp_path) == [journal.name]
    assert read_json(tmp_path / "place").findings == ()


async def test_lines_after_a_damaged_one_count(tmp_path: Path) -> None:
    """A line holds whole rows: what was accepted before and after a damaged line is there."""
    place = tmp_path / "place"
    async with open_json(place, Wall()) as store:
        for text in "abc":
            await accepted(store.messages(None), text)
    journal = newest(place, "journal-*.jsonl")
    lines = journal.read_bytes().splitlines(keepends=True)
    (damaged,) = [number for number, line in enumerate(lines) if b'"text":"b"' in line]
    lines[damaged] = lines[damaged].replace(b'"text":"b"', b'"text":"B"')
    journal.write_bytes(b"".join(lines))
    async with open_json(place, Wall()) as store:
        assert [one.text for one in store.tables.messages.rows.values()] == ["a", "c"]
        assert any("damaged" in finding for finding in store.findings)
        assert any("MISSING" in finding for finding in store.findings)
        receipts = await delivered(store.messages(None), sent("b"), sent("c"))
        assert [receipt.fresh for receipt in receipts] == [True, False]
    assert set_aside(place) == [journal.name]


async def test_a_missing_journal_is_reported(written: Path) -> None:
    """What was written after the snapshot cannot be made up, but it is said that it is gone."""
    newest(written, "journal-*.jsonl").unlink()
    async with open_json(written, Wall()) as store:
        assert any("missing" in finding for finding in store.findings)
    assert read_json(written).findings == ()


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("content", [None, b"", b"garbage", b"\xff" * 199, bytes(60), b"0123abcd {"])
async def test_the_only_journal_is_never_lost_without_a_word(
    tmp_path: Path, content: bytes | None, closed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Missing, emptied or overwritten before there was any snapshot: it is said loudly, and what is there is kept."""
    place = tmp_path / "place"
    journal = await one_by_one(place, "abc")
    if not closed:  # as a kill leaves it
        (place / "sessions.json").unlink()
    journal.unlink()
    if content is not None:
        journal.write_bytes(content)
    async with open_json(place, Wall()) as store:
        assert any("LOST" in finding for finding in store.findings)
        assert await accepted(store.messages(None), "new")
    assert "LOST" in caplog.text
    kept = [path.read_bytes() for path in found(place, "*.corrupt-*")]
    assert kept == ([] if content in (None, b"", b"0123abcd {") else [content])
    assert read_json(place).findings == ()


@pytest.mark.parametrize("more", [0, 20, 100])
async def test_a_journal_that_was_cut_before_its_first_change_is_a_loss(tmp_path: Path, more: int) -> None:
    """The export knows of sessions: no crash has cut off the change before all others."""
    await write_story(tmp_path / "place")
    journal = newest(tmp_path / "place", "journal-*.jsonl")
    left = journal.read_bytes()[: journal.read_bytes().index(b"\n") + 1 + more]
    journal.write_bytes(left)
    async with open_json(tmp_path / "place", Wall()) as store:
        assert any("LOST" in finding for finding in store.findings)
    (aside,) = found(tmp_path, "*.corrupt-*")
    assert aside.read_bytes() == left
    assert read_json(tmp_path / "place").findings == ()


async def test_an_emptied_journal_of_a_snapshot_is_a_loss(written: Path) -> None:
    """A snapshot is made after its journal has begun: an empty one was emptied."""
    newest(written, "journal-*.jsonl").write_bytes(b"")
    async with open_json(written, Wall()) as store:
        assert any("LOST" in finding for finding in store.findings)


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
