"""Rules: what every store refuses, and the sentence that says so."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.protocols import RuleBroken
from store.rules import check_words, plain_json

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**63), max_value=2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


class Colour(StrEnum):
    RED = "red"


@given(st.dictionaries(st.text(), plain, max_size=4))
def test_plain_data_is_copied_as_it_is(data: dict[str, object]) -> None:
    """Equal to what was given, also after a second time, and nothing of it is shared."""
    copy = plain_json(data)
    assert copy == data == plain_json(copy)
    copy["new"] = 1
    assert copy is not data


def test_a_read_only_mapping_is_data_too() -> None:
    """Nobody has to unwrap what they hold."""
    assert plain_json(MappingProxyType({"a": [1]})) == {"a": [1]}


@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, (1, 2), b"x", float("nan"), float("inf"), 2**64, {1: 2}, "\ud800", 1j],
    ids=["object", "set", "tuple", "bytes", "nan", "infinity", "large", "number as key", "half a character", "complex"],
)
def test_what_would_not_come_back_is_refused(value: object) -> None:
    """Deep inside as well, and never changed silently."""
    for data in ({"a": value}, {"a": [{"b": value}]}):
        with pytest.raises(RuleBroken, match="cannot be written as JSON") as caught:
            plain_json(data)
        assert not caught.value.retriable


def test_data_that_holds_itself_is_refused() -> None:
    """A circle has no end that could be written."""
    circle: dict[str, object] = {}
    circle["again"] = circle
    with pytest.raises(RuleBroken, match="cannot be written as JSON"):
        plain_json(circle)


def test_a_text_with_a_name_comes_back_as_text() -> None:
    """What is equal to plain text may be given for it."""
    assert plain_json({"colour": Colour.RED}) == {"colour": "red"}


def test_half_a_character_is_named() -> None:
    """The error shows the text and says what is wrong with it."""
    check_words("", "a\x00", "🦀")
    with pytest.raises(RuleBroken, match=r"'oops \\ud83e' holds half a character"):
        check_words("fine", "oops \ud83e")
