"""A dictionary in many small pieces, so that no single step takes as long as all of it.

A dictionary that grows is now and then moved to a larger place as a whole, and copying it takes as long as it is large:
with 200,000 entries either holds everybody up for about ten milliseconds. Here each of the pieces grows and is copied
by itself. There is no order among the entries.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, MutableMapping, ValuesView
from itertools import chain
from typing import Any, Generic, TypeVar, overload

K = TypeVar("K")
R = TypeVar("R")
D = TypeVar("D")

PIECES = 64


class Piece(dict[K, R]):
    """One of the pieces. A class of its own, because Python's garbage collector takes its eye off a plain dictionary of
    texts and numbers and casts it again, as on something new, when an entry comes: then every collection would visit
    all entries of all pieces that were touched since the last. This one is looked at once and then set apart.
    """

    __slots__ = ()


class Shards(MutableMapping[K, R], Generic[K, R]):
    __slots__ = ("pieces",)

    def __init__(self) -> None:
        self.pieces: tuple[Piece[K, R], ...] = tuple(Piece() for _ in range(PIECES))

    def __getitem__(self, key: K) -> R:
        return self.pieces[hash(key) % PIECES][key]

    def __setitem__(self, key: K, row: R) -> None:
        self.pieces[hash(key) % PIECES][key] = row

    def __delitem__(self, key: K) -> None:
        del self.pieces[hash(key) % PIECES][key]

    def __contains__(self, key: object) -> bool:
        return key in self.pieces[hash(key) % PIECES]

    @overload
    def get(self, key: K, default: None = None) -> R | None: ...

    @overload
    def get(self, key: K, default: R) -> R: ...

    @overload
    def get(self, key: K, default: D) -> R | D: ...

    def get(self, key: K, default: object = None) -> object:
        return self.pieces[hash(key) % PIECES].get(key, default)

    def items(self) -> ItemsView[K, R]:
        return _Items(self)

    def values(self) -> ValuesView[R]:
        return _Values(self)

    def __iter__(self) -> Iterator[K]:
        return chain.from_iterable(self.pieces)

    def __len__(self) -> int:
        return sum(map(len, self.pieces))

    def __bool__(self) -> bool:
        return any(self.pieces)

    def piecewise(self) -> Iterator[tuple[K, R]]:
        """All entries, each piece as it is when it is reached: others may change them meanwhile."""
        for piece in self.pieces:
            yield from piece.copy().items()


class _Items(ItemsView[K, R]):
    """Like those of any mapping, without asking for each key."""

    _mapping: Shards[K, R]

    def __iter__(self) -> Iterator[tuple[K, R]]:
        return chain.from_iterable(piece.items() for piece in self._mapping.pieces)


class _Values(ValuesView[R]):
    _mapping: Shards[Any, R]

    def __iter__(self) -> Iterator[R]:
        return chain.from_iterable(piece.values() for piece in self._mapping.pieces)
