"""Who has waited for a while is told so, once: "Queued, 2 before you." One task for all who wait; idle it sleeps."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from gateway.outbound import Outbound
    from scheduler import Scheduler, Ticket

PATIENCE_S = 2.0
MOST_WATCHED = 10_000
"""In a flood beyond this, only the first ones are told; they are those who wait longest."""


class Waiting:
    def __init__(self, scheduler: Scheduler, outbound: Outbound) -> None:
        self._scheduler = scheduler
        self._outbound = outbound
        self._watched: deque[tuple[float, Ticket]] = deque()
        self._poked = trio.Event()

    def watch(self, ticket: Ticket) -> None:
        if ticket.outcome is None and len(self._watched) < MOST_WATCHED:
            self._watched.append((trio.current_time() + PATIENCE_S, ticket))
            self._poked.set()

    async def run(self) -> None:
        while True:
            await self._poked.wait()
            self._poked = trio.Event()
            while self._watched:
                await trio.sleep_until(self._watched[0][0])
                self._look()

    def _look(self) -> None:
        now = trio.current_time()
        while self._watched and self._watched[0][0] <= now:
            _, ticket = self._watched.popleft()
            before = self._scheduler.ahead(ticket)
            message = ticket.request.payload
            channel = self._outbound.channel(message.session.channel)
            if before is not None and channel is not None:
                channel.hint(message.session, waiting_text(before))


def waiting_text(before: int) -> str:
    return f"Queued, {before} before you." if before else "Queued: every slot is taken. You are next in this chat."
