"""Other processes that say what they do, a line of JSON at a time."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
import trio

from tests.postgres.server import PROJECT

if TYPE_CHECKING:
    from subprocess import CompletedProcess


def say(**words: object) -> None:
    """For the other process: a line that is heard at once."""
    sys.stdout.buffer.write(orjson.dumps(words) + b"\n")
    sys.stdout.buffer.flush()


class Talker:
    def __init__(self, name: str, process: trio.Process) -> None:
        self.name = name
        self.process = process
        self.rest = b""

    async def next_line(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        while b"\n" not in self.rest:
            data = await self.process.stdout.receive_some()
            assert data, f"{self.name} has ended"
            self.rest += data
        line, self.rest = self.rest.split(b"\n", 1)
        said: dict[str, Any] = orjson.loads(line)
        return said

    async def until(self, key: str) -> dict[str, Any]:
        """The next line that says something of this."""
        while key not in (line := await self.next_line()):
            pass
        return line


async def started(nursery: trio.Nursery, module: str, name: str, *arguments: str) -> Talker:
    """`python -m module arguments`, for as long as the nursery lives."""
    run: Any = partial(
        trio.run_process, [sys.executable, "-m", module, *arguments], cwd=PROJECT, stdout=-1, check=False
    )
    return Talker(name, await nursery.start(_serve, run))


async def _serve(run: Any, task_status: trio.TaskStatus[trio.Process]) -> CompletedProcess[bytes]:
    result: CompletedProcess[bytes] = await run(task_status=task_status)
    return result
