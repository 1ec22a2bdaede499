"""A dictionary in pieces behaves like a dictionary without an order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from store.files.shards import PIECES, Shards

steps = st.lists(st.tuples(st.integers(0, 300), st.none() | st.integers()), max_size=200)


@given(steps)
def test_it_holds_what_a_dictionary_holds(history: list[tuple[int, int | None]]) -> None:
    """Set and deleted in any order, looked at in every way."""
    plain: dict[int, int] = {}
    pieces = Shards[int, int]()
    for key, value in history:
        if value is not None:
            plain[key] = pieces[key] = value
        elif key in plain:
            del plain[key], pieces[key]
        assert pieces.get(key, -1) == plain.get(key, -1)
        assert (key in pieces) == (key in plain)
    assert (len(pieces), bool(pieces)) == (len(plain), bool(plain))
    assert sorted(pieces) == sorted(plain)
    assert dict(pieces.items()) == dict(pieces.piecewise()) == plain
    assert sorted(pieces.values()) == sorted(plain.values())


def test_its_entries_may_change_while_it_is_walked_through() -> None:
    """A walk sees each piece as it was when it came to it, and nobody has to wait for it."""
    pieces = Shards[int, int]()
    for number in range(10 * PIECES):
        pieces[number] = number
    walk = pieces.piecewise()
    first = [next(walk) for _ in range(5)]
    for number in range(10 * PIECES):
        del pieces[number]
        pieces[-number - 1] = number
    seen = [*first, *walk]
    assert len(seen) == 10 * PIECES
    assert [key for key, _ in seen if key >= 0] == [number * PIECES for number in range(10)]


def test_no_piece_holds_much_more_than_its_share() -> None:
    """Rising numbers and texts are spread evenly, so that growing one piece is a small step."""
    for keys in (range(100_000), [("fake", "bot", str(number)) for number in range(100_000)]):
        pieces = Shards[object, None]()
        for key in keys:
            pieces[key] = None
        assert max(map(len, pieces.pieces)) < 2 * 100_000 / PIECES
