"""Ordered sets that follow a table, however large: no step takes longer than moving a thousand references.

An entry is a tuple, and whatever begins alike stands together: those of one tenant, of one job, of one owner are a
stretch of the set, found by its beginning. A plain sorted list would do the same, but to take the first of a million
entries out of one moves all the others.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

R = TypeVar("R")
Entry = tuple[Any, ...]

PIECE = 1_000
"""A piece that has grown to twice as many entries is cut in two."""


class _Top:
    """Behind everything else: `(tenant, TOP)` comes after all that begins with the tenant."""

    def __gt__(self, other: object) -> bool:
        return True

    def __lt__(self, other: object) -> bool:
        return False


TOP = _Top()


class Ordered:
    def __init__(self) -> None:
        self.pieces: list[list[Entry]] = []
        self.lasts: list[Entry] = []
        """The last entry of each piece."""

    def __iter__(self) -> Iterator[Entry]:
        return self.between((), (TOP,))

    def __len__(self) -> int:
        return sum(map(len, self.pieces))

    def add(self, entry: Entry) -> None:
        if not self.pieces:
            self.pieces.append([entry])
            self.lasts.append(entry)
            return
        place = min(bisect_left(self.lasts, entry), len(self.lasts) - 1)
        piece = self.pieces[place]
        insort(piece, entry)
        self.lasts[place] = piece[-1]
        if len(piece) >= 2 * PIECE:
            self.pieces[place : place + 1] = piece[:PIECE], piece[PIECE:]
            self.lasts[place : place + 1] = piece[PIECE - 1], piece[-1]

    def drop(self, entry: Entry) -> None:
        place = bisect_left(self.lasts, entry)
        piece = self.pieces[place]
        del piece[bisect_left(piece, entry)]
        if piece:
            self.lasts[place] = piece[-1]
        else:
            del self.pieces[place], self.lasts[place]

    def first(self, low: Entry = ()) -> Entry | None:
        """The first that is not before this."""
        place = bisect_left(self.lasts, low)
        if place == len(self.pieces):
            return None
        piece = self.pieces[place]
        return piece[bisect_left(piece, low)]

    def under(self, *start: Any) -> Iterator[Entry]:
        """Those that begin so."""
        return self.between(start, (*start, TOP))

    def has(self, *start: Any) -> bool:
        """Does any begin so?"""
        found = self.first(start)
        return found is not None and found[: len(start)] == start

    def between(self, low: Entry, high: Entry) -> Iterator[Entry]:
        """From the one to before the other. Who changes the set meanwhile takes a list of it first."""
        for place in range(bisect_left(self.lasts, low), len(self.pieces)):
            piece = self.pieces[place]
            for entry in islice(piece, bisect_left(piece, low), None):
                if not entry < high:
                    return
                yield entry

    def backwards(self, *start: Any) -> Iterator[Entry]:
        """Those that begin so, the last one first."""
        high = (*start, TOP)
        for place in range(min(bisect_left(self.lasts, high), len(self.pieces) - 1), -1, -1):
            piece = self.pieces[place]
            for at in range(bisect_left(piece, high) - 1, -1, -1):
                if piece[at] < start:
                    return
                yield piece[at]

    def rank(self, entry: Entry) -> int:
        """How many come before this."""
        place = bisect_left(self.lasts, entry)
        before = sum(map(len, islice(self.pieces, place)))
        return before + (bisect_left(self.pieces[place], entry) if place < len(self.pieces) else 0)


class View(Ordered, Generic[R]):
    """What the rows of a table say of themselves; one of which ``entry`` makes None is not in it."""

    def __init__(self, entry: Callable[[R], Entry | None]) -> None:
        super().__init__()
        self.entry = entry

    def follow(self, old: R | None, new: R | None) -> None:
        before = None if old is None else self.entry(old)
        after = None if new is None else self.entry(new)
        if before == after:
            return
        if before is not None:
            self.drop(before)
        if after is not None:
            self.add(after)


class Tally(Generic[R]):
    """How many rows say the same of themselves; one of which ``entry`` makes None does not count."""

    def __init__(self, entry: Callable[[R], Hashable | None]) -> None:
        self.entry = entry
        self.of: Counter[Hashable] = Counter()

    def __getitem__(self, what: Hashable) -> int:
        return self.of[what]

    def total(self) -> int:
        return self.of.total()

    def follow(self, old: R | None, new: R | None) -> None:
        before = None if old is None else self.entry(old)
        after = None if new is None else self.entry(new)
        if before == after:
            return
        if before is not None:
            self.of[before] -= 1
            if not self.of[before]:
                del self.of[before]
        if after is not None:
            self.of[after] += 1
