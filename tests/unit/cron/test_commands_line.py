"""The `/schedule` line: which verb, which job, and where the phrase ends and the message begins."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cron.errors import PhraseError
from cron.phrases import EXAMPLES, FORMS, USAGES, ScheduleCommand, parse_command, parse_phrase

VECTORS: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parents[2] / "vectors" / "phrases.json").read_bytes()
)
WRITS = [row for row in VECTORS["writs"] if "unknown_id" not in row]
UNKNOWN = [row for row in VECTORS["writs"] if "unknown_id" in row]


def refused(line: str) -> PhraseError:
    with pytest.raises(PhraseError) as caught:
        parse_command(line)
    return caught.value


def created(line: str) -> tuple[str, str]:
    command = parse_command(line)
    assert command == ScheduleCommand("create", command.phrase, command.message)
    return command.phrase, command.message


@pytest.mark.parametrize("row", WRITS, ids=lambda row: row["line"])
def test_a_line_asks_for_what_it_asks_for_in_the_reference(row: dict[str, Any]) -> None:
    """Verb, phrase, message and id are those of each row. (A17, A18)"""
    if "error_contains" in row:
        assert row["error_contains"] in str(refused(row["line"]))
    else:
        expected = ScheduleCommand(row["verb"], row.get("phrase", ""), row.get("message", ""), row.get("id"))
        assert parse_command(row["line"]) == expected


@pytest.mark.parametrize("row", UNKNOWN, ids=lambda row: row["line"])
def test_an_id_that_is_not_there_is_the_caller_s_to_find(row: dict[str, Any]) -> None:
    """The line is well formed. (A17)"""
    assert parse_command(row["line"]).job_id == int(row["line"].split()[-1])


# ── phrase and message ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("rest", "phrase", "message"),
    [
        ("every monday at 09:00: summarise the week", "every monday at 09:00", "summarise the week"),
        ("every monday at 09:00:summarise", "every monday at 09:00", "summarise"),
        ("every monday at 09:00 : summarise", "every monday at 09:00", "summarise"),
        ("every week at 10:00: 11:00 is too late", "every week at 10:00", "11:00 is too late"),
        ("at 9:30 pm: lights: off", "at 9:30 pm", "lights: off"),
        ("9am: coffee", "9am", "coffee"),
        ("daily: at 10:00: stand up", "daily", "at 10:00: stand up"),
        ("hourly::", "hourly", ":"),
        ("in 5 minutes: https://example.com:8443/a?b=c:d", "in 5 minutes", "https://example.com:8443/a?b=c:d"),
        ("on 2030-01-01 at 00:00: happy new year", "on 2030-01-01 at 00:00", "happy new year"),
        ("Every Weekday At 8:30: standup", "Every Weekday At 8:30", "standup"),
        ("every   day\tat 09:00: two  blanks  stay", "every day at 09:00", "two  blanks  stay"),
        ('"in 1 hour": quoted', "in 1 hour", "quoted"),
        ("every day: first line\nsecond: line\n", "every day", "first line\nsecond: line"),
        ("every day:\nthe message below", "every day", "the message below"),
        ("0 9 * * 1-5: standup", "0 9 * * 1-5", "standup"),
        ("@daily: tidy up", "@daily", "tidy up"),
        ("every 90s: look", "every 90s", "look"),
        ("in 1 hour: /schedule list", "in 1 hour", "/schedule list"),
        ("in 1 hour: 🐈\x00", "in 1 hour", "🐈\x00"),
    ],
)
def test_the_colon_is_the_first_one_after_a_phrase(rest: str, phrase: str, message: str) -> None:
    """Times, addresses and messages keep theirs. (T1, A18)"""
    assert created(f"/schedule {rest}") == (phrase, message)


@pytest.mark.parametrize("phrase", EXAMPLES.values())
def test_every_example_can_stand_in_a_line(phrase: str) -> None:
    """Whatever colons it holds itself. (T1, A17)"""
    assert created(f"/schedule {phrase}: 10:30: go") == (phrase, "10:30: go")


def test_a_date_that_has_passed_still_splits_the_line() -> None:
    """Reading a line needs no clock; the date is refused by whoever has one. (A8, A18)"""
    phrase, message = created("/schedule on 2020-01-01 at 10:00: too late")
    assert (phrase, message) == ("on 2020-01-01 at 10:00", "too late")
    with pytest.raises(PhraseError, match="scheduled time is in the past"):
        parse_phrase(phrase, now=datetime(2026, 1, 1, tzinfo=UTC), zone="UTC")


@pytest.mark.parametrize("phrase", ["daily", "weekly", "hourly", "every day"])
def test_a_message_may_be_a_number(phrase: str) -> None:
    """What looks like the number of a job behind a phrase of one word is what the agent is told. (A18)"""
    assert created(f"/schedule {phrase}: 42") == (phrase, "42")


@given(st.sampled_from([row["phrase"] for row in VECTORS["valid"]]), st.text(min_size=1).filter(str.strip))
def test_any_message_comes_back_as_it_was(phrase: str, message: str) -> None:
    """Whatever it holds, only blanks around it go. (T1, A18)"""
    assert created(f"/schedule {phrase}: {message}") == (" ".join(phrase.split()), message.strip())


# ── the command ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "start",
    [
        "/schedule",
        "/cron",
        "/SCHEDULE",
        "/Cron",
        "/schedule@goclaw_bot",
        "/CRON@GoClaw_Bot",
        " \n/schedule",
        "/schedule,",
    ],
)
def test_both_names_are_the_same_command(start: str) -> None:
    """Any case, and with the bot's name as groups write it. (A17, lesson 20)"""
    assert parse_command(f"{start} list") == ScheduleCommand("list")
    assert created(f"{start} in 1 hour: hello") == ("in 1 hour", "hello")
    assert parse_command(start) == ScheduleCommand("help")


