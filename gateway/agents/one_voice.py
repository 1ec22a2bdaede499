"""A nursery whose only failure is raised as it is, not inside a group: the person is told one line."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from gateway.protocols import AgentError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


@asynccontextmanager
async def open_nursery() -> AsyncIterator[trio.Nursery]:
    try:
        async with trio.open_nursery() as nursery:
            yield nursery
    except BaseExceptionGroup as group:
        raise _voice(group) from None


def _voice(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """An agent's error if there is one, else the only failure; with a cancel among them, the group as it is."""
    leaves = list(_leaves(group))
    if any(isinstance(leaf, trio.Cancelled) for leaf in leaves):
        return group
    errors = [leaf for leaf in leaves if isinstance(leaf, AgentError)]
    if errors or len(leaves) == 1:
        return (errors or leaves)[0]
    return group


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for inner in group.exceptions:
        if isinstance(inner, BaseExceptionGroup):
            yield from _leaves(inner)
        else:
            yield inner
