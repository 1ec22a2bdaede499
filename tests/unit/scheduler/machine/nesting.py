"""Nested work on lanes of one: a tree of messages, each waiting for its children in turn or all at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import trio
from hypothesis import strategies as st
from trio.testing import MockClock

from scheduler import Policy, Request, Run, open_scheduler

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG_S = 3600.0
PLAIN = Policy(debounce_s=0)


@dataclass(frozen=True)
class Tree:
    lane: str
    pause_s: float = 0.0
    at_once: bool = False
    children: tuple[Tree, ...] = ()

    def size(self) -> int:
        return 1 + sum(child.size() for child in self.children)


def trees(depth: int = 3) -> st.SearchStrategy[Tree]:
    return st.builds(
        Tree,
        lane=st.sampled_from(["left", "right"]),
        pause_s=st.sampled_from([0.0, 0.0, 1.0]),
        at_once=st.booleans(),
        children=st.lists(trees(depth - 1), max_size=3).map(tuple) if depth else st.just(()),
    )


def count_runs(roots: list[Tree]) -> int:
    """Run them all on two lanes of one; how many messages ran to their end."""
    return trio.run(_run_all, roots, clock=MockClock(autojump_threshold=0))


async def _run_all(roots: list[Tree]) -> int:
    grown: list[Tree] = []
    numbers = iter(range(1_000_000))
    async with open_scheduler({"left": 1, "right": 1}) as scheduler:
        tickets = [
            scheduler.schedule(Request(f"root-{n}", partial(_grow, root, numbers, grown), lane=root.lane, policy=PLAIN))
            for n, root in enumerate(roots)
        ]
        with trio.fail_after(LONG_S):
            for ticket in tickets:
                await ticket.result()
        return len(grown)


async def _grow(tree: Tree, numbers: Iterator[int], grown: list[Tree], run: Run) -> None:
    await trio.sleep(tree.pause_s)
    async with trio.open_nursery() as nursery:
        for child in tree.children:
            if tree.at_once:
                nursery.start_soon(_child, child, numbers, grown, run)
            else:
                await _child(child, numbers, grown, run)
    grown.append(tree)


async def _child(tree: Tree, numbers: Iterator[int], grown: list[Tree], run: Run) -> None:
    await trio.sleep(tree.pause_s)
    handler = partial(_grow, tree, numbers, grown)
    await run.schedule(Request(f"child-{next(numbers)}", handler, lane=tree.lane, policy=PLAIN)).result()
