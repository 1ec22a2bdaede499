"""The stores under load, beside the program that rewrites its whole file for every update.

What is counted has been acknowledged, so it is on the disk: the directory should be on a real one. In each round the
contenders take turns; a ratio is that of one round, and the median of them is told.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import trio

from bench.benchmark import Benchmark, Target, say, table
from bench.measure import machine, median, share, warn_if_busy
from bench.steps import watching_steps
from bench.store_loads import (
    Cycles,
    Verbs,
    chat_lease,
    fill_messages,
    fill_sessions,
    per_second,
    rewrites,
    updates,
    utc_now,
)
from gateway.collector import paced_collector
from store.files import open_json
from store.postgres import open_postgres
from tests.postgres.server import running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from bench.benchmark import Result
    from store.files import JsonStore
    from store.protocols import Store

    Opening = Callable[[], AbstractAsyncContextManager[Store]]

FASTER_THAN_REWRITE = 50.0
BLOCKED_MS = 10.0
ROWS = 10_000


@dataclass(frozen=True, slots=True)
class Size:
    rows: tuple[int, ...] = (100, 1_000, ROWS)
    seconds: float = 1.0
    rounds: int = 3
    callers: tuple[int, ...] = (1, 10, 100)
    verbs: int = 200
    stored: int = 100_000
    blocked_s: float = 25.0
    compact_at: int = 4 << 20


QUICK = Size(
    rows=(10, 50), seconds=0.05, rounds=1, callers=(1, 5), verbs=3, stored=300, blocked_s=0.3, compact_at=20_000
)


def measure(quick: bool) -> Result:
    size = QUICK if quick else Size()
    warn_if_busy()
    with tempfile.TemporaryDirectory(prefix="goclaw-bench-") as name, running(durable=True) as server:
        place = Path(name)
        stores: dict[str, Opening] = {
            "json": partial(open_json, place / "cycles", utc_now),
            "postgres": partial(open_postgres, server.dsn),
        }
        return {
            "updates": [trio.run(compare_updates, place, size, rows) for rows in size.rows],
            "cycles": [row for backend, opening in stores.items() for row in trio.run(cycles, size, backend, opening)],
            "verbs": {backend: trio.run(verbs, size, backend, opening) for backend, opening in stores.items()},
            "blocked": trio.run(blocked, place / "blocked", size),
            "sync_us": round(sync_us(place), 1),
            "machine": machine(),
            "rounds": size.rounds,
        }


async def compare_updates(place: Path, size: Size, rows: int) -> dict[str, Any]:
    """One row of the table: journal and whole file at this many rows, with one caller and with a hundred."""
    say(f"  durable updates with {rows:,} rows")
    row: dict[str, Any] = {"rows": rows}
    async with open_json(place / f"updates-{rows}", utc_now) as store:
        await fill_sessions(store, rows)
        for callers in (size.callers[0], size.callers[-1]):
            pairs = [
                (
                    await updates(store, rows, callers, size.seconds),
                    await rewrites(place / f"{rows}.json", rows, callers, size.seconds),
                )
                for _ in range(size.rounds)
            ]
            row[f"journal_{callers}"] = round(median([ours for ours, _ in pairs]))
            row[f"rewrite_{callers}"] = round(median([theirs for _, theirs in pairs]), 1)
            row[f"times_{callers}"] = round(median([ours / theirs for ours, theirs in pairs]), 1)
    return row


async def cycles(size: Size, backend: str, opening: Opening) -> list[dict[str, Any]]:
    """Messages per second from accept to settle, and how long each of the three verbs takes meanwhile."""
    rows = []
    async with opening() as store:
        work = Cycles(store.messages(await chat_lease(store)))
        for callers in size.callers:
            say(f"  {backend}: accept, begin and settle with {callers} callers")
            work.taken.clear()
            with paced_collector():
                rate = await per_second(callers, size.seconds * size.rounds, work.one)
            taken = {verb: latency(samples) for verb, samples in work.taken.items()}
            rows.append({"backend": backend, "callers": callers, "per_second": round(rate), "ms": taken})
    return rows


async def verbs(size: Size, backend: str, opening: Opening) -> dict[str, Any]:
    say(f"  {backend}: every verb by itself")
    async with opening() as store:
        taken = await Verbs(store, await chat_lease(store)).time(size.verbs)
    return {verb: latency(samples) for verb, samples in taken.items()}


async def blocked(place: Path, size: Size) -> dict[str, Any]:
    """The longest step of any task while a hundred callers work, much is stored and the journal is folded."""
    callers = size.callers[-1]
    say(f"  the loop with {size.stored:,} rows stored, {callers} callers and compactions")
    async with full(place, size) as store:
        work = Cycles(store.messages(await chat_lease(store)))
        before = store.keeper.compactions
        with paced_collector(), watching_steps() as steps:
            rate = await per_second(callers, size.blocked_s, work.one)
        return {
            "stored": size.stored,
            "callers": callers,
            "compactions": store.keeper.compactions - before,
            "cycles_per_second": round(rate),
            "steps": steps.count,
            "longest_ms": round(steps.longest_s * 1e3, 2),
            "longest_computing_ms": round(steps.longest_computing_s * 1e3, 2),
            "longest_besides_collection_ms": round(steps.longest_besides_s * 1e3, 2),
            "longest_collection_ms": round(steps.longest_collection_s * 1e3, 2),
            "longest_in": steps.longest_task.rpartition(".")[2],
        }


@asynccontextmanager
async def full(place: Path, size: Size) -> AsyncIterator[JsonStore]:
    """Filled, closed and opened again, as after a restart."""
    async with open_json(place, utc_now) as store:
        await fill_messages(store, size.stored, await chat_lease(store))
    async with open_json(place, utc_now, compact_at=size.compact_at) as store:
        yield store


def latency(samples: Sequence[float]) -> dict[str, float]:
    return {"p50": round(share(samples, 0.5) * 1e3, 3), "p99": round(share(samples, 0.99) * 1e3, 3)}


def sync_us(place: Path) -> float:
    """What the disk asks for one small durable append: no journal can be faster with one caller."""
    taken = []
    with (place / "sync").open("ab", buffering=0) as file:
        for _ in range(100):
            start = perf_counter()
            file.write(b"x" * 200)
            os.fdatasync(file.fileno())
            taken.append(perf_counter() - start)
    return median(taken) * 1e6


def tables(result: Result) -> str:
    return "\n\n".join([update_table(result), cycle_table(result), verb_table(result), single_numbers(result)])


def update_table(result: Result) -> str:
    callers = [name.removeprefix("journal_") for name in result["updates"][0] if name.startswith("journal_")]
    head = ("rows", *(f"{what}, {one}" for one in callers for what in ("journal", "rewrite", "times")))
    rows = [
        (
            f"{row['rows']:,}",
            *(
                cell
                for one in callers
                for cell in (f"{row[f'journal_{one}']:,}", f"{row[f'rewrite_{one}']:,}", f"{row[f'times_{one}']:.1f}")
            ),
        )
        for row in result["updates"]
    ]
    title = f"Durable updates per second, by callers, median of {result['rounds']}\nrewrite: the whole file, atomically"
    return table(title, head, rows)


def cycle_table(result: Result) -> str:
    rows = [
        (
            row["backend"],
            str(row["callers"]),
            f"{row['per_second']:,}",
            *(f"{row['ms'][verb][part]:.2f}" for verb in ("accept", "begin", "settle") for part in ("p50", "p99")),
        )
        for row in result["cycles"]
    ]
    head = ("store", "callers", "per second", "accept p50", "p99", "begin p50", "p99", "settle p50", "p99")
    return table("Messages from accept to settle, and milliseconds for each verb", head, rows)


def verb_table(result: Result) -> str:
    backends = list(result["verbs"])
    head = ("verb", *(f"{backend} {part}" for backend in backends for part in ("p50", "p99")))
    rows = [
        (verb, *(f"{result['verbs'][backend][verb][part]:.2f}" for backend in backends for part in ("p50", "p99")))
        for verb in result["verbs"][backends[0]]
    ]
    return table("Milliseconds for each verb, one caller", head, rows)


def single_numbers(result: Result) -> str:
    loop = result["blocked"]
    about = ", ".join(str(value) for value in result["machine"].values())
    rows = [
        ("a small durable append to a file", f"{result['sync_us']:.0f} µs"),
        (f"cycles with {loop['stored']:,} rows stored", f"{loop['cycles_per_second']:,} per second"),
        ("compactions meanwhile", str(loop["compactions"])),
        ("longest step of a task, computing", f"{loop['longest_computing_ms']:.2f} ms ({loop['longest_in']})"),
        ("the same but for Python's garbage collector", f"{loop['longest_besides_collection_ms']:.2f} ms"),
        ("longest step of a task, by the clock", f"{loop['longest_ms']:.2f} ms"),
    ]
    return table(f"One by one, on {about}", ("what", ""), rows)


def targets(result: Result) -> list[Target]:
    most, loop = result["updates"][-1], result["blocked"]
    ratios = {name.removeprefix("times_"): value for name, value in most.items() if name.startswith("times_")}
    callers, times = max(ratios.items(), key=lambda one: int(one[0]))
    held = loop["longest_computing_ms"]
    return [
        Target(
            f"journal against rewrite, {most['rows']:,} rows, {callers} callers",
            f">= {FASTER_THAN_REWRITE:g} x",
            f"{times} x",
            times >= FASTER_THAN_REWRITE,
        ),
        Target(
            f"loop held up, {loop['compactions']} compactions of {loop['stored']:,} rows",
            f"<= {BLOCKED_MS:g} ms",
            f"{held} ms",
            held <= BLOCKED_MS and loop["compactions"] > 0,
        ),
    ]


BENCHMARK = Benchmark("store", "durable updates, messages and delays of the stores", measure, tables, targets)
