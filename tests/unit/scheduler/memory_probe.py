"""A process of its own that uses many sessions once and tells, as JSON, what they have left behind.

    python -m tests.unit.scheduler.memory_probe SESSIONS WAVE [--trace]

Sessions come in waves of WAVE that wait at the same time. A first round warms up: what Python and the scheduler keep
whatever the number of sessions (a table's size, the latest wait times) is there before the measured one.
With ``--trace`` every living byte is counted; without, the system says how much the process holds.
"""

from __future__ import annotations

import gc
import itertools
import json
import sys
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from scheduler import Policy, Request, open_scheduler

if TYPE_CHECKING:
    from scheduler import Event, Run, Scheduler

PLAIN = Policy(debounce_s=0.0)
DEBOUNCED = Policy(debounce_s=60.0)
LIMITED = Policy(debounce_s=0.0, timeout_s=3600.0)


async def handle(run: Run) -> None:
    if run.request.policy is LIMITED:
        await trio.lowlevel.checkpoint()


def use_once(scheduler: Scheduler, number: int) -> None:
    """Every fourth session is used in another way: plainly, through a window, with a time limit, cancelled."""
    key = f"session-{number}"
    policy = (PLAIN, DEBOUNCED, LIMITED, PLAIN)[number % 4]
    scheduler.schedule(Request(key, handle, payload=number, tenant=f"tenant-{number % 7}", policy=policy))
    if policy is DEBOUNCED:
        scheduler.flush(key)
    elif number % 4 == 3:
        scheduler.cancel_all(key)


async def use_many(scheduler: Scheduler, numbers: itertools.count[int], sessions: int, wave: int) -> None:
    for _ in range(sessions // wave):
        for _ in range(wave):
            use_once(scheduler, next(numbers))
        await scheduler.drain()


def held(traced: bool) -> int:
    gc.collect()
    if traced:
        return tracemalloc.get_traced_memory()[0]
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("the system does not tell how much memory this process holds")


async def main(sessions: int, wave: int, traced: bool) -> dict[str, int]:
    events = 0

    def count(event: Event) -> None:
        nonlocal events
        events += 1

    async with open_scheduler() as scheduler:
        scheduler.observe(count)
        numbers = itertools.count()
        await use_many(scheduler, numbers, max(wave, sessions // 10), wave)
        before, seen = held(traced), events
        await use_many(scheduler, numbers, sessions, wave)
        (lane, *_) = scheduler.statistics().lanes
        return {
            "before": before,
            "after": held(traced),
            "events": events - seen,
            "used": sum(lane.ends.values()),
            "sessions": len(scheduler.sessions),
            "timers": len(scheduler.timers),
        }


if __name__ == "__main__":
    if "--trace" in sys.argv:
        tracemalloc.start()
    sys.stdout.write(json.dumps(trio.run(main, int(sys.argv[1]), int(sys.argv[2]), "--trace" in sys.argv)))
