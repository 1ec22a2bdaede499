"""How much may still be written in each chat: a few messages at once, then one in a while. Pure: time is handed in.

Telegram counts sends and edits together: about one a second in a private chat, twenty a minute in a group, thirty a
second in all. Whoever goes beyond is made to wait, for minutes if it goes on. So an edit of a growing message leaves
room for a reply that may come.
"""

from __future__ import annotations

from typing import Final

PRIVATE_S: Final = 1.05
GROUP_S: Final = 3.6
BURST: Final = 3
"""20 a minute in a group: 3 at once and then one in 3.6 s makes less than that in any minute."""
REMEMBERED: Final = 10_000


class Budget:
    def __init__(self, every_s: float | None = None, burst: int = BURST) -> None:
        """``every_s``: one for all chats, instead of what is right for the kind of chat."""
        self._every_s = every_s
        self._burst = burst
        self._full_at: dict[int, float] = {}
        self._until: dict[int, float] = {}

    def wait_s(self, chat: int, now: float, *, spare: int = 0) -> float:
        """How long until one more may be written and so many others could follow at once."""
        full_at, until = self._full_at.get(chat, now), self._until.get(chat, now)
        return max(0.0, full_at - now - (self._burst - 1 - spare) * self._seconds(chat), until - now)

    def take(self, chat: int, now: float) -> None:
        self._forget(now)
        self._full_at[chat] = max(self._full_at.get(chat, now), now) + self._seconds(chat)

    def rest(self, chat: int, now: float, seconds: float) -> None:
        """The chat is to be left alone for so long."""
        self._until[chat] = max(self._until.get(chat, now), now + seconds)

    def _seconds(self, chat: int) -> float:
        if self._every_s is not None:
            return self._every_s
        return GROUP_S if chat < 0 else PRIVATE_S

    def _forget(self, now: float) -> None:
        for known in (self._full_at, self._until):
            if len(known) > REMEMBERED:
                for chat in [chat for chat, at in known.items() if at <= now]:
                    del known[chat]
