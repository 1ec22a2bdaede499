"""The days on which clocks change, in every zone that there is, against a brute force walker."""

from __future__ import annotations

import random
from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cron.schedule import Schedule, parse_cron
from cron.zones import CALM, zone_names
from tests.unit.cron import walker

if TYPE_CHECKING:
    from collections.abc import Iterator

ZONES = [
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Africa/Casablanca",
    "America/Nuuk",
    "UTC",
]
FURTHER = ["Antarctica/Troll", "Asia/Beirut", "Pacific/Apia", "Africa/Juba", "Asia/Gaza", "Pacific/Kwajalein"]
"""Two hours at once, changes at midnight, a whole day skipped, changes by the moon, and a day skipped long ago."""
TICK = timedelta(microseconds=1)
DAY = timedelta(days=1)
CHANCES = st.integers(0, 2**32).map(random.Random)


@lru_cache(maxsize=64)
def windows(zone: str) -> tuple[walker.Window, ...]:
    """Two and a half days around changes of the zone, or just so many days where it never changes."""
    first = {"Africa/Juba": 2020, "Pacific/Apia": 2011, "Pacific/Kwajalein": 1993}.get(zone, 2024)
    changes = walker.changes(zone, first, 2030)[:8] or (datetime(2027, 12, 31, tzinfo=UTC),)
    return tuple(walker.Window(zone, change - 1.25 * DAY, change + 1.25 * DAY) for change in changes)


def fires(schedule: Schedule, window: walker.Window) -> Iterator[datetime]:
    following = schedule.next_after(window.start - TICK)
    while following is not None and following < window.end:
        yield following
        following = schedule.next_after(following)


@pytest.mark.parametrize(
    ("zone", "expressions"), [*((zone, 2_000) for zone in ZONES), *((zone, 300) for zone in FURTHER)]
)
def test_random_expressions_fire_when_a_brute_force_walk_says(zone: str, expressions: int) -> None:
    """(R7) (§8) All slots around changes of the clock are those of the walker, none more, none less, none twice."""
    chance = random.Random(7)
    for number in range(expressions):
        text, window = walker.expression(chance), windows(zone)[number % len(windows(zone))]
        schedule, expected = parse_cron(text, zone), window.fires(text)
        assert list(fires(schedule, window)) == expected, (text, window.start)
        missed = schedule.missed(window.start - TICK, window.end - TICK)
        summary = (missed.first, missed.last, missed.count) if missed else None
        assert summary == ((expected[0], expected[-1], len(expected)) if expected else None), (text, window.start)


@pytest.mark.parametrize("zone", ZONES[:-1])
def test_the_next_slot_is_after_now_from_every_minute_of_a_repeated_hour(zone: str) -> None:
    """(§14) (D1) From anywhere in the night the answer lies ahead and is the walker's, and so is what was missed."""
    chance = random.Random(8)
    for window in windows(zone)[:4]:
        around = [moment.at for moment in window.moments if abs(moment.at - window.start - 1.25 * DAY) < DAY / 8]
        for text in (
            "30 1 * * *",
            "0 0 * * *",
            "0-59 1,2 * * *",
            "*/7 * * * *",
            *(walker.expression(chance) for _ in range(8)),
        ):
            schedule, expected = parse_cron(text, zone), window.fires(text)
            for minute in around:
                for now in (minute, minute + TICK, minute - TICK):
                    following = schedule.next_after(now)
                    assert following is not None
                    assert following > now
                    ahead = expected[bisect_right(expected, now) :]
                    assert following == ahead[0] if ahead else following >= window.end, (text, now)
                missed = schedule.missed(minute, window.end - TICK)
                assert (missed.count if missed else 0) == len(expected) - bisect_right(expected, minute), (text, minute)


@settings(deadline=None)
@given(CHANCES, st.sampled_from([*ZONES, *FURTHER]), st.datetimes(datetime(1990, 1, 1), datetime(2080, 1, 1)))  # noqa: DTZ001
def test_slots_rise_and_lie_after_now_whatever_is_asked(chance: random.Random, zone: str, now: datetime) -> None:
    """(R7) `next > now`, no slot twice, nothing in between: asked from just before a slot, it is that slot."""
    schedule = parse_cron(walker.expression(chance), zone)
    latest = now.replace(tzinfo=UTC)
    for slot in schedule.fires(latest, 5):
        assert slot > latest
        assert schedule.next_after(slot - TICK) == slot
        assert schedule.next_after(latest + (slot - latest) / 2) == slot
        latest = slot


