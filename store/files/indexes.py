"""Ways to find rows without looking at all of them. Each is kept by adding and dropping what a row says of itself."""

from __future__ import annotations

from bisect import bisect_left, insort
from heapq import heappop, heappush, merge
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from store.files.shards import Shards
from store.rules import at_most

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterator
    from datetime import datetime

    from store.records import Address

G = TypeVar("G", bound="Hashable")
M = TypeVar("M")


class Groups(Generic[G, M]):
    """Members in their order, group by group; an empty group is not kept."""

    def __init__(self) -> None:
        self.of: dict[G, list[Any]] = {}

    def __getitem__(self, group: G) -> list[M]:
        return self.of.get(group, [])

    def __contains__(self, group: G) -> bool:
        return group in self.of

    def add(self, group: G, member: M) -> None:
        members = self.of.get(group)
        if members is None:
            self.of[group] = [member]
        elif members[-1] < member:
            members.append(member)
        else:
            insort(members, member)

    def drop(self, group: G, member: M) -> None:
        members = self.of[group]
        del members[bisect_left(members, member)]
        if not members:
            del self.of[group]

    def after(self, group: G, member: M) -> Iterator[M]:
        """Those behind this one, whether it is there or not."""
        members = self.of.get(group, [])
        start = bisect_left(members, member)
        if start < len(members) and members[start] == member:
            start += 1
        return islice(members, start, None)


class Owned(Generic[G, M]):
    """Which rows belong to whom, in no order."""

    def __init__(self) -> None:
        self.of: dict[G, Shards[M, None]] = {}

    def __getitem__(self, owner: G) -> Collection[M]:
        return self.of.get(owner, ())

    def add(self, owner: G, member: M) -> None:
        members = self.of.get(owner)
        if members is None:
            members = self.of[owner] = Shards()
        members[member] = None

    def drop(self, owner: G, member: M) -> None:
        members = self.of[owner]
        del members[member]
        if not members:
            del self.of[owner]


class ByAge(Generic[M]):
    """The oldest first. What has gone or been renewed is left lying until its time comes, and passed over then."""

    def __init__(self, time_of: Callable[[M], datetime | None]) -> None:
        self.heap: list[tuple[datetime, Any]] = []
        self.time_of = time_of

    def add(self, at: datetime, member: M) -> None:
        heappush(self.heap, (at, member))

    def pop_until(self, last: datetime, limit: int) -> list[M]:
        """Up to so many whose time is not after the last one; whoever asks removes them."""
        found: dict[M, None] = {}
        while self.heap and self.heap[0][0] <= last and len(found) < limit:
            at, member = heappop(self.heap)
            if self.time_of(member) == at:
                found[member] = None
        return list(found)


class Queues:
    """Replies in the order in which they are to be sent, address by address."""

    def __init__(self) -> None:
        self.waiting: dict[Address, list[tuple[bool, int]]] = {}
        self.heads: list[tuple[tuple[bool, int], Address]] = []

    def add(self, address: Address, place: tuple[bool, int]) -> None:
        queue = self.waiting.setdefault(address, [])
        head = queue[0] if queue else None
        insort(queue, place)
        self._show(address, head, queue[0])

    def drop(self, address: Address, place: tuple[bool, int]) -> None:
        queue = self.waiting[address]
        head = queue[0]
        del queue[bisect_left(queue, place)]
        if not queue:
            del self.waiting[address]
        self._show(address, head, queue[0] if queue else None)

    def due(self, limit: int, skip: Collection[Address]) -> list[int]:
        """The first ones, but for these addresses: nobody behind the first ``limit`` heads can be among them."""
        passed = set(skip)
        heads = islice((address for _, address in self.heads if address not in passed), at_most(limit))
        return [number for _, number in islice(merge(*(self.waiting[address] for address in heads)), at_most(limit))]

    def _show(self, address: Address, old: tuple[bool, int] | None, new: tuple[bool, int] | None) -> None:
        if old == new:
            return
        if old is not None:
            del self.heads[bisect_left(self.heads, (old, address))]
        if new is not None:
            insort(self.heads, (new, address))
