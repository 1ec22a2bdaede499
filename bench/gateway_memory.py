"""`python -m bench.gateway_memory WARM MESSAGES CHATS [traced]`: what a gateway keeps in memory, in its own process.

    warm up ──▶ tidy ──▶ mark "warm" ──▶ the load ──▶ mark "loaded" ──▶ a week passes, tidy ──▶ mark "tidied"

At a mark the gateway is idle, the journal folded and garbage collected. What is kept of a message for a week, its key
against a second delivery, is all there at "loaded" and gone at "tidied". Freed memory stays with the process until the
C library is asked to give it back; a mark has the number before and after that.
"""

from __future__ import annotations

import ctypes
import gc
import json
import sys
import tempfile
import tracemalloc
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import trio

from bench.gateway_loads import Load, open_ours
from bench.store_loads import utc_now

if TYPE_CHECKING:
    from bench.gateway_loads import Ours

LANE = 100
BATCH = 100
WRITTEN_S = 1.0
"""By then the last traces are on the disk."""
LATER = timedelta(days=8)
MOST = 5


@dataclass(slots=True)
class Mark:
    """What there is at one moment."""

    rss: int
    trimmed_rss: int
    traced: int
    objects: Counter[str] = field(repr=False)
    keys: int

    def figures(self) -> dict[str, int]:
        return {
            "rss": self.rss,
            "trimmed_rss": self.trimmed_rss,
            "traced": self.traced,
            "objects": self.objects.total(),
            "keys": self.keys,
        }


class Remembering:
    """A gateway under load whose store can be let grow older."""

    def __init__(self, ours: Ours, later: list[timedelta]) -> None:
        self.ours = ours
        self.later = later

    async def carry(self, messages: int, chats: int) -> None:
        await self.ours.people.write(Load(messages, chats, BATCH, callers=1), self.ours)
        self.ours.people.delays.clear()

    async def forget(self) -> None:
        self.later.append(LATER)
        while any(await self.ours.store.tidy()):
            pass

    async def mark(self) -> Mark:
        await self.ours.gateway.drained()
        await trio.sleep(WRITTEN_S)
        await self.ours.store.keeper.compact()
        gc.unfreeze()
        gc.collect()
        rss = resident()
        give_back()
        traced = tracemalloc.get_traced_memory()[0]
        gc.unfreeze()
        objects = Counter(type(one).__name__ for one in gc.get_objects())
        gc.freeze()
        return Mark(rss, resident(), traced, objects, len(self.ours.store.tables.seen.rows))


def resident() -> int:
    return int(psutil.Process().memory_info().rss)


def give_back() -> None:
    """Have the C library hand free memory back to the system, where it knows how to."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


async def remember(warm: int, messages: int, chats: int) -> dict[str, Any]:
    later: list[timedelta] = []
    with tempfile.TemporaryDirectory(prefix="goclaw-bench-") as name:
        async with open_ours(Path(name), LANE, lambda: utc_now() + sum(later, timedelta())) as ours:
            gateway = Remembering(ours, later)
            await gateway.carry(warm, chats)
            await gateway.forget()
            before = await gateway.mark()
            await gateway.carry(messages, chats)
            loaded = await gateway.mark()
            await gateway.forget()
            tidied = await gateway.mark()
            sessions = ours.gateway.scheduler.statistics().sessions
    grown = (tidied.objects - before.objects).most_common(MOST)
    return {
        "warm": before.figures(),
        "loaded": loaded.figures(),
        "tidied": tidied.figures(),
        "grown": dict(grown),
        "sessions": sessions,
        "messages": messages,
        "chats": chats,
    }


def main(argv: list[str]) -> None:
    if argv[3:] == ["traced"]:
        tracemalloc.start()
    warm, messages, chats = map(int, argv[:3])
    print(json.dumps(trio.run(remember, warm, messages, chats)))


if __name__ == "__main__":
    main(sys.argv[1:])
