"""The benchmark of the stores runs on real ones, its instruments and targets tell the truth. No timing is judged."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path
from time import thread_time
from typing import Any

import pytest
import trio

from bench import store
from bench.steps import watching_steps
from bench.store_loads import WholeFile, per_second, rewrites

ROOT = Path(__file__).parents[3]
VERBS = {"accept", "begin", "settle"}


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    """What a quick run says; it must say nothing else on the standard output."""
    command = [sys.executable, "-m", "bench", "store", "--quick", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_journal_is_measured_beside_the_whole_file(result: dict[str, Any]) -> None:
    """At every number of rows, with one caller and with many, in one run."""
    assert [row["rows"] for row in result["updates"]] == list(store.QUICK.rows)
    for row in result["updates"]:
        assert all(row[f"{what}_{callers}"] > 0 for what in ("journal", "rewrite", "times") for callers in (1, 5))


def test_messages_go_all_the_way_in_both_stores(result: dict[str, Any]) -> None:
    """With every number of callers, each verb timed."""
    assert [(row["backend"], row["callers"]) for row in result["cycles"]] == [
        (backend, callers) for backend in ("json", "postgres") for callers in store.QUICK.callers
    ]
    for row in result["cycles"]:
        assert row["per_second"] > 0
        assert row["ms"].keys() == VERBS
        assert all(0 < taken["p50"] <= taken["p99"] for taken in row["ms"].values())


def test_every_verb_is_timed_in_both_stores(result: dict[str, Any]) -> None:
    """The same verbs, each of which took some time."""
    assert result["verbs"]["json"].keys() == result["verbs"]["postgres"].keys() > VERBS
    assert all(0 < taken["p50"] <= taken["p99"] for verbs in result["verbs"].values() for taken in verbs.values())


def test_the_loop_is_watched_while_the_journal_is_folded(result: dict[str, Any]) -> None:
    """Without a compaction the number would say nothing."""
    loop = result["blocked"]
    assert loop["compactions"] > 0
    assert loop["steps"] > loop["cycles_per_second"] * store.QUICK.blocked_s
    assert loop["longest_computing_ms"] > 0
    assert loop["longest_in"]


def test_the_tables_show_what_was_found(result: dict[str, Any]) -> None:
    """Every part of the result has its lines."""
    text = store.tables(result)
    for word in ("Durable updates", "from accept to settle", "each verb", "longest step", "postgres"):
        assert word in text


@pytest.mark.parametrize(
    ("times", "held", "compactions", "met"),
    [(50.0, 10.0, 1, [True, True]), (49.9, 10.1, 1, [False, False]), (50.0, 1.0, 0, [True, False])],
)
def test_targets_are_the_largest_file_and_the_longest_step(
    times: float, held: float, compactions: int, met: list[bool]
) -> None:
    """The ratio that counts is that of the most rows and callers; a loop without compactions proves nothing."""
    result = {
        "updates": [{"rows": 1, "times_100": 1.0}, {"rows": 2, "times_1": 1.0, "times_100": times}],
        "blocked": {"compactions": compactions, "stored": 5, "longest_computing_ms": held},
    }
    assert [target.met for target in store.targets(result)] == met


async def test_a_long_step_is_seen_and_named() -> None:
    """A task that computes without a checkpoint is the longest step, and its time is computing time."""

    async def computes() -> None:
        await trio.lowlevel.checkpoint()
        end = thread_time() + 0.02
        while thread_time() < end:
            pass
        await trio.lowlevel.checkpoint()

    with watching_steps() as steps:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(computes)
            await trio.lowlevel.checkpoint()
    assert 0.02 <= steps.longest_computing_s <= steps.longest_s * 1.01
    assert steps.longest_task.endswith("computes")


async def test_collecting_garbage_is_told_apart() -> None:
    """It counts as computing, but not as the step's own work."""

    async def collects() -> None:
        await trio.lowlevel.checkpoint()
        gc.collect()
        await trio.lowlevel.checkpoint()

    with watching_steps() as steps:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(collects)
    assert 0 < steps.longest_collection_s <= steps.longest_computing_s
    assert steps.longest_besides_s < steps.longest_computing_s
    assert steps.collect not in gc.callbacks


async def test_the_stand_in_really_rewrites_its_file(tmp_path: Path) -> None:
    """After an update the file holds every row, the changed one too."""
    whole = WholeFile(tmp_path / "all.json", 3)
    await whole.update(1)
    assert json.loads((tmp_path / "all.json").read_bytes()) == whole.rows
    assert [row["lines"] for row in whole.rows.values()] == [0, 1, 0]
    assert await rewrites(tmp_path / "other.json", 2, 2, 0.01) > 0


async def test_all_callers_work() -> None:
    """Each gets its turns until the time is over."""
    seen: set[int] = set()

    async def act(caller: int) -> None:
        seen.add(caller)
        await trio.lowlevel.checkpoint()

    assert await per_second(3, 0.01, act) > 0
    assert seen == {0, 1, 2}
