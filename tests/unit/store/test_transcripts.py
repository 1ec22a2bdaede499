"""The files of the transcripts: any page is found without reading the rest, and lines move there unseen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from store.files import open_json, read_json
from store.files.disk import Disk
from store.files.transcripts import BLOCK
from store.records import Line, Role, Said
from tests.contract.backends import Wall
from tests.contract.rows import HERE, THERE

if TYPE_CHECKING:
    from pathlib import Path


class CountingDisk(Disk):
    """Counts what is read of transcripts."""

    def __init__(self) -> None:
        self.read_bytes = 0

    def read_at(self, file: int, size: int, offset: int) -> bytes:
        self.read_bytes += size
        return super().read_at(file, size, offset)


def said(first: int, last: int, size: int = 50) -> list[Said]:
    return [Said(Role.USER, f"line {number} " + "é" * (number * 37 % size)) for number in range(first, last + 1)]


def numbers(lines: tuple[Line, ...]) -> list[int]:
    return [line.number for line in lines]


def transcripts(place: Path) -> list[Path]:
    return sorted((place / "sessions").iterdir())


async def test_every_page_is_the_same_wherever_the_lines_are(tmp_path: Path) -> None:
    """In rows, in the file, or some here and some there: the same lines in the same order."""
    async with open_json(tmp_path, Wall()) as store:
        await store.remember(HERE, said(1, 40, 3000))
        whole = await store.transcript(HERE, limit=1000)
        await store.keeper.compact()
        assert not store.tables.lines.rows
        assert await store.transcript(HERE, limit=1000) == whole
        await store.remember(HERE, said(41, 60))
        for after in range(62):
            assert numbers(await store.transcript(HERE, after=after, limit=7)) == list(range(after + 1, 61))[:7]
            assert numbers(await store.newest(HERE, after)) == list(range(61 - after, 61))[-60:]
        await store.trim(HERE, 10)
        assert numbers(await store.transcript(HERE, limit=3)) == [11, 12, 13]
        assert numbers(await store.newest(HERE, 100)) == list(range(11, 61))
    assert numbers(read_json(tmp_path).lines(HERE)) == list(range(11, 61))


async def test_the_newest_lines_do_not_cost_the_whole_file(tmp_path: Path) -> None:
    """A long transcript is found by halving: some blocks are read, not all of it."""
    disk = CountingDisk()
    async with open_json(tmp_path, Wall(), disk=disk) as store:
        for start in range(1, 20_001, 1000):
            await store.remember(HERE, said(start, start + 999))
        await store.keeper.compact()
        (file,) = transcripts(tmp_path)
        size = file.stat().st_size
        disk.read_bytes = 0
        assert numbers(await store.newest(HERE, 5)) == list(range(19_996, 20_001))
        assert numbers(await store.transcript(HERE, after=12_345, limit=2)) == [12_346, 12_347]
        assert disk.read_bytes < 80 * BLOCK < size


async def test_lines_that_no_block_holds_are_found(tmp_path: Path) -> None:
    """A line may be longer than what is read at once."""
    async with open_json(tmp_path, Wall()) as store:
        lines = [Said(Role.TOOL, f"{number}" + "x" * BLOCK * 3) for number in range(1, 8)]
        await store.remember(HERE, lines)
        await store.keeper.compact()
        for number in range(1, 8):
            (line,) = await store.transcript(HERE, after=number - 1, limit=1)
            assert (line.number, line.said) == (number, lines[number - 1])


async def test_a_close_in_good_order_leaves_every_line_in_its_file(tmp_path: Path) -> None:
    """Memory is small again at the next start."""
    async with open_json(tmp_path, Wall()) as store:
        await store.remember(HERE, said(1, 3))
        await store.remember(THERE, said(1, 2))
        expected = await store.transcript(HERE), await store.transcript(THERE)
    assert len(transcripts(tmp_path)) == 2
    async with open_json(tmp_path, Wall()) as store:
        assert not store.tables.lines.rows
        assert (await store.transcript(HERE), await store.transcript(THERE)) == expected


async def test_a_mostly_trimmed_file_is_written_anew(tmp_path: Path) -> None:
    """What was trimmed is gone from the disk, under a new name; the old file is removed."""
    async with open_json(tmp_path, Wall()) as store:
        await store.remember(HERE, said(1, 10))
        await store.keeper.compact()
        (old,) = transcripts(tmp_path)
        await store.trim(HERE, 5)
        await store.keeper.compact()
        assert transcripts(tmp_path) == [old]
        await store.trim(HERE, 6)
        await store.keeper.compact()
        (new,) = transcripts(tmp_path)
        assert new != old
        assert b"line 6" not in new.read_bytes()
        assert numbers(await store.transcript(HERE)) == [7, 8, 9, 10]
        await store.trim(HERE, 10)
        await store.keeper.compact()
        assert transcripts(tmp_path) == []
        assert await store.transcript(HERE) == ()
        assert await store.remember(HERE, said(11, 11)) == 11
        await store.keeper.compact()
        assert numbers(await store.transcript(HERE)) == [11]


async def test_what_is_forgotten_is_gone_from_the_disk(tmp_path: Path) -> None:
    """The file of a forgotten session, and those of a deleted tenant, are removed; a new one starts from 1."""
    async with open_json(tmp_path, Wall()) as store:
        await store.remember(HERE, said(1, 3))
        await store.keeper.compact()
        assert await store.forget(HERE)
        while transcripts(tmp_path):
            await trio.lowlevel.checkpoint()
        assert await store.remember(HERE, said(1, 1)) == 1
        await store.keeper.compact()
        assert numbers(await store.transcript(HERE)) == [1]
        assert store.findings == ()


async def test_a_reader_is_not_disturbed_by_what_is_moved(tmp_path: Path) -> None:
    """Lines are added, moved, trimmed and rewritten while others read: a page never has a gap or a double."""
    async with open_json(tmp_path, Wall()) as store:
        done = trio.Event()

        async def read() -> None:
            while not done.is_set():
                page = numbers(await store.newest(HERE, 25))
                assert page == list(range(page[0], page[0] + len(page))) if page else True

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            for start in range(1, 400, 20):
                await store.remember(HERE, said(start, start + 19))
                await store.keeper.compact()
                await store.trim(HERE, start)
            done.set()
        assert store.findings == ()
        assert numbers(await store.newest(HERE, 5)) == [396, 397, 398, 399, 400]
