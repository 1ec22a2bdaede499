"""A terminal as prompt_toolkit wants it: when it is gone, drawing ends quietly and so do the keys."""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING, cast

from prompt_toolkit.data_structures import Size
from prompt_toolkit.input.posix_utils import PosixStdinReader
from prompt_toolkit.input.vt100 import Vt100Input

if TYPE_CHECKING:
    from typing import TextIO


class Sink:
    """Where drawing goes. When nobody is there any more, it goes nowhere and says so."""

    encoding = "utf-8"

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.gone = False

    def write(self, text: str) -> None:
        data = text.encode("utf-8", errors="replace")
        try:
            while data and not self.gone:
                data = data[os.write(self._fd, data) :]
        except OSError:
            self.gone = True

    def flush(self) -> None:
        """Everything is written at once."""

    def fileno(self) -> int:
        return self._fd

    def isatty(self) -> bool:
        return True

    def size(self) -> Size:
        try:
            columns, rows = os.get_terminal_size(self._fd)
        except OSError:
            columns, rows = 0, 0
        return Size(rows=rows or 24, columns=columns or 80)


class Keyboard(Vt100Input):
    """Keys from a file descriptor, which stays open."""

    def __init__(self, fd: int) -> None:
        with open(fd, encoding="utf-8", closefd=False) as file:
            super().__init__(file)
        self.stdin = cast("TextIO", Sink(fd))
        self.stdin_reader = KeyReader(fd)


class KeyReader(PosixStdinReader):
    """Takes reading that fails for the end, as of a terminal that belongs to somebody else by now (EIO).

    prompt_toolkit's own takes the failure for a signal's, and would ask for keys again and again.
    """

    def read(self, count: int = 1024) -> str:
        try:
            if self.closed or not select.select([self.stdin_fd], [], [], 0)[0]:
                return ""
            data = os.read(self.stdin_fd, count)
        except BlockingIOError:
            return ""
        except OSError:
            data = b""
        self.closed = not data
        return self._stdin_decoder.decode(data)
