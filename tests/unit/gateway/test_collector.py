"""The garbage collector: a full collection never looks twice at what has survived one, and cycles still go."""

from __future__ import annotations

import gc
import weakref

import pytest

from gateway.collector import paced_collector


class Cycle:
    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def unfrozen() -> None:
    gc.unfreeze()


def test_what_survives_a_full_collection_is_set_apart() -> None:
    """Whatever is in memory when the block begins, and whatever a full collection leaves, costs nothing later."""
    with paced_collector():
        at_first = gc.get_freeze_count()
        assert at_first > 1000
        rows = [[number] for number in range(50_000)]
        gc.collect()
        assert gc.get_freeze_count() >= at_first + len(rows)
        assert len(gc.get_objects()) < 10_000


def test_garbage_that_is_new_is_still_found() -> None:
    """A cycle that came and went between two full collections is gone after the next."""
    with paced_collector():
        ref = weakref.ref(Cycle())
        gc.collect()
        assert ref() is None


def test_young_collections_set_nothing_apart() -> None:
    """Only a full collection has looked at everything."""
    with paced_collector():
        before = gc.get_freeze_count()
        rows = [[number] for number in range(5_000)]
        gc.collect(1)
        assert gc.get_freeze_count() <= before
        assert rows


def test_afterwards_everything_is_as_before() -> None:
    """The block leaves no trace: what was set apart is looked at again."""
    callbacks, thresholds = list(gc.callbacks), gc.get_threshold()
    with paced_collector():
        kept = Cycle()
        gc.collect()
        ref = weakref.ref(kept)
        del kept
    assert (gc.callbacks, gc.get_threshold()) == (callbacks, thresholds)
    assert gc.get_freeze_count() == 0
    gc.collect()
    assert ref() is None
