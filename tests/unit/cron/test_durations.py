"""Durations: two grammars, each with its own messages, and the words for a span."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cron.durations import duration_text, parse_duration
from cron.errors import BadInput, CronError, DurationError, IntervalParseError

VECTORS = Path(__file__).parents[2] / "vectors"
LENIENT: dict[str, Any] = json.loads((VECTORS / "duration.json").read_text())
STRICT: dict[str, Any] = json.loads((VECTORS / "interval.json").read_text())

HUGE = ["9" * 5_000 + "d", "9" * 90 + "s", "1" * 90 + ".5h", "999999999999d", "1000000000d"]
ODD = ["٣m", "５m", "5m\0", "\0", "5\u00a0 m\u0130", "1e3s", "+5m", "−5m", "5m5m", "inf", "nan", "0x5m", "²s", "5мин"]  # noqa: RUF001


@pytest.mark.parametrize("row", LENIENT["valid"], ids=lambda row: repr(row["input"]))
def test_people_may_write_a_duration_as_they_like(row: dict[str, Any]) -> None:
    """(G11) Decimals, blanks, short words and capitals are read, to the millisecond."""
    assert parse_duration(row["input"]) == timedelta(milliseconds=row["ms"])


@pytest.mark.parametrize("row", LENIENT["invalid"], ids=lambda row: repr(row["input"]))
def test_what_is_no_duration_is_refused_with_the_forms(row: dict[str, Any]) -> None:
    """(G11) The message says what was typed and what would be right."""
    with pytest.raises(DurationError) as caught:
        parse_duration(row["input"])
    assert all(part in str(caught.value) for part in row["message_contains"])
    assert f'"{row["input"]}"' in str(caught.value)


def test_the_two_lenient_messages_are_those_of_the_reference() -> None:
    """(G11) Word for word."""
    with pytest.raises(DurationError) as unread:
        parse_duration("x")
    assert str(unread.value) == 'Invalid duration: "x". Expected format: 10m, 2h, 24h, 1d'
    with pytest.raises(DurationError) as zero:
        parse_duration("0s")
    assert str(zero.value) == 'Duration must be positive: "0s"'


@pytest.mark.parametrize("row", STRICT["valid"], ids=lambda row: repr(row["input"]))
def test_files_may_use_whole_numbers_and_four_units(row: dict[str, Any]) -> None:
    """(H9) s, m, h and d in either case, with blanks around."""
    assert parse_duration(row["input"], strict=True) == timedelta(milliseconds=row["ms"])


@pytest.mark.parametrize("row", STRICT["invalid"], ids=lambda row: repr(row["input"]))
def test_each_mistake_in_a_file_has_its_own_message(row: dict[str, Any]) -> None:
    """(H10) The error says which mistake it is and keeps the input as it was."""
    with pytest.raises(IntervalParseError) as caught:
        parse_duration(row["input"], strict=True)
    assert all(part in str(caught.value) for part in row["message_contains"])
    assert caught.value.text == caught.value.input == row["error_input_attribute"]


@pytest.mark.parametrize("text", ["5.5m", "-1.5h", "1.5", "0.0s"])
def test_a_decimal_is_refused_before_anything_else_is_looked_at(text: str) -> None:
    """(H10) Decimals are no part of the strict grammar, whatever follows them."""
    with pytest.raises(IntervalParseError, match="Decimal values are not supported"):
        parse_duration(text, strict=True)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("text", HUGE, ids=lambda text: text[:12])
def test_a_number_that_no_span_can_hold_is_refused_as_input(text: str, strict: bool) -> None:
    """(G11) (H10) Too long is a mistake of whoever typed it, not an overflow."""
    with pytest.raises(DurationError) as caught:
        parse_duration(text, strict=strict)
    assert caught.value.text == text
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("text", ODD, ids=repr)
def test_only_plain_digits_and_letters_are_read(text: str, strict: bool) -> None:
    """(G11) (H10) Digits of other scripts, NUL, signs and exponents are refused; the message stays on one line."""
    with pytest.raises(DurationError) as caught:
        parse_duration(text, strict=strict)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(("text", "ms"), [("0.0005s", 1), ("1.0005s", 1001), ("0.1s", 100), ("1.1h", 3_960_000)])
def test_decimals_are_counted_exactly_and_end_in_whole_milliseconds(text: str, ms: int) -> None:
    """(G11) 1.1 hours are 3,960,000 ms and not a millionth more."""
    assert parse_duration(text) == timedelta(milliseconds=ms)


def test_less_than_half_a_millisecond_is_nothing() -> None:
    """(G11) What rounds to zero is not positive."""
    with pytest.raises(DurationError, match="Duration must be positive"):
        parse_duration("0.0004s")


@settings(deadline=None)
@given(st.text(max_size=12), st.booleans())
def test_any_text_is_a_span_above_zero_or_a_duration_error(text: str, strict: bool) -> None:
    """(G11) (H10) Nothing else comes out, whatever is typed."""
    with suppress(DurationError):
        assert parse_duration(text, strict=strict) > timedelta(0)


def test_a_duration_error_is_one_of_the_room_and_a_value_error() -> None:
    """(H19) It can be caught by its base, and carries facts for a program."""
    with pytest.raises(DurationError) as caught:
        parse_duration("soon")
    error = caught.value
    assert isinstance(error, BadInput)
    assert isinstance(error, CronError)
    assert isinstance(error, ValueError)
    assert (error.code, error.retriable) == ("bad-duration", False)
    assert error.fields == {"field": "duration", "value": "soon", "example": "10m"}


@pytest.mark.parametrize(
    ("span", "words"),
    [
        (timedelta(seconds=30), "30 seconds"),
        (timedelta(seconds=1), "1 second"),
        (timedelta(minutes=90), "1 hour 30 minutes"),
        (timedelta(days=2), "2 days"),
        (timedelta(days=1, hours=1, minutes=1, seconds=1), "1 day 1 hour 1 minute 1 second"),
        (timedelta(milliseconds=1500), "1.5 seconds"),
        (timedelta(milliseconds=500), "0.5 seconds"),
        (timedelta(0), "0 seconds"),
        (timedelta(minutes=-5), "minus 5 minutes"),
    ],
)
def test_a_span_in_words_names_every_unit_that_counts(span: timedelta, words: str) -> None:
    """(G11) For people to read."""
    assert duration_text(span) == words
