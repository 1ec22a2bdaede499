"""A real Postgres server for tests and benchmarks.

It is kept by a process of its own (`tests.postgres.guardian`), which ends it when this process ends, however that
happens.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = Path(__file__).parents[2]
ROOM = 4 * 2**30


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs. ``door`` is where its guardian answers."""

    dsn: str
    door: Path

    def restart(self) -> None:
        """It goes down as in a crash and comes back; returns when it takes connections again."""
        ask(self.door, "restart")

    def crash(self) -> None:
        ask(self.door, "crash")

    def start(self) -> None:
        ask(self.door, "start")


class Guarded:
    """A guardian at work. Nothing is waited for until somebody asks it for the server."""

    def __init__(self, *, durable: bool = False) -> None:
        root = Path(tempfile.mkdtemp(prefix="goclaw-pg-", dir=None if durable else memory()))
        self.door = root / "ask"
        # The socket is there before the guardian is, so that nobody can come too early.
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(self.door))
            listening.listen(64)
            number = listening.fileno()
            command = [sys.executable, "-m", "tests.postgres.guardian", str(root), str(number)]
            self.process = subprocess.Popen(
                [*command, "durable"] if durable else command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                cwd=PROJECT,
                pass_fds=[number],
                start_new_session=True,
            )

    def end(self) -> None:
        self.process.communicate()


def memory() -> Path | None:
    """A directory in memory, where making a database takes a tenth of the time; None without a large one."""
    place = Path("/dev/shm")  # noqa: S108 the name in it is made safely
    roomy = place.is_dir() and os.access(place, os.W_OK) and shutil.disk_usage(place).free > ROOM
    return place if roomy else None


def ask(door: Path, word: str) -> str:
    """What the guardian answers; it may take as long as making a server takes."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(door))
        with line.makefile("rw") as text:
            text.write(word + "\n")
            text.flush()
            answer = text.readline().strip()
    if not answer or answer.startswith("failed"):
        raise RuntimeError(f"the Postgres server for the tests did not {word}: {answer or 'its guardian is gone'}")
    return answer


def call_up(door: Path) -> None:
    """Have the server started, without waiting for it."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(door))
        line.sendall(b"start\n")


def serving(door: Path) -> Server:
    """The server of that guardian, started by now."""
    return Server(ask(door, "start"), door)


@contextmanager
def running(durable: bool = False) -> Iterator[Server]:
    """A server of one's own; a durable one waits for the disk as in production."""
    guarded = Guarded(durable=durable)
    try:
        yield serving(guarded.door)
    finally:
        guarded.end()
