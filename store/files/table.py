"""One table of the JSON store: rows by key, and whoever is told of their changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from store.files.shards import Shards

if TYPE_CHECKING:
    from collections.abc import Callable

K = TypeVar("K")
R = TypeVar("R")


class Table(Generic[K, R]):
    """``note`` is told of every change: key, row before, row after. ``key_of`` is the key that a row should have."""

    def __init__(
        self,
        name: str,
        read_key: Callable[[Any], K],
        read_row: Callable[[Any], R],
        note: Callable[[K, R | None, R | None], None] | None = None,
        key_of: Callable[[R], K] | None = None,
    ) -> None:
        self.name = name
        self.read_key = read_key
        self.read_row = read_row
        self.note = note
        self.key_of = key_of
        self.rows = Shards[K, R]()

    def set(self, key: K, row: R | None) -> R | None:
        """The row under this key from now on, None for none; returns what was there."""
        old = self.rows.get(key)
        if row is not None:
            self.rows[key] = row
        elif old is not None:
            del self.rows[key]
        if self.note is not None and row is not old:
            self.note(key, old, row)
        return old

    def read(self, raw_key: Any, raw_row: Any) -> tuple[K, R | None]:
        """A row as it was written; a `ValueError`, `KeyError` or `TypeError` if it cannot be understood."""
        key = self.read_key(raw_key)
        row = None if raw_row is None else self.read_row(raw_row)
        if row is not None and self.key_of is not None and self.key_of(row) != key:
            raise ValueError(f"it calls itself {self.key_of(row)}")
        return key, row
