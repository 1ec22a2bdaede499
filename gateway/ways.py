"""What waits to be sent, channel by channel, and which of it may go now. Pure: time is handed in.

    look at the outbox ──▶ line of an address ──take──▶ busy ──▶ line, or paused for a while ──▶ line

A line holds the first replies of one address, in their order. Of an address one reply at a time is on its way, of a
channel so many as `AT_ONCE`. So neither a chat nor a channel that takes its time holds up another one. Of addresses
that have nothing to be sent nothing is kept.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.protocols import Channel
    from store.records import Address, Reply

AT_ONCE = 64


@dataclass(slots=True)
class Line:
    """What is known of an address's replies."""

    known: int
    """What was known of the outbox when they were read."""
    cut: bool
    """There may be more of them."""
    replies: deque[Reply] = field(default_factory=deque)


class Way:
    """A channel, what waits for it and what is on its way."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.lines: OrderedDict[Address, Line] = OrderedDict()
        self.busy: set[Address] = set()
        self._free_at = -math.inf

    @property
    def due_at(self) -> float:
        """When the next reply may go; never, while there is none or too many are on their way."""
        return self._free_at if self.lines and len(self.busy) < AT_ONCE else math.inf

    @property
    def idle(self) -> bool:
        """It could send something, and knows of nothing."""
        return not self.lines and len(self.busy) < AT_ONCE

    def take(self, now: float) -> tuple[Address, Line]:
        """The line whose turn it is; its address is busy from now on."""
        address, line = self.lines.popitem(last=False)
        self.busy.add(address)
        self._free_at = max(self._free_at, now) + self.channel.pace.overall_s
        return address, line

    def let_go(self) -> OrderedDict[Address, Line]:
        """What is known of waiting addresses, to be learnt anew."""
        lines, self.lines = self.lines, OrderedDict()
        return lines

    def put(self, address: Address, line: Line) -> None:
        """Behind the others, unless it is urgent."""
        self.lines[address] = line
        if line.replies[0].note.urgent:
            self.lines.move_to_end(address, last=False)


class Pauses:
    """Addresses that are left alone for a while: their channel wants it so, or has failed them."""

    def __init__(self) -> None:
        self._lines: dict[Address, Line] = {}
        self._until: list[tuple[float, int, Address]] = []
        self._made = 0
        self._maybe: set[Address] = set()
        self.owing: set[Address] = set()
        """Those that have something to be sent, as far as anybody knows."""

    def __contains__(self, address: Address) -> bool:
        return address in self._lines

    def __iter__(self) -> Iterator[Address]:
        return iter(self._lines)

    @property
    def due_at(self) -> float:
        return self._until[0][0] if self._until else math.inf

    def add(self, address: Address, line: Line, until: float, *, owing: bool) -> None:
        self._lines[address] = line
        self._made += 1
        heappush(self._until, (until, self._made, address))
        (self.owing if owing else self._maybe).add(address)

    def all_may_owe(self) -> None:
        """There is something new in the outbox, nobody knows for whom."""
        self.owing |= self._maybe
        self._maybe.clear()

    def over(self, now: float) -> Iterator[tuple[Address, Line]]:
        """Those whose time is up and who have something to be sent; the others are forgotten."""
        while self._until and self._until[0][0] <= now:
            address = heappop(self._until)[2]
            line = self._lines.pop(address)
            self._maybe.discard(address)
            if address in self.owing:
                self.owing.discard(address)
                yield address, line
