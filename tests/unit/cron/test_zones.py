"""Zones: their names, and what a wall clock there means."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from cron.errors import ZoneError
from cron.zones import local_instant, read_zone, turns, zone_names
from tests.unit.cron import walker


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("europe/berlin", "Europe/Berlin"),
        ("Berlin", "Europe/Berlin"),
        ("new york", "America/New_York"),
        ("Europe/Berln", "Europe/Berlin"),
        ("utc", "UTC"),
        ("Asia/Calcuta", "Asia/Calcutta"),
    ],
)
def test_a_zone_that_is_nearly_right_is_refused_with_the_one_that_was_meant(name: str, meant: str) -> None:
    """(lesson 35) Another case, a city alone or a slip: the answer names the zone."""
    with pytest.raises(ZoneError, match=f"did you mean {meant}?") as caught:
        read_zone(name)
    assert (caught.value.field, caught.value.value, caught.value.example) == ("zone", name, meant)


PATHS = ["../x", "../../etc/passwd", "/etc/localtime", "localtime", "posixrules", "posix/UTC", "Factory", "."]
NONSENSE = ["", "  ", "\0", "Europe", "Europe/", "Europe/Berlin\n", "x" * 100_000, "+02:00", "Ⓤtc"]


@pytest.mark.parametrize("name", [*PATHS, *NONSENSE], ids=lambda name: repr(name[:20]))
def test_what_names_no_zone_is_refused(name: str) -> None:
    """(S) Paths, the machine's own zone and nonsense never reach the file system; the answer stays short."""
    with pytest.raises(ZoneError) as caught:
        read_zone(name)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 250


def test_every_zone_that_there_is_can_be_read() -> None:
    """(lesson 35) By its name or as it is; there are hundreds."""
    assert len(zone_names()) > 400
    for name in zone_names():
        assert read_zone(name).key == name
    assert read_zone(ZoneInfo("Europe/Berlin")) is ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("zone", "wall", "instant"),
    [
        ("America/New_York", "2026-03-08T02:30", "2026-03-08T07:00Z"),
        ("America/New_York", "2026-03-08T03:00", "2026-03-08T07:00Z"),
        ("America/New_York", "2026-11-01T01:30", "2026-11-01T05:30Z"),
        ("Europe/Berlin", "2026-06-01T09:00", "2026-06-01T07:00Z"),
        ("Australia/Lord_Howe", "2026-10-04T02:15", "2026-10-03T15:30Z"),
        ("America/Santiago", "2026-09-06T00:30", "2026-09-06T04:00Z"),
        ("Antarctica/Troll", "2026-03-29T01:30", "2026-03-29T01:00Z"),
        ("Pacific/Apia", "2011-12-30T12:00", "2011-12-30T10:00Z"),
        ("Africa/Monrovia", "1972-01-07T00:20:10.000005", "1972-01-07T00:44:30Z"),
    ],
)
def test_a_wall_time_is_an_instant_also_when_it_is_skipped_or_repeated(zone: str, wall: str, instant: str) -> None:
    """(§8) In a gap the first instant after it, in a repeat the first of the two, however it is handed in."""
    shown, meant = datetime.fromisoformat(wall), datetime.fromisoformat(instant)
    assert local_instant(shown, ZoneInfo(zone)) == meant
    assert local_instant(shown.replace(fold=1), ZoneInfo(zone)) == meant


def test_a_date_is_its_first_instant() -> None:
    """(§8) Also in Santiago, where a day in September begins at one o'clock."""
    assert local_instant(date(2026, 9, 6), ZoneInfo("America/Santiago")) == datetime(2026, 9, 6, 4, tzinfo=UTC)


def test_a_wall_time_has_no_zone_of_its_own() -> None:
    """(§13) An instant where a wall time is expected is a mistake, not a guess."""
    with pytest.raises(ValueError, match="not a wall time"):
        local_instant(datetime(2026, 1, 1, tzinfo=UTC), ZoneInfo("UTC"))


def test_no_zone_changes_its_offset_unseen() -> None:
    """(§8) All changes that a look at every day finds are known, to the second: those of the past too."""
    start, end = datetime(2008, 1, 1, tzinfo=UTC) - timedelta(seconds=1), datetime(2013, 1, 1, tzinfo=UTC)
    for name in sorted(zone_names()):
        assert tuple(turns(start, end, ZoneInfo(name))) == walker.changes(name, 2008, 2012), name
