"""The time in which this process may work on messages: it begins with the chat lease and ends with it.

    acquire ──▶ held ──renew at a third of the span──▶ held …
       ▲ somebody else works      │ refused, or not renewed in time
       └── wait                   ▼
                                 over: everything inside is cancelled

A process trusts its lease one second less than the store does, counted from before it asked: one that was frozen finds
its time run out when it wakes, before anything else of it runs. What it still tries to write is refused by the store.
"""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import trio

from gateway.persist import FIRST_DELAY_S, persist
from store.protocols import StoreError
from store.records import CHAT_LEASE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from datetime import timedelta

    from store.protocols import WorkerStore
    from store.records import Lease

logger = logging.getLogger("goclaw.tenure")

EARLY_S = 1.0
LOOK_AGAIN_S = 1.0
LET_GO_S = 2.0


class TenureOver(Exception):
    """This process may not work on messages any more; what was accepted is in the store for whoever may."""


AWAY = (
    "the store could not be reached for longer than the chat lease lasts, so another gateway may work on the messages "
    "now: see that the database is there, then start goclaw again. Everything that was accepted is kept."
)
TAKEN = (
    "another gateway works on the messages now: this one was away for longer than its lease. Everything that was "
    "accepted is kept; start goclaw again if this one is to take its turn."
)


@asynccontextmanager
async def tenure(
    store: WorkerStore, owner: str, span: timedelta, waiting: Callable[[Lease], None]
) -> AsyncIterator[Lease]:
    """Wait for the lease, telling ``waiting`` whom for, and keep it for as long as the block goes on."""
    lease, trusted_until = await acquire(store, owner, span, waiting)
    with trio.CancelScope(deadline=trusted_until) as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(keep, store, lease, span, scope)
            yield lease
            nursery.cancel_scope.cancel()
    if scope.cancelled_caught:
        raise TenureOver(TAKEN if await held_by_another(store, lease) else AWAY)
    with trio.move_on_after(LET_GO_S):
        await let_go(store, lease)


async def acquire(
    store: WorkerStore, owner: str, span: timedelta, waiting: Callable[[Lease], None]
) -> tuple[Lease, float]:
    """The lease, and until when it may be trusted."""
    told = None
    while True:
        asked = trio.current_time()
        lease = await persist(partial(store.acquire, CHAT_LEASE, owner, span))
        if lease is not None:
            return lease, trusted(asked, span)
        holder = await persist(partial(store.lease, CHAT_LEASE))
        if holder is not None and holder.owner != told:
            told = holder.owner
            waiting(holder)
        await trio.sleep(min(LOOK_AGAIN_S, span.total_seconds() / 3))


async def keep(store: WorkerStore, lease: Lease, span: timedelta, scope: trio.CancelScope) -> None:
    while True:
        await trio.sleep(span.total_seconds() / 3)
        asked = trio.current_time()
        if not await renew(store, lease, span):
            scope.cancel()
        scope.deadline = max(scope.deadline, trusted(asked, span))


async def renew(store: WorkerStore, lease: Lease, span: timedelta) -> bool:
    """Whether the lease goes on. While the store stumbles it is asked again; the deadline ends that."""
    while True:
        try:
            return await store.renew(lease, span) is not None
        except StoreError as error:
            if not error.retriable:
                raise
            logger.warning("the chat lease could not be renewed: %s", error)
        await trio.sleep(FIRST_DELAY_S)


async def held_by_another(store: WorkerStore, lease: Lease) -> bool:
    """As far as can be told in a moment."""
    with trio.move_on_after(LET_GO_S):
        try:
            holder = await store.lease(lease.name)
        except StoreError:
            return False
        return holder is not None and holder.token != lease.token
    return False


async def let_go(store: WorkerStore, lease: Lease) -> None:
    try:
        await store.release(lease)
    except StoreError as error:  # it runs out by itself
        logger.info("the chat lease was not released: %s", error)


def trusted(asked: float, span: timedelta) -> float:
    return asked + max(span.total_seconds() - EARLY_S, span.total_seconds() / 2)
