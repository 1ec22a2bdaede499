"""Lives that end by SIGKILL, one after the other on the same store, and a close look at it after each of them.

The kill comes when the child has said a drawn number of lines: it depends on what was done, not on a clock. The same
seed draws the same work and the same kills; what the kernel makes of it is new each time, so a failure prints the log
of the last life and keeps all of it beside the store. To play one again:

    python -m tests.faults.killing json DIRECTORY SEED ROUNDS
    python -m tests.faults.killing postgres DSN SEED ROUNDS
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NoReturn

import asyncpg
import trio

from store.postgres.bridge import open_bridge
from store.protocols import StoreError
from tests.faults import told
from tests.faults.files import broken_files
from tests.faults.found import look
from tests.faults.promises import Promises
from tests.faults.promises.tenants import touched
from tests.faults.store_child import Death, Engine

if TYPE_CHECKING:
    from collections.abc import Iterator

DEADLINE_S = 60.0
"""Far more than a life takes on the slowest machine; a child that says nothing for so long hangs."""
ROOT = Path(__file__).parents[2]

STRANGERS = """
SELECT count(*) FROM pg_stat_activity, pg_sleep(0.002)
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


@dataclass(frozen=True, slots=True)
class Forge:
    """A warm process that forks one life at a time."""

    requests: socket.socket

    def kill_after(self, engine: Engine, number: int, seed: str, lines: int, death: Death | None = None) -> bytes:
        """Let one live until it has said so many lines or dies, kill it at once, and give all that it has said."""
        reading, writing = os.pipe()
        try:
            socket.send_fds(self.requests, [json.dumps([engine, number, seed, death]).encode()], [writing])
            os.close(writing)
            child = int(self.requests.recv(64))
            said = listen(reading, lines)
            os.kill(child, signal.SIGKILL)
            said += listen(reading, sys.maxsize)
        finally:
            os.close(reading)
        self.requests.sendall(b".")
        code = int(self.requests.recv(64))
        return said if code == -signal.SIGKILL else said + b"it ended by itself with code %d\n" % code


def listen(reading: int, lines: int) -> bytes:
    """What is said until there are so many lines, or until nobody is left to say anything."""
    said, deadline = bytearray(), time.monotonic() + DEADLINE_S
    count = 0
    while count < lines:
        ready, _, _ = select.select([reading], [], [], max(0, deadline - time.monotonic()))
        assert ready, f"the child has said nothing new for {DEADLINE_S:g} s; its last words:\n{said[-2000:].decode()}"
        chunk = os.read(reading, 1 << 16)
        if not chunk:
            break
        said += chunk
        count += chunk.count(b"\n")
    return bytes(said)


@contextmanager
def forge() -> Iterator[Forge]:
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-m", "tests.faults.store_child", "serve", str(theirs.fileno())]
    with ours, subprocess.Popen(command, cwd=ROOT, pass_fds=[theirs.fileno()]) as server:
        theirs.close()
        try:
            yield Forge(ours)
        finally:
            ours.close()
            server.wait(DEADLINE_S)


async def play(engine: Engine, logs: Path, seed: int, rounds: int) -> int:
    """So many lives and kills; raises at the first broken promise. Returns how many verbs were told."""
    promises, count = Promises(), 0
    with forge() as warm:
        for number in range(rounds):
            random = Random(f"{seed}/{number}")  # of the kill; the life has its own
            lines, death = fate(engine, random)
            said = warm.kill_after(engine, number, f"life {seed}/{number}", lines, death)
            (logs / f"life-{number}.jsonl").write_bytes(said)
            heard = told.read(number, said.splitlines(keepends=True))
            try:
                broken = await judge(engine, promises, heard, random, last=number == rounds - 1)
            except (StoreError, AssertionError) as error:
                broken = [f"it could not even be looked at: {error!r}"]
            if broken:
                fail(broken, engine, seed, number, logs, said)
            count += sum(not ask.open for ask in heard.asks)
    return count


def fate(engine: Engine, random: Random) -> tuple[int, Death | None]:
    """After how many lines a life is killed; every second one on files dies earlier, at a call to the disk."""
    if engine.kind == "json" and random.random() < 0.5:
        after = random.choice(("", "", "", "replace", "create", "unlink"))
        call = random.randint(1, 8 if after else random.choice((12, 300)))
        return 1200, Death(call, after, power=random.random() < 0.5)
    return random.randrange(random.choice((6, 300, 300, 1500, 1500))), None


async def judge(engine: Engine, promises: Promises, heard: told.Round, random: Random, *, last: bool) -> list[str]:
    """What is broken after this life; after the last one every message that ever was is looked at."""
    broken = await left_behind(engine)
    names = promises.names(heard, random, sys.maxsize if last else 50)
    old = sorted(promises.tenants.known)
    tenants = {*touched(heard), *(old if last else random.sample(old, min(3, len(old))))}
    async with engine.open() as (store, owner):
        found = await look(store, owner, sorted(names), sorted(tenants))
    broken += promises.judge(heard, found)
    return broken + broken_files(engine)


async def left_behind(engine: Engine) -> list[str]:
    """What the dead one has left where it lay. A server may still be at its last statement: that has to end first."""
    if engine.kind == "postgres":
        async with open_bridge() as bridge:
            await bridge.run(nobody_else, engine.place)
    return broken_files(engine)


async def nobody_else(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        while await connection.fetchval(STRANGERS):
            pass
    finally:
        await connection.close()


def fail(broken: list[str], engine: Engine, seed: int, number: int, logs: Path, said: bytes) -> NoReturn:
    where = "DIRECTORY" if engine.kind == "json" else "DSN"
    last_words = said.decode(errors="replace").splitlines()[-30:]
    raise AssertionError(
        "\n".join(
            [
                f"killed in life {number} (seed {seed}), and {len(broken)} promises are broken:",
                *broken[:20],
                "the last that was said:",
                *(line[:300] for line in last_words),
                f"all logs: {logs}",
                f"again, on an empty one: python -m tests.faults.killing {engine.kind} {where} {seed} {number + 1}",
            ]
        )
    )


if __name__ == "__main__":
    trio.run(play, Engine(*sys.argv[1:3]), Path(tempfile.mkdtemp()), int(sys.argv[3]), int(sys.argv[4]))
