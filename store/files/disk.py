"""Every call that the JSON store makes to the operating system, and the words for when one fails.

The one edge between files and the store: nothing else of it opens, writes, syncs, renames or removes. So a test can let
any of these calls fail, and what comes back is always said in the same way. All calls block; they belong into a thread.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from store.protocols import CannotOpen, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PRIVATE_FILE = 0o600
PRIVATE_DIRECTORY = 0o700
TEMPORARY = ".tmp"
CLOSED = -1


class Disk:
    def make_directory(self, path: Path) -> None:
        """A directory for this user alone, whatever the umask is."""
        path.mkdir(mode=PRIVATE_DIRECTORY)
        path.chmod(PRIVATE_DIRECTORY)

    def names(self, path: Path) -> list[str]:
        return sorted(os.listdir(path))  # noqa: PTH208 - names are wanted, not paths

    def is_file(self, path: Path) -> bool:
        """A file itself: no directory, no link to one elsewhere."""
        try:
            return stat.S_ISREG(path.lstat().st_mode)
        except FileNotFoundError:
            return False

    def create(self, path: Path, *, anew: bool = False) -> int:
        """A new file to append to; one that is there already is an error unless it may be begun anew."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | (os.O_TRUNC if anew else os.O_EXCL)
        return self._private(os.open(path, flags, PRIVATE_FILE))

    def append_to(self, path: Path) -> int:
        return os.open(path, os.O_WRONLY | os.O_APPEND)

    def look_into(self, path: Path) -> int:
        return os.open(path, os.O_RDONLY)

    def lock(self, path: Path) -> int:
        """The lock of this file, held until it is closed; `BlockingIOError` if another process has it."""
        lock = os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise
        return self._private(lock)

    def sign(self, lock: int, text: bytes) -> None:
        """Say who holds a lock. For people: nothing depends on it, so it is not synced."""
        os.ftruncate(lock, 0)
        os.pwrite(lock, text, 0)

    def read(self, path: Path) -> bytes:
        return path.read_bytes()

    def read_at(self, file: int, size: int, offset: int) -> bytes:
        return os.pread(file, size, offset)

    def size(self, file: int) -> int:
        return os.fstat(file).st_size

    def write(self, file: int, data: bytes) -> None:
        """All of it, also when the system takes it in pieces."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(file, rest) :]

    def truncate(self, file: int, size: int) -> None:
        os.ftruncate(file, size)

    def sync(self, file: int) -> None:
        """Return when the content is on the disk."""
        if sys.platform == "darwin":
            fcntl.fcntl(file, fcntl.F_FULLFSYNC)  # there fsync alone leaves it in the drive's cache
        else:
            os.fdatasync(file)

    def sync_directory(self, path: Path) -> None:
        """Return when the names in it are on the disk."""
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def replace(self, old: Path, new: Path) -> None:
        old.replace(new)

    def unlink(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def close(self, file: int) -> None:
        os.close(file)

    def let_go(self, file: int) -> None:
        """Close what is not needed any more; there is nothing to be done about an error."""
        with suppress(OSError):
            self.close(file)

    def _private(self, file: int) -> int:
        try:
            os.fchmod(file, PRIVATE_FILE)
        except OSError:
            os.close(file)
            raise
        return file


class Replacement:
    """A file that takes another's place: there is all of the new content or all of the old one, also after a power
    failure. It comes in pieces, because putting many megabytes together holds up every thread.
    """

    def __init__(self, disk: Disk, path: Path) -> None:
        self.disk = disk
        self.path = path
        self.temporary = path.with_name(path.name + TEMPORARY)
        self.file = disk.create(self.temporary, anew=True)
        self.finished = False

    def add(self, pieces: Iterable[bytes]) -> None:
        for piece in pieces:
            self.disk.write(self.file, piece)

    def finish(self) -> None:
        self.disk.sync(self.file)
        self.finished = True
        self.close()
        self.disk.replace(self.temporary, self.path)
        self.disk.sync_directory(self.path.parent)

    def close(self) -> None:
        """Whether finished or not; what is not finished is thrown away."""
        if self.file >= 0:
            self.disk.let_go(self.file)
            self.file = CLOSED
        if not self.finished:
            discard(self.disk, self.temporary)


def discard(disk: Disk, path: Path) -> None:
    """Remove what is good for nothing; what stays is removed at the next start."""
    with suppress(OSError):
        disk.unlink(path)


def why(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error)


def unavailable(error: OSError, path: Path) -> StoreUnavailable:
    """What a caller is told whose change did not reach the disk."""
    return StoreUnavailable(
        f"could not write {path}: {why(error)}. What was asked for has not been done. {_remedy(error)}; "
        "the store goes on by itself as soon as it can write, so it may then be asked for again.",
        path=str(path),
        errno=error.errno,
    )


def unreadable(error: OSError, path: Path) -> StoreUnavailable:
    return StoreUnavailable(
        f"could not read {path}: {why(error)}. Look after the disk, then try again.", path=str(path), errno=error.errno
    )


def closed(place: Path) -> StoreUnavailable:
    return StoreUnavailable(f"the store in {place} is closed: nothing was changed", retriable=False, path=str(place))


def cannot_open(error: OSError, place: Path) -> CannotOpen:
    """What is told when the directory cannot be used."""
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        reason = f"{error.filename or place} is not a directory: move it away"
    elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        reason = f"{why(error)} ({error.filename or place}): give this user the right to write there"
    else:
        reason = f"{why(error)} ({error.filename or place}): {_remedy(error)[0].lower()}{_remedy(error)[1:]}"
    return CannotOpen(
        f"cannot use the data directory {place}: {reason}, or set GOCLAW_DATA_DIR to another directory. "
        "Nothing that was kept there has been lost by this.",
        path=str(place),
        errno=error.errno,
    )


def _remedy(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "Free some space"
    return "Look after the disk"
