"""Cron expressions of five fields: what they may say, and when they match a wall clock. No zones here.

    minute  hour  day-of-month  month  day-of-week
    0-59    0-23  1-31          1-12   0-7, 0 and 7 are Sunday

A field is a list of `*`, `a`, `a-b`, each with a step if wanted (`a/n` counts to the field's end); months and weekdays
also have names. If neither day field starts with `*`, a day needs to match only one of them, as in Vixie cron.
Which days match is cronsim's calendar; it reads more than this dialect, so it is only ever shown sorted numbers.
"""

from __future__ import annotations

import calendar
from bisect import bisect_right
from copy import copy
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import lru_cache
from typing import NamedTuple, NoReturn

from cronsim import CronSim

from cron.errors import CronParseError, quoted

SHORTHANDS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
EXAMPLE = "0 9 * * 1-5"
LONGEST_EXPRESSION = 1_000
"""Characters. All that can be said takes less."""

WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
MONTHS = tuple(name.lower() for name in calendar.month_abbr if name)


class Field(NamedTuple):
    name: str
    low: int
    high: int
    example: str
    names: tuple[str, ...] = ()

    def value(self, text: str) -> int | None:
        """The number that a text stands for, in range or not; None if for none."""
        if text.lower() in self.names:
            return self.low + self.names.index(text.lower())
        return int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else None


FIELDS = (
    Field("minute", 0, 59, "*/15"),
    Field("hour", 0, 23, "9-17"),
    Field("day-of-month", 1, 31, "1,15"),
    Field("month", 1, 12, "jan-mar", MONTHS),
    Field("day-of-week", 0, 7, "mon-fri", WEEKDAYS),
)
LONGEST_MONTHS = {month: 29 if month == 2 else calendar.monthrange(2001, month)[1] for month in range(1, 13)}


@dataclass(frozen=True, slots=True)
class Expression:
    """One that can fire: its fields as sorted numbers, Sunday as 0."""

    text: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    either_day: bool
    """A day needs to match only one of the two day fields."""
    fixed: bool
    """It names times of day, so each of them happens once a day; what is not fixed goes by real time."""
    _days: CronSim = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        fields = ((self.days, 31), (self.months, 12), (self.weekdays, 7))
        days, months, weekdays = ("*" if len(part) == whole else ",".join(map(str, part)) for part, whole in fields)
        days_only = CronSim(f"0 0 {days} {months} {weekdays}", datetime(2000, 1, 1))  # noqa: DTZ001 - a wall time
        days_only.day_and = not self.either_day
        object.__setattr__(self, "_days", days_only)

    def matches_day(self, day: date) -> bool:
        return day.month in self.months and self._days.match_day(day)

    def after(self, wall: datetime) -> datetime:
        """The first wall time after this one that matches."""
        hours, minutes = self.hours, self.minutes
        hour, minute = wall.hour, wall.minute
        day: date = wall
        if not self.matches_day(wall):
            day, hour, minute = self._day_after(wall), hours[0], minutes[0]
        elif minute < minutes[-1] and hour in hours:
            minute = minutes[bisect_right(minutes, minute)]
        elif hour < hours[-1]:
            hour, minute = hours[bisect_right(hours, hour)], minutes[0]
        else:
            day, hour, minute = self._day_after(wall), hours[0], minutes[0]
        return datetime(day.year, day.month, day.day, hour, minute)  # noqa: DTZ001 - a wall time

    def _day_after(self, wall: datetime) -> date:
        tomorrow = date.fromordinal(wall.toordinal() + 1)
        if self.matches_day(tomorrow):
            return tomorrow
        search = copy(self._days)
        search.dt = datetime(tomorrow.year, tomorrow.month, tomorrow.day)  # noqa: DTZ001 - a wall time
        return next(search)

    def count(self, after: datetime, upto: datetime) -> int:
        """How many wall times with after < wall <= upto match. Its cost is that of the days in between."""
        if upto <= after:
            return 0
        first, last = after.toordinal(), upto.toordinal()
        ends = self._count_of_day(upto) - self._count_of_day(after)
        whole = sum(self.matches_day(date.fromordinal(day)) for day in range(first, last))
        return whole * len(self.hours) * len(self.minutes) + ends

    def _count_of_day(self, wall: datetime) -> int:
        """How many times of its day have come by then."""
        if not self.matches_day(wall):
            return 0
        hours = bisect_right(self.hours, wall.hour)
        if wall.hour not in self.hours:
            return hours * len(self.minutes)
        return (hours - 1) * len(self.minutes) + bisect_right(self.minutes, wall.minute)


