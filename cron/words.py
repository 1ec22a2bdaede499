"""Schedules in words that are never wrong: what has no good wording is said field by field.

    At 09:00, Monday to Friday (Europe/Berlin)
    Every 15 minutes from 09:00 to 17:45 every day (UTC)
    At minutes 5 and 35 of hours 8, 10 and 20 on day 1 of every month, or on Mondays (UTC)

Two schedules with the same words have the same slots (test_words.py); the words of a fixed time do not tell it from
the same times written with `*`, which differ only in the night in which the clock is changed.
"""

from __future__ import annotations

import calendar
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from cron.durations import duration_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from zoneinfo import ZoneInfo

    from cron.expression import Expression

MOST_TIMES = 6
"""Times of day that are named one by one."""
HOUR = timedelta(hours=1)
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}


def instant_words(instant: datetime, zone: ZoneInfo) -> str:
    local = instant.astimezone(zone)
    clock = f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"
    day = f"{calendar.day_name[local.weekday()]} {local.date().isoformat()}"
    return f"Once, on {day} at {clock} ({zone.key})"


def interval_words(interval: timedelta) -> str:
    text = duration_text(interval)
    number, _, unit = text.partition(" ")
    return f"Every {unit}" if number == "1" and " " not in unit else f"Every {text}"


def cron_words(expression: Expression, zone: ZoneInfo) -> str:
    times, days = time_words(expression), day_words(expression)
    if len(expression.hours) == 24 and days == " every day":
        return times if _same_everywhere(expression, zone) else f"{times} ({zone.key})"
    return f"{times}{days} ({zone.key})"


def _same_everywhere(expression: Expression, zone: ZoneInfo) -> bool:
    """Whether these minutes of every hour are the same ones in UTC. They need not be in Asia/Kolkata."""
    for month in (1, 7):
        offset = datetime(2026, month, 1, tzinfo=UTC).astimezone(zone).utcoffset() or timedelta(0)
        shift = offset % HOUR // timedelta(minutes=1)
        if sorted((minute + shift) % 60 for minute in expression.minutes) != list(expression.minutes):
            return False
    return True


# ── times of day ─────────────────────────────────────────────────────────────────────────────────────────────────────


def time_words(expression: Expression) -> str:
    minutes, hours = expression.minutes, expression.hours
    if len(minutes) * len(hours) <= MOST_TIMES:
        return f"At {listed([f'{hour:02}:{minute:02}' for hour in hours for minute in minutes])}"
    step = _even_step(minutes)
    if step is not None and _run(hours):
        often = "Every minute" if step == 1 else f"Every {step} minutes"
        return often if len(hours) == 24 else f"{often} {_from_to(expression)}"
    return f"At {_numbers('minute', minutes)} of {_hour_words(expression)}"


def _even_step(minutes: Sequence[int]) -> int | None:
    """n if these are all the minutes that n divides, and n divides the hour; None otherwise."""
    step = 60 // len(minutes)
    return step if step < 60 and tuple(minutes) == tuple(range(0, 60, step)) else None


def _hour_words(expression: Expression) -> str:
    hours = expression.hours
    step = _step(hours)
    if len(hours) == 24:
        return "every hour"
    if step is None:
        return _numbers("hour", hours)
    return f"every {'hour' if step == 1 else f'{_ordinal(step)} hour'} {_from_to(expression)}"


def _from_to(expression: Expression) -> str:
    first = f"{expression.hours[0]:02}:{expression.minutes[0]:02}"
    last = f"{expression.hours[-1]:02}:{expression.minutes[-1]:02}"
    return f"from {first} to {last}"


# ── days ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def day_words(expression: Expression) -> str:
    days = None if len(expression.days) == 31 else expression.days
    weekdays = None if len(expression.weekdays) == 7 else expression.weekdays
    if expression.either_day and (days is None or weekdays is None):
        days = weekdays = None
    months = "" if len(expression.months) == 12 else listed([calendar.month_name[month] for month in expression.months])
    within = f" in {months}" if months else ""
    if days is None:
        if weekdays is None:
            return f" every day{within}"
        return f"{_weekday_words(weekdays)}{',' if within else ''}{within}"
    dates = f" on {_numbers('day', days)} of {months or 'every month'}"
    if weekdays is None:
        return dates
    if expression.either_day:
        return f"{dates}, or on {_plural(weekdays)}{within}"
    return f"{dates}, if that is a {listed(_names(weekdays), 'or')}"


def _weekday_words(weekdays: Sequence[int]) -> str:
    names = _names(weekdays)
    monday_first = sorted((day - 1) % 7 for day in weekdays)
    if len(names) > 2 and _run(monday_first):
        return f", {names[0]} to {names[-1]}"
    return f" on {_plural(weekdays)}"


def _names(weekdays: Sequence[int]) -> list[str]:
    """From Monday on, which is how people list them."""
    return [calendar.day_name[day] for day in sorted((day - 1) % 7 for day in weekdays)]


def _plural(weekdays: Sequence[int]) -> str:
    return listed([f"{name}s" for name in _names(weekdays)])


# ── lists ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def listed(items: Sequence[str], last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}"


def _numbers(noun: str, numbers: Sequence[int]) -> str:
    """`minute 5`, `minutes 0 to 10 and 30`, `every 7th minute from 0 to 56`."""
    step = _step(numbers)
    if step is not None and step > 1:
        return f"every {_ordinal(step)} {noun} from {numbers[0]} to {numbers[-1]}"
    items: list[str] = []
    for run in _runs(numbers):
        items += [f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run)
    return f"{noun if len(numbers) == 1 else noun + 's'} {listed(items)}"


def _runs(numbers: Sequence[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _step(numbers: Sequence[int]) -> int | None:
    """How far apart they are, if that is always as far and there are more than three."""
    steps = {later - earlier for earlier, later in pairwise(numbers)}
    return steps.pop() if len(steps) == 1 and len(numbers) > 3 else None


def _ordinal(number: int) -> str:
    return f"{number}{'th' if number // 10 == 1 else _ENDINGS.get(number % 10, 'th')}"


def _run(numbers: Sequence[int]) -> bool:
    return numbers[-1] - numbers[0] == len(numbers) - 1
