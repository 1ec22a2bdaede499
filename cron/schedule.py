"""Schedules: when a job fires next, which of its slots were missed, and how to say it in words.

    Timing (data, kept) ──schedule_of──▶ Schedule (checked, answers questions) ──▶ a trigger of APScheduler
                                              at: DateTrigger, every: IntervalTrigger, cron: CronTrigger

Instants that come out are UTC. The next one is always after `now`; there is none only for an `at` that has passed and
for a webhook. What cannot be used raises a `BadInput` when the schedule is made, never later.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger

from cron.durations import duration_text
from cron.errors import BadInput
from cron.expression import read_expression
from cron.trigger import CronTrigger
from cron.words import cron_words, instant_words, interval_words
from cron.zones import local_instant, read_zone
from store.jobs import Timing

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

__all__ = [
    "Missed",
    "Schedule",
    "at",
    "every",
    "is_due",
    "local_instant",
    "next_interval",
    "parse_cron",
    "read_zone",
    "schedule_of",
    "webhook",
]

LONGEST_INTERVAL = timedelta(days=36_525)
"""A hundred years: also 2^5 of them in a row are still a date."""
MAX_JITTER = 10.0
"""Percent."""
_MILLISECOND = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Missed(NamedTuple):
    """A stretch of slots."""

    first: datetime
    last: datetime
    count: int  # type: ignore[assignment]  # a tuple's own count is of no use here


@dataclass(frozen=True, slots=True)
class Schedule:
    """A timing that can be followed. Two of the same timing are equal."""

    timing: Timing
    zone: ZoneInfo = field(init=False, repr=False, compare=False)
    trigger: Any = field(init=False, repr=False, compare=False)
    """APScheduler's; None for a webhook."""

    def __post_init__(self) -> None:
        zone = read_zone(self.timing.zone)
        object.__setattr__(self, "zone", zone)
        object.__setattr__(self, "trigger", _trigger(self.timing, zone))

    @property
    def recurring(self) -> bool:
        return self.timing.recurring

    def next_after(self, now: datetime) -> datetime | None:
        """The first slot after `now`. An interval counts from `now`."""
        now = _utc(now)
        if self.timing.recurring:
            following: datetime = self.trigger.get_next_fire_time(now, now)
            return following
        only: datetime | None = self.trigger.get_next_fire_time(None, now) if self.trigger else None
        return only if only is not None and only > now else None

    def fires(self, now: datetime, count: int) -> tuple[datetime, ...]:
        """The next slots, at most `count` of them."""
        slots: list[datetime] = []
        following = self.next_after(now)
        while following is not None and len(slots) < count:
            slots.append(following)
            following = self.next_after(following)
        return tuple(slots)

    def missed(self, after: datetime, upto: datetime) -> Missed | None:
        """The slots with after < slot <= upto, if any. What it costs does not grow with their number."""
        after, upto = _utc(after), _utc(upto)
        first = self.next_after(after)
        if first is None or first > upto:
            return None
        if self.timing.every is not None:
            count = (upto - after) // self.timing.every
            return Missed(first, after + count * self.timing.every, count)
        if not isinstance(self.trigger, CronTrigger):
            return Missed(first, first, 1)
        return Missed(first, self.trigger.last(first, upto), self.trigger.count(after, upto))

    def words(self) -> str:
        """For people: `At 09:00, Monday to Friday (Europe/Berlin)`."""
        if isinstance(self.trigger, CronTrigger):
            return cron_words(self.trigger.expression, self.zone)
        if self.timing.every is not None:
            return interval_words(self.timing.every)
        return "When its webhook is called" if self.timing.at is None else instant_words(self.timing.at, self.zone)


def parse_cron(expression: str, zone: str | ZoneInfo = "UTC") -> Schedule:
    """A schedule of five cron fields or a shorthand such as @daily. Raises `CronParseError` or `ZoneError`."""
    return schedule_of(Timing("cron", read_zone(zone).key, cron=read_expression(expression).text))


def every(interval: timedelta, zone: str | ZoneInfo = "UTC") -> Schedule:
    return schedule_of(Timing("every", read_zone(zone).key, every=interval))


def at(instant: datetime, zone: str | ZoneInfo = "UTC") -> Schedule:
    """Once. The zone is that of whoever asked: words are in it."""
    return schedule_of(Timing("at", read_zone(zone).key, at=_utc(instant)))


def webhook() -> Schedule:
    return schedule_of(Timing("webhook"))


@lru_cache(maxsize=4096)
def schedule_of(timing: Timing) -> Schedule:
    """The schedule of a timing; expressions are read once, not whenever a job is planned."""
    return Schedule(timing)


def next_interval(
    last: datetime | None, interval: timedelta, *, now: datetime, jitter: float = 0.0, random: float = 0.0
) -> datetime:
    """When something runs again that ran last at `last`: never in the past, at once if it has never run.

    `jitter` is how many percent of the interval may be added, at most ten; `random`, from 0 to 1, how much of that is.
    """
    now = _utc(now)
    if last is None:
        return now
    share = min(max(jitter, 0.0), MAX_JITTER) / 100 * random
    extra = interval * share // _MILLISECOND * _MILLISECOND
    return max(_utc(last) + interval + extra, now)


def is_due(at: datetime, now: datetime) -> bool:
    return _utc(at) <= _utc(now)


def _trigger(timing: Timing, zone: ZoneInfo) -> Any:
    if timing.kind == "cron":
        return CronTrigger(read_expression(timing.cron), zone)
    if timing.kind == "every":
        return IntervalTrigger(seconds=_checked(timing.every).total_seconds(), start_date=_EPOCH, timezone=UTC)
    if timing.kind == "at":
        if timing.at is None:
            raise ValueError(f"{timing!r}: expected an instant")
        return DateTrigger(_utc(timing.at), UTC)
    return None


def _checked(interval: timedelta | None) -> timedelta:
    if interval is None or not timedelta(0) < interval <= LONGEST_INTERVAL:
        said = "nothing" if interval is None else duration_text(interval)
        message = f"an interval of {said} cannot be followed: expected more than 0 seconds and at most 100 years"
        raise BadInput(f"{message}, for instance 15m", field="interval", value=str(interval), example="15m")
    return interval


def _utc(instant: datetime) -> datetime:
    """Two datetimes of another zone would be compared by what their wall clocks show."""
    if instant.tzinfo is UTC:
        return instant
    if instant.tzinfo is None:
        raise ValueError(f"{instant!r} is not an instant: expected a datetime with a zone")
    return instant.astimezone(UTC)
