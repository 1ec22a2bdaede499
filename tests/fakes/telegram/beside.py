"""A Telegram beside a test: in a thread of its own for a test without trio, or in a process of its own over HTTP."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

import httpx
import trio

from tests.fakes.telegram.server import open_botapi

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from tests.fakes.telegram.server import BotApi

PROJECT = Path(__file__).parents[3]
DEADLINE_S = 30.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Beside:
    """``api`` may be looked at from here; whatever is done there goes through `run`, or `call` if it is not async."""

    api: BotApi
    _token: trio.lowlevel.TrioToken = field(repr=False)
    _end: trio.Event = field(repr=False)

    def run(self, act: Callable[..., Awaitable[T]], *arguments: Any, **options: Any) -> T:
        """Have it done there: ``run(chat.says, ann, "hello")``."""
        return trio.from_thread.run(partial(act, *arguments, **options), trio_token=self._token)

    def call(self, act: Callable[..., T], *arguments: Any, **options: Any) -> T:
        """Have it done there: ``call(api.person, 7, "Ann")``."""
        return trio.from_thread.run_sync(partial(act, *arguments, **options), trio_token=self._token)

    def until(self, true: Callable[[], object]) -> None:
        """Wait for a condition about that Telegram."""
        self.run(self._until, true)

    async def _until(self, true: Callable[[], object]) -> None:
        with trio.fail_after(DEADLINE_S):
            await self.api.until(true)

    def stop(self) -> None:
        self._token.run_sync_soon(self._end.set)


@contextmanager
def botapi_beside(**options: Any) -> Iterator[Beside]:
    """In a thread, for as long as the block; the options are those of `open_botapi`."""
    made: SimpleQueue[Beside] = SimpleQueue()

    async def serve() -> None:
        async with open_botapi(**options) as api:
            beside = Beside(api, trio.lowlevel.current_trio_token(), trio.Event())
            made.put(beside)
            await beside._end.wait()

    thread = threading.Thread(target=partial(trio.run, serve), name="fake Telegram", daemon=True)
    thread.start()
    beside = made.get(timeout=DEADLINE_S)
    try:
        yield beside
    finally:
        beside.stop()
        thread.join(DEADLINE_S)


@dataclass(frozen=True, slots=True)
class Remote:
    """A Telegram in another process. What can be done and seen stands in `tests.fakes.telegram.control`."""

    process: trio.Process
    token: str
    address: str
    _client: httpx.AsyncClient = field(repr=False)

    async def do(self, verb: str, **body: Any) -> Any:
        """``await remote.do("says", chat=7, by=7, text="hello")``; ValueError says what was wrong with it."""
        answer = await self._client.post(f"{self.address}/control/{verb}", json=body)
        if answer.status_code != 200:
            raise ValueError(answer.json()["error"])
        return answer.json()

    async def state(self, since: int = -1) -> dict[str, Any]:
        told: dict[str, Any] = (await self._client.get(f"{self.address}/control/state?since={since}")).json()
        return told

    async def requests(self) -> list[dict[str, Any]]:
        told: list[dict[str, Any]] = (await self._client.get(f"{self.address}/control/requests")).json()
        return told

    async def until(self, true: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """The state, as soon as that is true of it."""
        told = await self.state()
        while not true(told):
            told = await self.state(told["version"])
        return told


@asynccontextmanager
async def botapi_process(*arguments: str) -> AsyncIterator[Remote]:
    """In a process, for as long as the block; the arguments are those of the command."""
    command = [sys.executable, "-m", "tests.fakes.botapi", *arguments]
    process = await trio.lowlevel.open_process(
        command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    assert process.stdout is not None
    try:
        async with process.stdout, httpx.AsyncClient(timeout=DEADLINE_S, trust_env=False) as client:
            printed = b""
            with trio.fail_after(DEADLINE_S):
                while printed.count(b"\n") < 2:
                    printed += await process.stdout.receive_some() or b"(it ended)\n\n"
            told = dict(line.split("=", 1) for line in printed.decode().splitlines() if "=" in line)
            yield Remote(process, told["GOCLAW_TELEGRAM_TOKEN"], told["GOCLAW_TELEGRAM_API_URL"], client)
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
