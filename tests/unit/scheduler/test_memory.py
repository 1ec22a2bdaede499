"""An idle session costs nothing: whoever used sessions once leaves the process where it was."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from scheduler import Policy, Request, open_scheduler

if TYPE_CHECKING:
    from scheduler import Run

ROOT = Path(__file__).parents[3]
SESSIONS = 100_000
WAVE = 1_000
MEGABYTE = 1_000_000


def probe(*options: str) -> dict[str, int]:
    """In a process of its own, so that nothing which other tests have left can be freed or reused meanwhile."""
    command = [sys.executable, "-m", "tests.unit.scheduler.memory_probe", str(SESSIONS), str(WAVE), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, int] = json.loads(done.stdout)
    return found


def assert_used_and_forgotten(found: dict[str, int]) -> None:
    assert found["used"] >= SESSIONS
    assert found["events"] >= 2 * SESSIONS, "every message was queued and ended under an observer's eyes"
    assert found["sessions"] == 0
    assert found["timers"] == 0


def test_sessions_used_once_leave_no_living_byte_behind() -> None:
    """Exact: every allocation is counted. A kept session would be more than 100 bytes, 100,000 of them 10 MB."""
    found = probe("--trace")
    assert_used_and_forgotten(found)
    assert abs(found["after"] - found["before"]) < MEGABYTE


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process holds at this moment")
def test_sessions_used_once_do_not_let_the_process_grow() -> None:
    """What the system sees: also memory that is free inside the process but scattered, or held by C code."""
    found = probe()
    assert_used_and_forgotten(found)
    assert found["after"] - found["before"] < MEGABYTE


async def test_a_crowd_leaves_no_table_behind() -> None:
    """The table of sessions does not keep the size of the largest crowd it ever held."""

    async def handle(run: Run) -> None:
        pass

    async with open_scheduler() as scheduler:
        for number in range(10_000):
            scheduler.schedule(Request(f"session-{number}", handle, policy=Policy(debounce_s=0.0)))
        await scheduler.drain()
        assert sys.getsizeof(scheduler.sessions) == sys.getsizeof({})
