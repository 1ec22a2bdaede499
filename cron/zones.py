"""IANA zones: reading their names, and what a wall clock there means.

    a gap      the clock is put forward: the wall times in between never come, they mean the first instant after them
    a repeat   the clock is put back: the wall times in between come twice, they mean the first of the two

Two datetimes of one zone are compared by wall time and lie about their distance, so instants are always UTC here and
wall times always naive.
"""

from __future__ import annotations

import difflib
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from cron.errors import ZoneError, quoted

NOT_ZONES = frozenset({"localtime", "posixrules", "Factory"})
"""Files beside the zones that name none: what they mean depends on the machine."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_WALL = datetime(1970, 1, 1)  # noqa: DTZ001 - a wall time
SECOND = timedelta(seconds=1)
CALM = timedelta(days=5)
"""No zone changes its offset twice within this (test_schedule_days.py)."""


def read_zone(name: str | ZoneInfo) -> ZoneInfo:
    """The zone of that name. Raises `ZoneError` with the nearest name that exists."""
    return _zone_of(name.key or "" if isinstance(name, ZoneInfo) else name)


@lru_cache(maxsize=1024)
def _zone_of(name: str) -> ZoneInfo:
    if name in zone_names():
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, OSError, ValueError) as error:
            raise ZoneError(f"the data of time zone {quoted(name)} cannot be read: {error}", name) from error
    if not name.strip():
        raise ZoneError("the time zone is empty: expected a name, for instance Europe/Berlin", name)
    likely = nearest_zone(name)
    hint = f"did you mean {likely}?" if likely else "expected a name, for instance Europe/Berlin"
    raise ZoneError(f"there is no time zone {quoted(name)}: {hint}", name, likely or "Europe/Berlin")


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    return frozenset(available_timezones()) - NOT_ZONES


def nearest_zone(name: str) -> str | None:
    """The zone that somebody who typed this most likely meant: another case, a city alone, or a slip."""
    asked = name.strip().replace(" ", "_").casefold()[:64]
    whole = {zone.casefold(): zone for zone in sorted(zone_names())}
    if asked in whole:
        return whole[asked]
    cities = {folded.rpartition("/")[2]: zone for folded, zone in whole.items() if "/" in folded}
    if asked in cities:
        return cities[asked]
    close = difflib.get_close_matches(asked, [*whole, *cities], n=1, cutoff=0.7)
    return (whole.get(close[0]) or cities[close[0]]) if close else None


def offset_at(instant: datetime, zone: ZoneInfo) -> timedelta:
    offset = instant.astimezone(zone).utcoffset()
    assert offset is not None  # noqa: S101 - an aware datetime has one
    return offset


def wall_at(instant: datetime, zone: ZoneInfo) -> datetime:
    """What a wall clock shows; `fold` is set if it shows that for the second time."""
    return instant.astimezone(zone).replace(tzinfo=None)


def wall_offset(wall: datetime, zone: ZoneInfo) -> timedelta:
    """The offset that a wall time is meant with; in a gap the one from before it, with `fold` the one from after it."""
    offset = zone.utcoffset(wall)
    assert offset is not None  # noqa: S101 - every zone has one for every datetime
    return offset


def utc(wall: datetime, offset: timedelta) -> datetime:
    """The same as `(wall - offset).replace(tzinfo=UTC)`, in a third of the time."""
    return _EPOCH + (wall - _EPOCH_WALL - offset)


def local_instant(wall: date, zone: ZoneInfo) -> datetime:
    """When a wall clock in the zone first shows this; for what a gap skips, the first instant after it.

    A date stands for its midnight.
    """
    if not isinstance(wall, datetime):
        wall = datetime.combine(wall, time())
    if wall.tzinfo is not None:
        raise ValueError(f"{wall!r} is not a wall time: expected a datetime without a zone")
    early = wall_offset(wall.replace(fold=0) if wall.fold else wall, zone)
    instant = utc(wall, early)
    late = offset_at(instant, zone)
    return instant if early == late else turn_between(utc(wall, late), instant, zone)


def second_instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """When a repeated wall time comes for the second time."""
    return utc(wall, wall_offset(wall.replace(fold=1), zone))


def repeat_of(wall: datetime, zone: ZoneInfo) -> datetime | None:
    """The instant at which the clock is put back over this wall time; None if it comes only once."""
    early, late = wall_offset(wall.replace(fold=0), zone), wall_offset(wall.replace(fold=1), zone)
    return turn_between(utc(wall, early), utc(wall, late), zone) if early > late else None


def turn_between(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """The instant at which the zone's offset of `before` ends; at `after` it is another one."""
    old = offset_at(before, zone)
    start = before.replace(microsecond=0)
    low, high = 0, -((start - after) // SECOND)
    while high - low > 1:
        middle = (low + high) // 2
        if offset_at(start + middle * SECOND, zone) == old:
            low = middle
        else:
            high = middle
    return start + high * SECOND


def turns(after: datetime, upto: datetime, zone: ZoneInfo) -> list[datetime]:
    """The instants with after < instant <= upto at which the zone's offset changes."""
    years = range(after.year, upto.year + 1)
    return [turn for year in years for turn in _turns_of(zone, year) if after < turn <= upto]


@lru_cache(maxsize=1024)
def _turns_of(zone: ZoneInfo, year: int) -> tuple[datetime, ...]:
    """Of one UTC year, without its very first instant's past: a change at midnight on 1 January belongs to it."""
    found = []
    probe = datetime(year, 1, 1, tzinfo=UTC) - SECOND
    end = datetime(year, 12, 31, 23, 59, 59, tzinfo=UTC)
    while probe < end:
        following = min(probe + CALM, end)
        if offset_at(probe, zone) != offset_at(following, zone):
            found.append(turn_between(probe, following, zone))
        probe = following
    return tuple(found)