@lru_cache(maxsize=1024)
def read_expression(text: str) -> Expression:
    """Read five fields or a shorthand. Raises `CronParseError`; one that would never fire is refused too."""
    parts = text.split() if len(text) <= LONGEST_EXPRESSION else []
    if len(parts) == 1 and parts[0].startswith("@"):
        parts = _long_form(parts[0]).split()
        said = text.strip().lower()
    else:
        said = " ".join(parts)
    if len(parts) != len(FIELDS):
        raise _wrong_number(text, len(parts))
    minutes, hours, days, months, weekdays = map(_read_field, FIELDS, parts)
    either_day = not (parts[2].startswith("*") or parts[4].startswith("*"))
    if not either_day and days[0] > max(LONGEST_MONTHS[month] for month in months):
        _refuse(FIELDS[2], parts[2], f"there is no such day in month {quoted(parts[3])}, so it would never fire")
    fixed = not (parts[0].startswith("*") or parts[1].startswith("*"))
    weekdays = tuple(sorted({day % 7 for day in weekdays}))
    return Expression(said, minutes, hours, days, months, weekdays, either_day, fixed)


def _wrong_number(text: str, got: int) -> CronParseError:
    names = " ".join(spec.name for spec in FIELDS)
    said = f"got {got}" if len(text) <= LONGEST_EXPRESSION else f"got {len(text)} characters"
    message = f"Invalid cron expression: {quoted(text)}: expected 5 fields ({names}), {said}; for instance {EXAMPLE}"
    return CronParseError(message, field="fields", value=text, example=EXAMPLE)


def _long_form(shorthand: str) -> str:
    try:
        return SHORTHANDS[shorthand.lower()]
    except KeyError:
        known = " ".join(SHORTHANDS)
        message = f"Invalid cron expression: there is no {quoted(shorthand)}, expected one of {known}"
        raise CronParseError(message, field="expression", value=shorthand, example="@daily") from None


def _read_field(spec: Field, text: str) -> tuple[int, ...]:
    numbers: set[int] = set()
    for item in text.split(","):
        if not item:
            _refuse(spec, text, "an item of the list is empty")
        numbers.update(_read_item(spec, text, item))
    return tuple(sorted(numbers))


def _read_item(spec: Field, text: str, item: str) -> range:
    """One item of a list: `*`, `a`, `a-b`, or one of these with a step."""
    span, slash, step = item.partition("/")
    first, dash, last = span.partition("-")
    if span == "*":
        low, high = spec.low, spec.high
    else:
        low = _read_number(spec, text, first)
        high = _read_number(spec, text, last) if dash else spec.high if slash else low
    if low > high:
        _refuse(spec, text, f"the range {quoted(span)} ends before it begins")
    return range(low, high + 1, _read_step(spec, text, step) if slash else 1)


def _read_number(spec: Field, text: str, number: str) -> int:
    value = spec.value(number)
    if value is None:
        _refuse(spec, text, f"{quoted(number)} is no number{' and no name' if spec.names else ''} that can stand here")
    if not spec.low <= value <= spec.high:
        _refuse(spec, text, f"{number} is out of range {spec.low} to {spec.high}")
    return value


def _read_step(spec: Field, text: str, step: str) -> int:
    if not (step.isascii() and step.isdigit() and len(step) <= 10):
        _refuse(spec, text, f"the step {quoted(step)} is no number")
    if int(step) == 0:
        _refuse(spec, text, "Cron step value cannot be 0")
    return int(step)


def _refuse(spec: Field, text: str, problem: str) -> NoReturn:
    message = f"Invalid cron expression: {spec.name} {quoted(text)}: {problem}; for instance {spec.example}"
    raise CronParseError(message, field=spec.name, value=text, example=spec.example)
