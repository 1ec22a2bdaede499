"""Python's garbage collector, kept from holding everybody up.

A full collection looks at every object that could be part of a cycle. With 100,000 messages in memory that takes half a
second, in which nothing else goes on. But what has survived one is nearly always there to stay, and rows of the store
go without its help. So after each full collection all that is left is set apart, and the next one looks only at what
has come since. They are made more often than usual, so that this is never much. The price: a cycle that was alive at a
full collection and becomes garbage afterwards is never found. That is at most what a few runs hold at that moment.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

FULL = 2
THRESHOLDS = (700, 5, 5)
"""A full collection after about 25,000 more objects: some milliseconds."""


@contextmanager
def paced_collector() -> Iterator[None]:
    """For the time of the block, which begins with a full collection."""
    before = gc.get_threshold()
    gc.set_threshold(*THRESHOLDS)
    gc.callbacks.append(set_survivors_apart)
    gc.collect()
    gc.collect()  # it finds nothing any more, and Python takes that for the number of objects that stay
    try:
        yield
    finally:
        gc.callbacks.remove(set_survivors_apart)
        gc.set_threshold(*before)
        gc.unfreeze()


def set_survivors_apart(phase: str, info: dict[str, int]) -> None:
    if phase == "stop" and info["generation"] == FULL:
        gc.freeze()
