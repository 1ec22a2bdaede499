"""A disk of which one call fails, or all from one on, until it is healed: full, broken, read-only."""

from __future__ import annotations

import errno
import os
from threading import Lock
from typing import TYPE_CHECKING

from store.files.disk import Disk

if TYPE_CHECKING:
    from pathlib import Path


class FaultyDisk(Disk):
    """Counts the calls that could fail. A write that fails has written half of what it should."""

    def __init__(self) -> None:
        self.calls = 0
        self.failed: list[str] = []
        """What has failed so far."""
        self._at = 0
        self._times = 0
        self._error = errno.EIO
        self._only: frozenset[str] = frozenset()
        self._turn = Lock()

    def fail(self, nth: int = 1, *, error: int = errno.EIO, times: int = 1, only: str = "") -> None:
        """The nth call from now on fails, and so many in all; ``only`` names the calls that count."""
        with self._turn:
            self.calls, self.failed = 0, []
            self._at, self._times, self._error, self._only = nth, times, error, frozenset(only.split())

    def heal(self) -> None:
        with self._turn:
            self._at = self._times = 0

    def _step(self, name: str) -> None:
        with self._turn:
            if self._only and name not in self._only:
                return
            self.calls += 1
            if self._at <= self.calls < self._at + self._times:
                self.failed.append(name)
                raise OSError(self._error, os.strerror(self._error))

    def make_directory(self, path: Path) -> None:
        self._step("make_directory")
        super().make_directory(path)

    def names(self, path: Path) -> list[str]:
        self._step("names")
        return super().names(path)

    def create(self, path: Path, *, anew: bool = False) -> int:
        self._step("create")
        return super().create(path, anew=anew)

    def append_to(self, path: Path) -> int:
        self._step("append_to")
        return super().append_to(path)

    def look_into(self, path: Path) -> int:
        self._step("look_into")
        return super().look_into(path)

    def lock(self, path: Path) -> int:
        self._step("lock")
        return super().lock(path)

    def sign(self, lock: int, text: bytes) -> None:
        self._step("sign")
        super().sign(lock, text)

    def read(self, path: Path) -> bytes:
        self._step("read")
        return super().read(path)

    def read_at(self, file: int, size: int, offset: int) -> bytes:
        self._step("read_at")
        return super().read_at(file, size, offset)

    def size(self, file: int) -> int:
        self._step("size")
        return super().size(file)

    def write(self, file: int, data: bytes) -> None:
        try:
            self._step("write")
        except OSError:
            super().write(file, data[: len(data) // 2])
            raise
        super().write(file, data)

    def truncate(self, file: int, size: int) -> None:
        self._step("truncate")
        super().truncate(file, size)

    def sync(self, file: int) -> None:
        self._step("sync")
        super().sync(file)

    def sync_directory(self, path: Path) -> None:
        self._step("sync_directory")
        super().sync_directory(path)

    def replace(self, old: Path, new: Path) -> None:
        self._step("replace")
        super().replace(old, new)

    def unlink(self, path: Path) -> None:
        self._step("unlink")
        super().unlink(path)

    def close(self, file: int) -> None:
        """What was open is closed even when that is reported as an error."""
        super().close(file)
        self._step("close")
