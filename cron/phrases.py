"""Schedules as people say them, `every monday at 09:00`, and the `/schedule` line that carries one.

    text ──read──▶ what it means ──now and zone──▶ Schedule
          Misread: no form fits, or one fits and a value in it is wrong

Reading needs neither a clock nor a zone, so whether a text is a phrase never depends on when it is asked: that is what
splits `/schedule <phrase>: <message>`. Days, weeks and months become cron expressions in the zone, hours and minutes
become intervals, the rest is an instant. Case and blanks do not matter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING

from cron.durations import parse_duration
from cron.errors import CronParseError, DurationError, PhraseError, quoted
from cron.schedule import LONGEST_INTERVAL, at, every, parse_cron
from cron.zones import local_instant, read_zone

if TYPE_CHECKING:
    from collections.abc import Callable
    from zoneinfo import ZoneInfo

    from cron.schedule import Schedule

    Meaning = Callable[[datetime, ZoneInfo], Schedule]
    """What a phrase comes to at a moment, in a zone."""

EXAMPLES = {
    "in N seconds|minutes|hours|days|weeks": "in 30 minutes",
    "at HH:MM": "at 17:00",
    "at H am|pm": "at 9:30 pm",
    "tomorrow [at HH:MM]": "tomorrow at 09:00",
    "on YYYY-MM-DD [at HH:MM]": "on 2030-06-01 at 12:00",
    "every hour, or hourly": "every hour",
    "every N seconds|minutes|hours|days|weeks": "every 15 minutes",
    "every day [at HH:MM], or daily": "every day at 9am",
    "every weekday [at HH:MM]": "every weekday at 08:30",
    "every week [on <weekday>] [at HH:MM], or weekly": "weekly on friday at 5pm",
    "every <weekday> [at HH:MM]": "every mon, wed and fri at 10:00",
    "every month [on the <day>] [at HH:MM], or monthly": "every month on the 1st at noon",
    "every <duration>": "every 90s",
    "a cron expression": "0 9 * * 1-5",
}
FORMS = tuple(f"{form} (for example: {example})" for form, example in EXAMPLES.items())
EXAMPLE = "every monday at 09:00"
USAGES = (
    "/schedule <phrase>: <message>",
    "/schedule list",
    "/schedule cancel|pause|resume|run|why <id>",
)
LONGEST_PHRASE = 200
"""Characters, blanks collapsed. What is longer is a message."""

NINE = time(9)
SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), SECOND),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), MINUTE),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), HOUR),
    **dict.fromkeys(("d", "day", "days"), DAY),
    **dict.fromkeys(("w", "wk", "wks", "week", "weeks"), 7 * DAY),
}
WEEKDAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
SETS = {"weekday": "1-5", "weekend": "0,6"}
LONG_FORMS = {"hourly": "every hour", "daily": "every day", "weekly": "every week", "monthly": "every month"}
WORDS_OF_TIME = {"noon": time(12), "midnight": time(0)}


class Misread(Exception):
    """Why a text is no phrase, where more can be said than that. ``near``: a form fits it, but for a value."""

    def __init__(self, reason: str = "", *, near: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.near = near


class InThePast(Misread):
    """It is a phrase, but its only moment is over."""


def parse_phrase(text: str, *, now: datetime, zone: str | ZoneInfo) -> Schedule:
    """The schedule that a phrase means at ``now`` in ``zone``. Raises `PhraseError`, or `ZoneError` for the zone."""
    place = read_zone(zone)
    try:
        return read(text)(now.astimezone(UTC), place)
    except InThePast as over:
        message = f"scheduled time is in the past: {quoted(text.strip())}. Choose a later one, or a form that recurs"
        raise PhraseError(message, value=text, example=EXAMPLE, forms=FORMS) from over
    except Misread as wrong:
        raise refusal(text, wrong) from wrong


def refusal(text: str, wrong: Misread) -> PhraseError:
    """What was wrong in the first line, then the list of what is understood."""
    if not squeezed(text):
        said = "empty schedule phrase"
    elif wrong.reason:
        said = f"unrecognised schedule phrase {quoted(text.strip())}: {wrong.reason}"
    else:
        said = f"unrecognised schedule phrase: {quoted(text.strip())}"
    message = "\n  ".join([f"{said}\nAccepted forms:", *FORMS])
    return PhraseError(message, value=text, example=EXAMPLE, forms=FORMS)


def squeezed(text: str) -> str:
    """One blank between words, none around them, and no quotes around it all."""
    return " ".join(text.split()).strip("\"'“”„`").strip()


def read(text: str) -> Meaning:
    """Find the form that fits. Raises `Misread`."""
    said = squeezed(text)
    if len(said) > LONGEST_PHRASE:
        raise Misread(f"it is longer than {LONGEST_PHRASE} characters")
    words = re.sub(r"(?<=[0-9 ])([ap])\.m\.?(?= |$)", r"\1m", said.lower())
    words = re.sub(r"^(?:hourly|daily|weekly|monthly)\b", lambda found: LONG_FORMS[found[0]], words)
    for pattern, reader in READERS:
        if match := pattern.fullmatch(words):
            return reader(match)
    if CRON.fullmatch(words):
        return read_cron(said)
    raise Misread


# ── the forms ────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_in(match: re.Match[str]) -> Meaning:
    """In a day is in 24 hours, whatever the clocks do in between."""
    span = read_span(match)
    return lambda now, zone: at(now + span, zone)


def read_at(match: re.Match[str]) -> Meaning:
    clock = read_time(match["time"])

    def meant(now: datetime, zone: ZoneInfo) -> Schedule:
        today = now.astimezone(zone).date()
        instant = wall_instant(today, clock, zone)
        return at(instant if instant > now else wall_instant(today + DAY, clock, zone), zone)

    return meant


def read_tomorrow(match: re.Match[str]) -> Meaning:
    clock = read_time(match["time"])
    return lambda now, zone: at(wall_instant(now.astimezone(zone).date() + DAY, clock, zone), zone)


def read_on(match: re.Match[str]) -> Meaning:
    day, clock = read_date(match["date"]), read_time(match["time"])

    def meant(now: datetime, zone: ZoneInfo) -> Schedule:
        ahead = day - now.date()
        if ahead > LONGEST_INTERVAL:
            raise too_far()
        # A date long past is not converted: the first and the last ones of the calendar are not instants everywhere.
        if ahead < -2 * DAY or (instant := wall_instant(day, clock, zone)) <= now:
            raise InThePast
        return at(instant, zone)

    return meant


def read_every(match: re.Match[str]) -> Meaning:
    span = read_span(match)
    return lambda _, zone: every(span, zone)


def read_duration(match: re.Match[str]) -> Meaning:
    try:
        span = parse_duration(match["duration"])
    except DurationError as error:
        raise Misread(str(error), near=True) from error
    if span > LONGEST_INTERVAL:
        raise too_far()
    return lambda _, zone: every(span, zone)


def read_days(match: re.Match[str]) -> Meaning:
    return on_days(match, "*", "*")


def read_weeks(match: re.Match[str]) -> Meaning:
    return on_days(match, "*", read_weekdays(match["days"] or "monday"))


def read_months(match: re.Match[str]) -> Meaning:
    number = match["number"] or "1"
    if not 1 <= int(number) <= 31:
        raise Misread(f"there is no day {number} in a month", near=True)
    return on_days(match, str(int(number)), "*")


def on_days(match: re.Match[str], of_month: str, of_week: str) -> Meaning:
    clock = read_time(match["time"])
    expression = f"{clock.minute} {clock.hour} {of_month} * {of_week}"
    return lambda _, zone: parse_cron(expression, zone)


def read_cron(said: str) -> Meaning:
    try:
        parse_cron(said)
    except CronParseError as error:
        raise Misread(str(error), near=True) from error
    return lambda _, zone: parse_cron(said, zone)


# ── their parts ──────────────────────────────────────────────────────────────────────────────────────────────────────


def read_span(match: re.Match[str]) -> timedelta:
    count, unit = match["count"] or "1", UNITS.get(match["unit"])
    if unit is None:
        units = "seconds, minutes, hours, days or weeks"
        raise Misread(f"there is no unit {quoted(match['unit'])} here, expected {units}", near=True)
    if not count.strip("0"):
        raise Misread("interval must be >= 1", near=True)
    if len(count) > 12 or int(count) > LONGEST_INTERVAL / unit:
        raise too_far()
    return int(count) * unit


def too_far() -> Misread:
    return Misread("too far away, at most 100 years can be counted", near=True)


def read_time(text: str | None) -> time:
    if text is None:
        return NINE
    if text in WORDS_OF_TIME:
        return WORDS_OF_TIME[text]
    match = TIME.fullmatch(text)
    if match is None:
        raise Misread(f"invalid HH:MM {quoted(text)}, expected 00:00 to 23:59, or 9am, 9:30 pm, noon", near=True)
    if match["half"] is None:
        return time(int(match["hour"]), int(match["minute"]))
    return time(int(match["hour12"]) % 12 + 12 * (match["half"] == "pm"), int(match["minute12"] or 0))


def read_date(text: str) -> date:
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        try:
            return date.fromisoformat(text)
        except ValueError as error:
            raise Misread(f"invalid YYYY-MM-DD {quoted(text)}, there is no such day", near=True) from error
    raise Misread(f"invalid YYYY-MM-DD {quoted(text)}, expected a date such as 2030-06-01", near=True)


def read_weekdays(text: str) -> str:
    """`mon, wed and fri` as a field of a cron expression."""
    return ",".join(read_weekday(word) for word in re.split(r"[ ,]+(?:and )?", text))


def read_weekday(word: str) -> str:
    """The name, its beginning from three letters on, or a plural."""
    single = word.removesuffix("s")
    if single in SETS:
        return SETS[single]
    for number, name in enumerate(WEEKDAYS):
        if len(single) >= 3 and name.startswith(single):
            return str(number)
    raise Misread(f"unrecognised weekday: {word}", near=True)


def wall_instant(day: date, clock: time, zone: ZoneInfo) -> datetime:
    return local_instant(datetime.combine(day, clock), zone)


TIME = re.compile(
    r"(?P<hour>[01]?[0-9]|2[0-3]):(?P<minute>[0-5][0-9])"
    r"|(?P<hour12>0?[1-9]|1[0-2])(?::(?P<minute12>[0-5][0-9]))? ?(?P<half>am|pm)"
)
CRON = re.compile(r"@\S*|[0-9*][0-9*/,-]*(?: [0-9*?][0-9*/,?-]*){2}(?: [0-9a-z*/,?-]+)+")
_AT = r"(?: at (?P<time>\S+(?: [ap]m)?))?"
_LIST = r"(?P<days>[a-z]+(?:(?: and |, ?(?:and )?)[a-z]+)*)"
READERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Meaning]], ...] = (
    (re.compile(r"in (?:(?P<count>[0-9]+) ?|an? )(?P<unit>[a-z]+)"), read_in),
    (re.compile(r"at (?P<time>\S+(?: [ap]m)?)"), read_at),
    (re.compile(r"(?P<time>[0-9]{1,2}(?::[0-9]{2})? ?[ap]m|noon|midnight)"), read_at),
    (re.compile(rf"tomorrow{_AT}"), read_tomorrow),
    (re.compile(rf"on (?P<date>[0-9]\S*){_AT}"), read_on),
    (re.compile(r"every (?:(?P<count>[0-9]+) ?)?(?P<unit>minute|min|hour|hr|h)"), read_every),
    (
        re.compile(r"every (?P<count>[0-9]+) ?(?P<unit>seconds?|mins|minutes|m|hours|hrs|days?|d|weeks?|wks?|w)"),
        read_every,
    ),
    (re.compile(r"every (?P<duration>[0-9]\S*(?: [a-z]+)?)"), read_duration),
    (re.compile(rf"every day{_AT}"), read_days),
    (re.compile(rf"every week(?: on {_LIST})?{_AT}"), read_weeks),
    (re.compile(rf"every month(?: on (?:the |day )?(?P<number>[0-9]{{1,2}})(?:st|nd|rd|th)?)?{_AT}"), read_months),
    (re.compile(rf"every {_LIST}{_AT}"), read_weeks),
)
"""The first that fits is the one that is meant."""


# ── the line ─────────────────────────────────────────────────────────────────────────────────────────────────────────

LINE = re.compile(r"\s*/(?P<name>schedule|cron)(?:@\w+)?[.,;!?…]*(?P<rest>[\s:].*)?", re.IGNORECASE | re.DOTALL)
ABOUT_ONE = ("cancel", "pause", "resume", "run", "why")
COUNTING = ("in", "every", "at", "on", "daily", "hourly", "weekly", "monthly", "tomorrow", "today")
"""Words that a number may follow in a phrase."""


@dataclass(frozen=True, slots=True)
class ScheduleCommand:
    """``verb`` is create, list, help, or one that is about the job with the id."""

    verb: str
    phrase: str = ""
    message: str = ""
    job_id: int | None = None


def parse_command(line: str) -> ScheduleCommand:
    """What a `/schedule …` or `/cron …` line asks for. Raises `PhraseError`.

    A date that has passed is still a phrase here: it is refused with the time at hand, by `parse_phrase`.
    """
    match = LINE.fullmatch(line)
    if match is None:
        raise misuse(line, f"usage: {USAGES[0]}")
    name, rest = match["name"].lower(), (match["rest"] or "").strip()
    verb, argument = (*rest.lower().split(maxsplit=1), "", "")[:2]
    verb = verb.rstrip(".!?")
    if verb in ("", "help"):
        return ScheduleCommand("help")
    if verb == "list":
        if argument:
            raise misuse(line, f"usage: /{name} list")
        return ScheduleCommand("list")
    if verb in ABOUT_ONE:
        number = re.fullmatch(r"#?0*([1-9][0-9]{0,17})[.!?]*", argument)
        if number is None:
            raise misuse(line, f"usage: /{name} {verb} <id>, for example /{name} {verb} 42")
        return ScheduleCommand(verb, job_id=int(number[1]))
    if re.fullmatch(r"#?[0-9]+[.!?]*", argument) and ":" not in verb and verb not in COUNTING:
        raise misuse(line, f"there is no /{name} {verb[:32]}: expected {', '.join(ABOUT_ONE)} and the number of a job")
    phrase, message = split(rest)
    if not phrase or not message:
        shown = f"/{name} <phrase>: <message>, for example /{name} {EXAMPLE}: say hello"
        raise misuse(line, f"empty phrase or message: expected {shown}")
    return ScheduleCommand("create", phrase, message)


def split(rest: str) -> tuple[str, str]:
    """Phrase and message. The colon between them is the first one with a phrase before it: times have colons too."""
    failed: list[tuple[str, Misread]] = []
    ends = [colon.start() for colon in re.finditer(":", rest) if colon.start() <= LONGEST_PHRASE]
    for end in [*ends, len(rest)]:
        phrase = squeezed(rest[:end])
        if not phrase:
            return "", ""
        try:
            read(phrase)
        except Misread as wrong:
            failed.append((phrase, wrong))
        else:
            return phrase, rest[end + 1 :].strip()
    # The last one that nearly was a phrase is the one that was meant: `daily at 25:00`, not `daily at 25`.
    near = [(phrase, wrong) for phrase, wrong in failed if wrong.near]
    if not near and not ends:
        raise refusal(rest, Misread('there is no ":" between the phrase and the message'))
    raise refusal(*(near[-1] if near else failed[0]))


def misuse(line: str, message: str) -> PhraseError:
    return PhraseError(message, value=line, example=USAGES[0], forms=USAGES)
