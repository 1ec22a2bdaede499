"""Spans over HTTP: whatever comes out can be put in again."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as some
from pydantic import ValidationError

from gateway.http.shapes import HintsIn


def read(text: object) -> timedelta | None:
    return HintsIn.model_validate({"interval": text}).interval


@given(some.integers(1, 10**9).map(lambda seconds: timedelta(seconds=seconds)))
def test_what_comes_out_can_be_put_in(span: timedelta) -> None:
    """Any whole number of seconds."""
    shown = HintsIn(interval=span).model_dump(mode="json")["interval"]
    assert read(shown) == span


@pytest.mark.parametrize(
    ("text", "seconds"), [("1h 30m", 5_400), ("1h30m", 5_400), ("1 day 1 s", 86_401), ("90s", 90), ("1.5h", 5_400)]
)
def test_spans_are_read(text: str, seconds: int) -> None:
    """In one piece or in several."""
    assert read(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text", ["", "1h 30", "30 1h", "1h -30m", "1h 0m", "1h x", "h m", "1..5h 2m", 5, True, "9" * 15 + "d 1d"]
)
def test_what_is_no_span_is_refused(text: object) -> None:
    """With a reason, and without a surprise."""
    with pytest.raises(ValidationError):
        read(text)
