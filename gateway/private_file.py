"""A file of lines for its owner alone: it grows to a size, then an old one makes room.

Nothing is made before there is something to write. A line that cannot be written is dropped and counted, and that is
said once; whoever writes never notices.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from io import TextIOWrapper

logger = logging.getLogger("goclaw.files")

LARGEST = 10_000_000
"""Bytes of one file."""
OLD_FILES = 5


class PrivateFile(RotatingFileHandler):
    """A file that only its owner can read, made with its directory at the first line."""

    def __init__(self, path: Path, largest: int = LARGEST) -> None:
        super().__init__(path, maxBytes=largest, backupCount=OLD_FILES, encoding="utf-8", delay=True)
        self.dropped = 0

    def write(self, line: str) -> None:
        # `emit` catches everything that goes wrong with the file, and calls `handleError`.
        self.handle(logging.makeLogRecord({"msg": line}))

    def handleError(self, record: logging.LogRecord) -> None:
        self.dropped += 1
        self._give_up_stream()
        if self.dropped == 1:
            logger.warning("%s cannot be written; its lines are dropped until it can be", self.baseFilename)

    def close(self) -> None:
        self._give_up_stream()
        super().close()

    def _give_up_stream(self) -> None:
        """What a full disk did not take is not written later, in the middle of something else."""
        stream, self.stream = self.stream, None  # opened again by the next line
        if stream is not None:
            with suppress(OSError, ValueError):
                stream.close()

    def _open(self) -> TextIOWrapper:
        path = Path(self.baseFilename)
        path.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return os.fdopen(descriptor, "a", encoding="utf-8")
