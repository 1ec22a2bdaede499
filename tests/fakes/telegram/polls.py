"""getUpdates: one at a time. Who comes second ends the wait of the first, as the real server has it.

poll ──┐ waits ──update, time──> answer
       └─ another poll ─> 409, at most one at once in a few seconds: the others are kept waiting for theirs
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import trio

from tests.fakes.telegram.errors import Failure

if TYPE_CHECKING:
    from tests.fakes.telegram.parameters import Parameters
    from tests.fakes.telegram.world import World

LONGEST_S = 50
MOST = 100
CONFLICT_PAUSE_S = 3.0
BY_POLL = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
BY_WEBHOOK = "Conflict: terminated by setWebhook request"
WEBHOOK_ACTIVE = (
    "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
)


@dataclass(slots=True, eq=False)
class Waiting:
    ended_by: str = ""
    ended: trio.Event = field(default_factory=trio.Event)

    def end(self, why: str) -> None:
        self.ended_by = why
        self.ended.set()


class Polls:
    """``conflict_pause_s`` may be changed at any time."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._waiting: Waiting | None = None
        self._next_conflict_at = -math.inf
        self.conflict_pause_s = CONFLICT_PAUSE_S
        self.conflicts = 0

    def end(self, why: str) -> None:
        """Whoever waits is told that."""
        if self._waiting is not None:
            self._waiting.end(why)
            self._waiting = None
            self._world.note()

    async def take(self, given: Parameters, *, webhook: bool) -> list[dict[str, Any]]:
        if webhook:
            await self._conflict(WEBHOOK_ACTIVE)
        updates = self._world.updates
        if "allowed_updates" in given.values:
            updates.allowed = frozenset(given.structure("allowed_updates", list, []))
        self.end(BY_POLL)
        if offset := given.number("offset"):
            updates.confirm(offset)
        if not updates.ready():
            await self._wait(min(LONGEST_S, max(0, given.number("timeout"))))
        limit = given.number("limit", MOST)
        return updates.batch(limit if 1 <= limit <= MOST else MOST)

    async def _wait(self, timeout_s: float) -> None:
        mine = self._waiting = Waiting()
        try:
            with trio.move_on_after(timeout_s):
                await self._world.until(lambda: self._world.updates.ready() or mine.ended.is_set())
        finally:
            if self._waiting is mine:
                self._waiting = None
        if mine.ended.is_set():
            await self._conflict(mine.ended_by)

    async def _conflict(self, why: str) -> None:
        self.conflicts += 1
        self._world.note()
        now = trio.current_time()
        if now < self._next_conflict_at:
            await trio.sleep(self.conflict_pause_s)
        else:
            self._next_conflict_at = now + self.conflict_pause_s
        raise Failure(409, why)
