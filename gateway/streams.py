"""Connections that stay open: they end with the token that opened them, and with the server, both at once.

open ──▶ waits for news, for a second to pass, or for its end ──▶ ended
                                ▲                                  the token is good for nothing any more: within
                                └── poke                           half a second; the server closes: now
"""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.access.scopes import Scope
    from gateway.access.tokens import Caller, Doorkeeper

logger = logging.getLogger("goclaw.http")

BEAT_S = 30.0
"""A stream with nothing to say shows that it is there."""
LOOK_S = 0.5
"""How often the tokens of open streams are looked at."""
AT_ONCE = 8


class Stream:
    """One open connection, as its writer sees it."""

    def __init__(self) -> None:
        self.ended = False
        self._event = trio.Event()
        self._asking = trio.CancelScope()

    def poke(self) -> None:
        """There may be something for it."""
        self._event.set()

    def end(self) -> None:
        self.ended = True
        self._asking.cancel()
        self.poke()

    def ready(self) -> None:
        """What is poked from now on ends the next wait."""
        if self._event.is_set() and not self.ended:
            self._event = trio.Event()

    @contextmanager
    def asking(self, until: float = math.inf) -> Iterator[trio.CancelScope]:
        """Around what the stream asks of others: it is given up then, or when the stream ends."""
        with trio.CancelScope(deadline=until) as self._asking:
            if self.ended:
                self._asking.cancel()
            yield self._asking

    async def wait(self, seconds: float) -> bool:
        """Until it is poked: True. After so long without that: False."""
        with trio.move_on_after(seconds):
            await self._event.wait()
        return self._event.is_set()


class Streams:
    def __init__(self, doorkeeper: Doorkeeper) -> None:
        self._doorkeeper = doorkeeper
        self._open: dict[Stream, tuple[Caller, Scope]] = {}
        self._some = trio.Event()
        self._closed = False

    def __len__(self) -> int:
        return len(self._open)

    @contextmanager
    def open(self, caller: Caller, scope: Scope) -> Iterator[Stream]:
        """A stream for as long as the block, or until its token may not read it any more."""
        stream = Stream()
        self._open[stream] = caller, scope
        self._some.set()
        if self._closed:
            stream.end()
        try:
            yield stream
        finally:
            del self._open[stream]

    def close(self) -> None:
        """The server ends: so do they, and those that come."""
        self._closed = True
        for stream in self._open:
            stream.end()

    async def watch(self) -> None:
        """Look at the tokens of what is open, for ever. Costs nothing while nothing is."""
        while True:
            if not self._open:
                self._some = trio.Event()
                await self._some.wait()
            await trio.sleep(LOOK_S)
            await self.look()

    async def look(self) -> None:
        """End what may not be open any more. Several tokens at a time, so that a thousand of them take no second."""
        opened: defaultdict[str, list[Stream]] = defaultdict(list)
        for stream, (caller, _) in self._open.items():
            opened[caller.digest].append(stream)
        digests = iter(list(opened))

        async def ask() -> None:
            for digest in digests:
                now = await self._doorkeeper.again(digest)
                for stream in opened[digest]:
                    if stream in self._open and (now is None or not now.may(self._open[stream][1])):
                        stream.end()

        async with trio.open_nursery() as nursery:
            for _ in range(min(AT_ONCE, len(opened))):
                nursery.start_soon(ask)
