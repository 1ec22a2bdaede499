"""The lives of the store in files, on a disk that fails when told to and forgets what was not synced."""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import asynccontextmanager
from itertools import count
from threading import RLock
from typing import TYPE_CHECKING

import trio

from store.files import JsonStore, open_json
from store.files.disk import Disk
from tests.contract.held import Held

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import pytest

    from store.protocols import Store
    from tests.contract.backends import Wall

COMPACT_AT = 6_000
"""So little that the journal is folded in the middle of a history."""
TROUBLES = [
    ("write", errno.ENOSPC, 0.0),
    ("write", errno.EIO, 0.5),
    ("write", errno.ENOSPC, 0.99),
    ("sync", errno.EIO, 1.0),
    ("create", errno.EMFILE, 0.0),
    ("replace", errno.EIO, 0.0),
    ("truncate", errno.EIO, 0.0),
]
"""Which call fails, how, and how much of a write has got through by then."""


class ForgetfulDisk(Disk):
    """It waits for no device: whatever was not synced is gone after `left_after_a_crash`."""

    def __init__(self, place: Path) -> None:
        self.calls = RLock()
        self.safe = {found.st_ino: found.st_size for path in place.rglob("*") if (found := path.stat())}
        """How much of a file, by its inode, survives; all of what was there before."""
        self.failing: dict[str, tuple[int, float]] = {}

    def fail_soon(self, call: str, number: int, part: float) -> None:
        self.failing[call] = (number, part)

    def create(self, path: Path, *, anew: bool = False) -> int:
        with self.calls:
            self._fail("create")
            file = super().create(path, anew=anew)
            self.safe[os.fstat(file).st_ino] = 0
            return file

    def write(self, file: int, data: bytes) -> None:
        with self.calls:
            if "write" in self.failing:
                super().write(file, data[: int(len(data) * self.failing["write"][1])])
            self._fail("write")
            super().write(file, data)

    def sync(self, file: int) -> None:
        with self.calls:
            self._fail("sync")
            found = os.fstat(file)
            self.safe[found.st_ino] = found.st_size

    def sync_directory(self, path: Path) -> None:
        pass

    def truncate(self, file: int, size: int) -> None:
        with self.calls:
            self._fail("truncate")
            super().truncate(file, size)
            inode = os.fstat(file).st_ino
            self.safe[inode] = min(size, self.safe.get(inode, size))

    def replace(self, old: Path, new: Path) -> None:
        with self.calls:
            self._fail("replace")
            super().replace(old, new)

    def unlink(self, path: Path) -> None:
        with self.calls:
            super().unlink(path)

    def left_after_a_crash(self, place: Path, elsewhere: Path) -> None:
        """Copy what would be found. No call is under way meanwhile, so each is in it as a whole or not at all."""
        with self.calls:
            shutil.copytree(place, elsewhere)
            for path in place.rglob("*"):
                safe = self.safe.get(path.stat().st_ino)
                if path.is_file() and safe is not None:
                    os.truncate(elsewhere / path.relative_to(place), safe)

    def _fail(self, call: str) -> None:
        failing = self.failing.pop(call, None)
        if failing is not None:
            raise OSError(failing[0], os.strerror(failing[0]))


class JsonLife:
    def __init__(self, root: Path, nursery: trio.Nursery) -> None:
        self._places = (root / str(number) for number in count())
        self._nursery = nursery
        self._held: Held | None = None
        self._wall: Wall
        self._place: Path
        self._disk: ForgetfulDisk

    async def start(self, wall: Wall) -> Store:
        self._wall = wall
        self._place = next(self._places)
        return await self._open()

    async def reopen(self) -> Store:
        await self._close()
        return await self._open()

    async def crash(self) -> Store:
        """The old one is closed too, but only after what it leaves was copied to where the next one looks."""
        old, elsewhere = self._place, next(self._places)
        self._disk.left_after_a_crash(old, elsewhere)
        await self._close()
        shutil.rmtree(old)
        self._place = elsewhere
        return await self._open()

    async def trouble(self, kind: int) -> None:
        self._disk.fail_soon(*TROUBLES[kind])

    async def end(self) -> None:
        if self._held is not None:
            await self._close()
            shutil.rmtree(self._place)

    async def _open(self) -> Store:
        self._disk, self._held = ForgetfulDisk(self._place), Held(self._nursery)
        store = await self._held.open(open_json(self._place, self._wall, disk=self._disk, compact_at=COMPACT_AT))
        assert isinstance(store, JsonStore)
        assert not [one for one in store.findings if "missing" in one.lower()], store.findings
        return store

    async def _close(self) -> None:
        assert self._held is not None
        self._disk.failing.clear()
        await self._held.close()
        self._held = None


class JsonLives:
    name = "json"
    histories = 14

    @asynccontextmanager
    async def live(self, place: Path, request: pytest.FixtureRequest) -> AsyncIterator[JsonLife]:
        async with trio.open_nursery() as nursery:
            yield JsonLife(place, nursery)
            nursery.cancel_scope.cancel()
