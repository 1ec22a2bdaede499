"""What was typed before, in a file of one JSON string per line that only its owner may read.

Whoever begins a line with a blank does not want it kept. A file that cannot be written is no reason not to chat.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from prompt_toolkit.history import History

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

KEPT = 1_000
LONGEST = 10_000


class LineHistory(History):
    def __init__(self, file: Path | None) -> None:
        super().__init__()
        self._file = file
        self._last = ""

    def append_string(self, string: str) -> None:
        if string.strip() and not string[0].isspace() and string != self._last:
            self._last = string
            super().append_string(string)

    def load_history_strings(self) -> Iterable[str]:
        """Newest first, as the input line goes through them."""
        lines = [] if self._file is None else read(self._file)
        if self._file is not None and len(lines) > 2 * KEPT:
            with suppress(OSError):
                rewrite(self._file, lines[-KEPT:])
        return reversed(lines[-KEPT:])

    def store_string(self, string: str) -> None:
        if self._file is None or len(string) > LONGEST:
            return
        with suppress(OSError):
            append(self._file, os.O_APPEND, [string])


def read(file: Path) -> list[str]:
    try:
        data = file.read_text("utf-8", errors="replace")
    except OSError:
        return []
    return [line for line in map(parsed, data.split("\n")) if line]


def rewrite(file: Path, lines: list[str]) -> None:
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    append(fresh, os.O_TRUNC, lines)
    fresh.replace(file)


def append(file: Path, how: int, lines: list[str]) -> None:
    data = "".join(f"{json.dumps(line)}\n" for line in lines)
    fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | how, 0o600)
    try:
        os.fchmod(fd, 0o600)
        os.write(fd, data.encode())
    finally:
        os.close(fd)


def parsed(line: str) -> str:
    """A line of the file; what is none (half of one, after a full disk) is skipped."""
    try:
        value = json.loads(line)
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""
