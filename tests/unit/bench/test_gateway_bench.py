"""The benchmark of the gateway runs on a real gateway and store; its targets can be missed. No timing is judged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import gateway
from bench.gateway_loads import Load, open_bare, open_ours
from bench.gateway_report import MARKS, tables, targets
from bench.store_loads import session

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    """What a quick run says; it must say nothing else on the standard output."""
    command = [sys.executable, "-m", "bench", "gateway", "--quick", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_every_lane_and_batch_is_compared_with_the_bare_verbs(result: dict[str, Any]) -> None:
    """Both do all of the load, and each message of ours has its first sign."""
    found = [(row["lane"], row["batch"]) for row in result["turns"]]
    assert found == [(lane, batch) for lane in gateway.LANES for batch in gateway.CALLERS]
    for row in result["turns"]:
        assert min(row[figure] for figure in ("per_second", "bare_per_second", "times", "cpu_us", "cpu_times")) > 0
        assert row["sign_ms"]["samples"] == gateway.QUICK.messages * gateway.QUICK.rounds
        assert 0 < row["sign_ms"]["p50"] <= row["sign_ms"]["p99"]


def test_an_idle_gateway_and_its_loop_are_watched(result: dict[str, Any]) -> None:
    """There is one sign for each message, and some step was the longest."""
    assert result["idle_ms"]["samples"] == gateway.QUICK.idle
    assert result["blocked"]["steps"] > gateway.QUICK.watched
    assert result["blocked"]["longest_computing_ms"] > 0
    assert result["blocked"]["longest_in"]


def test_memory_is_told_with_and_without_the_keys_of_a_week(result: dict[str, Any]) -> None:
    """Every message leaves a key, and all of them go; what is traced only counts where it is traced."""
    for measured, messages in (
        (result["memory"], gateway.QUICK.remembered),
        (result["traced"], gateway.QUICK.traced[1]),
    ):
        assert [measured[mark]["keys"] for mark in MARKS] == [0, messages, 0]
        assert all(measured[mark]["trimmed_rss"] > 0 and measured[mark]["objects"] > 1000 for mark in MARKS)
        assert measured["sessions"] == 0
    assert [result[name]["loaded"]["traced"] > 0 for name in ("memory", "traced")] == [False, True]


def test_the_tables_show_what_was_found(result: dict[str, Any]) -> None:
    """Every part of the result has its lines."""
    text = tables(result)
    for word in ("Turns per second", "Megabytes", "longest step", "idle gateway", "kept for a week", *MARKS.values()):
        assert word in text


@pytest.mark.parametrize(
    ("times", "p99", "held", "grown", "met"),
    [(3.0, 50.0, 10.0, 5_000_000, True), (3.01, 50.1, 10.1, 5_000_001, False)],
)
def test_targets_follow_from_the_result_and_can_be_missed(
    times: float, p99: float, held: float, grown: int, met: bool
) -> None:
    """What a turn costs, the first sign, the longest step, and what is left in memory."""
    result = {
        "turns": [{"lane": 2, "batch": 1, "cpu_times": times}],
        "idle_ms": {"p99": p99},
        "blocked": {"messages": 1, "longest_computing_ms": held},
        "memory": {"messages": 1, "warm": {"trimmed_rss": 7}, "tidied": {"trimmed_rss": 7 + grown}},
    }
    assert [target.met for target in targets(result)] == [met] * 4


# ── the loads do what they say ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("batch", "callers"), [(1, 3), (5, 1)])
async def test_both_answer_every_message_and_leave_nothing_open(tmp_path: Path, batch: int, callers: int) -> None:
    """Afterwards the transcripts are the same, and neither inbox nor outbox holds anything."""
    load = Load(messages=20, chats=4, batch=batch, callers=callers)
    async with open_ours(tmp_path / "ours", 2) as ours, open_bare(tmp_path / "bare", 2) as bare:
        await ours.people.write(load, ours)
        await bare.people.write(load, bare)
        await ours.gateway.drained()
        await bare.drained()
        assert ours.people.answers == bare.people.answers == len(ours.people.delays) == load.messages
        for store in (ours.store, bare.store):
            messages = store.tables
            assert not messages.messages.rows
            assert not messages.replies.rows
            assert len(await store.transcript(session(0))) == 2 * load.messages // load.chats
