"""Phrases: what people may say for a schedule, and what they are told when it is none."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cron.errors import PhraseError, ZoneError
from cron.phrases import EXAMPLES, FORMS, parse_phrase

VECTORS: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parents[2] / "vectors" / "phrases.json").read_bytes()
)
NOW = datetime(2026, 5, 9, 10, tzinfo=UTC)
"""A Saturday."""
BERLIN = ZoneInfo("Europe/Berlin")


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def first(phrase: str, *, now: datetime = NOW, zone: str = "UTC") -> datetime | None:
    return parse_phrase(phrase, now=now, zone=zone).next_after(now)


def cron_of(phrase: str) -> str:
    timing = parse_phrase(phrase, now=NOW, zone="UTC").timing
    assert timing.kind == "cron"
    return timing.cron


def refused(phrase: str, *, now: datetime = NOW, zone: str = "UTC") -> str:
    with pytest.raises(PhraseError) as caught:
        parse_phrase(phrase, now=now, zone=zone)
    assert caught.value.value == phrase
    assert caught.value.forms == FORMS
    return str(caught.value)


def phrase_of(recur: dict[str, str]) -> str:
    """The phrase of a recurrence as the reference keeps it."""
    day = f" on {recur['day']}" if "day" in recur else ""
    clock = f" at {recur['at']}" if "at" in recur else ""
    return f"every {recur['every']}{day}{clock}"


# ── what the reference says ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("row", VECTORS["valid"], ids=lambda row: f"{row['phrase'].strip()} {row['tz']} {row['now']}")
def test_a_phrase_means_what_it_means_in_the_reference(row: dict[str, Any]) -> None:
    """The first moment and whether it comes again are those of each row. (A5 to A15)"""
    now = datetime.fromisoformat(row["now"])
    schedule = parse_phrase(row["phrase"], now=now, zone=row["tz"])
    assert schedule.next_after(now) == datetime.fromisoformat(row["next_fire_at"])
    assert schedule.timing.recurring is (row["kind"] == "recurring")
    assert schedule.timing.zone == row["tz"]


@pytest.mark.parametrize("row", VECTORS["invalid"], ids=lambda row: row["phrase"] or "empty")
def test_a_bad_phrase_is_refused_as_in_the_reference(row: dict[str, Any]) -> None:
    """With the reason that each row names. (A16)"""
    now = datetime.fromisoformat(row["now"])
    assert row["error_contains"] in refused(row["phrase"], now=now, zone=row["tz"])


@pytest.mark.parametrize("row", VECTORS["recur_next"], ids=lambda row: f"{phrase_of(row['recur'])} {row['tz']}")
def test_a_recurring_phrase_goes_on_as_in_the_reference(row: dict[str, Any]) -> None:
    """The next moment is strictly after the last. (A9 to A13)"""
    after = datetime.fromisoformat(row["after"])
    assert first(phrase_of(row["recur"]), now=after, zone=row["tz"]) == datetime.fromisoformat(row["next"])


# ── once ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("phrase", "span"),
    [
        ("in 1 minute", timedelta(minutes=1)),
        ("in 1 minutes", timedelta(minutes=1)),
        ("in 5m", timedelta(minutes=5)),
        ("in 5 m", timedelta(minutes=5)),
        ("in 007 mins", timedelta(minutes=7)),
        ("in 2h", timedelta(hours=2)),
        ("in 2 hrs", timedelta(hours=2)),
        ("in an hour", timedelta(hours=1)),
        ("in a week", timedelta(weeks=1)),
        ("in 3 days", timedelta(days=3)),
        ("in 1 d", timedelta(days=1)),
        ("in 2w", timedelta(weeks=2)),
        ("in 5217 weeks", timedelta(weeks=5217)),
    ],
)
def test_in_counts_from_now(phrase: str, span: timedelta) -> None:
    """Long and short units, with a blank or without. (A5, A13b)"""
    schedule = parse_phrase(phrase, now=NOW, zone="UTC")
    assert (schedule.timing.kind, schedule.timing.at) == ("at", NOW + span)


@pytest.mark.parametrize(
    ("phrase", "moment"),
    [
        ("at 10:00", "2026-05-10T10:00"),
        ("at 10:01", "2026-05-09T10:01"),
        ("at 9:59", "2026-05-10T09:59"),
        ("at 00:00", "2026-05-10T00:00"),
        ("at 5pm", "2026-05-09T17:00"),
        ("at 5 PM", "2026-05-09T17:00"),
        ("at 9:30 pm", "2026-05-09T21:30"),
        ("at 9:30 p.m.", "2026-05-09T21:30"),
        ("at 09:30pm", "2026-05-09T21:30"),
        ("at 9 a.m", "2026-05-10T09:00"),
        ("at 12am", "2026-05-10T00:00"),
        ("at 12pm", "2026-05-09T12:00"),
        ("at 12:30 am", "2026-05-10T00:30"),
        ("at noon", "2026-05-09T12:00"),
        ("at midnight", "2026-05-10T00:00"),
        ("9am", "2026-05-10T09:00"),
        ("9:30 pm", "2026-05-09T21:30"),
        ("noon", "2026-05-09T12:00"),
        ("midnight", "2026-05-10T00:00"),
    ],
)
def test_at_is_today_or_else_tomorrow(phrase: str, moment: str) -> None:
    """Strictly after now, by either clock. (A6)"""
    assert first(phrase) == instant(moment)


@pytest.mark.parametrize(
    ("phrase", "moment"),
    [
        ("tomorrow", "2026-05-10T09:00"),
        ("tomorrow at 7am", "2026-05-10T07:00"),
        ("tomorrow at noon", "2026-05-10T12:00"),
        ("on 2026-05-09 at 10:01", "2026-05-09T10:01"),
        ("on 2026-05-10", "2026-05-10T09:00"),
        ("on 2028-02-29", "2028-02-29T09:00"),
        ("on 2026-12-24 at 6pm", "2026-12-24T18:00"),
    ],
)
def test_a_day_without_a_time_is_at_nine(phrase: str, moment: str) -> None:
    """Tomorrow and dates take any way to write a time. (A7, A8, A13b)"""
    assert first(phrase) == instant(moment)


def test_tomorrow_is_that_of_the_zone() -> None:
    """In Auckland it is already Sunday. (A15)"""
    assert first("tomorrow at 09:00", now=instant("2026-05-09T13:00"), zone="Pacific/Auckland") == instant(
        "2026-05-10T21:00"
    )


@pytest.mark.parametrize("phrase", ["on 2026-05-09 at 10:00", "on 2026-05-08", "on 1999-12-31", "on 0001-01-01"])
def test_a_date_that_has_passed_is_refused(phrase: str) -> None:
    """Now is too late as well, and the first day of the calendar breaks nothing. (A8)"""
    for zone in ("UTC", "Pacific/Kiritimati", "Pacific/Niue"):
        now = instant("2026-05-09T10:00") if zone == "UTC" else instant("2026-05-12T00:00")
        assert refused(phrase, now=now, zone=zone).startswith(f'scheduled time is in the past: "{phrase}"')


# ── again and again ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("phrase", "span"),
    [
        ("every hour", timedelta(hours=1)),
        ("hourly", timedelta(hours=1)),
        ("every minute", timedelta(minutes=1)),
        ("every 1 hour", timedelta(hours=1)),
        ("every 15 minutes", timedelta(minutes=15)),
        ("every 15 min", timedelta(minutes=15)),
        ("every 15m", timedelta(minutes=15)),
        ("every 2h", timedelta(hours=2)),
        ("every 36 hrs", timedelta(hours=36)),
        ("every 2 days", timedelta(days=2)),
        ("every 1 day", timedelta(days=1)),
        ("every 3 weeks", timedelta(weeks=3)),
        ("every 90s", timedelta(seconds=90)),
        ("every 90 sec", timedelta(seconds=90)),
        ("every 1.5h", timedelta(minutes=90)),
        ("every 0.5 days", timedelta(hours=12)),
    ],
)
def test_a_number_of_units_is_an_interval(phrase: str, span: timedelta) -> None:
    """The first run is one interval from now, and a plain duration will do. (A9, A10, G11)"""
    schedule = parse_phrase(phrase, now=NOW, zone="UTC")
    assert (schedule.timing.kind, schedule.timing.every) == ("every", span)
    assert schedule.next_after(NOW) == NOW + span


@pytest.mark.parametrize(
    ("phrase", "expression"),
    [
        ("every day", "0 9 * * *"),
        ("daily", "0 9 * * *"),
        ("every day at 02:30", "30 2 * * *"),
        ("daily at 9am", "0 9 * * *"),
        ("every day at midnight", "0 0 * * *"),
        ("every week", "0 9 * * 1"),
        ("every week at 10:00", "0 10 * * 1"),
        ("weekly at 10:00", "0 10 * * 1"),
        ("weekly on friday at 5pm", "0 17 * * 5"),
        ("every week on sun", "0 9 * * 0"),
        ("every week on tue and thu at 8:15", "15 8 * * 2,4"),
        ("every monday", "0 9 * * 1"),
        ("every tues at 10:00", "0 10 * * 2"),
        ("every wednesdays", "0 9 * * 3"),
        ("every thurs", "0 9 * * 4"),
        ("every saturday at 11:00 am", "0 11 * * 6"),
        ("every mon, wed and fri at 10:00", "0 10 * * 1,3,5"),
        ("every mon,wed,fri at 10:00", "0 10 * * 1,3,5"),
        ("every sat, and sun", "0 9 * * 6,0"),
        ("every weekday", "0 9 * * 1-5"),
        ("every weekday at 8:30", "30 8 * * 1-5"),
        ("every weekdays at noon", "0 12 * * 1-5"),
        ("every weekend at 10am", "0 10 * * 0,6"),
        ("every month", "0 9 1 * *"),
        ("monthly", "0 9 1 * *"),
        ("every month on the 1st", "0 9 1 * *"),
        ("every month on the 1st at 6pm", "0 18 1 * *"),
        ("every month on the 22nd at 07:05", "5 7 22 * *"),
        ("every month on 15", "0 9 15 * *"),
        ("monthly on day 3 at 10:00", "0 10 3 * *"),
        ("every month on the 31st", "0 9 31 * *"),
        ("0 9 * * 1-5", "0 9 * * 1-5"),
        ("*/10   * * * *", "*/10 * * * *"),
        ("0 9 1 JAN mon", "0 9 1 JAN mon"),
        ("@daily", "@daily"),
        ("@Hourly", "@hourly"),
    ],
)
def test_days_weeks_and_months_are_cron_expressions(phrase: str, expression: str) -> None:
    """So a change of the clocks does not move them; an expression itself is taken too. (A11 to A13, T2)"""
    assert cron_of(phrase) == expression


def test_a_week_without_a_day_is_a_monday() -> None:
    """Also where a time is given. (A12, A13b, T2)"""
    assert first("every week at 10:00") == instant("2026-05-11T10:00")


def test_a_month_without_that_day_is_passed_over() -> None:
    """The 31st comes when there is one. (design 8)"""
    fires = parse_phrase("every month on the 31st", now=NOW, zone="UTC").fires(NOW, 3)
    assert fires == tuple(instant(f"2026-{month}-31T09:00") for month in ("05", "07", "08"))


# ── nights on which the clocks change ────────────────────────────────────────────────────────────────────────────────


def test_a_daily_time_in_the_spring_gap_comes_right_after_it() -> None:
    """Half past two does not exist in Berlin on that day: three o'clock is the first instant after. (D1, lesson 35)"""
    nights = parse_phrase("every day at 02:30", now=NOW, zone="Europe/Berlin").fires(instant("2026-03-27T12:00"), 3)
    assert nights == (instant("2026-03-28T01:30"), instant("2026-03-29T01:00"), instant("2026-03-30T00:30"))


