"""Cron under load: our service on the JSON store beside APScheduler and a scan of all jobs, and on Postgres beside two
job queues.

In each round the contenders take turns; a ratio is that of one round, and the median of them is told. What ours counts
as done is on the disk. APScheduler keeps its jobs in memory only, and no history; that is the price of its numbers.
"""

from __future__ import annotations

import tempfile
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import trio

from bench import cron_loads, cron_rivals
from bench.benchmark import Benchmark, say
from bench.cron_claims import Batches, Ours, Pgqueuer, Procrastinate, make_database
from bench.cron_loads import Cron, busy, instants, late
from bench.cron_report import tables, targets
from bench.cron_rivals import Apscheduler, Scan
from bench.measure import machine, median, share, take_turns, warn_if_busy
from bench.steps import watching_steps
from bench.store_loads import utc_now
from gateway.collector import paced_collector
from store.files import open_json
from tests.postgres.server import running

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from bench.benchmark import Result

    Contender = Callable[[], float]

SCANNED = 2_000_000
"""So many jobs a scan looks at in one measurement, however many are stored."""
WRITTEN = 300_000


@dataclass(frozen=True, slots=True)
class Size:
    stored: tuple[int, ...] = (1_000, 10_000, 100_000)
    rounds: int = 3
    adds: int = 50
    adds_at_once: int = 500
    ticks: int = 1_000
    due: int = 1_000
    blocked_s: float = 15.0
    recurring: int = 300
    compact_at: int = 4 << 20
    moments: int = 40
    batches: Mapping[int, int] = field(default_factory=lambda: {1: 200, 10: 1_000, 50: 2_000})
    """How many jobs are taken in batches of which size."""
    claim_rounds: int = 3
    connections: int = 4
    timed: int = 200
    over_s: float = 10.0


QUICK = Size(
    stored=(20, 60),
    rounds=1,
    adds=3,
    adds_at_once=10,
    ticks=10,
    due=20,
    blocked_s=0.5,
    recurring=10,
    compact_at=10_000,
    moments=2,
    batches={1: 10, 5: 20},
    claim_rounds=1,
    connections=2,
    timed=10,
    over_s=0.3,
)


def measure(quick: bool) -> Result:
    size = QUICK if quick else Size()
    warn_if_busy()
    with tempfile.TemporaryDirectory(prefix="goclaw-bench-") as name:
        place = Path(name)
        result: Result = {"next": next_fires(size)}
        trio.run(fill, place, size)
        result["lateness_ms"] = trio.run(lateness, place, size)
        result |= trio.run(stored, place, size)
        result["blocked"] = trio.run(blocked, place, size)
    return result | {
        "claims": claims(size),
        "psycopg": psycopg.pq.__impl__,
        "machine": machine(),
        "rounds": size.rounds,
    }


# ── by how much is stored ────────────────────────────────────────────────────────────────────────────────────────────


def directory(place: Path, count: int) -> Path:
    return place / f"jobs-{count}"


async def fill(place: Path, size: Size) -> None:
    for count in size.stored:
        say(f"  storing {count:,} jobs")
        with paced_collector():
            async with open_json(directory(place, count), utc_now) as store:
                await Cron(store).fill(count)


