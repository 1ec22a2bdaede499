"""What a cron expression may say, and what is refused, at once, with the field, the value and an example."""

from __future__ import annotations

import json
import random
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cron.errors import CronParseError
from cron.expression import SHORTHANDS, Expression, read_expression
from tests.unit.cron import walker

VECTORS: dict[str, Any] = json.loads((Path(__file__).parents[2] / "vectors" / "cron.json").read_text())
WRONG = [
    ("99 * * * *", "minute"),
    ("60 * * * *", "minute"),
    ("5-60 * * * *", "minute"),
    ("* 24 * * *", "hour"),
    ("* 0-24 * * *", "hour"),
    ("* * 32 * *", "day-of-month"),
    ("* * 0 * *", "day-of-month"),
    ("* * * 13 *", "month"),
    ("* * * 0 *", "month"),
    ("* * * * 8", "day-of-week"),
    ("* * * * mon-8", "day-of-week"),
    ("1,,2 * * * *", "minute"),
    (", * * * *", "minute"),
    ("1, * * * *", "minute"),
    ("*/0 * * * *", "minute"),
    ("5/0 * * * *", "minute"),
    ("*/ * * * *", "minute"),
    ("*/-2 * * * *", "minute"),
    ("*/2/3 * * * *", "minute"),
    ("/5 * * * *", "minute"),
    ("30-10 * * * *", "minute"),
    ("10- * * * *", "minute"),
    ("-10 * * * *", "minute"),
    ("1-5-9 * * * *", "minute"),
    ("*-5 * * * *", "minute"),
    ("** * * * *", "minute"),
    ("1.5 * * * *", "minute"),
    ("+5 * * * *", "minute"),
    ("5_0 * * * *", "minute"),
    ("mon * * * *", "minute"),
    ("* * * foo *", "month"),
    ("* * * january *", "month"),
    ("* * * * funday", "day-of-week"),
    ("* * * * sat-sun", "day-of-week"),
    ("* * * * fri-mon", "day-of-week"),
    ("0 0 L * *", "day-of-month"),
    ("0 0 LW * *", "day-of-month"),
    ("0 0 15W * *", "day-of-month"),
    ("0 0 ? * *", "day-of-month"),
    ("0 0 * * 5L", "day-of-week"),
    ("0 0 * * L", "day-of-week"),
    ("0 0 * * mon#2", "day-of-week"),
    ("0 0 * * ?", "day-of-week"),
    ("H * * * *", "minute"),
    ("٣ * * * *", "minute"),
    ("５ * * * *", "minute"),  # noqa: RUF001
    ("² * * * *", "minute"),
    ("* * * * ſun", "day-of-week"),  # noqa: RUF001
    ("0\0 * * * *", "minute"),
    ("9" * 900 + " * * * *", "minute"),
    ("0 0 31 4 *", "day-of-month"),
    ("0 0 30 2 *", "day-of-month"),
    ("0 0 31 2,4,6,9,11 *", "day-of-month"),
    ("0 0 30,31 feb */2", "day-of-month"),
    ("", "fields"),
    ("* * * *", "fields"),
    ("* * * * * *", "fields"),
    ("0 0 * * * 2026", "fields"),
    ("* * * * * " * 100_000, "fields"),
    ("@reboot", "expression"),
    ("@every", "expression"),
    ("@", "expression"),
]


@pytest.mark.parametrize("row", VECTORS["invalid"], ids=lambda row: repr(row["expr"]))
def test_what_the_vectors_refuse_is_refused(row: dict[str, Any]) -> None:
    """(G10) (T12) No vector that is wrong becomes a schedule."""
    with pytest.raises(CronParseError):
        read_expression(row["expr"])


@pytest.mark.parametrize(("text", "field"), WRONG, ids=[repr(text[:20]) for text, _ in WRONG])
def test_a_wrong_expression_is_refused_with_its_field_its_value_and_an_example(text: str, field: str) -> None:
    """(G10) (T12) The message names the field, repeats the value and shows one that would be right, on one line."""
    with pytest.raises(CronParseError) as caught:
        read_expression(text)
    error = caught.value
    assert error.field == field
    assert error.value in text
    assert error.example in str(error)
    assert str(error).startswith("Invalid cron expression: ")
    assert field in str(error)
    assert str(error).isprintable()
    assert len(str(error)) < 400


def test_every_example_of_a_message_is_right() -> None:
    """(G10) Whoever copies the example gets further."""
    for text, field in WRONG:
        with pytest.raises(CronParseError) as caught:
            read_expression(text)
        names = ("minute", "hour", "day-of-month", "month", "day-of-week")
        fields = [caught.value.example if name == field else "*" for name in names]
        read_expression(" ".join(fields) if field in names else caught.value.example)


