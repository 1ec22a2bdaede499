"""Schedules: the next slot, those that were missed, and intervals."""

from __future__ import annotations

import json
import random
import time
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger
from hypothesis import given, settings
from hypothesis import strategies as st

from cron.durations import parse_duration
from cron.errors import BadInput, CronParseError, ZoneError
from cron.schedule import Missed, Schedule, at, every, is_due, next_interval, parse_cron, schedule_of, webhook
from store.jobs import Timing
from tests.unit.cron import walker

VECTORS = Path(__file__).parents[2] / "vectors"
CRON: dict[str, Any] = json.loads((VECTORS / "cron.json").read_text())
INTERVAL: dict[str, Any] = json.loads((VECTORS / "interval.json").read_text())
NOW = datetime(2026, 6, 10, 12, 34, 56, 789, tzinfo=UTC)
TICK = timedelta(microseconds=1)
INSTANTS = st.datetimes(datetime(2000, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


# ── expressions ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("row", CRON["valid"], ids=lambda row: f"{row['id']} {row['expr']} {row['tz']}")
def test_the_next_three_slots_are_those_of_the_vectors(row: dict[str, Any]) -> None:
    """(G10) (H7) (C9) Syntax, names, both day fields, zones and the nights in which clocks change."""
    now = datetime.fromisoformat(row["now"])
    assert parse_cron(row["expr"], row["tz"]).fires(now, 3) == tuple(map(datetime.fromisoformat, row["next"]))


def test_an_autumn_night_in_new_york_is_one_night() -> None:
    """(D1) `30 1 * * *` fires once, `0 * * * *` 25 times that day, `0 9 * * *` once, and all of them go on."""
    start, end = datetime(2026, 11, 1, 4, tzinfo=UTC) - TICK, datetime(2026, 11, 2, 5, tzinfo=UTC) - TICK
    assert slots(parse_cron("30 1 * * *", "America/New_York"), start, end) == [datetime(2026, 11, 1, 5, 30, tzinfo=UTC)]
    assert len(slots(parse_cron("0 * * * *", "America/New_York"), start, end)) == 25
    nine = parse_cron("0 9 * * *", "America/New_York")
    assert slots(nine, start, end) == [datetime(2026, 11, 1, 14, tzinfo=UTC)]
    assert nine.next_after(end) == datetime(2026, 11, 2, 14, tzinfo=UTC)


def test_berlin_nights_are_as_people_expect() -> None:
    """(lesson 35) A daily 02:30 fires once in both nights, half hours stay half an hour apart."""
    daily, halves = parse_cron("30 2 * * *", "Europe/Berlin"), parse_cron("*/30 * * * *", "Europe/Berlin")
    spring, autumn = datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 10, 24, 12, tzinfo=UTC)
    day = timedelta(days=1)
    assert slots(daily, spring, spring + day) == [datetime(2026, 3, 29, 1, tzinfo=UTC)]
    assert slots(daily, autumn, autumn + day) == [datetime(2026, 10, 25, 0, 30, tzinfo=UTC)]
    for night in (spring, autumn):
        assert {b - a for a, b in pairwise(slots(halves, night, night + day))} == {timedelta(minutes=30)}


def test_fixed_times_that_a_gap_pushes_together_fire_once() -> None:
    """(§8) 02:00, 02:20, 02:40 and 03:00 are one slot in the spring night, and four in any other."""
    schedule = parse_cron("0,20,40 2,3 * * *", "America/New_York")
    night = datetime(2026, 3, 8, 5, tzinfo=UTC)
    gap = [datetime(2026, 3, 8, 7, minute, tzinfo=UTC) for minute in (0, 20, 40)]
    assert slots(schedule, night, night + timedelta(hours=12)) == gap
    assert schedule.missed(night, night + timedelta(hours=12)) == Missed(gap[0], gap[-1], 3)


def test_a_repeated_hour_is_not_passed_over_for_the_next_year() -> None:
    """(§8) By real time the hour comes twice, also when the next match on the wall is a year away."""
    schedule = parse_cron("*/30 1 1 11 *", "America/New_York")
    assert schedule.fires(datetime(2026, 11, 1, 5, 45, tzinfo=UTC), 3) == (
        datetime(2026, 11, 1, 6, tzinfo=UTC),
        datetime(2026, 11, 1, 6, 30, tzinfo=UTC),
        datetime(2027, 11, 1, 5, tzinfo=UTC),
    )


def test_an_expression_is_refused_when_the_schedule_is_made() -> None:
    """(T12) Neither `99 * * * *` nor a bad zone becomes a schedule, also not from what was kept."""
    with pytest.raises(CronParseError, match="minute"):
        parse_cron("99 * * * *", "UTC")
    with pytest.raises(CronParseError, match="minute"):
        schedule_of(Timing("cron", cron="99 * * * *"))
    with pytest.raises(ZoneError, match="Europe/Berlin"):
        parse_cron("0 9 * * *", "Europe/Berln")


def test_the_zone_is_kept_with_the_schedule() -> None:
    """(lesson 35) What is stored is the expression, tidied, and its zone; both make the same schedule again."""
    schedule = parse_cron("  0 9 *  * MON-FRI ", ZoneInfo("Europe/Berlin"))
    assert schedule.timing == Timing("cron", "Europe/Berlin", cron="0 9 * * MON-FRI")
    assert schedule.zone == ZoneInfo("Europe/Berlin")
    assert parse_cron("@Daily").timing == Timing("cron", "UTC", cron="@daily")
    assert schedule_of(schedule.timing) is schedule
    assert Schedule(schedule.timing) == schedule


def test_every_schedule_is_a_trigger_of_apscheduler() -> None:
    """(§14) `get_next_fire_time` answers for all kinds; asked for the first time, it may answer `now` itself."""
    nine = parse_cron("0 9 * * *", "Europe/Berlin").trigger
    slot = datetime(2026, 6, 10, 7, tzinfo=UTC)
    assert isinstance(nine, BaseTrigger)
    assert nine.get_next_fire_time(None, slot) == slot
    assert nine.get_next_fire_time(slot, slot) == slot + timedelta(days=1)
    assert nine.get_next_fire_time(slot, slot + timedelta(days=3)) == slot + timedelta(days=1)
    assert isinstance(at(NOW).trigger, DateTrigger)
    assert isinstance(every(timedelta(minutes=5)).trigger, IntervalTrigger)


@pytest.mark.parametrize("zone", [ZoneInfo("America/New_York"), ZoneInfo("Asia/Tokyo"), timezone(timedelta(hours=3))])
def test_it_does_not_matter_in_which_zone_now_is_said(zone: Any) -> None:
    """(§14) The same instant gives the same slot, in UTC, also from inside the repeated hour."""
    now = datetime(2026, 11, 1, 6, 15, tzinfo=UTC)
    for schedule in (parse_cron("*/10 * * * *", "America/New_York"), every(timedelta(minutes=5)), at(now + TICK)):
        following = schedule.next_after(now.astimezone(zone))
        assert following == schedule.next_after(now)
        assert following is not None
        assert following.tzinfo is UTC


def test_a_time_without_a_zone_is_refused() -> None:
    """(lesson 35) It would be taken for the server's own time."""
    naive = datetime(2026, 6, 10)  # noqa: DTZ001
    for ask in (parse_cron("@daily").next_after, every(timedelta(1)).next_after, at):
        with pytest.raises(ValueError, match="with a zone"):
            ask(naive)


# ── the other kinds ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_one_shot_fires_once_and_not_again() -> None:
    """(L14) Its instant is after any earlier one, and there is none afterwards."""
    schedule = at(NOW, "Europe/Berlin")
    assert schedule.next_after(NOW - TICK) == NOW
    assert schedule.next_after(NOW) is None
    assert schedule.fires(NOW - TICK, 5) == (NOW,)
    assert schedule.missed(NOW - TICK, NOW) == Missed(NOW, NOW, 1)
    assert schedule.missed(NOW, NOW + TICK) is None
    assert not schedule.recurring


def test_a_webhook_has_no_slots() -> None:
    """(§8) It fires when it is called."""
    assert webhook().next_after(NOW) is None
    assert webhook().fires(NOW, 3) == ()
    assert webhook().missed(NOW, NOW + timedelta(days=9)) is None
    assert not webhook().recurring


@settings(deadline=None)
@given(INSTANTS, st.timedeltas(timedelta(milliseconds=1), timedelta(days=400)), st.integers(0, 10**9))
def test_an_interval_counts_from_the_time_it_is_asked_for(now: datetime, interval: timedelta, seconds: int) -> None:
    """(C10) To the microsecond; the slots of a stretch are counted without being visited."""
    schedule = every(interval)
    assert schedule.next_after(now) == now + interval
    upto = now + timedelta(seconds=seconds)
    missed, count = schedule.missed(now, upto), timedelta(seconds=seconds) // interval
    assert missed == (Missed(now + interval, now + count * interval, count) if count else None)


@pytest.mark.parametrize("interval", [timedelta(0), timedelta(seconds=-1), timedelta(days=36_526), timedelta.max])
def test_an_interval_that_cannot_be_followed_is_refused(interval: timedelta) -> None:
    """(T2) Nothing, less than nothing, and what leads out of the calendar."""
    with pytest.raises(BadInput, match="at most 100 years"):
        every(interval)


def test_a_timing_without_its_field_is_refused() -> None:
    """(§13) What was kept is checked like what was typed."""
    with pytest.raises(ValueError, match="expected"):
        schedule_of(Timing("at"))
    with pytest.raises(ValueError, match="expected"):
        schedule_of(Timing("every"))
    with pytest.raises(CronParseError):
        schedule_of(Timing("cron"))


@pytest.mark.parametrize("row", INTERVAL["next_trigger"], ids=lambda row: row["note"])
def test_an_interval_goes_on_from_the_last_run_and_never_into_the_past(row: dict[str, Any]) -> None:
    """(H11) The vectors, with and without jitter."""
    last = row["lastCompletedAt"] and datetime.fromisoformat(row["lastCompletedAt"])
    following = next_interval(
        last,
        parse_duration(row["interval"], strict=True),
        now=datetime.fromisoformat(row["now"]),
        jitter=row["jitterPercent"] or 0.0,
        random=row["random"] or 0.0,
    )
    assert following == datetime.fromisoformat(row["expect"])


@pytest.mark.parametrize(("percent", "seconds"), [(-5, 0), (0, 0), (10, 360), (11, 360), (1_000, 360)])
def test_jitter_is_at_most_ten_percent(percent: float, seconds: int) -> None:
    """(H11) Less than nothing is nothing, more than ten percent is ten."""
    last = NOW + timedelta(minutes=1)
    hour = timedelta(hours=1)
    assert next_interval(last, hour, now=NOW, jitter=percent, random=1) == last + hour + timedelta(seconds=seconds)


@pytest.mark.parametrize("row", INTERVAL["is_due"], ids=lambda row: row["nextRunAt"])
def test_what_is_a_millisecond_away_is_not_due(row: dict[str, Any]) -> None:
    """(H12) The vectors."""
    assert is_due(datetime.fromisoformat(row["nextRunAt"]), datetime.fromisoformat(row["now"])) is row["due"]


def test_what_is_due_now_is_due() -> None:
    """(H12) At its instant and ever after, also when both are said in a zone whose hour is repeated."""
    assert is_due(NOW, NOW)
    assert is_due(NOW - timedelta(milliseconds=1), NOW)
    zone = ZoneInfo("America/New_York")
    first = datetime(2026, 11, 1, 5, 45, tzinfo=UTC).astimezone(zone)
    second = datetime(2026, 11, 1, 6, 15, tzinfo=UTC).astimezone(zone)
    assert is_due(first, second)
    assert not is_due(second, first)


# ── slots that were missed ───────────────────────────────────────────────────────────────────────────────────────────


def test_two_years_of_minutes_are_counted_at_once() -> None:
    """(lesson 25) A minutely job that was away for two years is answered for in milliseconds, to the slot."""
    schedule = parse_cron("* * * * *", "Europe/Berlin")
    after = NOW - timedelta(days=731)
    missed, spent = None, 1.0
    for _ in range(3):
        started = time.perf_counter()
        missed = schedule.missed(after, NOW)
        spent = min(spent, time.perf_counter() - started)
    assert missed == Missed(
        after.replace(second=0, microsecond=0) + timedelta(minutes=1), NOW.replace(second=0, microsecond=0), 731 * 1440
    )
    assert spent < 0.01


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca"])
def test_what_was_missed_is_what_stepping_from_slot_to_slot_finds(zone: str) -> None:
    """(P5) First, last and number agree over stretches from minutes to years that begin and end anywhere."""
    chance = random.Random(zone)
    for _ in range(150):
        text = walker.expression(chance)
        schedule = parse_cron(text, zone)
        after = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=chance.random() * 5 * 365 * 86_400)
        upto, found = after, []
        for _ in range(chance.randint(0, 400)):
            upto = schedule.next_after(upto) or upto
            found.append(upto)
        upto += timedelta(seconds=chance.choice([0, 0, 30]))
        expected = Missed(found[0], found[-1], len(found)) if found else None
        assert schedule.missed(after, upto) == expected, (text, after, upto)


def test_slots_are_missed_after_the_first_end_and_upto_the_second() -> None:
    """(P5) The end that was handled is not missed again, the end that is now counts; backwards there are none."""
    schedule = parse_cron("0 9 * * *")
    nine, day = datetime(2026, 6, 10, 9, tzinfo=UTC), timedelta(days=1)
    assert schedule.missed(nine, nine + day) == Missed(nine + day, nine + day, 1)
    assert schedule.missed(nine, nine + day - TICK) is None
    assert schedule.missed(nine - TICK, nine) == Missed(nine, nine, 1)
    assert schedule.missed(nine + day, nine) is None


def slots(schedule: Schedule, after: datetime, upto: datetime) -> list[datetime]:
    found = []
    while (following := schedule.next_after(after)) is not None and following <= upto:
        found.append(following)
        after = following
    return found
