"""The promises of cron hold in every simulated world: a few on every run, many in the soak."""

from __future__ import annotations

import os
from functools import cache

import pytest

from tests.simulation.cron.simulate import Played, simulate

NORMAL = range(1, 51)
CHUNKS = 5
SOAK = range(1001, 1001 + int(os.environ.get("SIMULATION_SEEDS", "2000")))


@cache
def played(seed: int) -> Played:
    return simulate(seed)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_promises_hold(chunk: int) -> None:
    """P4 P5 P9 with whatever these seeds bring. (R5, R6, R8, R22)"""
    for seed in NORMAL[chunk::CHUNKS]:
        check(played(seed))


@pytest.mark.soak
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_promises_hold_for_long(chunk: int) -> None:
    """The same with many more seeds."""
    for seed in SOAK[chunk::CHUNKS]:
        check(simulate(seed))


def test_same_seed_same_history() -> None:
    """A seed is enough to see again what happened, byte for byte."""
    for seed in NORMAL[::25]:
        first, second = (simulate(seed).history for _ in range(2))
        assert "\n".join(map(str, first)) == "\n".join(map(str, second))


@pytest.mark.parametrize("seed", [2235, 2491, 3085, 3329, 3342, 4191, 6305])
def test_histories_that_once_broke_a_promise_keep_it(seed: int) -> None:
    """A clock set back between two attempts, during a run, and before a one-shot is resumed: found by soaking."""
    check(played(seed))


def test_everything_happens() -> None:
    """A world in which nothing goes wrong proves nothing: lives end in every way, runs too, and the clock jumps."""
    events = [event for seed in NORMAL[:25] for event in played(seed).history]
    happened = {event.what for event in events}
    assert {"crash", "cancel", "stop", "left over", "jumped", "trouble", "quiet"} <= happened
    assert {"lease_lost", "settle_stale", "trigger_skipped"} <= happened
    assert {"run_succeeded", "run_failed", "run_timeout", "run_cancelled"} <= happened
    deeds = {"added", "edit", "pause", "resume", "hint a moment", "run now", "cancel", "purge", "disable", "enable"}
    assert deeds <= happened


def check(outcome: Played) -> None:
    if outcome.found is not None:
        pytest.fail(f"{outcome}", pytrace=False)
