"""Programs that end as a whole: nothing that a program has started outlives it.

SIGTERM to its process group, three seconds, SIGKILL to the group, reaped. That is done under a shield, and also after a
program has ended by itself, since it may have left children behind. Children that have left the group (`setsid`, jobs
of a shell) get the same: they are known by their session, or by a variable that every child inherits. Who takes that
out of its environment is gone for good.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import trio

from gateway.protocols import AgentError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

GRACE_S = 3.0
GONE_S = 2.0
"""How long the system is given to clear away what was killed."""
PROC = Path("/proc")
LOOK_S = 0.02
"""Between two looks whether all are gone; nothing tells."""
MARK = "GOCLAW_PROGRAM"
STATE, GROUP, SESSION, STARTED = 0, 2, 3, 19
"""Places in `/proc/N/stat`, counted from behind the name."""


@asynccontextmanager
async def open_program(
    command: Sequence[str], *, directory: Path, environ: Mapping[str, str]
) -> AsyncIterator[trio.Process]:
    """Start it with three pipes. Raises `AgentError` if it cannot be started."""
    mark = uuid4().hex
    process = await _start(command, directory, {**environ, MARK: mark})
    family = Family(process, mark)
    try:
        yield process
    finally:
        with trio.CancelScope(shield=True):
            await _end(family)


async def _start(command: Sequence[str], directory: Path, environ: Mapping[str, str]) -> trio.Process:
    program = command[0]
    try:
        # trio starts it in a thread that a cancel waits for: there is never a process that nobody holds.
        return await trio.lowlevel.open_process(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=directory,
            env=dict(environ),
            start_new_session=True,
        )
    except FileNotFoundError:
        raise AgentError(f"the program {program} was not found: check command in agents.toml") from None
    except PermissionError:
        raise AgentError(f"the program {program} may not be run: make it executable (chmod +x)") from None
    except (OSError, ValueError) as error:
        raise AgentError(f"the program {program} cannot be started: {error}") from None


async def _end(family: Family) -> None:
    if not await _gone(family, signal.SIGTERM, GRACE_S):
        await _gone(family, signal.SIGKILL, GONE_S)
    process = family.process
    with trio.move_on_after(GONE_S):
        await process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            await pipe.aclose()


async def _gone(family: Family, number: int, within_s: float) -> bool:
    """Send them the signal. Whether all are gone in time."""
    family.signal_group(number)  # first, since all of it hears it at once
    with trio.move_on_after(within_s):
        send = number
        while True:
            family.process.poll()  # a leader that nobody has reaped counts as alive
            if not await trio.to_thread.run_sync(family.look, send):
                return True
            if number != signal.SIGKILL:
                send = 0
            await trio.sleep(LOOK_S)
    return False


class Family:
    """A program and whatever it has started."""

    def __init__(self, process: trio.Process, mark: str) -> None:
        self.process = process
        self._mark = f"{MARK}={mark}".encode()
        known = facts(process.pid)
        self._began = int(known[STARTED]) if known else 0

    def signal_group(self, number: int) -> bool:
        """Whether anybody is left to hear it. The group has the leader's number as long as it has members."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)
            return True
        return False

    def look(self, number: int) -> bool:
        """Whether anybody is left. Those outside of the group hear this signal, 0 for none."""
        if not PROC.is_dir():
            return self.signal_group(0)
        members = [pid for pid in pids() if self._has(pid)]
        if number:
            for pid in members:
                self._signal(pid, number)
        return bool(members)

    def _has(self, pid: int, *, outside: bool = False) -> bool:
        """The dead are none of it: they keep their number until their parent clears them away, which in a container the
        parent of orphans often never does."""
        known = facts(pid)
        if known is None or known[STATE] in "ZX":
            return False
        if int(known[GROUP]) == self.process.pid:
            return not outside
        if int(known[SESSION]) == self.process.pid:
            return True
        return int(known[STARTED]) >= self._began and self._mark in environment(pid)

    def _signal(self, pid: int, number: int) -> None:
        with suppress(OSError):
            descriptor = os.pidfd_open(pid)  # so that it is nobody else who has the number by now
            try:
                if self._has(pid, outside=True):
                    signal.pidfd_send_signal(descriptor, number)
            finally:
                os.close(descriptor)


def pids() -> Iterator[int]:
    return (int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit())


def facts(pid: int) -> list[str] | None:
    with suppress(OSError):
        return (PROC / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    return None


def environment(pid: int) -> list[bytes]:
    with suppress(OSError):
        return (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    return []
