"""Files of an agent, in one directory and nowhere else.

A path is walked from the directory's own descriptor, one name at a time, and no name may be a symbolic link: so there
is no moment between looking and opening in which somebody could put a link there. A file with a second name (a hard
link) may be a file from elsewhere and is refused too. What is written is complete or not there: a temporary file beside
it takes its place at the end.

Everything runs in threads, since a disk can be slow. A stop waits for a write, so that nothing is written after it.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from uuid import uuid4

import trio

from store.records import DEFAULT_TENANT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LARGEST_FILE = 256_000
LONGEST_PATH = 1_000
LONGEST_NAME = 200
DEEPEST = 16
AT_ONCE = 4

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_TEMPORARY = ".goclaw-"
_TENANTS = "@tenants"
"""No agent's directory can be called that."""
_TENANT = re.compile(r"[A-Za-z0-9_-]{1,128}")


class WorkspaceError(Exception):
    """The file cannot be read or written; the text is a sentence for the model."""

    code = "workspace"


class Workspace:
    def __init__(self, root: Path) -> None:
        self.root = root
        self._limiter = trio.CapacityLimiter(AT_ONCE)

    def of(self, tenant: str) -> Workspace:
        """The agent's files for that tenant: nobody reads what another tenant's people had written down. (P11)"""
        if tenant == DEFAULT_TENANT:
            return self
        if not _TENANT.fullmatch(tenant):
            raise WorkspaceError("There is no workspace for this tenant: its name is no name of a directory.")
        return Workspace(self.root.parent / _TENANTS / tenant / self.root.name)

    async def read_file(self, path: str) -> str:
        """The text of a file. Raises `WorkspaceError`."""
        names = _names(path)
        return await trio.to_thread.run_sync(self._read, names, abandon_on_cancel=True, limiter=self._limiter)

    async def write_file(self, path: str, text: str) -> int:
        """Write a file anew, and the directories it needs; returns its size in bytes. Raises `WorkspaceError`."""
        names, data = _names(path), _data(text)
        await trio.to_thread.run_sync(self._write, names, data, limiter=self._limiter)
        return len(data)

    async def prepare(self) -> None:
        """Make the directory itself, if it is not there."""
        await trio.to_thread.run_sync(self._make_root, limiter=self._limiter)

    def _read(self, names: tuple[str, ...]) -> str:
        shown = "/".join(names)
        with _sentences(shown), self._directory(names[:-1], make=False) as directory:
            _look(names[-1], directory, shown)
            descriptor = os.open(names[-1], _READ, dir_fd=directory)
            with os.fdopen(descriptor, "rb", buffering=0) as file:
                _check(os.fstat(descriptor), shown)
                data = _read_whole(file.fileno())
        if len(data) > LARGEST_FILE:
            raise _too_large(shown)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            raise WorkspaceError(f"{shown} is not UTF-8 text and cannot be read.") from None

    def _write(self, names: tuple[str, ...], data: bytes) -> None:
        shown = "/".join(names)
        with _sentences(shown), self._directory(names[:-1], make=True) as directory:
            with suppress(FileNotFoundError):
                _look(names[-1], directory, shown)
            temporary = f"{_TEMPORARY}{uuid4().hex}"
            try:
                descriptor = os.open(temporary, _WRITE, 0o600, dir_fd=directory)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(descriptor)
                os.rename(temporary, names[-1], src_dir_fd=directory, dst_dir_fd=directory)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=directory)
                raise

    @contextmanager
    def _directory(self, names: tuple[str, ...], *, make: bool) -> Iterator[int]:
        """The descriptor of a directory below the root, walked to without following a link."""
        if make:
            self._make_root()
        current = os.open(self.root, _DIRECTORY)
        try:
            for name in names:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(name, 0o700, dir_fd=current)
                below = os.open(name, _DIRECTORY, dir_fd=current)
                os.close(current)
                current = below
            yield current
        finally:
            os.close(current)

    def _make_root(self) -> None:
        try:
            self.root.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError):
                self.root.mkdir(mode=0o700)
            os.close(os.open(self.root, _DIRECTORY))
        except OSError as error:
            raise WorkspaceError(f"The workspace cannot be used: {error.strerror}.") from None


async def forget_tenant(root: Path, tenant: str) -> None:
    """Remove all that agents have kept for that tenant; ``root`` is where the agents have their directories."""
    if tenant != DEFAULT_TENANT and _TENANT.fullmatch(tenant):
        place = root / _TENANTS / tenant
        await trio.to_thread.run_sync(lambda: shutil.rmtree(place, ignore_errors=True))


def _names(path: str) -> tuple[str, ...]:
    """The names that a path is made of, or the reason why it is refused."""
    if len(path) > LONGEST_PATH:
        raise WorkspaceError(f"The path is too long: at most {LONGEST_PATH} characters.")
    if not path.isprintable():
        raise WorkspaceError("The path has characters in it that no file name has.")
    if path.startswith("/"):
        raise WorkspaceError(f"{path} is an absolute path; name the file from the workspace on: notes/today.md.")
    names = tuple(name for name in path.split("/") if name not in ("", "."))
    if ".." in names:
        raise WorkspaceError(f"{path} leads out of the workspace; only files inside of it can be used.")
    if not names or path.endswith(("/", "/.")):
        raise WorkspaceError(f"{path!r} is not the name of a file.")
    if len(names) > DEEPEST:
        raise WorkspaceError(f"{path} lies too deep: at most {DEEPEST} directories.")
    for name in names:
        if len(os.fsencode(name)) > LONGEST_NAME:
            raise WorkspaceError(f"A name in the path is too long: at most {LONGEST_NAME} bytes.")
        if name.startswith(_TEMPORARY):
            raise WorkspaceError(f"Names that begin with {_TEMPORARY} are not for use.")
    return names


def _data(text: str) -> bytes:
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError:
        raise WorkspaceError("The text has characters in it that UTF-8 does not have.") from None
    if len(data) > LARGEST_FILE:
        raise WorkspaceError(f"The text is too large: {len(data)} bytes, at most {LARGEST_FILE}.")
    return data


def _look(name: str, directory: int, shown: str) -> None:
    # Before opening: to open a device can already do something.
    _check(os.stat(name, dir_fd=directory, follow_symlinks=False), shown)


def _check(found: os.stat_result, shown: str) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise WorkspaceError(f"{shown} is a symbolic link; links are not followed.")
    if stat.S_ISDIR(found.st_mode):
        raise WorkspaceError(f"{shown} is a directory, not a file.")
    if not stat.S_ISREG(found.st_mode):
        raise WorkspaceError(f"{shown} is not an ordinary file.")
    if found.st_nlink > 1:
        raise WorkspaceError(f"{shown} has a second name elsewhere (a hard link) and is not touched.")
    if found.st_size > LARGEST_FILE:
        raise _too_large(shown)


def _too_large(shown: str) -> WorkspaceError:
    return WorkspaceError(f"{shown} is too large: at most {LARGEST_FILE} bytes can be read or replaced.")


def _read_whole(descriptor: int) -> bytes:
    pieces, left = [], LARGEST_FILE + 1
    while left > 0 and (piece := os.read(descriptor, left)):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


@contextmanager
def _sentences(shown: str) -> Iterator[None]:
    """Whatever the system refuses becomes a sentence, without a word about where the workspace is."""
    try:
        yield
    except FileNotFoundError:
        raise WorkspaceError(f"There is no file {shown}.") from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise WorkspaceError(f"{shown}: a part of the path is not a directory; links are not followed.") from None
        raise WorkspaceError(f"{shown} cannot be used: {error.strerror}.") from None
