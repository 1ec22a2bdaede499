"""The files of the transcripts: `sessions/<hash>.jsonl`, one line of a conversation on each line, in order.

A session's row says how many bytes of its file count. What is behind them was never finished: it is not read, and cut
before the next lines are added. Lines rise by one, so any of them is found by halving, without reading the file. All
verbs block; they belong into a thread.
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from store.files import decode
from store.files.directory import SESSIONS, set_aside
from store.files.frames import pack, unpack

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from store.files.decode import Kept
    from store.files.disk import Disk
    from store.records import Line, SessionKey

BLOCK = 16 << 10


class Lines(NamedTuple):
    """What was read, and whether something that should be there is not."""

    lines: list[Line]
    damaged: bool


def file_name(key: SessionKey, taken: Collection[str]) -> str:
    """What the transcript of this session is called, if it must not be called like these."""
    stem = sha256(str(key).encode()).hexdigest()[:32]
    name, more = f"{stem}.jsonl", 0
    while name in taken:
        more += 1
        name = f"{stem}-{more}.jsonl"
    return name


class _Damaged(Exception):
    """A line is not what was written."""


class Transcripts:
    def __init__(self, disk: Disk, place: Path) -> None:
        self.disk = disk
        self.place = place / SESSIONS

    def read(self, kept: Kept, after: int, limit: int) -> Lines:
        """Up to so many of the lines behind that number. `FileNotFoundError` if the file has gone."""
        file = self.disk.look_into(self.place / kept.file)
        try:
            return self._read(file, kept.size, max(after, kept.session.trimmed), limit)
        finally:
            self.disk.let_go(file)

    def add(self, name: str, size: int, lines: Sequence[Line]) -> int:
        """Lines for a file of which so much counts; returns how much counts then. `EOFError` if it is shorter."""
        file = self.disk.append_to(self.place / name)
        try:
            there = self.disk.size(file)
            if there < size:
                raise EOFError(name)
            if there > size:
                self.disk.truncate(file, size)
            return size + self._write(file, lines)
        finally:
            self.disk.let_go(file)

    def create(self, name: str, lines: Sequence[Line], now: datetime) -> tuple[int, str | None]:
        """A new file; returns its size, and the new name of one that stood in its place, which nobody expected."""
        moved = None
        try:
            file = self.disk.create(self.place / name)
        except FileExistsError:
            moved = set_aside(self.disk, self.place / name, now)
            file = self.disk.create(self.place / name)
        try:
            size = self._write(file, lines)
        finally:
            self.disk.let_go(file)
        self.disk.sync_directory(self.place)
        return size, moved

    def remove(self, names: Sequence[str]) -> None:
        for name in names:
            self.disk.unlink(self.place / name)
        self.disk.sync_directory(self.place)

    def set_aside(self, name: str, now: datetime) -> None:
        """A damaged file gets out of the way, if it is there at all."""
        with suppress(FileNotFoundError):
            set_aside(self.disk, self.place / name, now)

    def _write(self, file: int, lines: Sequence[Line]) -> int:
        content = b"".join(map(pack, lines))
        self.disk.write(file, content)
        self.disk.sync(file)
        return len(content)

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _read(self, file: int, size: int, after: int, limit: int) -> Lines:
        try:
            start = self._find(file, size, after)
            return Lines(self._take(file, start, size, limit), damaged=False)
        except _Damaged:
            good = [line for line in map(_line, self._pieces(file, 0, size)) if line is not None]
            return Lines([line for line in good if line.number > after][:limit], damaged=True)

    def _find(self, file: int, size: int, after: int) -> int:
        """Where the first line behind that number starts: all that start before ``low`` are not behind it."""
        low, high = 0, size
        while low < high:
            middle = (low + high) // 2
            start = self._line_start(file, middle, high)
            if start >= high:
                high = middle
                continue
            piece = next(self._pieces(file, start, size), b"")
            if _good(piece).number <= after:
                low = start + len(piece) + 1
            else:
                high = middle
        return low

    def _line_start(self, file: int, offset: int, end: int) -> int:
        """Where the first line starts that does not start before the offset."""
        if offset == 0:
            return 0
        offset -= 1
        while offset < end:
            block = self.disk.read_at(file, min(BLOCK, end - offset), offset)
            if not block:
                raise _Damaged
            found = block.find(b"\n")
            if found >= 0:
                return offset + found + 1
            offset += len(block)
        return end

    def _take(self, file: int, start: int, size: int, limit: int) -> list[Line]:
        lines: list[Line] = []
        for piece in self._pieces(file, start, size):
            if len(lines) >= limit:
                break
            lines.append(_good(piece))
        return lines

    def _pieces(self, file: int, start: int, size: int) -> Iterator[bytes]:
        """The lines from there to the end; one that is cut short comes as it is, and fails its check."""
        rest = b""
        while start < size:
            block = self.disk.read_at(file, min(BLOCK, size - start), start)
            if not block:
                yield b"the file is shorter than it should be"
                return
            start += len(block)
            *lines, rest = (rest + block).split(b"\n")
            yield from lines
        if rest:
            yield rest


def _good(piece: bytes) -> Line:
    line = _line(piece)
    if line is None:
        raise _Damaged
    return line


def _line(piece: bytes) -> Line | None:
    try:
        return decode.line(unpack(piece))
    except (TypeError, ValueError, KeyError):
        return None