@settings(deadline=None)
@given(CHANCES, st.sampled_from(ZONES), st.data())
def test_slots_rise_and_lie_after_now_in_the_night_of_a_change(
    chance: random.Random, zone: str, data: st.DataObject
) -> None:
    """(R7) The same from instants close to a change."""
    window = data.draw(st.sampled_from(windows(zone)))
    now = window.start + 1.25 * DAY + data.draw(st.timedeltas(-DAY / 8, DAY / 8))
    slots = parse_cron(walker.expression(chance), zone).fires(now, 5)
    assert list(slots) == sorted(set(slots))
    assert slots[0] > now


# ── a fixed time on every date ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Change:
    """The one change of a zone's offset within a few days."""

    at: datetime
    before: timedelta
    after: timedelta

    def first(self, wall: datetime) -> datetime:
        """When the wall clock first shows this: before the change, after it, or, if it never does, right then."""
        earlier, later = (wall - offset for offset in (self.before, self.after))
        if earlier.replace(tzinfo=UTC) < self.at:
            return earlier.replace(tzinfo=UTC)
        return max(later.replace(tzinfo=UTC), self.at)


@lru_cache(maxsize=1024)
def changes(zone: str, last: int = 2030) -> tuple[Change, ...]:
    info = ZoneInfo(zone)
    return tuple(
        Change(
            at, *((at - back).astimezone(info).utcoffset() or timedelta(0) for back in (walker.MINUTE, timedelta(0)))
        )
        for at in walker.changes(zone, 2024, last)
    )


def clocks(change: Change) -> set[time]:
    """Times of day that such a change may trip over."""
    ends = [(change.at + offset).replace(tzinfo=None) for offset in (change.before, change.after)]
    near = [end + step * timedelta(minutes=15) for end in ends for step in (-1, 0, 1)]
    return {time(0), time(9), *(wall.time() for wall in near)}


def test_a_daily_time_fires_once_for_every_date_around_every_change_of_every_zone() -> None:
    """(R7) (D1) At its time, or at the first instant after the gap that skips it: all zones, all changes until 2030."""
    for zone in sorted(zone_names()):
        for change in changes(zone):
            today = (change.at + change.before).date()
            for clock in clocks(change):
                walls = [datetime.combine(today + k * DAY, clock) for k in range(-2, 3)]
                expected = [change.first(wall) for wall in walls]
                found = parse_cron(f"{clock.minute} {clock.hour} * * *", zone).fires(expected[0], 4)
                assert list(found) == expected[1:], (zone, change, clock)


def test_no_zone_changes_its_offset_twice_within_a_few_days() -> None:
    """(§8) What the search for changes relies on, for all zones until 2030."""
    for zone in zone_names():
        assert all(later.at - earlier.at > CALM for earlier, later in pairwise(changes(zone))), zone


@pytest.mark.faults
@pytest.mark.parametrize("expression", ["0 0 * * *", "30 1 * * *", "30 2 * * *", "59 23 * * *"])
def test_a_daily_time_fires_once_on_all_days_of_all_zones(expression: str) -> None:
    """(R7) The same for all days from 2024 to 2030."""
    minute, hour = map(int, expression.split()[:2])
    for zone in sorted(zone_names()):
        schedule, days = parse_cron(expression, zone), (date(2031, 1, 1) - date(2024, 1, 1)).days
        walls = [datetime.combine(date(2024, 1, 1) + k * DAY, time(hour, minute)) for k in range(days)]
        expected = [nearest(zone, wall).first(wall) for wall in walls]
        assert list(schedule.fires(expected[0] - TICK, days)) == expected, zone


@pytest.mark.faults
def test_no_zone_will_change_its_offset_twice_within_a_few_days() -> None:
    """(§8) For all zones until 2090."""
    for zone in zone_names():
        assert all(later.at - earlier.at > CALM for earlier, later in pairwise(changes(zone, 2090))), zone


def nearest(zone: str, wall: datetime) -> Change:
    """The change closest to a wall time; far from any, or without one, the offset is the same before and after."""
    guess = wall.replace(tzinfo=UTC)
    near = [change for change in changes(zone) if abs(change.at - guess) < 2 * DAY]
    offset = guess.astimezone(ZoneInfo(zone)).utcoffset() or timedelta(0)
    return near[0] if near else Change(guess, offset, offset)
