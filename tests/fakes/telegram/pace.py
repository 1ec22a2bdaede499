"""How much a bot may write: Telegram's limits for a chat, for a group and for all, and how often they were hit.

A chat that is over a limit is told how long to wait, and hears the same until that time has passed. Sends and edits
share the limits. What is refused does not count as sent.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from tests.fakes.telegram.errors import flood

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True, slots=True)
class Limits:
    """``burst`` messages may come at once in a chat, after that one in ``chat_s`` seconds.

    With ``speed`` 10 time passes ten times as quickly for the limits, so that a test need not wait. The wait that is
    told is in whole seconds, as Telegram's, of the time that really passes.
    """

    chat_s: float = 1.0
    burst: int = 3
    group: int = 20
    group_s: float = 60.0
    overall: int = 30
    overall_s: float = 1.0
    speed: float = 1.0


UNLIMITED = Limits(chat_s=0, group=10**9, overall=10**9)


@dataclass(slots=True)
class Window:
    """No more than ``most`` within any ``seconds``."""

    most: int
    seconds: float
    times: deque[float] = field(default_factory=deque)

    def wait(self, now: float, number: int) -> float:
        while self.times and self.times[0] <= now - self.seconds:
            self.times.popleft()
        over = len(self.times) + number - self.most
        return (
            0.0 if over <= 0 else self.times[min(over, len(self.times)) - 1] + self.seconds - now if self.times else 0.0
        )

    def take(self, now: float, number: int) -> None:
        self.times.extend([now] * number)


@dataclass(slots=True)
class Bucket:
    """One in ``seconds``, and some ahead of that."""

    seconds: float
    burst: int
    full_at: float = -math.inf

    def wait(self, now: float, number: int) -> float:
        """How long until that many more fit in."""
        if not self.seconds:
            return 0.0
        ahead = (
            min(number, self.burst) - self.burst
        )  # an album that is larger than the burst comes in at once, or never
        return max(0.0, max(self.full_at, now) + ahead * self.seconds - now)

    def take(self, now: float, number: int) -> None:
        self.full_at = max(self.full_at, now) + number * self.seconds


class Pace:
    """``limits`` may be changed at any time."""

    def __init__(self, limits: Limits, now: Callable[[], float]) -> None:
        self._clock = now
        self.limits = limits
        self.hits: Counter[int] = Counter()
        """How often each chat was told to wait."""
        self.sent: defaultdict[int, list[float]] = defaultdict(list)
        """When each chat's messages and edits were taken, by the double's clock."""

    @property
    def limits(self) -> Limits:
        return self._limits

    @limits.setter
    def limits(self, limits: Limits) -> None:
        self._limits = limits
        self._overall = Window(limits.overall, limits.overall_s)
        self._groups: dict[int, Window] = {}
        self._chats: dict[int, Bucket] = {}
        self._until: dict[int, float] = {}

    def take(self, chat_id: int, *, group: bool, number: int = 1) -> None:
        """That many messages are written in that chat now, or a Failure says how long to wait."""
        limits = self._limits
        now = self._clock() * limits.speed
        rules: list[Window | Bucket] = [self._overall]
        rules.append(self._chats.setdefault(chat_id, Bucket(limits.chat_s, limits.burst)))
        if group:
            rules.append(self._groups.setdefault(chat_id, Window(limits.group, limits.group_s)))
        wait = max([self._until.get(chat_id, 0.0) - now, *(rule.wait(now, number) for rule in rules)])
        if wait > 1e-9:
            self.hits[chat_id] += 1
            self._until[chat_id] = now + wait
            raise flood(max(1, math.ceil(wait / limits.speed)))
        for rule in rules:
            rule.take(now, number)
        self.sent[chat_id] += [now / limits.speed] * number

    def most_within(self, chat_id: int | None, seconds: float) -> int:
        """The most that was written in that chat, or in all, within so many real seconds anywhere in time."""
        kept = chain(*self.sent.values()) if chat_id is None else self.sent[chat_id]
        return most_within(sorted(kept), seconds)


def most_within(times: Sequence[float], seconds: float) -> int:
    first, most = 0, 0
    for last, at in enumerate(times):
        while times[first] <= at - seconds:
            first += 1
        most = max(most, last - first + 1)
    return most