def test_a_daily_time_that_is_repeated_comes_once() -> None:
    """Half past two exists twice in Berlin on that day: the first one counts. (D1, lesson 35)"""
    nights = parse_phrase("every day at 02:30", now=NOW, zone="Europe/Berlin").fires(instant("2026-10-24T12:00"), 2)
    assert nights == (instant("2026-10-25T00:30"), instant("2026-10-26T01:30"))


@pytest.mark.parametrize(
    ("phrase", "now", "moment"),
    [
        ("at 02:30", "2026-03-28T22:00", "2026-03-29T01:00"),
        ("tomorrow at 02:30", "2026-03-28T12:00", "2026-03-29T01:00"),
        ("on 2026-03-29 at 02:30", "2026-03-01T12:00", "2026-03-29T01:00"),
        ("at 02:30", "2026-03-29T01:10", "2026-03-30T00:30"),
        ("at 02:30", "2026-10-24T23:30", "2026-10-25T00:30"),
        ("at 02:30", "2026-10-25T00:45", "2026-10-26T01:30"),
        ("at 02:30", "2026-10-25T01:15", "2026-10-26T01:30"),
        ("on 2026-10-25 at 02:30", "2026-03-01T12:00", "2026-10-25T00:30"),
    ],
)
def test_a_time_once_follows_the_same_rule(phrase: str, now: str, moment: str) -> None:
    """After a gap, the first of two, and tomorrow when it has been. (A6 to A8)"""
    assert first(phrase, now=instant(now), zone="Europe/Berlin") == instant(moment)


