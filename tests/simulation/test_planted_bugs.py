"""The simulation finds bugs: each one that is planted breaks a promise within the seeds of the normal run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.simulation.planted import PLANTED
from tests.simulation.simulate import simulate
from tests.simulation.test_seeds import NORMAL, check, played

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_found(name: str, record_property: Callable[[str, object], None]) -> None:
    """Whatever is wrong on purpose is seen from outside, in a world that is fine without it."""
    bug = PLANTED[name]
    for seed in NORMAL:
        with bug.plant():
            found = simulate(seed).found
        if found is not None:
            record_property("found", f"seed {seed}, {found.promise}: {found.why}")
            check(played(seed))
            return
    pytest.fail(f"{name} was not found with {len(NORMAL)} seeds: {bug.what}")


def test_bugs_are_of_many_kinds() -> None:
    """A proof by examples needs a few, each with a sentence."""
    assert len(PLANTED) >= 10
    assert all(bug.what for bug in PLANTED.values())