@pytest.mark.parametrize("text", ["99 * * * *", "0 0 31 4 *", "0 0 30 2 */3", "*/61,60 * * * *"])
def test_a_refusal_takes_no_search(text: str) -> None:
    """(T12) `99 * * * *` once was accepted and then looked for during 20 s: now it is refused at once."""
    started = time.perf_counter()
    for _ in range(100):
        with pytest.raises(CronParseError):
            read_expression(text)
    assert time.perf_counter() - started < 1


def test_the_messages_of_the_reference_are_kept() -> None:
    """(G10) A step of nothing, and too few fields."""
    with pytest.raises(CronParseError, match="Cron step value cannot be 0"):
        read_expression("*/0 * * * *")
    with pytest.raises(CronParseError, match=r'^Invalid cron expression: "\* \* \*"'):
        read_expression("* * *")


@pytest.mark.parametrize(("shorthand", "long"), VECTORS["shorthands"].items())
def test_a_shorthand_is_its_five_fields_in_any_case(shorthand: str, long: str) -> None:
    """(H7) `@daily`, `@DAILY` and `0 0 * * *` match the same, and all shorthands of the vectors are known."""
    meant = sets(read_expression(long))
    assert sets(read_expression(shorthand)) == meant
    assert sets(read_expression(shorthand.upper())) == meant
    assert SHORTHANDS.keys() == VECTORS["shorthands"].keys()


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("0 9 * * sun", "0 9 * * 0"),
        ("0 9 * * 7", "0 9 * * 0"),
        ("0 9 * * 5-7", "0 9 * * 0,5,6"),
        ("0 9 * * 0-7", "0 9 * * 0-6"),
        ("0 9 * * MON-Fri", "0 9 * * 1-5"),
        ("0 9 * JAN,dec *", "0 9 * 1,12 *"),
        ("5-5/2 * * * *", "5 * * * *"),
        ("5/20 * * * *", "5,25,45 * * * *"),
        ("  0   9 * *\t* ", "0 9 * * *"),
        ("00 09 01 * *", "0 9 1 * *"),
        ("*,5 * * * *", "* * * * *"),
        ("*/90 * * * *", "*/60 * * * *"),
    ],
)
def test_several_ways_to_say_the_same_are_read_alike(text: str, same: str) -> None:
    """(G10) Names, both Sundays, ranges that end in 7, one-number ranges with a step, blanks and zeros in front."""
    assert sets(read_expression(text)) == sets(read_expression(same))


def test_an_impossible_day_is_no_mistake_if_a_weekday_is_enough() -> None:
    """(G10) 31 April never comes, but `0 0 31 4 mon` still fires on the Mondays of April."""
    expression = read_expression("0 0 31 4 mon")
    assert expression.after(datetime(2026, 1, 1)) == datetime(2026, 4, 6)  # noqa: DTZ001


def test_random_expressions_are_read_as_the_walker_reads_them() -> None:
    """(G10) Two readers that share no line agree on 2,000 expressions."""
    chance = random.Random(10)
    for _ in range(2_000):
        text = walker.expression(chance)
        rule, read = walker.Rule(text), read_expression(text)
        assert (rule.minutes, rule.hours, rule.days, rule.months, rule.weekdays) == sets(read)[:5], text
        assert (rule.either, rule.fixed) == (read.either_day, read.fixed), text


def test_far_away_days_are_found_as_in_a_calendar() -> None:
    """(G10) Leap days, the 31st: the next match is the first day that matches, years ahead if need be."""
    chance = random.Random(11)
    texts = [
        "0 0 29 2 *",
        "0 0 29 2 */7",
        "0 0 31 * */6",
        "0 0 29 feb 1",
        *(walker.expression(chance) for _ in range(300)),
    ]
    for text in texts:
        wall = datetime(chance.randint(2024, 2096), chance.randint(1, 12), chance.randint(1, 28), 23, 59)  # noqa: DTZ001
        rule, day = walker.Rule(text), wall.date() + timedelta(days=1)
        while not rule.matches_day(day):
            day += timedelta(days=1)
        found = read_expression(text).after(wall)
        assert (found.date(), found.hour, found.minute) == (day, min(rule.hours), min(rule.minutes)), text


@settings(deadline=None)
@given(st.text(alphabet="0123456789*/,- @adegilmnorstuwLW#?H٣\0", max_size=24))
def test_any_text_is_an_expression_that_fires_or_a_parse_error(text: str) -> None:
    """(G10) (T12) Nothing else comes out, whatever is typed; what is accepted fires within forty years."""
    try:
        expression = read_expression(text)
    except CronParseError:
        return
    assert expression.after(datetime(2026, 1, 1)) < datetime(2068, 1, 1)  # noqa: DTZ001


def sets(read: Expression) -> tuple[object, ...]:
    fields = (read.minutes, read.hours, read.days, read.months, read.weekdays)
    return (*map(set, fields),)
