"""What people type, read before it is sent anywhere: numbers, phrases, moments. Bad input ends in a sentence."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import typer

from gateway.cli.shell import ExitCode, fail

if TYPE_CHECKING:
    from datetime import datetime, timedelta

Given = TypeVar("Given", str, list[str], None)

LONGEST_MESSAGE = 100_000
LARGEST_READ = 1_000_000


def job_number(given: Given) -> Given:
    """A number, or several: `3` and `#3` are the same."""
    if given is None:
        return given
    if isinstance(given, list):
        return [number(one) for one in given]
    return number(given)


def number(text: str) -> str:
    found = re.fullmatch(r"#?0*([1-9][0-9]{0,17})", text.strip())
    if found is None:
        shown = text if len(text) <= 40 else text[:39] + "…"
        raise typer.BadParameter(f"{shown!r} is no number of a schedule; `goclaw cron list` shows them.")
    return found[1]


def phrase_and_message(text: str) -> tuple[str, str]:
    """`every day at 9am: hello` in its two parts."""
    from cron.errors import PhraseError
    from cron.phrases import split

    phrase = message = ""
    try:
        phrase, message = split(text)
    except PhraseError as error:
        refuse_phrase(error)
    if not phrase or not message:
        fail(
            "there is no message: say when, and what the agent is told",
            'for instance: goclaw cron add "every weekday at 9am: what is new?"',
            ExitCode.USAGE,
        )
    return phrase, message


def refuse_phrase(error: Any) -> NoReturn:
    """A phrase that is none: what is wrong with it, and what would do."""
    said = str(error).partition("\n")[0]
    fail(said, "\n".join(["one of these would do:", *(f"  {form}" for form in error.forms)]), ExitCode.USAGE)


def whole_text(given: str, what: str, longest: int = LONGEST_MESSAGE) -> str:
    """A text as it was given, or all of stdin for `-`."""
    try:
        text = sys.stdin.read(LARGEST_READ) if given == "-" else given
    except UnicodeDecodeError as error:
        fail(f"{what} is no text in {error.encoding}", code=ExitCode.USAGE)
    refuse_bytes(text)
    if not text.strip():
        fail(f"{what} is empty", "put it in quotes, or write - to have it read from stdin", ExitCode.USAGE)
    if len(text) > longest:
        fail(f"{what} has {len(text):,} characters, and may have {longest:,}", code=ExitCode.USAGE)
    return text


def refuse_bytes(text: str) -> None:
    """What a terminal or a pipe gave may be no text: Python then keeps the bytes as halves of characters."""
    if any("\ud800" <= one <= "\udfff" for one in text):
        fail(f"{text[:40]!a} is no text in {sys.getfilesystemencoding()}", code=ExitCode.USAGE)


def instant_of(text: str | None) -> dict[str, Any]:
    """A moment as the API takes it. Without a zone of its own it is meant in the schedule's, as a phrase is."""
    if text is None:
        return {}
    moment = read_moment(text)
    if moment.tzinfo is not None:
        return {"at": moment.isoformat()}
    if moment.second:
        fail(f"{text!r} has seconds: add its zone, for instance +02:00", code=ExitCode.USAGE)
    return {"when": f"on {moment:%Y-%m-%d} at {moment:%H:%M}"}


def read_moment(text: str) -> datetime:
    from datetime import datetime

    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        fail(f"{text[:60]!r} is no time", 'for instance: "2030-06-01 12:00", or 2030-06-01T12:00Z', ExitCode.USAGE)


def span_of(text: str) -> timedelta:
    from cron.durations import parse_duration
    from cron.errors import DurationError

    try:
        return parse_duration(text)
    except DurationError as error:
        fail(str(error), "for instance: 90s, 10m, 2h, 30d", ExitCode.USAGE)


def span_since(text: str) -> str:
    """`2h` is two hours ago; anything else is a moment."""
    from cron.durations import parse_duration
    from cron.errors import DurationError
    from gateway.clock import utc_now

    try:
        return (utc_now() - parse_duration(text)).isoformat()
    except DurationError:
        return read_moment(text).astimezone().isoformat()
    except OverflowError:
        fail(f"{text!r} is too long ago", code=ExitCode.USAGE)


def in_the_future(text: str) -> str:
    """`30d` is in thirty days; anything else is a moment."""
    from cron.durations import parse_duration
    from cron.errors import DurationError
    from gateway.clock import utc_now

    try:
        return (utc_now() + parse_duration(text)).isoformat()
    except DurationError:
        moment = read_moment(text).astimezone()
    except OverflowError:
        fail(f"{text!r} ends beyond the year 9999", code=ExitCode.USAGE)
    if moment <= utc_now():
        fail(f"{text!r} is past", "for instance: 30d, or 2030-06-01", ExitCode.USAGE)
    return moment.isoformat()
