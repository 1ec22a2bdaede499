"""Opening the files: one process, a directory of its own, a clear word about what cannot be used."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import zlib
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from store.files import journal, open_json, read_json, recovery
from store.files.frames import pack
from store.protocols import CannotOpen, StoreUnavailable
from store.records import CHAT_LEASE, Role, Said, SessionPolicy
from tests.contract.backends import Wall
from tests.contract.rows import HERE, accepted
from tests.faults.disk_story import chat_of
from tests.faults.faulty_disk import FaultyDisk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


def files(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def names(place: Path) -> list[str]:
    """Directories too."""
    return sorted(str(path.relative_to(place)) for path in place.rglob("*"))


@pytest.fixture
def open_umask() -> Iterator[None]:
    old = os.umask(0)
    yield
    os.umask(old)


async def test_a_missing_directory_is_made_for_this_user_alone(tmp_path: Path, open_umask: None) -> None:
    """Whatever the umask is: directories 0700, files 0600."""
    place = tmp_path / "deep" / "down"
    async with open_json(place, Wall()) as store:
        await store.remember(HERE, [Said(Role.USER, "hello")])
        await store.keeper.compact()
    assert modes(tmp_path / "deep") == {True: {0o700}, False: {0o600}}
    assert len(files(place)) >= 5


def modes(place: Path) -> dict[bool, set[int]]:
    found: dict[bool, set[int]] = {True: set(), False: set()}
    for path in (place, *place.rglob("*")):
        found[path.is_dir()].add(stat.S_IMODE(path.stat().st_mode))
    return found


async def test_a_second_gateway_is_refused_by_name(tmp_path: Path) -> None:
    """The message names the process that holds the directory, and the first one goes on undisturbed."""
    async with open_json(tmp_path, Wall()) as store:
        with pytest.raises(CannotOpen, match=f"process {os.getpid()}, started 2026-03-01T12:00:00Z") as caught:
            async with open_json(tmp_path, Wall()):
                pass
        assert "GOCLAW_DATA_DIR" in str(caught.value)
        assert "stop" in str(caught.value)
        assert await accepted(store.messages(None), "a") == [1]
    async with open_json(tmp_path, Wall()):
        pass


async def test_a_lock_dies_with_its_process(tmp_path: Path) -> None:
    """What a killed gateway leaves behind stops nobody."""
    code = (
        "import os, signal, sys; from pathlib import Path; from store.files.disk import Disk;"
        "lock = Disk().lock(Path(sys.argv[1])); Disk().sign(lock, b'killed'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(tmp_path / "LOCK")], check=False)  # noqa: ASYNC221
    assert ended.returncode < 0
    assert files(tmp_path) == {"LOCK": b"killed"}
    async with open_json(tmp_path, Wall()):
        assert files(tmp_path)["LOCK"].startswith(f"process {os.getpid()},".encode())


async def test_a_file_in_its_place_is_left_alone(tmp_path: Path) -> None:
    """The message says what is there and what to do."""
    place = tmp_path / "data"
    place.write_text("mine")
    for path in (place, place / "below"):
        with pytest.raises(CannotOpen, match="is not a directory: move it away, or set GOCLAW_DATA_DIR"):
            async with open_json(path, Wall()):
                pass
    assert files(tmp_path) == {"data": b"mine"}


async def test_a_file_in_the_place_of_the_transcripts_is_left_alone(tmp_path: Path) -> None:
    """The directory is refused as it is, before anything is made in it."""
    (tmp_path / "sessions").write_text("mine")
    with pytest.raises(CannotOpen, match="sessions is not a directory: move it away"):
        async with open_json(tmp_path, Wall()):
            pass
    assert files(tmp_path) == {"sessions": b"mine"}


@pytest.mark.parametrize("error", [errno.EACCES, errno.EROFS, errno.ENOSPC, errno.EIO])
async def test_a_directory_that_cannot_be_written_is_refused(tmp_path: Path, error: int) -> None:
    """Each reason with its own remedy."""
    disk = FaultyDisk()
    disk.fail(1, error=error, only="lock")
    with pytest.raises(CannotOpen, match="GOCLAW_DATA_DIR") as caught:
        async with open_json(tmp_path / "data", Wall(), disk=disk):
            pass
    assert os.strerror(error) in str(caught.value)
    remedy = {errno.ENOSPC: "free some space", errno.EIO: "look after the disk"}.get(error, "the right to write")
    assert remedy in str(caught.value)
    assert not caught.value.retriable


async def test_a_file_that_cannot_be_read_is_not_taken_for_damage(tmp_path: Path) -> None:
    """A read error is no reason to set anything aside or to start empty. (J2)"""
    async with open_json(tmp_path, Wall()) as store:
        await store.keeper.compact()
    before = {name: content for name, content in files(tmp_path).items() if name != "LOCK"}
    disk = FaultyDisk()
    disk.fail(1, only="read")
    with pytest.raises(CannotOpen, match="Input/output error"):
        async with open_json(tmp_path, Wall(), disk=disk):
            pass
    assert {name: content for name, content in files(tmp_path).items() if name != "LOCK"} == before
    disk.fail(1, only="read")
    with pytest.raises(CannotOpen, match="Input/output error"):
        read_json(tmp_path, disk)


@pytest.mark.parametrize("call", ["create", "write", "sync", "sync_directory", "make_directory"])
async def test_a_first_opening_that_fails_is_no_loss(tmp_path: Path, call: str) -> None:
    """Where nothing was ever kept, nothing is missing, wherever the first attempt has ended."""
    place = tmp_path / "data"
    place.mkdir()
    disk = FaultyDisk()
    disk.fail(1, only=call)
    with pytest.raises(CannotOpen, match="Input/output error"):
        async with open_json(place, Wall(), disk=disk):
            pass
    async with open_json(place, Wall()) as store:
        assert [finding for finding in store.findings if "LOST" in finding] == []


async def test_a_first_change_that_fails_is_no_loss(tmp_path: Path) -> None:
    """The store is closed in good order, with nothing in it: the next start has nothing to complain of."""
    disk = FaultyDisk()
    disk.fail(2, only="write")
    with pytest.raises(StoreUnavailable):
        async with open_json(tmp_path, Wall(), disk=disk):
            pass
    assert "sessions.json" in names(tmp_path)
    async with open_json(tmp_path, Wall()) as store:
        assert store.findings == ()


async def test_looking_for_what_is_not_there(tmp_path: Path) -> None:
    """A look at a missing directory makes none."""
    with pytest.raises(CannotOpen, match="No such file or directory"):
        read_json(tmp_path / "nothing")
    assert files(tmp_path) == {}


async def test_a_directory_keeps_its_name(tmp_path: Path) -> None:
    """So a restart after a kill has its lease at once; another directory has another name."""
    hour = timedelta(hours=1)
    async with open_json(tmp_path / "one", Wall()) as store:
        identity = store.identity
        first = await store.acquire(CHAT_LEASE, identity, hour)
    async with open_json(tmp_path / "one", Wall()) as store:
        assert store.identity == identity
        assert first is not None
        assert await store.acquire(CHAT_LEASE, "somebody else", hour) is None
        again = await store.acquire(CHAT_LEASE, store.identity, hour)
        assert again is not None
        assert again.token == first.token + 1
    async with open_json(tmp_path / "two", Wall()) as store:
        assert store.identity != identity


# ── schemas ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_a_newer_goclaw_wrote_is_not_touched(tmp_path: Path) -> None:
    """A journal or a snapshot of a newer schema is refused, and nothing is changed."""
    (tmp_path / "journal-1.jsonl").write_bytes(pack({"journal": 1, "schema": journal.SCHEMA + 1, "after": 0}))
    before = files(tmp_path)
    with pytest.raises(CannotOpen, match=r"journal-1\.jsonl was written by a newer goclaw") as caught:
        async with open_json(tmp_path, Wall()):
            pass
    assert "install that one again" in str(caught.value)
    assert files(tmp_path) == before
    assert names(tmp_path) == ["journal-1.jsonl"]


async def test_a_newer_snapshot_is_not_taken_for_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is whole, only from the future: the older one beside it is not used instead."""
    async with open_json(tmp_path, Wall()) as store:
        await store.keeper.compact()
    before = {name: content for name, content in files(tmp_path).items() if name != "LOCK"}
    monkeypatch.setattr("store.files.snapshots.SCHEMA", journal.SCHEMA - 1)
    with pytest.raises(CannotOpen, match=r"snapshot-2\.json was written by a newer goclaw"):
        async with open_json(tmp_path, Wall()):
            pass
    assert {name: content for name, content in files(tmp_path).items() if name != "LOCK"} == before


