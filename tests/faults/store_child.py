"""The process that is killed: ``python -m tests.faults.store_child json DIRECTORY`` or ``... postgres DSN``.

With ``serve FD`` it is the warm parent of many such processes: it has imported everything, runs no thread, and forks
one for each request that comes over its socket, so that a life costs milliseconds and not the start of an interpreter.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import trio

from gateway.clock import utc_now
from store.files import open_json
from store.postgres import open_postgres
from tests.faults.deadly_disk import DeadlyDisk
from tests.faults.hard_work import Life
from tests.faults.told import Log

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from store.files.disk import Disk
    from store.protocols import Store

COMPACT_AT = 16 << 10
"""Small, so that many compactions happen in every second of a life."""
OWNER = "the child"
"""The name of every life on a server: the next one need not wait until the lease of a dead one runs out."""


class Death(NamedTuple):
    """What ends a life if nobody else does: a call to the disk, perhaps with the power failing."""

    call: int
    after: str
    """Count only the calls that directly follow one of this name; all of them if it is empty."""
    power: bool


class Engine(NamedTuple):
    """Which store, and where: what a life is told on its command line."""

    kind: str
    place: str

    @asynccontextmanager
    async def open(self, disk: Disk | None = None) -> AsyncIterator[tuple[Store, str]]:
        """The store, and the name under which a life asks for the lease."""
        if self.kind == "json":
            async with open_json(Path(self.place), utc_now, disk=disk, compact_at=COMPACT_AT) as files:
                yield files, files.identity
        else:
            async with open_postgres(self.place) as server:
                yield server, OWNER


async def live(engine: Engine, number: int, seed: str, death: Death | None, out: int) -> None:
    disk = None if death is None else DeadlyDisk(death.call, Random(seed), after=death.after, power=death.power)
    async with engine.open(disk) as (store, owner):
        await Life(store, Log(out), Random(seed), number, owner).live()


def serve(requests: socket.socket) -> None:
    """One life after the other: a request starts one and is answered with its id, the next byte awaits its end."""
    while (request := socket.recv_fds(requests, 65_536, 1))[0]:
        engine, number, seed, death = json.loads(request[0])
        (out,) = request[1]
        child = os.fork()
        if child == 0:
            requests.close()
            for standard in (sys.stdout, sys.stderr):
                os.dup2(out, standard.fileno())
            trio.run(live, Engine(*engine), number, seed, Death(*death) if death else None, out)
            return
        os.close(out)
        requests.sendall(b"%d\n" % child)
        if not requests.recv(1):  # who asked is gone
            os.kill(child, signal.SIGKILL)
            return
        _, status = os.waitpid(child, 0)
        requests.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(socket.socket(fileno=int(sys.argv[2])))
    else:
        trio.run(live, Engine(*sys.argv[1:3]), 1, "1", None, sys.stdout.fileno())
