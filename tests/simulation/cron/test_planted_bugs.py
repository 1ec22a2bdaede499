"""The simulation of cron finds bugs: each one that is planted breaks a promise within the seeds of the normal run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.simulation.cron.bugs import PLANTED
from tests.simulation.cron.simulate import simulate
from tests.simulation.cron.test_seeds import NORMAL, check, played

if TYPE_CHECKING:
    from collections.abc import Callable

EVENTFUL = (1, 4, 2, 3, 5, 7, 8, 10, 17, 41, 68, 79)
"""Seeds in which much happens come first: it takes fewer of them to find something."""


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_found(name: str, record_property: Callable[[str, object], None]) -> None:
    """Whatever is wrong on purpose is seen from outside, in a world that is fine without it."""
    bug = PLANTED[name]
    for seed in (*EVENTFUL, *NORMAL):
        with bug.plant():
            found = simulate(seed).found
        if found is not None:
            record_property("found", f"seed {seed}, {found.promise}: {found.why}")
            check(played(seed))
            return
    pytest.fail(f"{name} was not found with {len(NORMAL)} seeds: {bug.what}")


def test_bugs_are_of_many_kinds() -> None:
    """A proof by examples needs a few, each with a sentence."""
    assert len(PLANTED) >= 12
    assert all(bug.what for bug in PLANTED.values())