async def stored(place: Path, size: Size) -> Result:
    """Adding, looking, asking and firing with few and with many jobs stored, all of them open at the same time."""
    async with AsyncExitStack() as stack:
        ours = {
            count: Cron(await stack.enter_async_context(open_json(directory(place, count), utc_now)))
            for count in size.stored
        }
        say("  the same jobs for APScheduler and for the scan")
        theirs = {count: stack.enter_context(closing(Apscheduler(count))) for count in size.stored}
        scans = {count: Scan(place / f"scan-{count}.json", count) for count in size.stored}
        loads: dict[str, dict[str, Callable[[int], Contender]]] = {
            "add": {
                "ours": lambda n: on_trio(partial(ours[n].seconds_to_add, size.adds, 1)),
                "apscheduler": lambda n: partial(theirs[n].seconds_to_add, size.adds),
                "scan": lambda n: partial(scans[n].seconds_to_add, at_least_once(WRITTEN // n, size.adds)),
            },
            "add_at_once": {
                "ours": lambda n: on_trio(partial(ours[n].seconds_to_add, size.adds_at_once, cron_loads.ADDERS)),
                "apscheduler": lambda n: partial(theirs[n].seconds_to_add, size.adds_at_once),
            },
            "look": {"ours": lambda n: on_trio(partial(ours[n].seconds_to_look, size.ticks))},
            "ask": {
                "ours": lambda n: on_trio(partial(ours[n].seconds_to_ask, size.ticks)),
                "apscheduler": lambda n: partial(theirs[n].seconds_to_tick, size.ticks),
                "scan": lambda n: partial(scans[n].seconds_to_tick, at_least_once(SCANNED // n, size.ticks)),
            },
            "fire": {
                "ours": lambda n: on_trio(partial(ours[n].seconds_to_fire, size.due)),
                "apscheduler": lambda n: partial(theirs[n].seconds_to_fire, size.due),
                "scan": lambda n: partial(scans[n].seconds_to_fire, size.due),
            },
        }
        with paced_collector():
            return {
                "stored": {what: await by_stored(size, what, contenders) for what, contenders in loads.items()},
                "due": size.due,
            }


async def by_stored(size: Size, what: str, contenders: Mapping[str, Callable[[int], Contender]]) -> dict[str, Any]:
    """Microseconds of each contender with so many jobs stored, and how much longer it takes with the most than the
    fewest."""
    say(f"  {what}: {', '.join(contenders)} with {' / '.join(f'{count:,}' for count in size.stored)} jobs stored")
    in_turn = {f"{name} {count}": make(count) for name, make in contenders.items() for count in size.stored}
    seconds = await trio.to_thread.run_sync(take_turns, in_turn, size.rounds)
    fewest, most = size.stored[0], size.stored[-1]
    return {
        name: {
            "us": {str(count): round(median(seconds[f"{name} {count}"]) * 1e6, 2) for count in size.stored},
            "growth": round(ratio(seconds[f"{name} {most}"], seconds[f"{name} {fewest}"]), 2),
        }
        for name in contenders
    }


def on_trio(act: Callable[[], Awaitable[float]]) -> Contender:
    """A contender that works on the loop, for whoever takes turns in a thread beside it."""
    return partial(trio.from_thread.run, act)


def at_least_once(count: int, most: int) -> int:
    return max(min(count, most), 1)


def ratio(these: Sequence[float], those: Sequence[float]) -> float:
    """Round against round, then the median."""
    return median([one / other for one, other in zip(these, those, strict=True)])


# ── the loop, and how late ───────────────────────────────────────────────────────────────────────────────────────────


async def blocked(place: Path, size: Size) -> dict[str, Any]:
    """The longest step of any task while the service starts, fires, is given jobs, is idle; the journal is folded."""
    most = size.stored[-1]
    say(f"  the loop with {most:,} jobs stored, {size.recurring} that fire every second, and compactions")
    async with open_json(directory(place, most), utc_now, compact_at=size.compact_at) as store:
        before = store.keeper.compactions
        with paced_collector(), watching_steps() as steps:
            fired, added = await busy(Cron(store), size.blocked_s, size.recurring)
        return {
            "stored": most,
            "fired": fired,
            "added": added,
            "compactions": store.keeper.compactions - before,
            "steps": steps.count,
            "longest_ms": round(steps.longest_s * 1e3, 2),
            "longest_computing_ms": round(steps.longest_computing_s * 1e3, 2),
            "longest_besides_collection_ms": round(steps.longest_besides_s * 1e3, 2),
            "longest_collection_ms": round(steps.longest_collection_s * 1e3, 2),
            "longest_in": steps.longest_task.rpartition(".")[2],
        }


async def lateness(place: Path, size: Size) -> dict[str, Any]:
    """How late jobs are with many others stored."""
    count = size.stored[-2]
    say(f"  lateness of {size.timed} jobs over {size.over_s:g} s")
    with paced_collector():
        async with open_json(directory(place, count), utc_now) as store:
            delays = await late(store, size.timed, size.over_s)
    return {
        "p50": round(share(delays, 0.5) * 1e3, 2),
        "p99": round(share(delays, 0.99) * 1e3, 2),
        "max": round(max(delays) * 1e3, 2),
        "samples": len(delays),
        "stored": count,
    }


# ── when is the next one ─────────────────────────────────────────────────────────────────────────────────────────────


def next_fires(size: Size) -> list[dict[str, Any]]:
    """How many answers a second, asked from anywhere and one after the other."""
    moments = instants(size.moments)
    anywhere = {
        "ours": partial(cron_loads.next_after_each, moments),
        "croniter": partial(cron_rivals.croniter_after_each, moments),
        "cronsim": partial(cron_rivals.cronsim_after_each, moments),
    }
    in_a_row = {
        "ours": partial(cron_loads.next_in_a_row, moments[0], size.moments),
        "croniter": partial(cron_rivals.croniter_in_a_row, moments[0], size.moments),
        "cronsim": partial(cron_rivals.cronsim_in_a_row, moments[0], size.moments),
    }
    return [compare_next(size, asked, ways) for asked, ways in (("anywhere", anywhere), ("in a row", in_a_row))]


def compare_next(size: Size, asked: str, ways: Mapping[str, Callable[[], tuple[float, list[Any]]]]) -> dict[str, Any]:
    say(f"  next times, asked {asked}")
    found = {name: way()[1] for name, way in ways.items()}
    seconds = take_turns({name: lambda way=way: way()[0] for name, way in ways.items()}, size.rounds)  # type: ignore[misc]
    count = len(found["ours"])
    others = [name for name in ways if name != "ours"]
    return {
        "asked": asked,
        "answers": count,
        **{name: round(count / median(taken)) for name, taken in seconds.items()},
        **{f"vs_{name}": round(ratio(seconds[name], seconds["ours"]), 2) for name in others},
        **{f"differs_{name}": differing(found["ours"], found[name]) for name in others},
    }


def differing(ours: Sequence[Any], theirs: Sequence[Any]) -> int:
    return sum(our != their for our, their in zip(ours, theirs, strict=True))


# ── claims ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def claims(size: Size) -> list[dict[str, Any]]:
    with running(durable=True) as server:
        queues: dict[str, Procrastinate | Pgqueuer] = {
            "procrastinate": Procrastinate(make_database(server.dsn, "procrastinate")),
            "pgqueuer": Pgqueuer(make_database(server.dsn, "pgqueuer")),
        }
        for queue in queues.values():
            queue.install()
        rows = []
        for batch, jobs in size.batches.items():
            load = Batches(jobs, batch, size.connections)
            rows.append(
                compare_claims(size, load, {"ours": Ours(make_database(server.dsn, f"ours-{batch}")), **queues})
            )
        return rows


def compare_claims(size: Size, load: Batches, contenders: Mapping[str, Any]) -> dict[str, Any]:
    """Jobs a second of every contender, and how many bytes the server writes for one."""
    say(f"  Postgres: {load.jobs:,} jobs in batches of {load.size}, {load.connections} connections")
    wal: dict[str, list[float]] = {name: [] for name in contenders}

    def contend(name: str) -> float:
        taken = contenders[name](load)
        wal[name].append(taken.wal / load.jobs)
        return float(taken.seconds)

    seconds = take_turns({name: partial(contend, name) for name in contenders}, size.claim_rounds)
    return {
        "batch": load.size,
        "connections": load.connections,
        "jobs": load.jobs,
        **{name: round(load.jobs / median(taken)) for name, taken in seconds.items()},
        **{f"vs_{name}": round(ratio(seconds[name], seconds["ours"]), 2) for name in contenders if name != "ours"},
        "wal_bytes": {name: round(median(samples)) for name, samples in wal.items()},
    }


BENCHMARK = Benchmark("cron", "adding, asking, firing and claiming of scheduled jobs", measure, tables, targets)
