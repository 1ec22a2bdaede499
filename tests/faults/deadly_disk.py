"""A disk on which the process dies at a chosen call: just before it, or with half of a write done.

With a power failure as the cause, what was not synced is lost too: the end of a file, and a name in a directory. A
SIGKILL alone would never show an acknowledgement that came before the sync.
"""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import TYPE_CHECKING, NoReturn

from store.files.disk import Disk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from random import Random

DAWDLE = 0.1
DAWDLE_S = 0.02


@dataclass(slots=True)
class Unsynced:
    """What a power failure may take away."""

    paths: dict[int, Path] = field(default_factory=dict)  # by open file
    safe: dict[Path, int] = field(default_factory=dict)  # how much of each file is safe
    names: list[tuple[Path | None, Path]] = field(default_factory=list)  # made, or renamed from another

    def opened(self, file: int, path: Path) -> None:
        self.paths[file] = path
        self.safe[path] = os.fstat(file).st_size

    def cut(self, file: int, size: int) -> None:
        if path := self.paths.get(file):
            self.safe[path] = min(size, self.safe[path])

    def synced(self, file: int) -> None:
        if path := self.paths.get(file):
            self.safe[path] = os.fstat(file).st_size

    def renamed(self, old: Path, new: Path) -> None:
        self.names.append((old, new))
        if old in self.safe:
            self.safe[new] = self.safe.pop(old)
        self.paths = {file: new if path == old else path for file, path in self.paths.items()}

    def synced_directory(self, path: Path) -> None:
        self.names = [(old, new) for old, new in self.names if new.parent != path]

    def lose(self, random: Random) -> None:
        for path, size in self.safe.items():
            if path.exists() and path.stat().st_size > size:
                os.truncate(path, random.randint(size, path.stat().st_size))
        for old, new in reversed(self.names):
            if new.exists() and random.random() < 0.7:
                new.unlink() if old is None else new.replace(old)


class DeadlyDisk(Disk):
    """One call at a time, so that the last one is the last for all threads."""

    def __init__(self, calls: int, random: Random, *, after: str, power: bool) -> None:
        self.left = calls
        self.after = after  # only what directly follows a call of this name counts, all if it is empty
        self.last = ""
        self.random = random
        self.power = power
        self.unsynced = Unsynced()
        self.turn = Lock()

    @contextmanager
    def call(self, name: str) -> Iterator[None]:
        self.dawdle()
        with self.turn:
            if self.is_last(name):
                self.die()
            yield

    def is_last(self, name: str) -> bool:
        self.left -= self.after in ("", self.last)
        self.last = name
        return self.left == 0

    def dawdle(self) -> None:
        """Now and then let others overtake, so that the threads meet in every order."""
        if self.random.random() < DAWDLE:
            Event().wait(self.random.random() * DAWDLE_S)

    def die(self) -> NoReturn:
        if self.power:
            self.unsynced.lose(self.random)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("nobody survives this")

    def create(self, path: Path, *, anew: bool = False) -> int:
        with self.call("create"):
            file = super().create(path, anew=anew)
            self.unsynced.opened(file, path)
            self.unsynced.names.append((None, path))
            return file

    def append_to(self, path: Path) -> int:
        with self.call("append_to"):
            file = super().append_to(path)
            self.unsynced.opened(file, path)
            return file

    def write(self, file: int, data: bytes) -> None:
        self.dawdle()
        with self.turn:
            if self.is_last("write"):
                super().write(file, data[: self.random.randrange(len(data) + 1)])
                self.die()
            super().write(file, data)

    def truncate(self, file: int, size: int) -> None:
        with self.call("truncate"):
            super().truncate(file, size)
            self.unsynced.cut(file, size)

    def sync(self, file: int) -> None:
        with self.call("sync"):
            super().sync(file)
            self.unsynced.synced(file)

    def sync_directory(self, path: Path) -> None:
        with self.call("sync_directory"):
            super().sync_directory(path)
            self.unsynced.synced_directory(path)

    def replace(self, old: Path, new: Path) -> None:
        with self.call("replace"):
            super().replace(old, new)
            self.unsynced.renamed(old, new)

    def unlink(self, path: Path) -> None:
        with self.call("unlink"):
            super().unlink(path)

    def close(self, file: int) -> None:
        with self.call("close"):
            self.unsynced.paths.pop(file, None)
            super().close(file)
