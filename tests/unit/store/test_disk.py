"""The edge to the operating system: whole writes, private files, locks, and words for what fails."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import closing
from pathlib import Path

import pytest

from store.files.disk import Disk, Replacement, cannot_open, unavailable
from tests.faults.faulty_disk import FaultyDisk


def test_a_write_is_whole_also_when_the_system_takes_it_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe or a signal may cut a write short: the rest follows."""
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, bytes(data)[:3]))
    disk = Disk()
    file = disk.create(tmp_path / "file")
    disk.write(file, b"0123456789")
    disk.close(file)
    assert (tmp_path / "file").read_bytes() == b"0123456789"


def test_files_belong_to_this_user_alone(tmp_path: Path) -> None:
    """Whatever the umask would allow or forbid."""
    disk = Disk()
    for mask in (0o000, 0o777):
        old = os.umask(mask)
        try:
            disk.make_directory(tmp_path / f"{mask}")
            disk.close(disk.create(tmp_path / f"{mask}" / "file"))
            disk.close(disk.lock(tmp_path / f"{mask}" / "LOCK"))
        finally:
            os.umask(old)
        modes = [stat.S_IMODE(path.stat().st_mode) for path in sorted((tmp_path / f"{mask}").iterdir())]
        assert modes == [0o600, 0o600]
        assert stat.S_IMODE((tmp_path / f"{mask}").stat().st_mode) == 0o700


def test_what_is_there_is_not_created_again(tmp_path: Path) -> None:
    """Only what may be begun anew is emptied."""
    disk = Disk()
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(FileExistsError):
        disk.create(tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"old"
    disk.close(disk.create(tmp_path / "file", anew=True))
    assert (tmp_path / "file").read_bytes() == b""


def test_a_file_is_no_directory_and_no_link(tmp_path: Path) -> None:
    """Only what was written there itself is a file there."""
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "directory").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "file")
    disk = Disk()
    files = [name for name in ("file", "directory", "link", "nothing") if disk.is_file(tmp_path / name)]
    assert files == ["file"]


def test_a_lock_has_one_holder(tmp_path: Path) -> None:
    """The second one is refused at once, and has it when the first one lets go."""
    disk = Disk()
    first = disk.lock(tmp_path / "LOCK")
    with pytest.raises(BlockingIOError):
        disk.lock(tmp_path / "LOCK")
    disk.close(first)
    disk.close(disk.lock(tmp_path / "LOCK"))


def replaced(disk: Disk, path: Path, *pieces: bytes) -> None:
    with closing(Replacement(disk, path)) as file:
        file.add(pieces)
        file.finish()


@pytest.mark.parametrize("call", ["create", "write", "sync", "replace"])
def test_a_file_is_replaced_as_a_whole_or_not(tmp_path: Path, call: str) -> None:
    """Whatever fails on the way, the old content is there, and the next attempt succeeds."""
    disk = FaultyDisk()
    path = tmp_path / "file"
    replaced(disk, path, b"old")
    disk.fail(1, only=call)
    with pytest.raises(OSError, match="Input/output error"):
        replaced(disk, path, b"new")
    assert path.read_bytes() == b"old"
    replaced(disk, path, b"new")
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("file", b"new")]


@pytest.mark.parametrize(
    ("number", "remedy"),
    [(errno.ENOSPC, "Free some space"), (errno.EDQUOT, "Free some space"), (errno.EIO, "Look after the disk")],
)
def test_an_error_has_its_remedy(number: int, remedy: str) -> None:
    """What failed, where, why, and what to do next."""
    told = unavailable(OSError(number, "whatever"), Path("somewhere/journal-1.jsonl"))
    assert str(told).startswith(f"could not write somewhere/journal-1.jsonl: {os.strerror(number)}.")
    assert remedy in str(told)
    assert (told.retriable, told.fields["errno"]) == (True, number)


def test_an_error_without_a_number_is_told_too() -> None:
    """Some come from libraries, with words only."""
    assert "odd" in str(unavailable(OSError("odd"), Path("file")))
    assert "odd" in str(cannot_open(OSError("odd"), Path("place")))