@pytest.mark.parametrize(
    "line", ["/schedule", "/schedule ", "/cron help", "/schedule HELP", "/schedule help me", "/cron?"]
)
def test_help_is_a_verb(line: str) -> None:
    """Somebody who types only the name wants to know how. (A17)"""
    assert parse_command(line) == ScheduleCommand("help")


@pytest.mark.parametrize("verb", ["cancel", "pause", "resume", "run", "why"])
@pytest.mark.parametrize(
    ("told", "job"), [("42", 42), ("#42", 42), (" #42 ", 42), ("7.", 7), ("007", 7), ("9" * 18, 10**18 - 1)]
)
def test_a_verb_names_its_job(verb: str, told: str, job: int) -> None:
    """With the sign that lists show, or without. (A17)"""
    assert parse_command(f"/schedule {verb} {told}") == ScheduleCommand(verb, job_id=job)
    assert parse_command(f"/cron {verb.upper()} {told}") == ScheduleCommand(verb, job_id=job)


@pytest.mark.parametrize("verb", ["cancel", "pause", "resume", "run", "why"])
@pytest.mark.parametrize(
    "told", ["", "x", "#", "0", "#0", "-1", "4.2", "1 2", "42: x", "9" * 19, "9" * 10_000, "\u0664\u0662", "\x00"]
)
def test_a_verb_without_a_job_is_told_how(verb: str, told: str) -> None:
    """The answer is the line to type. (A17)"""
    assert str(refused(f"/schedule {verb} {told}")).startswith(f"usage: /schedule {verb} <id>")
    assert str(refused(f"/cron {verb} {told}")).startswith(f"usage: /cron {verb} <id>")


def test_a_list_takes_nothing_more() -> None:
    """What it was meant to do cannot be guessed. (A17)"""
    assert str(refused("/schedule list in 1 hour: x")) == "usage: /schedule list"


