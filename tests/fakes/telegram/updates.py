"""What waits for the bot: updates in their order, until an offset or a webhook confirms them.

push ──> pending ──batch──> the bot ──offset──> confirmed
             └── held, doubled, told again or garbled when a test wants it so
"""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

FIRST = 700_000_001
MOST = 100
ON_REQUEST = frozenset(["chat_member", "message_reaction", "message_reaction_count"])
"""These are told only to a bot that names them."""


@dataclass(frozen=True, slots=True)
class Update:
    """``body`` is the whole of it as it is sent, ``chat_id`` where it happened, ``at`` when by the double's clock."""

    id: int
    kind: str
    body: dict[str, Any]
    chat_id: int | None
    at: float


class Updates:
    def __init__(self, now: Callable[[], float], changed: Callable[[], None]) -> None:
        self._now = now
        self._changed = changed
        self._next = FIRST
        self._again: list[Update] = []
        self._held: list[Update] | None = None
        self.pending: deque[Update] = deque()
        self.all: list[Update] = []
        """Every update there was, in the order in which it happened."""
        self.confirmed: set[int] = set()
        self.given: list[int] = []
        """The ids as they went out, one for each time."""
        self.allowed: frozenset[str] | None = None
        self.doubled = 0
        """How many of the next updates are told twice in one answer."""

    def wanted(self, kind: str) -> bool:
        return kind not in ON_REQUEST if not self.allowed else kind in self.allowed

    def push(
        self, kind: str, content: dict[str, Any], chat_id: int | None = None, *, update_id: int | None = None
    ) -> Update:
        """It happened; whether the bot is told of it is its own choice."""
        number = self._next if update_id is None else update_id
        self._next = max(self._next, number + 1)
        update = Update(number, kind, {"update_id": number, kind: content}, chat_id, self._now())
        self._take(update)
        return update

    def push_raw(self, body: dict[str, Any]) -> Update:
        """An update of any form; it gets a number if it has none."""
        number = int(body.get("update_id", self._next))
        self._next = max(self._next, number + 1)
        kind = next((name for name in body if name != "update_id"), "")
        update = Update(number, kind, {"update_id": number, **body}, None, self._now())
        self._append(update)
        return update

    def _take(self, update: Update) -> None:
        if self.wanted(update.kind):
            self._append(update)

    def _append(self, update: Update) -> None:
        self.all.append(update)
        (self.pending if self._held is None else self._held).append(update)
        self._changed()

    @contextmanager
    def held(self, order: Callable[[list[Update]], Sequence[Update]] = lambda held: held) -> Iterator[None]:
        """What happens within the block is told after it, all at once and in the order that is made of it."""
        self._held = []
        try:
            yield
        finally:
            held, self._held = self._held, None
            self.pending.extend(order(held))
            self._changed()

    def again(self, update: Update) -> None:
        """Tell it once more, whether it was confirmed or not."""
        self._again.append(update)
        self._changed()

    def confirm(self, offset: int) -> None:
        """As the server takes an offset: what is below it is done with; a negative one counts from the end."""
        if offset < 0:
            offset = self.pending[max(0, len(self.pending) + offset)].id if self.pending else self._next
        done = [update for update in self.pending if update.id < offset]
        self.pending = deque(update for update in self.pending if update.id >= offset)
        self.confirmed.update(update.id for update in done)
        if done:
            self._changed()

    def drop(self) -> None:
        """All that waits is forgotten, without having been told."""
        self.pending.clear()
        self._changed()

    def ready(self) -> bool:
        return bool(self._again or self.pending)

    def batch(self, limit: int = MOST) -> list[dict[str, Any]]:
        again, self._again = self._again, []
        batch = [*again, *self.pending][:limit]
        twice = []
        for update in batch:
            twice.append(update)
            if self.doubled > 0 and update not in again:
                self.doubled -= 1
                twice.append(update)
        self.given.extend(update.id for update in twice)
        return [update.body for update in twice]

    def take_again(self) -> list[Update]:
        """For a webhook: what is to be told once more."""
        again, self._again = self._again, []
        return again

    def done(self, update: Update) -> None:
        """A webhook took it."""
        self.given.append(update.id)
        self.confirmed.add(update.id)
        if update in self.pending:
            self.pending.remove(update)
        self._changed()
