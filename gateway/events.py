"""What happens in the gateway, told to whoever listens: the dashboard, a test, a person at a terminal.

    publish ──▶ every listener's own buffer ──▶ listener
                      └── full: its oldest event goes, which `Listener.lost` counts

A publisher never waits and never hears of a listener's trouble. Nothing is kept for those who come later: what counts
is in the store.
"""

from __future__ import annotations

from collections import deque
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Mapping
    from datetime import datetime
    from typing import Self

BUFFER = 1_000


@dataclass(frozen=True, slots=True)
class Event:
    """``seq`` numbers the events of this process; a listener that hears a gap has asked for some kinds only, or lost
    some, which `Listener.lost` tells."""

    seq: int
    at: datetime
    kind: str
    tenant: str = ""
    session: str = ""
    run: str = ""
    trace: str = ""
    data: Mapping[str, object] = field(default_factory=dict)


class Listener:
    """What one listener has not heard yet, oldest first: an endless iterator."""

    def __init__(self, kinds: Collection[str] | None, tenant: str | None, buffer: int) -> None:
        self._kinds = None if kinds is None else frozenset(kinds)
        self._tenant = tenant
        self._events: deque[Event] = deque(maxlen=buffer)
        self._something = trio.Event()
        self._lost = 0

    def wants(self, kind: str, tenant: str) -> bool:
        return (self._kinds is None or kind in self._kinds) and self._tenant in (None, tenant)

    def put(self, event: Event) -> None:
        self._lost += len(self._events) == self._events.maxlen
        self._events.append(event)
        self._something.set()

    def lost(self) -> int:
        """How many events went unheard since this was last asked, because nobody took them in time."""
        lost, self._lost = self._lost, 0
        return lost

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        await trio.lowlevel.checkpoint()
        while not self._events:
            self._something = trio.Event()
            await self._something.wait()
        return self._events.popleft()


class Bus:
    def __init__(self, now: Callable[[], datetime], *, buffer: int = BUFFER) -> None:
        self._now = now
        self._buffer = buffer
        self._listeners: dict[int, Listener] = {}
        self._watchers: list[Callable[[Event], None]] = []
        self._numbers = count(1)
        self._seq = 0

    def publish(
        self,
        kind: str,
        *,
        tenant: str = "",
        session: str = "",
        run: str = "",
        trace: str = "",
        data: Mapping[str, object] | None = None,
    ) -> None:
        """Tell it to everybody who wants to know. Never waits, never fails."""
        self._seq += 1
        if not self._listeners and not self._watchers:
            return
        wanted_by = [listener for listener in self._listeners.values() if listener.wants(kind, tenant)]
        if wanted_by or self._watchers:
            event = Event(self._seq, self._now(), kind, tenant, session, run, trace, data or {})
            for listener in wanted_by:
                listener.put(event)
            for watcher in self._watchers:
                watcher(event)

    def watch(self, watcher: Callable[[Event], None]) -> None:
        """Call this with every event from now on, at once: it must be quick, and must not fail."""
        self._watchers.append(watcher)

    @asynccontextmanager
    async def listen(self, kinds: Collection[str] | None = None, tenant: str | None = None) -> AsyncIterator[Listener]:
        """Hear everything from now on, or these kinds, or what is one tenant's."""
        number = next(self._numbers)
        listener = self._listeners[number] = Listener(kinds, tenant, self._buffer)
        try:
            yield listener
        finally:
            del self._listeners[number]

    @property
    def listeners(self) -> int:
        return len(self._listeners)