@pytest.mark.parametrize(
    "line", ["", "hello", "schedule list", "/schedules list", "/scheduled", "/stop", "/ schedule list"]
)
def test_another_line_is_none_of_these(line: str) -> None:
    """Asking was a mistake, and the error shows the line to type. (A17)"""
    error = refused(line)
    assert str(error) == f"usage: {USAGES[0]}"
    assert error.forms == USAGES


# ── what is refused ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "rest",
    [
        ": hello",
        ":",
        "::",
        '"": hello',
        "in 1 hour:",
        "in 1 hour: \n ",
        "in 1 hour",
        "daily at 10:30",
        "at 9:30 pm",
        "at 9:30:",
    ],
)
def test_a_line_needs_both_phrase_and_message(rest: str) -> None:
    """A phrase alone is not told that it is no phrase. (A17)"""
    assert "empty phrase or message: expected /schedule <phrase>: <message>" in str(refused(f"/schedule {rest}"))


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("every day at 25:00: x", 'phrase "every day at 25:00": invalid HH:MM "25:00"'),
        ("every day at 25:00", 'phrase "every day at 25:00": invalid HH:MM "25:00"'),
        ("every day at 9: x", 'phrase "every day at 9": invalid HH:MM "9"'),
        ("every day at 25: see 10:30", 'phrase "every day at 25": invalid HH:MM "25"'),
        ("every funday at 10:00: x", 'phrase "every funday at 10:00": unrecognised weekday: funday'),
        ("on 2027-02-29: x", 'phrase "on 2027-02-29": invalid YYYY-MM-DD "2027-02-29"'),
        ("in 0 minutes: x", 'phrase "in 0 minutes": interval must be >= 1'),
        ("in 5 ms: x", 'phrase "in 5 ms": there is no unit "ms" here'),
        ("99 * * * *: x", 'phrase "99 * * * *": '),
        ("soon: call at 10:30", 'phrase: "soon"'),
        ("buy milk", 'phrase "buy milk": there is no ":" between the phrase and the message'),
        ("in 1 hour buy milk", 'phrase "in 1 hour buy milk": there is no ":" between the phrase and the message'),
    ],
)
def test_a_line_that_cannot_be_split_is_told_why(rest: str, said: str) -> None:
    """By the part that was most likely meant as the phrase. (A16, A18, T2)"""
    error = refused(f"/schedule {rest}")
    assert f"unrecognised schedule {said}" in str(error)
    assert error.forms == FORMS


@pytest.mark.parametrize("filler", [":", "a:", "at 9:", "every monday and ", "🐈", "\x00", "\n", "9", "* "])
def test_a_long_line_is_answered_quickly_and_shortly(filler: str) -> None:
    """The work does not grow with the square of the length. (A16)"""
    line = "/schedule x" + filler * (100_000 // len(filler))
    before = time.process_time()
    assert len(str(refused(line)).splitlines()[0]) < 1_500
    assert time.process_time() - before < 1


@given(st.text())
def test_any_line_is_a_command_or_an_answer(text: str) -> None:
    """No input ends in another error. (A16)"""
    for line in (text, f"/schedule {text}", f"/cron cancel {text}"):
        try:
            command = parse_command(line)
        except PhraseError:
            continue
        assert (command.verb == "create") == bool(command.phrase) == bool(command.message)


@pytest.mark.parametrize("line", ["/cron delete 3", "/schedule remove #12", "/cron foo 1."])
def test_what_cannot_be_done_with_a_job_is_answered_with_what_can(line: str) -> None:
    error = refused(line)
    assert "expected cancel, pause, resume, run, why and the number of a job" in str(error)


@pytest.mark.parametrize("line", ["/schedule every 5", "/cron in 5"])
def test_a_phrase_without_its_unit_is_still_read_as_a_phrase(line: str) -> None:
    assert "the number of a job" not in str(refused(line))
