"""Schedules in words: readable, and never wrong."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

from cron.schedule import Schedule, at, every, parse_cron, webhook
from tests.unit.cron import walker


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 9 * * 1-5", "At 09:00, Monday to Friday (Europe/Berlin)"),
        ("0 9 * * *", "At 09:00 every day (Europe/Berlin)"),
        ("0 9,17 * * *", "At 09:00 and 17:00 every day (Europe/Berlin)"),
        ("5,35 8,20 * * *", "At 08:05, 08:35, 20:05 and 20:35 every day (Europe/Berlin)"),
        ("0 9 * * mon", "At 09:00 on Mondays (Europe/Berlin)"),
        ("0 9 * * sun,sat", "At 09:00 on Saturdays and Sundays (Europe/Berlin)"),
        ("0 9 * * 5-7", "At 09:00, Friday to Sunday (Europe/Berlin)"),
        ("0 9 * * 1,3,5", "At 09:00 on Mondays, Wednesdays and Fridays (Europe/Berlin)"),
        ("0 9 1 * *", "At 09:00 on day 1 of every month (Europe/Berlin)"),
        ("0 9 1,15 * *", "At 09:00 on days 1 and 15 of every month (Europe/Berlin)"),
        ("0 9 1 * mon", "At 09:00 on day 1 of every month, or on Mondays (Europe/Berlin)"),
        ("0 9 1 6 mon", "At 09:00 on day 1 of June, or on Mondays in June (Europe/Berlin)"),
        ("0 9 1-31 * mon", "At 09:00 every day (Europe/Berlin)"),
        ("0 9 1-7 * */7", "At 09:00 on days 1 to 7 of every month, if that is a Sunday (Europe/Berlin)"),
        ("0 9 * 6 *", "At 09:00 every day in June (Europe/Berlin)"),
        ("0 9 * 6,7 fri", "At 09:00 on Fridays, in June and July (Europe/Berlin)"),
        ("@yearly", "At 00:00 on day 1 of January (Europe/Berlin)"),
        ("* * * * *", "Every minute"),
        ("*/15 * * * *", "Every 15 minutes"),
        ("*/2 * * * *", "Every 2 minutes"),
        ("*/7 * * * *", "At every 7th minute from 0 to 56 of every hour"),
        ("5/15 * * * *", "At every 15th minute from 5 to 50 of every hour"),
        ("0 * * * *", "At minute 0 of every hour"),
        ("*/90 * * * *", "At minute 0 of every hour"),
        ("0-10,30 * * * *", "At minutes 0 to 10 and 30 of every hour"),
        ("*/15 9-17 * * *", "Every 15 minutes from 09:00 to 17:45 every day (Europe/Berlin)"),
        ("* 9 * * *", "Every minute from 09:00 to 09:59 every day (Europe/Berlin)"),
        ("0 9-17 * * 1-5", "At minute 0 of every hour from 09:00 to 17:00, Monday to Friday (Europe/Berlin)"),
        ("0 */2 * * *", "At minute 0 of every 2nd hour from 00:00 to 22:00 every day (Europe/Berlin)"),
        ("*/15 1,2,7 * * *", "At every 15th minute from 0 to 45 of hours 1, 2 and 7 every day (Europe/Berlin)"),
        ("*/15 * * * sat", "Every 15 minutes on Saturdays (Europe/Berlin)"),
    ],
)
def test_an_expression_in_words(text: str, words: str) -> None:
    """(G10) What is said back is what was asked for, with the zone where it counts."""
    assert parse_cron(text, "Europe/Berlin").words() == words


def test_the_minutes_of_an_hour_are_those_of_the_zone() -> None:
    """(lesson 35) Where the zone is half an hour off, it is said; where it makes no difference, it is not."""
    assert parse_cron("0 * * * *", "Asia/Kolkata").words() == "At minute 0 of every hour (Asia/Kolkata)"
    assert parse_cron("*/30 * * * *", "Asia/Kolkata").words() == "Every 30 minutes"
    assert parse_cron("*/30 * * * *", "Asia/Kathmandu").words() == "Every 30 minutes (Asia/Kathmandu)"


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (
            at(datetime(2026, 6, 2, 10, tzinfo=UTC), "Europe/Berlin"),
            "Once, on Tuesday 2026-06-02 at 12:00 (Europe/Berlin)",
        ),
        (at(datetime(2026, 6, 2, 22, 0, 30, tzinfo=UTC)), "Once, on Tuesday 2026-06-02 at 22:00:30 (UTC)"),
        (every(timedelta(minutes=15)), "Every 15 minutes"),
        (every(timedelta(hours=1)), "Every hour"),
        (every(timedelta(minutes=90)), "Every 1 hour 30 minutes"),
        (every(timedelta(days=1, hours=1)), "Every 1 day 1 hour"),
        (webhook(), "When its webhook is called"),
    ],
)
def test_the_other_kinds_in_words(schedule: Schedule, words: str) -> None:
    """(L14) One-shots in the zone of whoever asked, intervals, webhooks."""
    assert schedule.words() == words


def test_what_has_the_same_words_has_the_same_slots() -> None:
    """(R7) Of 10,000 expressions no two are said alike that the walker would fire at different times."""
    chance = random.Random(9)
    days = [datetime(2024, 1, 1, tzinfo=UTC).date() + timedelta(days=k) for k in range(366 * 4)]
    meant: dict[str, tuple[str, object]] = {}
    for _ in range(10_000):
        text = walker.expression(chance)
        rule = walker.Rule(text)
        says = (rule.minutes, rule.hours, days_of(rule))
        other, same = meant.setdefault(parse_cron(text, "Europe/Berlin").words(), (text, says))
        if same != says:  # said differently, it may still be the same days
            other_rule = walker.Rule(other)
            assert (other_rule.minutes, other_rule.hours) == says[:2], (text, other)
            assert [*map(other_rule.matches_day, days)] == [*map(rule.matches_day, days)], (text, other)


def days_of(rule: walker.Rule) -> tuple[object, ...]:
    return rule.months, rule.days, rule.weekdays, rule.either
