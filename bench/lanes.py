"""The lanes under load, beside the plain task-per-message program on trio and on asyncio.

Throughput is the median of seven rounds in which the contenders take turns, each with a fresh event loop. That each
keeps the order inside a session is checked beforehand, by the same code with handlers that look.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from bench import loads, standins
from bench.benchmark import Benchmark, Target, say, table
from bench.loads import Load
from bench.measure import machine, median, share, take_turns, warn_if_busy
from bench.order import check_order

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.benchmark import Result

FASTER_THAN_TRIO = 4.0
SCHEDULE_US = 5.0
CANCEL_MS = 50.0
HANDLERS = {
    "noop": (loads.noop, standins.asyncio_noop),
    "checkpoint": (loads.checkpoint, standins.asyncio_checkpoint),
}


@dataclass(frozen=True, slots=True)
class Size:
    messages: int = 20_000
    sessions: int = 1_000
    rounds: int = 7
    waiting_sessions: int = 10_000
    cancels: int = 50
    arrivals: int = 3_000


QUICK = Size(messages=400, sessions=20, rounds=1, waiting_sessions=100, cancels=4, arrivals=20)


def measure(quick: bool) -> Result:
    size = QUICK if quick else Size()
    warn_if_busy()
    say("  order inside the sessions")
    checked = check_order(Load(size.messages, size.sessions, limit=2))
    rows = [throughput(size, limit, handler) for handler in HANDLERS for limit in (2, 100)]
    say("  cost of schedule(), delays, memory")
    alone, with_request = loads.schedule_costs(Load(size.messages, size.sessions, limit=2))
    delays = loads.start_delays(size.arrivals)
    cancels = loads.cancel_delays(size.waiting_sessions, size.cancels)
    per_message, per_session, sessions_left = loads.memory(Load(size.messages, size.sessions, limit=2))
    return {
        "rows": rows,
        "schedule_us": round(median(alone) * 1e6, 3),
        "schedule_with_request_us": round(median(with_request) * 1e6, 3),
        "enqueue_to_start_us": {
            "p50": round(share(delays, 0.5) * 1e6, 1),
            "p99": round(share(delays, 0.99) * 1e6, 1),
            "samples": len(delays),
        },
        "cancel_ms": {
            "p50": round(share(cancels, 0.5) * 1e3, 3),
            "max": round(max(cancels) * 1e3, 3),
            "samples": len(cancels),
            "waiting_sessions": size.waiting_sessions,
        },
        "bytes": {
            "queued_message": round(per_message),
            "idle_session": round(per_session, 1),
            "sessions_left": sessions_left,
            "method": "tracemalloc",
        },
        "machine": machine(),
        "messages": size.messages,
        "sessions": size.sessions,
        "rounds": size.rounds,
        "checked_in_order": checked,
    }


def throughput(size: Size, limit: int, handler: str) -> dict[str, Any]:
    """One row: messages per second of every contender at one limit with one handler."""
    say(f"  {size.messages} messages, {size.sessions} sessions, limit {limit}, handler {handler}")
    load = Load(size.messages, size.sessions, limit)
    on_trio, on_asyncio = HANDLERS[handler]
    contenders: dict[str, Callable[[], float]] = {
        "ours": partial(loads.on_lanes, load, on_trio),
        "trio": partial(standins.on_trio, load, on_trio),
        "asyncio": partial(standins.on_asyncio, load, on_asyncio),
    }
    uvloop = standins.uvloop_factory()
    if uvloop is not None:
        contenders["uvloop"] = partial(standins.on_asyncio, load, on_asyncio, uvloop)
    seconds = take_turns(contenders, size.rounds)
    return {
        "limit": limit,
        "handler": handler,
        **{name: round(size.messages / median(taken)) for name, taken in seconds.items()},
        **{f"vs_{name}": round(times_faster(seconds["ours"], seconds[name]), 2) for name in seconds if name != "ours"},
    }


def times_faster(ours: list[float], theirs: list[float]) -> float:
    """Round against round, then the median: on a busy machine steadier than the ratio of two medians."""
    return median([their / our for our, their in zip(ours, theirs, strict=True)])


def tables(result: Result) -> str:
    names = [name for name in ("ours", "trio", "asyncio", "uvloop") if name in result["rows"][0]]
    title = (
        f"Messages per second: {result['messages']:,} over {result['sessions']:,} sessions, "
        f"median of {result['rounds']}\n"
        "trio, asyncio, uvloop: a task per message, a lock per session, a limit; asyncio is the standard loop"
    )
    head = ("handler", "limit", *names, *(f"ours/{name}" for name in names[1:]))
    rows = [
        (
            row["handler"],
            str(row["limit"]),
            *(f"{row[name]:,}" for name in names),
            *(f"{row[f'vs_{name}']:.2f}" for name in names[1:]),
        )
        for row in result["rows"]
    ]
    return "\n\n".join([table(title, head, rows), single_numbers(result)])


def single_numbers(result: Result) -> str:
    start, cancel, size = result["enqueue_to_start_us"], result["cancel_ms"], result["bytes"]
    about = ", ".join(str(value) for value in result["machine"].values())
    rows = [
        ("schedule(), lane full", f"{result['schedule_us']:.2f} µs"),
        ("schedule() and its Request", f"{result['schedule_with_request_us']:.2f} µs"),
        ("schedule() to the handler's first line, half of 100 slots in use, p50", f"{start['p50']:.0f} µs"),
        ("the same, p99", f"{start['p99']:.0f} µs"),
        (f"cancel to the end of the run, {cancel['waiting_sessions']:,} sessions wait, p50", f"{cancel['p50']:.2f} ms"),
        ("the same, slowest", f"{cancel['max']:.2f} ms"),
        ("memory of a message that waits, with its Request", f"{size['queued_message']:,} B"),
        ("memory left per session when all have ended", f"{size['idle_session']:.1f} B"),
    ]
    return table(f"One by one, on {about}", ("what", ""), rows)


def targets(result: Result) -> list[Target]:
    wanted = []
    for row in result["rows"]:
        if row["handler"] == "noop":
            to_trio, to_asyncio = row["vs_trio"], row["vs_asyncio"]
            lane = f"no-op, limit {row['limit']}, against"
            wanted += [
                Target(f"{lane} trio", f">= {FASTER_THAN_TRIO:g} x", f"{to_trio} x", to_trio >= FASTER_THAN_TRIO),
                Target(f"{lane} asyncio", "> 1 x", f"{to_asyncio} x", to_asyncio > 1),
            ]
    schedule_us, cancel_ms, size = result["schedule_us"], result["cancel_ms"]["max"], result["bytes"]
    left = f"{size['sessions_left']} sessions, {size['idle_session']} B"
    return [
        *wanted,
        Target("schedule()", f"< {SCHEDULE_US:g} µs", f"{schedule_us:.2f} µs", schedule_us < SCHEDULE_US),
        Target("slowest cancel", f"< {CANCEL_MS:g} ms", f"{cancel_ms:.2f} ms", cancel_ms < CANCEL_MS),
        Target("left of an idle session", "nothing", left, size["sessions_left"] == 0 and size["idle_session"] < 1),
    ]


BENCHMARK = Benchmark("lanes", "throughput, delays and memory of the scheduler", measure, tables, targets)
