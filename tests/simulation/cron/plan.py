"""What a seed means: the jobs, the clock, the lives of the workers and the trouble of one simulated world. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Literal

from cron.options import Options
from store.jobs import Rules

if TYPE_CHECKING:
    from collections.abc import Sequence

Span = tuple[float, float]
HOUR_S = 3600.0
SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)

ZONES = ("Europe/Berlin", "America/New_York", "UTC")
BEGINNINGS = (
    datetime(2026, 3, 28, 22, 30, tzinfo=UTC),  # Berlin goes forward at 01:00
    datetime(2026, 10, 24, 22, 30, tzinfo=UTC),  # and back at 01:00
    datetime(2026, 3, 8, 4, 30, tzinfo=UTC),  # New York goes forward at 07:00
    datetime(2026, 11, 1, 3, 30, tzinfo=UTC),  # and back at 06:00
    datetime(2026, 6, 3, 12, 0, 7, tzinfo=UTC),
)
EXPRESSIONS = ("*/5 * * * *", "*/15 * * * *", "7,37 * * * *", "0 * * * *", "30 2 * * *", "*/20 1-3 * * *", "0 3 * * *")
INTERVALS = (3 * MINUTE, 10 * MINUTE, 25 * MINUTE)
AS_SET = Rules()
JUMPS = (10 * SECOND, HOUR, DAY)


@dataclass(frozen=True, slots=True)
class Faults:
    """How the store misbehaves."""

    delayed: float = 0.0
    longest_s: float = 0.0
    fails_before: float = 0.0
    fails_after: float = 0.0
    """Share of the calls that fail although they had their effect."""
    outages: tuple[Span, ...] = ()
    """When the first worker does not reach the store."""


@dataclass(frozen=True, slots=True)
class Fate:
    """How a life of a worker ends, and for how long it is away then."""

    how: Literal["crash", "cancel", "stop"]
    after_s: float
    down_s: float


@dataclass(frozen=True, slots=True)
class Jump:
    after_s: float
    span: timedelta


@dataclass(frozen=True, slots=True)
class Cast:
    """A job that is there from the beginning, or comes later."""

    when: str
    zone: str = "UTC"
    tenant: str = "north"
    rules: Rules = AS_SET
    agent: str = "main"


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    beginning: datetime
    jobs: tuple[Cast, ...]
    busy_s: float
    """For so long people act and things go wrong."""
    quiet_s: float = 2 * HOUR_S
    """For so long after that nothing does."""
    options: Options = field(default_factory=Options)
    look_s: float = 20.0
    lane: int = 2
    workers: tuple[tuple[Fate, ...], ...] = ((),)
    faults: Faults = Faults()
    jumps: tuple[Jump, ...] = ()
    actions: int = 0
    temper: Literal["brisk", "mixed", "wild"] = "mixed"
    longest_s: float = 20 * 60.0
    """How long the long runs take at most."""


def plan(seed: int) -> Plan:
    random = Random(f"cron plan {seed}")
    busy_s = random.choice((2, 3, 4)) * HOUR_S
    workers = random.choice((1, 2))
    return Plan(
        seed=seed,
        beginning=random.choice(BEGINNINGS),
        jobs=tuple(a_job(random) for _ in range(random.randint(2, 5))),
        busy_s=busy_s,
        options=options(random),
        look_s=random.choice((20.0, 60.0)),
        lane=random.choice((1, 2, 4)),
        workers=tuple(fates(random, busy_s) for _ in range(workers)),
        faults=faults(random, busy_s),
        jumps=jumps(random, busy_s),
        actions=random.choice((0, 10, 25, 40)),
        temper=random.choice(("brisk", "mixed", "mixed", "wild")),
    )


def options(random: Random) -> Options:
    return Options(
        max_retries=random.choice((0, 1, 3)),
        lease=random.choice((MINUTE, 5 * MINUTE)),
        run_timeout=random.choice((2 * MINUTE, 10 * MINUTE, 30 * MINUTE)),
        catch_up=random.choice(("one", "one", "skip")),
        grace=random.choice((7 * DAY, 7 * DAY, 20 * MINUTE)),
        poll=5 * MINUTE,
        beat=5 * MINUTE,
        upkeep=10 * MINUTE,
    )


def a_job(random: Random) -> Cast:
    kind = random.random()
    if kind < 0.55:
        when = random.choice(EXPRESSIONS)
    elif kind < 0.8:
        when = f"every {random.choice(INTERVALS) // MINUTE} minutes"
    else:
        when = f"in {random.randint(1, 150)} minutes"
    return Cast(when, random.choice(ZONES), random.choice(("north", "north", "south")), rules(random))


def rules(random: Random) -> Rules:
    bounded = random.random() < 0.1
    return Rules(
        overlap=random.choice(("skip", "skip", "queue")),
        anchor=random.choice(("start", "start", "start", "completion")),
        max_retries=random.choice((None, None, 2)),
        catch_up=random.choice((None, None, "one")),
        min_interval=2 * MINUTE if bounded else None,
        max_interval=30 * MINUTE if bounded else None,
        delete_after_success=random.random() < 0.3,
    )


def fates(random: Random, busy_s: float) -> tuple[Fate, ...]:
    many = random.choice((0, 0, 1, 3, 6))
    return tuple(
        Fate(
            random.choice(("crash", "crash", "cancel", "stop")),
            random.uniform(30, busy_s / many),
            random.choice((1.0, 60.0, random.uniform(1, HOUR_S))),
        )
        for _ in range(many)
    )


def faults(random: Random, busy_s: float) -> Faults:
    kind = random.choice(("none", "none", "flaky", "away", "away"))
    if kind == "none":
        return Faults()
    share = random.choice((0.01, 0.05))
    away = tuple(spans(random, busy_s)) if kind == "away" else ()
    return Faults(random.choice((0.0, 0.05)), 2.0, share, share, away)


def spans(random: Random, busy_s: float) -> Sequence[Span]:
    starts = [random.uniform(0, busy_s) for _ in range(random.randint(1, 3))]
    return [(start, start + random.choice((5.0, 200.0, 600.0))) for start in starts]


def jumps(random: Random, busy_s: float) -> tuple[Jump, ...]:
    many = random.choice((0, 0, 1, 3))
    return tuple(
        Jump(random.uniform(60, busy_s / many), random.choice(JUMPS) * random.choice((1, -1))) for _ in range(many)
    )
