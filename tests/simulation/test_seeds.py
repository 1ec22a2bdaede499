"""The promises hold in every simulated world: a few on every run, many in the soak."""

from __future__ import annotations

import os

import pytest

from tests.simulation.simulate import simulate

NORMAL = range(1, 51)
CHUNKS = 10
SOAK = range(1001, 1001 + int(os.environ.get("GOCLAW_SIMULATION_SEEDS", "2000")))


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_promises_hold(chunk: int) -> None:
    """P1 P2 P3 P6 P7 P8 with whatever these seeds bring."""
    for seed in NORMAL[chunk::CHUNKS]:
        check(seed)


@pytest.mark.soak
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_promises_hold_for_long(chunk: int) -> None:
    """The same with many more seeds."""
    for seed in SOAK[chunk::CHUNKS]:
        check(seed)


def test_same_seed_same_history() -> None:
    """A seed is enough to see again what happened, byte for byte."""
    for seed in NORMAL[::10]:
        first, second = (simulate(seed).history for _ in range(2))
        assert "\n".join(map(str, first)) == "\n".join(map(str, second))


def test_worlds_differ_and_are_busy() -> None:
    """No seed is a world in which nothing happens, and no two are the same."""
    histories = ["\n".join(map(str, simulate(seed).history)) for seed in NORMAL[:10]]
    assert len(set(histories)) == len(histories)
    assert min(history.count("accepted") for history in histories) >= 3


def check(seed: int) -> None:
    played = simulate(seed)
    if played.found is not None:
        pytest.fail(f"{played}", pytrace=False)
