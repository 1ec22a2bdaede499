"""The benchmark of cron runs on a real service, store and server; its targets can be missed. No timing is judged."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bench import cron
from bench.cron_loads import TENANT, Cron, busy, instants, late, next_after_each, next_in_a_row, share_out
from bench.cron_report import STEADY, WHAT, tables, targets
from bench.cron_rivals import (
    Apscheduler,
    Scan,
    croniter_after_each,
    croniter_in_a_row,
    cronsim_after_each,
    cronsim_in_a_row,
)
from bench.store_loads import utc_now
from store.jobs import JobStatus
from store.memory import MemoryStore

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    """What a quick run says; it must say nothing else on the standard output."""
    command = [sys.executable, "-m", "bench", "cron", "--quick", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_everything_is_measured_at_every_number_of_jobs(result: dict[str, Any]) -> None:
    """Ours and its rivals, in one run; only ours looks at the clock without asking."""
    assert result["stored"].keys() == WHAT.keys()
    counts = [str(count) for count in cron.QUICK.stored]
    for contenders in result["stored"].values():
        assert all(list(figures["us"]) == counts for figures in contenders.values())
        assert all(min(*figures["us"].values(), figures["growth"]) > 0 for figures in contenders.values())
    assert all(result["stored"][what].keys() == {"ours", "apscheduler", "scan"} for what in ("add", "ask", "fire"))


def test_the_loop_is_watched_while_jobs_are_fired_and_the_journal_is_folded(result: dict[str, Any]) -> None:
    """Without any of them the number would say nothing."""
    loop = result["blocked"]
    assert min(loop["fired"], loop["added"], loop["compactions"], loop["steps"], loop["longest_computing_ms"]) > 0
    assert loop["longest_in"]


def test_next_times_are_compared_and_are_the_same(result: dict[str, Any]) -> None:
    """Whoever answers faster but otherwise would win nothing."""
    assert [row["asked"] for row in result["next"]] == ["anywhere", "in a row"]
    for row in result["next"]:
        assert all(row[name] > 0 for name in ("ours", "croniter", "cronsim", "vs_croniter", "vs_cronsim"))
        assert row["differs_croniter"] == row["differs_cronsim"] == 0


def test_jobs_go_from_due_to_done_in_three_queues_on_one_server(result: dict[str, Any]) -> None:
    """In every size of batch; what the server writes for it is told."""
    assert [row["batch"] for row in result["claims"]] == list(cron.QUICK.batches)
    for row in result["claims"]:
        assert all(row[name] > 0 for name in ("ours", "procrastinate", "pgqueuer", "vs_procrastinate", "vs_pgqueuer"))
        assert min(row["wal_bytes"].values()) > 0


def test_lateness_is_that_of_all_jobs(result: dict[str, Any]) -> None:
    """Each of them ran once."""
    delay = result["lateness_ms"]
    assert delay["samples"] == cron.QUICK.timed
    assert 0 < delay["p50"] <= delay["p99"] <= delay["max"]


def test_the_tables_show_what_was_found(result: dict[str, Any]) -> None:
    """Every part of the result has its lines."""
    text = tables(result)
    for word in (*WHAT.values(), "Next times", "pgqueuer", "procrastinate", "longest step", "lateness"):
        assert word in text


def made_up(growth: float, held: float, compactions: int, ahead: float, p99: float) -> dict[str, Any]:
    figures = {"ours": {"us": {"1": 1.0, "9": 1.0}, "growth": growth}}
    return {
        "stored": dict.fromkeys(STEADY, figures),
        "blocked": {"compactions": compactions, "stored": 9, "longest_computing_ms": held},
        "claims": [{"batch": 1, "vs_procrastinate": ahead, "vs_pgqueuer": ahead}],
        "lateness_ms": {"samples": 3, "p99": p99},
    }


@pytest.mark.parametrize(
    ("figures", "met"),
    [
        ((2.0, 10.0, 1, 1.01, 49.9), [True] * 8),
        ((2.01, 10.01, 1, 1.0, 50.0), [False] * 8),
        ((2.0, 1.0, 0, 1.01, 49.9), [True] * 4 + [False] + [True] * 3),
    ],
)
def test_targets_follow_from_the_result_and_can_be_missed(
    figures: tuple[float, float, int, float, float], met: list[bool]
) -> None:
    """Growth, the longest step, both queues, lateness; a loop without compactions proves nothing."""
    assert [target.met for target in targets(made_up(*figures))] == met


# ── the loads do what they say ───────────────────────────────────────────────────────────────────────────────────────


async def test_due_jobs_are_fired_to_their_end_and_planned_again() -> None:
    """What is measured as firing has left a run for each job, and each waits for its next time."""
    store = MemoryStore(utc_now)
    ours = Cron(store)
    await ours.fill(5)
    assert await ours.seconds_to_fire(3) > 0
    jobs = await store.cron.jobs(TENANT)
    assert [(job.id, job.runs) for job in jobs] == [(1, 1), (2, 1), (3, 1), (4, 0), (5, 0)]
    assert all(job.next_at is not None and job.next_at > utc_now() for job in jobs)


async def test_adding_and_idling_leave_no_more_stored() -> None:
    """So that the next round finds as many jobs as this one did."""
    store = MemoryStore(utc_now)
    ours = Cron(store)
    await ours.fill(4)
    before = await store.cron.jobs(TENANT)
    assert await ours.seconds_to_add(3, 2) > 0
    assert await ours.seconds_to_look(5) > 0
    assert await ours.seconds_to_ask(5) > 0
    assert await store.cron.jobs(TENANT) == before


async def test_jobs_are_late_by_what_the_runner_sees() -> None:
    """None is early, and there is one figure for each."""
    delays = await late(MemoryStore(utc_now), 5, 0.1)
    assert len(delays) == 5
    assert min(delays) >= 0


async def test_a_busy_service_ends_with_its_recurring_jobs_cancelled() -> None:
    """They were fired, others were added meanwhile, and in the end it is idle."""
    store = MemoryStore(utc_now)
    fired, added = await busy(Cron(store), 0.1, 3)
    assert fired >= 3
    assert added > 0
    jobs = await store.cron.jobs(TENANT)
    assert sum(job.status is JobStatus.CANCELLED for job in jobs) == 3
    assert len(jobs) == 3 + added


async def test_numbers_are_shared_out_once_each() -> None:
    """However many take from them."""
    seen: list[int] = []

    async def act(number: int) -> None:
        seen.append(number)

    await share_out(range(7), 3, act)
    assert sorted(seen) == list(range(7))


def test_apscheduler_runs_its_due_jobs() -> None:
    """It is the library's own scheduler, not a stand-in; what was added goes again."""
    rival = Apscheduler(5)
    try:
        assert rival.seconds_to_add(2) > 0
        assert rival.seconds_to_tick(3) > 0
        assert rival.seconds_to_fire(4) > 0
        assert rival.ended == 4
        assert len(rival.scheduler.get_jobs()) == 5
    finally:
        rival.close()


def test_the_scan_writes_all_its_jobs(tmp_path: Path) -> None:
    """After a change the file holds every one of them."""
    rival = Scan(tmp_path / "jobs.json", 4)
    assert rival.seconds_to_add(2) > 0
    assert rival.seconds_to_tick(2) > 0
    assert rival.seconds_to_fire(3) > 0
    written = json.loads((tmp_path / "jobs.json").read_bytes())
    assert written == rival.jobs
    assert [job["last_s"] is not None for job in written] == [True, True, True, False]


def test_all_libraries_are_asked_the_same() -> None:
    """From anywhere and in a row, away from the nights on which clocks are turned."""
    moments = [datetime(2026, 6, 1, tzinfo=UTC) + timedelta(hours=number) for number in range(3)]
    (_, ours), (_, theirs), (_, others) = (
        ask(moments) for ask in (next_after_each, croniter_after_each, cronsim_after_each)
    )
    assert ours == theirs == others
    (_, ours), (_, theirs), (_, others) = (
        ask(moments[0], 3) for ask in (next_in_a_row, croniter_in_a_row, cronsim_in_a_row)
    )
    assert ours == theirs == others
    assert instants(3) == instants(3)