@pytest.mark.parametrize("phrase", ["in 24 hours", "in 1 day", "every 24 hours", "every 1 day"])
def test_a_span_is_real_time(phrase: str) -> None:
    """A day counted from now has 24 hours on every day of the year. (A5, lesson 35)"""
    for now in (instant("2026-03-28T20:00"), instant("2026-10-24T20:00")):
        assert first(phrase, now=now, zone="Europe/Berlin") == now + timedelta(hours=24)


def test_now_may_be_told_in_any_zone() -> None:
    """Also from inside the hour that comes twice. (D1)"""
    second = datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=BERLIN)
    assert parse_phrase("in 1 hour", now=second, zone=BERLIN).timing.at == instant("2026-10-25T02:30")
    assert parse_phrase("at 02:45", now=second, zone=BERLIN).timing.at == instant("2026-10-26T01:45")


# ── case, blanks, quotes ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "phrase",
    [
        "EVERY MONDAY AT 09:00",
        " every\tmonday\n at  09:00 ",
        "\xa0every\u3000monday\u2003at 09:00\r\n",
        "Every Mon At 9AM",
        '"every monday at 09:00"',
        "“every monday at 09:00”",
        "`every monday at 9 a.m.`",
    ],
)
def test_case_blanks_and_quotes_do_not_matter(phrase: str) -> None:
    """People, phones and agents write the same phrase in many ways. (A14)"""
    assert cron_of(phrase) == "0 9 * * 1"


