"""Programs in a process group of their own, which ends as a whole: nothing that a program has started outlives it.

SIGTERM to the group, three seconds, SIGKILL to the group, reaped. That is done under a shield, and also after a program
has ended by itself, since it may have left children behind.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from gateway.protocols import AgentError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

GRACE_S = 3.0
GONE_S = 2.0
"""How long the system is given to clear away what was killed."""
PROC = Path("/proc")
LOOK_S = 0.02
"""Between two looks whether the group is gone; nothing tells."""


@asynccontextmanager
async def open_program(
    command: Sequence[str], *, directory: Path, environ: Mapping[str, str]
) -> AsyncIterator[trio.Process]:
    """Start it with three pipes. Raises `AgentError` if it cannot be started."""
    process = await _start(command, directory, environ)
    try:
        yield process
    finally:
        with trio.CancelScope(shield=True):
            await _end(process)


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


async def _end(process: trio.Process) -> None:
    if _signal(process, signal.SIGTERM):
        await _gone(process, GRACE_S)
    if _signal(process, signal.SIGKILL):
        await _gone(process, GONE_S)
    with trio.move_on_after(GONE_S):
        await process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            await pipe.aclose()


async def _gone(process: trio.Process, within_s: float) -> None:
    with trio.move_on_after(within_s):
        while _signal(process, 0):
            process.poll()  # A leader that nobody has reaped counts as alive.
            if not await trio.to_thread.run_sync(_any_left, process.pid):
                return
            await trio.sleep(LOOK_S)


def _any_left(group: int) -> bool:
    """Whether anybody in the group still runs. The dead keep their number until their parent clears them away, which
    in a container the parent of orphans often never does; without /proc they count as alive."""
    if not PROC.is_dir():
        return True
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                state, _, of_group = (entry / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[:3]
                if int(of_group) == group and state not in "ZX":
                    return True
    return False


def _signal(process: trio.Process, number: int) -> bool:
    """Whether anybody is left in the group to hear it. The group has the leader's number as long as it has members."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
        return True
    return False
