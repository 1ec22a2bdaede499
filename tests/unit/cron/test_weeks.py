"""Weeks of cron over both changes of the hour, with failures, long runs, restarts and a clock that jumps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from cron.options import Options
from store.jobs import Rules
from tests.simulation.cron.plan import DAY, HOUR, Cast, Fate, Jump, Plan
from tests.simulation.cron.simulate import Played, play

WEEK = timedelta(weeks=1)
RARELY = Options(lease=timedelta(minutes=15), poll=timedelta(minutes=30), beat=HOUR, upkeep=2 * HOUR)
"""Nobody else works on the store, so it is asked less often than in life."""
CAST = (
    Cast("*/5 * * * *", "Europe/Berlin"),
    Cast("30 2 * * *", "Europe/Berlin", rules=Rules(overlap="queue")),
    Cast("30 1 * * *", "America/New_York", "south"),
    Cast("every 45 minutes", "UTC", "south"),
    Cast("in 3 days", "Europe/Berlin"),
    Cast("in 2 weeks", "America/New_York", "south", Rules(delete_after_success=True)),
)


def weeks(beginning: datetime, span: timedelta, seed: int) -> Plan:
    """The cast of the issue, with a restart every other day and a jump of the clock every fourth."""
    random = Random(f"weeks {seed}")
    days = span // DAY
    day_s = DAY.total_seconds()
    fates = [
        Fate(random.choice(("crash", "cancel", "stop")), random.uniform(1, 2) * day_s, random.choice((5.0, 7200.0)))
        for _ in range(days // 2)
    ]
    jumps = [
        Jump(random.uniform(2, 5) * day_s, random.choice((HOUR, DAY)) * random.choice((1, -1)))
        for _ in range(days // 4)
    ]
    return Plan(
        seed=seed,
        beginning=beginning,
        jobs=CAST,
        busy_s=span.total_seconds(),
        quiet_s=DAY.total_seconds() * 1.2,
        options=RARELY,
        look_s=300.0,
        lane=3,
        workers=(tuple(fates),),
        jumps=tuple(jumps),
        temper="brisk",
    )


def check(played: Played, *, runs: int, slots: int) -> None:
    if played.found is not None:
        pytest.fail(f"{played}", pytrace=False)
    assert played.runs > runs
    assert played.slots > slots
    assert played.on_time > runs / 2


def test_four_weeks_in_spring_end_with_every_slot_accounted_for() -> None:
    """New York on 8 March, Berlin on 29 March: each slot ran, was missed or skipped, none twice. (P4, P5, P9, R8)"""
    plan = weeks(datetime(2026, 3, 4, 17, tzinfo=UTC), 4 * WEEK, 1)
    check(play(plan), runs=6_000, slots=7_500)


def test_four_weeks_in_autumn_end_with_every_slot_accounted_for() -> None:
    """Berlin on 25 October, New York on 1 November, whose hours come twice. (P4, P5, P9, R6, R8)"""
    plan = weeks(datetime(2026, 10, 10, 17, tzinfo=UTC), 4 * WEEK, 2)
    check(play(plan), runs=6_000, slots=7_500)


@pytest.mark.faults
def test_a_year_ends_with_every_slot_accounted_for() -> None:
    """All four changes of the hour, a hundred and eighty restarts, ninety jumps. (P4, P5, P9, R6, R8)"""
    check(play(weeks(datetime(2026, 1, 2, tzinfo=UTC), timedelta(days=365), 3)), runs=80_000, slots=100_000)
