"""What a crash, a bad sector or a careless hand does to the journal: handled, reported, nothing overwritten."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from store.files import open_json, read_json
from store.files.frames import pack
from tests.contract.backends import Wall
from tests.contract.rows import accepted, delivered, sent
from tests.faults.damage import copy, flipped, found, newest, one_by_one, opened, set_aside, write_story
from tests.faults.disk_story import chat_of, content

if TYPE_CHECKING:
    from pathlib import Path


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
