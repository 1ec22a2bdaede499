"""Lines from a file descriptor, without a thread and without touching its blocking mode.

A terminal shares its open file between input and output, so making it non-blocking would break every print. Instead
each read waits until there is something; one reader at a time, so the read itself then never blocks. Files and
/dev/null cannot be waited for and are always ready.
"""

from __future__ import annotations

import os

import trio

LONGEST_LINE = 1_000_000
CHUNK = 65_536


class LineTooLong(Exception):
    """A line was longer than `LONGEST_LINE`; it was skipped up to its end."""


class LineReader:
    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._rest = b""
        self._skipping = False
        self._ended = False

    async def read(self) -> list[str] | None:
        """The lines that are there, at least one, or None at the end. A last line without newline counts."""
        while not self._ended:
            chunk = await self._chunk()
            if not chunk:
                self._ended = True
                last, self._rest = self._rest, b""
                return [text(last)] if last and not self._skipping else None
            lines = self._split(chunk)
            if lines:
                return lines
        return None

    def _split(self, chunk: bytes) -> list[str]:
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        if self._skipping and whole:
            self._skipping = False
            whole = whole[1:]
        if len(self._rest) > LONGEST_LINE:
            self._rest, told, self._skipping = b"", self._skipping, True
            if not told:
                raise LineTooLong(f"a line of more than {LONGEST_LINE:,} characters was skipped")
        return [text(line) for line in whole]

    async def _chunk(self) -> bytes:
        try:
            await trio.lowlevel.wait_readable(self._fd)
        except PermissionError:  # a plain file
            await trio.lowlevel.checkpoint()
        except OSError:  # there is no standard input
            return b""
        try:
            return os.read(self._fd, CHUNK)
        except OSError:
            return b""


def text(line: bytes) -> str:
    return line.removesuffix(b"\r").decode("utf-8", errors="replace")
