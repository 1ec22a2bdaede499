"""A whole gateway under load: the demo agent on the JSON store, beside the bare verbs of the store in a row.

What is counted as a turn was accepted, begun, settled, sent and marked as sent, each of it on the disk. In each round
gateway and bare verbs take turns; a ratio is that of one round, and the median of them is told. Memory is measured in a
process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

from bench.benchmark import Benchmark, say
from bench.gateway_loads import LANE, Load, open_bare, open_ours
from bench.gateway_report import tables, targets
from bench.measure import machine, median, share, warn_if_busy
from bench.steps import watching_steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.benchmark import Result
    from bench.gateway_loads import BareVerbs, Ours, Taken

LANES = (LANE, 100)
CALLERS = {1: 100, 100: 1}
"""By the size of a batch: single updates come from many at once, as over webhooks, batches from one who polls."""


@dataclass(frozen=True, slots=True)
class Size:
    chats: int = 1_000
    messages: int = 4_000
    rounds: int = 5
    idle: int = 200
    watched: int = 10_000
    warm: int = 100_000
    remembered: int = 100_000
    traced: tuple[int, int] = (20_000, 20_000)


QUICK = Size(chats=10, messages=40, rounds=1, idle=5, watched=40, warm=20, remembered=60, traced=(20, 60))


def measure(quick: bool) -> Result:
    size = QUICK if quick else Size()
    warn_if_busy()
    with tempfile.TemporaryDirectory(prefix="goclaw-bench-") as name:
        place = Path(name)
        return {
            "turns": [trio.run(turns, place, size, lane, batch) for lane in LANES for batch in CALLERS],
            "idle_ms": trio.run(idle, place / "idle", size),
            "blocked": trio.run(blocked, place / "blocked", size),
            "memory": memory(size.warm, size.remembered, size.chats),
            "traced": memory(*size.traced, size.chats, "traced"),
            "chats": size.chats,
            "messages": size.messages,
            "machine": machine(),
            "rounds": size.rounds,
        }


async def turns(place: Path, size: Size, lane: int, batch: int) -> dict[str, Any]:
    """One row of the table: both at work on the same load, round by round."""
    say(f"  turns with {lane} at once, updates in batches of {batch}")
    load = Load(size.messages, size.chats, batch, CALLERS[batch])
    async with AsyncExitStack() as stack:
        ours = await stack.enter_async_context(open_ours(place / f"ours-{lane}-{batch}", lane))
        bare = await stack.enter_async_context(open_bare(place / f"bare-{lane}-{batch}", lane))
        await both(ours, bare, Load(size.chats, size.chats, batch, load.callers))  # to warm up
        ours.people.delays.clear()
        pairs = [await both(ours, bare, load) for _ in range(size.rounds)]
        delays = ours.people.delays
    mine, others = [one for one, _ in pairs], [other for _, other in pairs]
    return {
        "lane": lane,
        "batch": batch,
        "per_second": round(median([load.messages / one.seconds for one in mine])),
        "bare_per_second": round(median([load.messages / other.seconds for other in others])),
        "times": round(median([other.seconds / one.seconds for one, other in pairs]), 2),
        "cpu_us": round(median([one.cpu_s / load.messages for one in mine]) * 1e6, 1),
        "bare_cpu_us": round(median([other.cpu_s / load.messages for other in others]) * 1e6, 1),
        "cpu_times": round(median([one.cpu_s / other.cpu_s for one, other in pairs]), 2),
        "sign_ms": latency(delays),
    }


async def both(ours: Ours, bare: BareVerbs, load: Load) -> tuple[Taken, Taken]:
    mine = await ours.people.write(load, ours)
    await ours.gateway.drained()
    others = await bare.people.write(load, bare)
    await bare.drained()
    return mine, others


async def idle(place: Path, size: Size) -> dict[str, Any]:
    """One person writes, and nobody else does."""
    say("  the first sign on an idle gateway")
    async with open_ours(place, LANE) as ours:
        for _ in range(size.idle):
            await ours.people.write(Load(1, 1, callers=1), ours)
            await ours.gateway.drained()
        return latency(ours.people.delays)


async def blocked(place: Path, size: Size) -> dict[str, Any]:
    """The longest step of any task, apart from the rounds: to time every step costs time."""
    say(f"  the loop under {size.watched:,} messages")
    async with open_ours(place, LANES[-1]) as ours:
        with watching_steps() as steps:
            taken = await ours.people.write(Load(size.watched, size.chats, 100, CALLERS[100]), ours)
        return {
            "messages": size.watched,
            "per_second": round(size.watched / taken.seconds),
            "steps": steps.count,
            "longest_ms": round(steps.longest_s * 1e3, 2),
            "longest_computing_ms": round(steps.longest_computing_s * 1e3, 2),
            "longest_besides_collection_ms": round(steps.longest_besides_s * 1e3, 2),
            "longest_collection_ms": round(steps.longest_collection_s * 1e3, 2),
            "longest_in": steps.longest_task.rpartition(".")[2],
        }


def memory(warm: int, messages: int, chats: int, *how: str) -> dict[str, Any]:
    say(f"  memory after {messages:,} messages in {chats:,} chats, {' '.join(how) or 'as it is'}")
    command = [sys.executable, "-m", "bench.gateway_memory", f"{warm}", f"{messages}", f"{chats}", *how]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def latency(samples: Sequence[float]) -> dict[str, Any]:
    return {
        "p50": round(share(samples, 0.5) * 1e3, 2),
        "p99": round(share(samples, 0.99) * 1e3, 2),
        "samples": len(samples),
    }


BENCHMARK = Benchmark("gateway", "turns of a whole gateway from acceptance to the answer", measure, tables, targets)
