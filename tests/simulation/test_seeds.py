"""The promises hold in every simulated world: a few on every run, many in the soak."""

from __future__ import annotations

import os
from functools import cache

import pytest

from scheduler import End
from store.records import MessageState
from tests.simulation.history import What
from tests.simulation.simulate import Played, simulate

NORMAL = range(1, 51)
CHUNKS = 10
SOAK = range(1001, 1001 + int(os.environ.get("SIMULATION_SEEDS", "2000")))


@cache
def played(seed: int) -> Played:
    return simulate(seed)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_promises_hold(chunk: int) -> None:
    """P1 P2 P3 P6 P7 P8 with whatever these seeds bring."""
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
    for seed in NORMAL[::10]:
        first, second = (simulate(seed).history for _ in range(2))
        assert "\n".join(map(str, first)) == "\n".join(map(str, second))


@pytest.mark.parametrize("seed", [138, 559, 1001, 1854, 2159, 2700])
def test_histories_that_once_broke_a_promise_keep_it(seed: int) -> None:
    """Stops that are taken up after a later message, and steering whose task is cancelled: found by soaking."""
    check(played(seed))


def test_other_seed_other_history() -> None:
    """No two seeds are the same world."""
    histories = {"\n".join(map(str, played(seed).history)) for seed in NORMAL[:10]}
    assert len(histories) == 10


def test_everything_happens() -> None:
    """A world in which nothing goes wrong proves nothing: every kind of event, end and state is there."""
    events = [event for seed in NORMAL for event in played(seed).history]
    assert set(What) - {event.what for event in events} == set()
    ends = {event.detail for event in events if event.what is What.ENDED}
    assert {end.value for end in End} - ends == set()
    states = {event.text for event in events if event.what is What.SETTLED}
    assert {state.value for state in MessageState if state.terminal} - states == set()
    helpers = {event.text.count(">") for event in events if event.what is What.IN}
    assert helpers == {0, 1, 2, 3}


def check(outcome: Played) -> None:
    if outcome.found is not None:
        pytest.fail(f"{outcome}", pytrace=False)
