"""The promises of a workspace: nothing outside of it is read or written, whatever the path says."""

import os
import stat
import threading
from pathlib import Path

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.agents.workspace import LARGEST_FILE, Workspace, WorkspaceError


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    secret = tmp_path / ".env"
    secret.write_text("GOCLAW_ANTHROPIC_API_KEY=secret\n")
    return secret


@pytest.fixture
def files(tmp_path: Path, outside: Path) -> Workspace:
    return Workspace(tmp_path / "workspace" / "main")


def untouched(outside: Path) -> bool:
    return "secret" in outside.read_text()


def names(files: Workspace) -> list[str]:
    return sorted(path.name for path in files.root.iterdir())


async def refused(files: Workspace, path: str) -> str:
    with pytest.raises(WorkspaceError) as read:
        await files.read_file(path)
    with pytest.raises(WorkspaceError) as written:
        await files.write_file(path, "overwritten")
    assert str(files.root) not in f"{read.value}{written.value}"
    return str(read.value)


async def test_what_was_written_is_read_again(files: Workspace) -> None:
    assert await files.write_file("notes/2027/today.md", "Grüße\n") == 8
    assert await files.read_file("./notes//2027/today.md") == "Grüße\n"
    await files.write_file("notes/2027/today.md", "")
    assert await files.read_file("notes/2027/today.md") == ""


async def test_nothing_is_made_before_something_is_written(files: Workspace) -> None:
    with pytest.raises(WorkspaceError, match=r"There is no file today.md"):
        await files.read_file("today.md")
    assert not files.root.exists()


async def test_directories_and_files_are_for_the_owner_alone(files: Workspace) -> None:
    before = os.umask(0)
    try:
        await files.write_file("a/b.txt", "x")
    finally:
        os.umask(before)
    modes = {path: stat.S_IMODE((files.root / path).stat().st_mode) for path in (".", "a", "a/b.txt")}
    assert modes == {".": 0o700, "a": 0o700, "a/b.txt": 0o600}


@pytest.mark.parametrize(
    "path",
    [
        "../../.env",
        "..",
        "a/../../../.env",
        "/etc/passwd",
        "//etc/passwd",
        "",
        ".",
        "a/",
        "a/.",
        "a\0b",
        "a\nb",
        "\u202eb",
        "\ud800",
        "x" * 201,
        "ü" * 101,
        "a/" * 17 + "b",
        "a" * 1001,
        ".goclaw-x",
    ],
)
async def test_a_path_that_is_none_is_refused(files: Workspace, outside: Path, path: str) -> None:
    await refused(files, path)
    assert untouched(outside)


@pytest.mark.parametrize(
    "path", ["%2e%2e/%2e%2e/.env", "..\\..\\.env", "~/.env", "\uff0e\uff0e/\uff0e\uff0e/.env", "...", "$HOME"]
)
async def test_what_only_looks_like_a_way_out_is_a_name(files: Workspace, outside: Path, path: str) -> None:
    await files.write_file(path, "harmless")
    assert await files.read_file(path) == "harmless"
    assert untouched(outside)


async def test_no_symbolic_link_is_followed(files: Workspace, outside: Path) -> None:
    """Neither out of the workspace nor inside of it, neither as the file nor on the way to it."""
    await files.write_file("inside/file", "x")
    (files.root / "out").symlink_to(outside)
    (files.root / "up").symlink_to(outside.parent)
    (files.root / "in").symlink_to("inside")
    (files.root / "self").symlink_to("self")
    for path in ("out", "up/.env", "in/file", "self", "self/x"):
        assert "link" in await refused(files, path)
    assert untouched(outside)


async def test_a_root_that_is_a_link_is_refused(files: Workspace, outside: Path) -> None:
    files.root.parent.mkdir()
    files.root.symlink_to(outside.parent)
    await refused(files, ".env")


async def test_a_hard_link_is_refused(files: Workspace, outside: Path) -> None:
    await files.write_file("mine", "x")
    os.link(outside, files.root / "theirs")
    assert "hard link" in await refused(files, "theirs")
    assert untouched(outside)


async def test_what_is_no_ordinary_file_is_refused_without_waiting(files: Workspace) -> None:
    await files.write_file("d/f", "x")
    os.mkfifo(files.root / "pipe")
    with trio.fail_after(5):
        assert "not an ordinary file" in await refused(files, "pipe")
        assert "is a directory" in await refused(files, "d")
        assert "not a directory" in await refused(files, "d/f/g")


async def test_too_much_is_refused_and_the_old_file_stays(files: Workspace) -> None:
    await files.write_file("f", "x" * LARGEST_FILE)
    assert len(await files.read_file("f")) == LARGEST_FILE
    with pytest.raises(WorkspaceError, match="too large"):
        await files.write_file("f", "ü" * (LARGEST_FILE // 2 + 1))
    (files.root / "f").write_text("x" * (LARGEST_FILE + 1))
    with pytest.raises(WorkspaceError, match="too large"):
        await files.read_file("f")


async def test_what_is_not_text_is_told(files: Workspace) -> None:
    await files.write_file("f", "x")
    (files.root / "f").write_bytes(b"\xff\xfe")
    with pytest.raises(WorkspaceError, match="not UTF-8"):
        await files.read_file("f")
    with pytest.raises(WorkspaceError, match="UTF-8"):
        await files.write_file("f", "\ud800")


async def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    files: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    await files.write_file("f", "old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WorkspaceError, match="No space left on device"):
        await files.write_file("f", "new")
    assert names(files) == ["f"]
    assert await files.read_file("f") == "old"


async def test_a_slow_disk_holds_nobody_up_and_a_stop_waits_for_the_write(
    files: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, under_way = threading.Event(), threading.Event()

    def wait(descriptor: int) -> None:
        under_way.set()
        slow.wait(10)

    monkeypatch.setattr(os, "fsync", wait)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(files.write_file, "f", "new")
        await trio.to_thread.run_sync(under_way.wait, 10)
        nursery.cancel_scope.cancel()
        slow.set()
    assert names(files) == ["f"]


@given(path=st.text(alphabet="./a~\0é\\", max_size=12))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
def test_no_path_reaches_out(tmp_path: Path, path: str) -> None:
    """Whatever is written by any path lies in the workspace, and reading finds it there."""
    root = tmp_path / "here" / "main"

    async def attempt() -> None:
        files = Workspace(root)
        try:
            await files.write_file(path, "x")
        except WorkspaceError:
            return
        assert await files.read_file(path) == "x"

    trio.run(attempt)
    assert {entry.name for entry in tmp_path.iterdir()} <= {"here"}
    assert {entry.name for entry in (tmp_path / "here").iterdir()} <= {"main"} if root.parent.exists() else True
