"""A directory taken into use: locked against a second process, recovered, mended, ready to be written."""

from __future__ import annotations

import errno
import logging
import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from store.files.disk import Disk, cannot_open
from store.files.journal import JournalFile
from store.files.recovery import Recovered, recover
from store.files.snapshots import write_at_once
from store.protocols import InUse

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from store.files.tables import Tables

LOCK = "LOCK"
SESSIONS = "sessions"

log = logging.getLogger("goclaw.store")


@dataclass(frozen=True, slots=True)
class Opened:
    tables: Tables
    file: JournalFile
    findings: tuple[str, ...]
    lock: int


def open_directory(disk: Disk, place: Path, now: datetime) -> Opened:
    """Lock, read, mend. Blocks. `CannotOpen` says what to do, and nothing that was kept is gone."""
    try:
        _look_first(disk, place)
        for directory in (*reversed(place.parents), place):
            _make(disk, directory)
        lock = _lock(disk, place, now)
        try:
            found = recover(disk, place)
            file = _mend(disk, place, found, now)
        except BaseException:
            disk.let_go(lock)
            raise
    except OSError as error:
        raise cannot_open(error, place) from error
    for finding in found.findings:
        log.warning("%s: %s", place, finding)
    return Opened(found.tables, file, tuple(found.findings), lock)


def set_aside(disk: Disk, path: Path, now: datetime) -> str:
    """A damaged file gets out of the way under a name that nobody has; returns the name."""
    stamp = f"{now:%Y%m%dT%H%M%SZ}"
    taken = set(disk.names(path.parent))
    name, more = f"{path.name}.corrupt-{stamp}", 1
    while name in taken:
        more += 1
        name = f"{path.name}.corrupt-{stamp}-{more}"
    disk.replace(path, path.with_name(name))
    return name


def _look_first(disk: Disk, place: Path) -> None:
    """What will be refused is refused before anything is made, also where there is no lock yet."""
    if (place / SESSIONS).is_file():
        raise NotADirectoryError(errno.ENOTDIR, "Not a directory", str(place / SESSIONS))
    if place.is_dir() and not (place / LOCK).exists():
        recover(disk, place)


def _make(disk: Disk, directory: Path) -> None:
    if not directory.is_dir():
        with suppress(FileExistsError):
            disk.make_directory(directory)
        if not directory.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "Not a directory", str(directory))
        with suppress(PermissionError):  # one may be allowed to write there and not to read
            disk.sync_directory(directory.parent)


def _lock(disk: Disk, place: Path, now: datetime) -> int:
    try:
        lock = disk.lock(place / LOCK)
    except BlockingIOError:
        owner = disk.read(place / LOCK).decode(errors="replace").strip() or "another process"
        raise InUse(
            f"the data directory {place} is in use by {owner}: stop that goclaw, or give this one a directory of its "
            "own with GOCLAW_DATA_DIR",
            path=str(place),
            owner=owner,
        ) from None
    try:
        disk.sign(lock, f"process {os.getpid()}, started {now:%Y-%m-%dT%H:%M:%SZ}\n".encode())
    except OSError:
        disk.let_go(lock)
        raise
    return lock


def _mend(disk: Disk, place: Path, found: Recovered, now: datetime) -> JournalFile:
    """Make the directory say what was recovered, before anything is removed or set aside."""
    file = JournalFile(disk, place, found.newest)
    try:
        if found.renew or found.journal is None:
            file.begin(found.tables.seq)
            if found.renew:
                write_at_once(disk, place, found.tables, file.generation)
        else:
            file.generation = found.journal.generation
            file.go_on(found.journal.good)
        _make(disk, place / SESSIONS)  # after the first journal: recovery takes it for a sign that there was one
        for name in found.aside:
            kept = set_aside(disk, place / name, now)
            found.findings.append(f"{name} is kept as {kept}")
        for name in found.remove:
            disk.unlink(place / name)
        disk.sync_directory(place)
    except OSError:
        file.close()
        raise
    return file