@given(st.sampled_from([row["phrase"] for row in VECTORS["valid"]]), st.data())
def test_any_case_and_any_blanks_mean_the_same(phrase: str, data: st.DataObject) -> None:
    """However the letters are mixed. (A14)"""
    letters = [letter.upper() if data.draw(st.booleans()) else letter for letter in phrase.strip()]
    blanks = st.text(alphabet=" \t\n\r\xa0", min_size=1, max_size=3)
    mixed = "".join(data.draw(blanks) if letter.isspace() else letter for letter in letters)
    assert parse_phrase(mixed, now=NOW, zone="UTC") == parse_phrase(phrase, now=NOW, zone="UTC")


# ── what is refused ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("phrase", "reason"),
    [
        ("on 2027-02-29", "invalid YYYY-MM-DD"),
        ("in 5 ms", "there is no unit"),
        ("in 0 minutes", "interval must be >= 1"),
        ("in 000 weeks", "interval must be >= 1"),
        ("every 0 minutes", "interval must be >= 1"),
        ("every 0s", "Duration must be positive"),
        ("every 5 ms", "Invalid duration"),
        ("every 15", "Invalid duration"),
        ("every funday", "unrecognised weekday: funday"),
        ("every mo at 10:00", "unrecognised weekday: mo"),
        ("every mon and someday", "unrecognised weekday: someday"),
        ("tomorrow at 24:00", "invalid HH:MM"),
        ("at 25:00", "invalid HH:MM"),
        ("at 09:60", "invalid HH:MM"),
        ("at 9", "invalid HH:MM"),
        ("at 13pm", "invalid HH:MM"),
        ("at 0am", "invalid HH:MM"),
        ("at 17:00 pm", "invalid HH:MM"),
        ("every day at lunch", "invalid HH:MM"),
        ("at \u0660\u0669:\u0660\u0660", "invalid HH:MM"),
        ("13 pm", "invalid HH:MM"),
        ("on 2026-6-1", "invalid YYYY-MM-DD"),
        ("on 20260601", "invalid YYYY-MM-DD"),
        ("on 2026-W23-1", "invalid YYYY-MM-DD"),
        ("on 0000-01-01", "invalid YYYY-MM-DD"),
        ("every month on the 0th", "there is no day 0"),
        ("every month on the 32nd", "there is no day 32"),
        ("99 * * * *", "minute"),
        ("0 9 * *", "5 fields"),
        ("0 0 9 * * ?", "5 fields"),
        ("0 9 31 2 *", "never fire"),
        ("@fortnightly", "@fortnightly"),
    ],
)
def test_a_value_that_cannot_be_is_named(phrase: str, reason: str) -> None:
    """The form was understood, so the answer says which part of it was not. (A16, T2, T12)"""
    said = refused(phrase).splitlines()[0]
    assert said.startswith("unrecognised schedule phrase")
    assert reason in said


