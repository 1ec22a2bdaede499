"""A fake model beside a test that does not run on trio: its server in a thread of its own, waited for there."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import trio

from tests.fakes.anthropic import open_anthropic
from tests.fakes.openai import open_openai

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.fakes.answer import Received
    from tests.fakes.script import Script
    from tests.fakes.server import ModelServer

DEADLINE_S = 30.0
OPEN = {"openai": open_openai, "anthropic": open_anthropic}


@dataclass(frozen=True, slots=True)
class Beside:
    backend: str
    server: ModelServer
    _token: trio.lowlevel.TrioToken
    _end: trio.Event = field(repr=False)

    @property
    def requests(self) -> tuple[Received, ...]:
        return tuple(self.server.requests)

    def until(self, true: Callable[[], object]) -> None:
        """Wait for a condition about the server."""
        trio.from_thread.run(self._until, true, trio_token=self._token)

    def agents_toml(self, name: str = "main", **more: object) -> str:
        """A declaration of an agent that asks this model."""
        given = {"backend": self.backend, "model": "fake-large", "base_url": self.server.base_url, **more}
        return "".join([f"[agent.{name}]\n", *(f"{key} = {value!r}\n" for key, value in given.items())])

    async def _until(self, true: Callable[[], object]) -> None:
        with trio.fail_after(DEADLINE_S):
            await self.server.until(true)

    def stop(self) -> None:
        self._token.run_sync_soon(self._end.set)


@contextmanager
def model_beside(backend: str, script: Script, **options: Any) -> Iterator[Beside]:
    """The server of that backend for as long as the block; the options are those of `tests.fakes.server.serving`."""
    made: SimpleQueue[Beside] = SimpleQueue()

    async def serve() -> None:
        async with OPEN[backend](script, **options) as server:
            beside = Beside(backend, server, trio.lowlevel.current_trio_token(), trio.Event())
            made.put(beside)
            await beside._end.wait()

    thread = threading.Thread(target=partial(trio.run, serve), name=f"fake {backend}", daemon=True)
    thread.start()
    beside = made.get(timeout=DEADLINE_S)
    try:
        yield beside
    finally:
        beside.stop()
        thread.join(DEADLINE_S)