async def test_an_older_schema_is_brought_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a snapshot and of journals are read as they were, kept as they are now, and never converted again."""
    async with open_json(tmp_path, Wall()) as store:
        await accepted(store.messages(None), "in the snapshot")
        await store.keeper.compact()
        await accepted(store.messages(None), "in the journal")
        await store.set_policy(HERE, SessionPolicy(cap=7))
    make_older(tmp_path)
    monkeypatch.setitem(recovery.MIGRATIONS, 0, from_schema_0)
    async with open_json(tmp_path, Wall()) as store:
        assert [one.text for one in await (await chat_of(store)).waiting()] == ["in the snapshot", "in the journal"]
        kept = await store.session(HERE)
        assert kept is not None
        assert kept.standing.policy.cap == 7
    monkeypatch.delitem(recovery.MIGRATIONS, 0)
    assert len(read_json(tmp_path).tables.messages.rows) == 2


def from_schema_0(row: recovery.Row) -> Iterable[recovery.Row]:
    """In the made-up schema before the first one messages were called otherwise, and there was a table too many."""
    table, key, content = row
    if table == "letter":
        return [("message", key, content)]
    return [] if table == "needless" else [row]


def make_older(place: Path) -> None:
    for path in place.glob("journal-*.jsonl"):
        lines = [orjson.loads(line[9:]) for line in path.read_bytes().splitlines()]
        path.write_bytes(b"".join(pack(older(line)) for line in lines))
    for path in place.glob("snapshot-*.json"):
        document = older(orjson.loads(path.read_bytes()))
        document.update(count=len(document["rows"]))
        crc = document.pop("crc")
        assert crc
        body = orjson.dumps(document).removesuffix(b"}")
        path.write_bytes(body + b',"crc":"' + pack_crc(body) + b'"}\n')


def pack_crc(body: bytes) -> bytes:
    return b"%08x" % zlib.crc32(body)


def older(value: dict[str, Any]) -> dict[str, Any]:
    if "schema" in value:
        value["schema"] = 0
    if "rows" in value:
        rows = [["letter" if table == "message" else table, key, row] for table, key, row in value["rows"]]
        value["rows"] = [*rows, ["needless", "key", {}]]
    return value
