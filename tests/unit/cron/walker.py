"""Cron by brute force, written from the rules alone: every minute is looked at, with a reader of its own.

    a minute fires          if the wall clock matches
    with fixed times also   at the first minute after a gap in which a match was skipped,
    and not                 if the wall clock has shown the same before

A `Window` is a stretch of real minutes in one zone with what the wall clock shows; it is made once and asked often.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    import random

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]


class Rule:
    """What an expression says; Sunday is 0."""

    def __init__(self, expression: str) -> None:
        minute, hour, day, month, weekday = expression.lower().split()
        self.minutes = numbers(minute, 0, 59, [])
        self.hours = numbers(hour, 0, 23, [])
        self.days = numbers(day, 1, 31, [])
        self.months = numbers(month, 1, 12, MONTHS)
        self.weekdays = {number % 7 for number in numbers(weekday, 0, 7, WEEKDAYS)}
        self.either = day[0] != "*" and weekday[0] != "*"
        self.fixed = minute[0] != "*" and hour[0] != "*"

    def matches_day(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        by_day, by_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return by_day or by_weekday if self.either else by_day and by_weekday

    def matches(self, wall: datetime) -> bool:
        return wall.minute in self.minutes and wall.hour in self.hours and self.matches_day(wall.date())


def numbers(text: str, low: int, high: int, names: list[str]) -> set[int]:
    found: set[int] = set()
    for item in text.split(","):
        body, _, step = item.partition("/")
        if body == "*":
            ends = [low, high]
        else:
            ends = [names.index(end) + low if end in names else int(end) for end in body.split("-")]
        if len(ends) == 1:
            ends.append(high if step else ends[0])
        found |= {number for number in range(ends[0], ends[1] + 1) if (number - ends[0]) % int(step or 1) == 0}
    return found


@dataclass(frozen=True)
class Moment:
    at: datetime
    wall: datetime
    again: bool
    """The wall clock has shown this before."""
    skipped: tuple[datetime, ...]
    """What it would have shown since the minute before, had it not been put forward."""


class Window:
    """Real minutes with start <= minute < end."""

    def __init__(self, zone: str, start: datetime, end: datetime) -> None:
        self.zone, self.start, self.end = zone, start, end

    @cached_property
    def moments(self) -> list[Moment]:
        zone = ZoneInfo(self.zone)
        seen: set[datetime] = set()
        moments = []
        minute = self.start - 2 * DAY
        before = minute.astimezone(zone).replace(tzinfo=None) - MINUTE
        while minute < self.end:
            wall = minute.astimezone(zone).replace(tzinfo=None, fold=0)
            skipped = tuple(before + k * MINUTE for k in range(1, (wall - before) // MINUTE))
            moments.append(Moment(minute, wall, wall in seen, skipped))
            seen.add(wall)
            before, minute = wall, minute + MINUTE
        return [moment for moment in moments if moment.at >= self.start]

    @cached_property
    def hours(self) -> dict[date, dict[int, list[Moment]]]:
        """By what the wall clock shows, so that few have to be looked at."""
        grouped: dict[date, dict[int, list[Moment]]] = {}
        for moment in self.moments:
            grouped.setdefault(moment.wall.date(), {}).setdefault(moment.wall.hour, []).append(moment)
        return grouped

    @cached_property
    def after_gaps(self) -> list[Moment]:
        return [moment for moment in self.moments if moment.skipped]

    def fires(self, expression: str) -> list[datetime]:
        rule = Rule(expression)
        found = {
            moment.at
            for day, hours in self.hours.items()
            if rule.matches_day(day)
            for hour in rule.hours & hours.keys()
            for moment in hours[hour]
            if moment.wall.minute in rule.minutes and not (rule.fixed and moment.again)
        }
        if rule.fixed:
            found |= {moment.at for moment in self.after_gaps if any(map(rule.matches, moment.skipped))}
        return sorted(found)


@lru_cache(maxsize=1024)
def changes(zone: str, first: int, last: int) -> tuple[datetime, ...]:
    """The minutes of these years at which the zone's offset is another one than the minute before."""
    info = ZoneInfo(zone)
    found = []
    day, end = datetime(first, 1, 1, tzinfo=UTC), datetime(last + 1, 1, 1, tzinfo=UTC)
    offset = day.astimezone(info).utcoffset()
    while day < end:
        if (following := (day + DAY).astimezone(info).utcoffset()) != offset:
            minute = day
            while minute.astimezone(info).utcoffset() == offset:
                minute += MINUTE
            found.append(minute)
            offset = following
        day += DAY
    return tuple(found)


# ── expressions by chance ────────────────────────────────────────────────────────────────────────────────────────────


def expression(chance: random.Random) -> str:
    """Any that can be written, most of them such that they fire within a few days, often in the small hours."""
    minute = field(chance, 0, 59, [])
    hour = chance.choice(["*", "*/2", "0", "1", "2", "3", "0-4", "1,2", "1-3/2", field(chance, 0, 23, [])])
    day = "*" if chance.random() < 0.6 else field(chance, 1, 31, [])
    month = "*" if chance.random() < 0.8 else field(chance, 1, 12, MONTHS)
    weekday = "*" if chance.random() < 0.6 else field(chance, 0, 7, WEEKDAYS)
    text = f"{minute} {hour} {day} {month} {weekday}"
    return text if can_fire(text) else expression(chance)


def can_fire(text: str) -> bool:
    """Some month is long enough, or the weekday alone will do."""
    rule = Rule(text)
    if rule.either:
        return True
    longest = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}
    return any(day <= longest.get(month, 31) for day in rule.days for month in rule.months)


def field(chance: random.Random, low: int, high: int, names: list[str]) -> str:
    kind = chance.random()
    if kind < 0.15:
        return "*"
    if kind < 0.3:
        return f"*/{chance.randint(1, high + 3)}"
    return ",".join(item(chance, low, high, names) for _ in range(chance.choice([1, 1, 1, 2, 3])))


def item(chance: random.Random, low: int, high: int, names: list[str]) -> str:
    first, last = sorted((chance.randint(low, high), chance.randint(low, high)))

    def said(number: int) -> str:
        name = names[number - low] if number - low < len(names) else ""
        return chance.choice([name, name.upper()]) if name and chance.random() < 0.3 else str(number)

    body = chance.choice([said(first), said(first), f"{said(first)}-{said(last)}", f"{said(first)}-{said(first)}"])
    return f"{body}/{chance.randint(1, high)}" if chance.random() < 0.25 else body
