"""The messages that this process works on, so that one delivered again is not worked on twice.

What the store answers may be old when it arrives: a message that was open then may have ended since. So a message that
is let go while some delivery still waits for the store's answer stays in hand until that delivery has been looked at.
"""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class InHand:
    def __init__(self) -> None:
        self._ids: set[int] = set()
        self._leaving: deque[tuple[int, int]] = deque()  # the newest delivery when it was let go, and the message
        self._deliveries: dict[int, None] = {}  # under way, oldest first
        self._numbers = count(1)
        self._newest = 0

    def __contains__(self, message: int) -> bool:
        return message in self._ids

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[int]:
        return iter(self._ids)

    @property
    def under_way(self) -> bool:
        """Somebody waits for the store to take something in."""
        return bool(self._deliveries)

    def take(self, messages: Iterable[int]) -> None:
        self._ids.update(messages)

    def let_go(self, *messages: int) -> None:
        self._leaving.extend((self._newest, message) for message in messages)
        self._purge()

    @contextmanager
    def delivery(self) -> Iterator[None]:
        """Around asking the store and looking at its answer."""
        number = self._newest = next(self._numbers)
        self._deliveries[number] = None
        try:
            yield
        finally:
            del self._deliveries[number]
            self._purge()

    def _purge(self) -> None:
        oldest = next(iter(self._deliveries), None)
        while self._leaving and (oldest is None or self._leaving[0][0] < oldest):
            self._ids.discard(self._leaving.popleft()[1])
