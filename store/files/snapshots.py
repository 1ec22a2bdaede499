"""Everything at one moment, in one file: `snapshot-<generation>.json`, a JSON document with one row on each line.

Its first line says how and when it was written, its last one how many rows it has and the CRC-32 of all before that, so
a document that is not whole is known as such. `journal-<generation>.jsonl` begins no later than its snapshot was
begun, and rows are written as they are after a change: reading the journal over the snapshot gives the truth, however
many of its changes the snapshot has seen.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
import trio

from store.files.disk import TEMPORARY, Disk, discard
from store.files.frames import encode
from store.files.journal import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from store.files.table import Table
    from store.files.tables import Tables

SLICE_ROWS = 200
SLICE_BYTES = 128 << 10
"""So much is encoded before others have their turn: about a millisecond."""
CHUNK = 512 << 10
CRC = b',"crc":"'


def snapshot_name(generation: int) -> str:
    return f"snapshot-{generation}.json"


@dataclass(frozen=True, slots=True)
class Snapshot:
    schema: int
    seq: int
    next_id: int
    rows: list[Any]


class NotWhole(Exception):
    """The document is not what was written."""


class NewerSchema(Exception):
    """Written by a program that knows more."""


def read_snapshot(document: bytes) -> Snapshot:
    """What a document says, if it is whole and not from the future."""
    body, mark, crc = document.rpartition(CRC)
    if not mark or crc != b'%08x"}\n' % zlib.crc32(body):
        raise NotWhole("its checksum does not fit")
    try:
        raw = orjson.loads(document)
        check_schema(raw["schema"])
        if raw["count"] != len(raw["rows"]):
            raise NotWhole("rows are missing")
        if not (type(raw["seq"]) is type(raw["next"]) is type(raw["schema"]) is int):
            raise NotWhole("its numbers are none")
        return Snapshot(raw["schema"], raw["seq"], raw["next"], raw["rows"])
    except (ValueError, KeyError, TypeError) as error:
        raise NotWhole(str(error)) from None


def check_schema(schema: int) -> None:
    if schema > SCHEMA:
        raise NewerSchema(f"schema {schema}, while this goclaw knows {SCHEMA}")


class SnapshotFile:
    """A document that is being written; nobody sees it before it is whole. Its verbs block."""

    def __init__(self, disk: Disk, place: Path, generation: int, seq: int) -> None:
        self.disk = disk
        self.path = place / snapshot_name(generation)
        self.temporary = place / (snapshot_name(generation) + TEMPORARY)
        self.file = disk.create(self.temporary, anew=True)
        self.count = 0
        self.size = 0
        self.crc = 0
        head = {"goclaw": "snapshot", "schema": SCHEMA, "generation": generation, "seq": seq, "rows": []}
        self.rest = [encode(head).removesuffix(b"]}")]

    def add(self, rows: list[bytes]) -> None:
        """So many more rows."""
        if rows:
            start = b"\n" if self.count == 0 else b",\n"
            self.rest.append(start + b",\n".join(rows))
            self.count += len(rows)
        self._write(b"".join(self.rest))
        self.rest = []

    def finish(self, next_id: int) -> None:
        """Everything is in it: from now on it is the snapshot."""
        self._write(b"".join([*self.rest, b'\n],"next":%d,"count":%d' % (next_id, self.count)]))
        self.disk.write(self.file, CRC + b'%08x"}\n' % self.crc)
        self.disk.sync(self.file)
        self.disk.replace(self.temporary, self.path)
        self.disk.sync_directory(self.path.parent)

    def close(self) -> None:
        """Whether finished or not."""
        self.disk.let_go(self.file)

    def abandon(self) -> None:
        discard(self.disk, self.temporary)

    def _write(self, piece: bytes) -> None:
        self.crc = zlib.crc32(piece, self.crc)
        self.size += len(piece)
        self.disk.write(self.file, piece)


class Slice(NamedTuple):
    rows: list[bytes]
    size: int


def slices(table: Table[Any, Any]) -> Iterator[Slice]:
    """The rows of a table, encoded a few at a time; each as it is when its turn comes, or a moment before."""
    rows: list[bytes] = []
    size = 0
    for key, row in table.rows.piecewise():
        rows.append(encode((table.name, key, row)))
        size += len(rows[-1])
        if len(rows) >= SLICE_ROWS or size >= SLICE_BYTES:
            yield Slice(rows, size)
            rows, size = [], 0
    yield Slice(rows, size)


def write_at_once(disk: Disk, place: Path, tables: Tables, generation: int) -> None:
    """A snapshot of tables that nobody changes, while they are opened. Blocks."""
    snapshot = SnapshotFile(disk, place, generation, tables.seq)
    try:
        for table in tables.every.values():
            for piece in slices(table):
                snapshot.add(piece.rows)
        snapshot.finish(tables.next_id)
    except OSError:
        snapshot.abandon()
        raise
    finally:
        snapshot.close()


async def fill(snapshot: SnapshotFile, tables: Tables) -> None:
    """All rows, while others work: no table is seen at the same moment as another."""
    gathered: list[bytes] = []
    size = 0
    for table in tables.every.values():
        for piece in slices(table):
            gathered += piece.rows
            size += piece.size
            if size >= CHUNK:
                await trio.to_thread.run_sync(snapshot.add, gathered)
                gathered, size = [], 0
            else:
                await trio.lowlevel.checkpoint()
    await trio.to_thread.run_sync(snapshot.add, gathered)
