"""How we measure, for every benchmark: rounds that take turns, medians, memory, and what machine it was."""

from __future__ import annotations

import gc
import os
import platform
import statistics
import sys
import tracemalloc
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.benchmark import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


def take_turns(contenders: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Let each contender measure itself once per round, one after the other: a slow minute is slow for all."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, contend in contenders.items():
            gc.collect()
            seconds[name].append(contend())
    return seconds


def share(samples: Sequence[float], part: float) -> float:
    """The sample that ``part`` of all samples do not exceed."""
    ordered = sorted(samples)
    return ordered[round((len(ordered) - 1) * part)]


def median(samples: Sequence[float]) -> float:
    return statistics.median(samples)


@contextmanager
def tracing() -> Iterator[Callable[[], int]]:
    """Count every byte that Python allocates from here on; yields how to ask for what is alive."""
    tracemalloc.start()

    def alive() -> int:
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    try:
        yield alive
    finally:
        tracemalloc.stop()


def machine() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "trio": metadata.version("trio"),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": processor(),
        "cores": os.cpu_count(),
        "load": [round(figure, 2) for figure in os.getloadavg()],
    }


def processor() -> str:
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def warn_if_busy() -> None:
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load > cores / 2:
        say(f"this machine is busy (load {load:.1f} on {cores} cores): compare the columns, not the runs")