@pytest.mark.parametrize(
    "phrase",
    [
        "soon",
        "in",
        "in 5",
        "in minutes",
        "in five minutes",
        "in -5 minutes",
        "in 1.5 hours",
        "in 5 minutes or so",
        "at",
        "every",
        "every day at",
        "every 2 days at 09:00",
        "every other day",
        "every blue moon",
        "hourly at 10:00",
        "tomorrow 09:00",
        "09:00",
        "on monday",
        "next friday",
        "daily.",
        "⏰",
        "every 🐈 at 09:00",
        "every day\x00",
        "\x00",
        "a b c d e",
        "in \u0665 minutes",
    ],
)
def test_what_fits_no_form_is_answered_with_all_of_them(phrase: str) -> None:
    """Nothing is guessed. (A16)"""
    said = refused(phrase)
    assert said.startswith("unrecognised schedule phrase")
    assert all(form in said for form in FORMS)


@pytest.mark.parametrize("phrase", ["", " ", "\n\t", '""'])
def test_an_empty_phrase_is_called_empty(phrase: str) -> None:
    """It still comes with the list. (A16)"""
    assert refused(phrase).startswith("empty schedule phrase\nAccepted forms:")


@pytest.mark.parametrize(
    "phrase",
    [
        "in 999999999999 weeks",
        "in 5219 weeks",
        "in 99999999999999999999 minutes",
        f"in {'9' * 150} days",
        "every 999999999 hours",
        "every 999999999d",
        "every 99999999999999999999s",
        "on 2127-01-01",
        "on 9999-12-31 at 23:59",
    ],
)
def test_what_nobody_will_live_to_see_is_refused(phrase: str) -> None:
    """A large number is an answer, never an overflow. (A16, lesson 30)"""
    for zone in ("UTC", "Pacific/Kiritimati", "Pacific/Niue"):
        said = refused(phrase, zone=zone)
        assert "too far away" in said or "too long" in said


def test_a_long_text_is_refused_at_once_and_not_repeated() -> None:
    """Ten kilobytes are a message, and the answer stays short. (A16)"""
    for text in (
        "every monday and " * 600,
        "9" * 10_000,
        "* " * 5_000,
        "🐈" * 10_000,
        "in " + "1" * 10_000 + " minutes",
    ):
        said = refused(text).splitlines()[0]
        assert "longer than 200 characters" in said
        assert len(said) < 300


def test_blanks_do_not_make_a_phrase_long() -> None:
    """They are collapsed before anything is measured. (A14)"""
    assert cron_of("every" + " " * 5_000 + "day") == "0 9 * * *"


@pytest.mark.parametrize("phrase", EXAMPLES.values())
def test_every_example_is_understood(phrase: str) -> None:
    """What the list shows can be typed as it stands. (A16)"""
    assert first(phrase) is not None


def test_an_unknown_zone_is_not_the_phrase_s_fault() -> None:
    """The error is that of the zone. (A15)"""
    with pytest.raises(ZoneError):
        parse_phrase("every day", now=NOW, zone="Europe/Atlantis")


@given(st.text(max_size=300))
def test_any_text_is_a_schedule_or_an_answer(text: str) -> None:
    """No input ends in another error. (A16)"""
    try:
        parse_phrase(text, now=NOW, zone="Europe/Berlin")
    except PhraseError:
        return


WORDS = """
in at on every day week month monday weekday tomorrow daily and the , :
1st 0 5 15 999999999 minutes h 09:00 24:00 9am pm 2026-06-01 2026-02-30 *
"""
words = st.sampled_from(WORDS.split())


@given(st.lists(words, max_size=7).map(" ".join))
def test_any_mix_of_the_right_words_is_a_schedule_or_an_answer(text: str) -> None:
    """What is nearly a phrase breaks nothing, and what is one lies ahead. (A16)"""
    try:
        schedule = parse_phrase(text, now=NOW, zone="America/New_York")
    except PhraseError:
        return
    following = schedule.next_after(NOW)
    assert following is not None
    assert following > NOW
