"""Ordered sets in pieces: whatever is put in and taken out, they say what a sorted list says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from store.files import ordered
from store.files.ordered import TOP, Ordered, Tally

if TYPE_CHECKING:
    import pytest

entries = st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.sampled_from("xyz"))


class Small(Ordered):
    """Cut into pieces of two or three."""

    def add(self, entry: ordered.Entry) -> None:
        whole = ordered.PIECE
        ordered.PIECE = 2
        try:
            super().add(entry)
        finally:
            ordered.PIECE = whole


@given(st.lists(entries))
def test_it_is_like_a_sorted_list(changes: list[tuple[str, int, str]]) -> None:
    """What is there is taken out, what is not is put in; every way to look says the same as a plain list would."""
    found, plain = Small(), set[tuple[str, int, str]]()
    for entry in changes:
        (found.drop if entry in plain else found.add)(entry)
        plain ^= {entry}
    expected = sorted(plain)
    assert list(found) == expected
    assert len(found) == len(expected)
    assert all(0 < len(piece) < 4 and piece[-1] == last for piece, last in zip(found.pieces, found.lasts, strict=True))
    for one in "abcd":
        assert list(found.under(one)) == [entry for entry in expected if entry[0] == one]
        assert list(found.backwards(one)) == [entry for entry in reversed(expected) if entry[0] == one]
        assert found.has(one) is any(entry[0] == one for entry in expected)
        for number in range(7):
            assert list(found.under(one, number)) == [entry for entry in expected if entry[:2] == (one, number)]
            later = [entry for entry in expected if (one, number) < entry[:2]]
            assert found.first((one, number, TOP)) == next(iter(later), None)
            assert found.rank((one, number, TOP)) == len(expected) - len(later)
    assert list(found.backwards()) == expected[::-1]


def test_no_piece_grows_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """So no step moves more than one piece, wherever it puts or takes something."""
    monkeypatch.setattr(ordered, "PIECE", 10)
    found = Ordered()
    for number in range(1000):
        found.add((number * 7 % 1000,))
    assert max(map(len, found.pieces)) < 20
    for number in range(1000):
        found.drop((number,))
    assert (found.pieces, found.lasts) == ([], [])


def test_a_tally_forgets_what_nobody_says() -> None:
    """What is counted down to nothing leaves no trace: the tally is as it was before."""
    tally = Tally[str](lambda row: row[0] if row else None)
    tally.follow(None, "ab")
    tally.follow("ab", "ac")
    tally.follow(None, "b")
    tally.follow(None, "")
    assert (tally["a"], tally["b"], tally["c"], tally.total()) == (1, 1, 0, 2)
    tally.follow("ac", None)
    tally.follow("b", None)
    assert tally.of == {}
