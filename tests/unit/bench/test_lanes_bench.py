"""The benchmarks run, tell the truth about what they ran, and say which targets were missed. No timing is judged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import lanes
from bench.__main__ import main
from bench.benchmark import Benchmark, Target, table
from bench.loads import Load
from bench.measure import share, take_turns
from bench.order import Witness

ROOT = Path(__file__).parents[3]


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_quick_lanes_run_for_real_and_print_json_only() -> None:
    done = bench("lanes", "--quick", "--json")
    assert done.returncode == 0, done.stderr
    assert "lanes: throughput" in done.stderr
    result = json.loads(done.stdout)
    assert [(row["limit"], row["handler"]) for row in result["rows"]] == [
        (2, "noop"),
        (100, "noop"),
        (2, "checkpoint"),
        (100, "checkpoint"),
    ]
    for row in result["rows"]:
        assert row.keys() >= {"limit", "handler", "ours", "trio", "asyncio", "vs_trio", "vs_asyncio"}
        assert all(row[name] > 0 for name in ("ours", "trio", "asyncio"))
    assert result["checked_in_order"] == dict.fromkeys(("ours", "trio", "asyncio"), lanes.QUICK.messages)
    assert result["messages"] == lanes.QUICK.messages
    assert result["sessions"] == lanes.QUICK.sessions
    assert result["rounds"] == 1
    assert 0 < result["schedule_us"] <= result["schedule_with_request_us"]
    assert result["enqueue_to_start_us"]["samples"] >= lanes.QUICK.arrivals
    assert 0 < result["enqueue_to_start_us"]["p50"] <= result["enqueue_to_start_us"]["p99"]
    assert result["cancel_ms"]["samples"] == lanes.QUICK.cancels
    assert 0 < result["cancel_ms"]["p50"] <= result["cancel_ms"]["max"]
    assert result["bytes"]["queued_message"] > 0
    assert result["bytes"]["sessions_left"] == 0
    assert result["machine"]["python"]


def test_an_unknown_name_is_answered_with_the_names_there_are() -> None:
    done = bench("lames")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "'lames'" in done.stderr
    assert "lanes" in done.stderr


@pytest.mark.parametrize(("options", "code"), [([], 0), (["--strict"], 1)])
def test_a_missed_target_is_told_and_fails_only_when_strict(
    options: list[str], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = Benchmark("slow", "", lambda quick: {}, lambda result: "", lambda result: [Target("it", "1", "2", False)])
    monkeypatch.setattr("bench.__main__.BENCHMARKS", {"slow": slow})
    assert main(["slow", *options]) == code
    assert "missed" in capsys.readouterr().out


def test_targets_compare_with_both_stand_ins() -> None:
    def result(vs_trio: float, vs_asyncio: float) -> dict[str, Any]:
        return {
            "rows": [{"limit": 2, "handler": "noop", "vs_trio": vs_trio, "vs_asyncio": vs_asyncio}],
            "schedule_us": 5.0,
            "cancel_ms": {"max": 50.0},
            "bytes": {"sessions_left": 1, "idle_session": 0.0},
        }

    assert [target.met for target in lanes.targets(result(4.0, 1.01))] == [True, True, False, False, False]
    assert [target.met for target in lanes.targets(result(3.99, 1.0))] == [False] * 5


async def test_the_order_check_notices_disorder() -> None:
    load = Load(count=6, sessions=2, limit=2)
    witness = Witness(load)
    await witness.on_trio(0)
    with pytest.raises(AssertionError, match="came after 0"):
        await witness.on_trio(4)


def test_the_order_check_notices_overlap_and_a_broken_limit() -> None:
    witness = Witness(Load(count=6, sessions=3, limit=1))
    witness.enter(0)
    with pytest.raises(AssertionError, match="beside another"):
        witness.enter(3)
    with pytest.raises(AssertionError, match="beyond the limit"):
        witness.enter(1)


def test_contenders_take_turns() -> None:
    calls: list[str] = []

    def contender(name: str, seconds: float) -> float:
        calls.append(name)
        return seconds

    found = take_turns({"a": lambda: contender("a", 1.0), "b": lambda: contender("b", 2.0)}, rounds=2)
    assert calls == ["a", "b", "a", "b"]
    assert found == {"a": [1.0, 1.0], "b": [2.0, 2.0]}


def test_ratios_compare_round_with_round() -> None:
    """A machine that was slow for one round was slow for all contenders in it."""
    assert lanes.times_faster([1.0, 10.0, 1.0], [2.0, 20.0, 2.0]) == 2.0


def test_shares_are_samples() -> None:
    samples = [5.0, 1.0, 4.0, 2.0, 3.0]
    assert [share(samples, part) for part in (0.0, 0.5, 0.99)] == [1.0, 3.0, 5.0]


def test_a_table_lines_its_columns_up() -> None:
    assert table("T", ("what", "n"), [("a", "10"), ("longer", "2")]).splitlines() == [
        "T",
        "",
        "what     n",
        "──────  ──",
        "a       10",
        "longer   2",
    ]
