"""What must not be given up because the other side stumbles: tried again, slower each time, until it succeeds.

Every verb of the store may be repeated after a `StoreError`, so repeating is always safe. Cancelling ends it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeVar

import trio

from store.protocols import StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from gateway.protocols import ChannelError

logger = logging.getLogger("goclaw.persist")

FIRST_DELAY_S = 0.1
LONGEST_DELAY_S = 5.0

Answer = TypeVar("Answer")


class GivenUp(Exception):
    """The process ends. What the store has not taken stays as it is there, for the next start."""


async def persist(verb: Callable[[], Awaitable[Answer]]) -> Answer:
    """Have the store do it, however often it takes."""
    return await insist(verb, StoreError)


async def insist(attempt: Callable[[], Awaitable[Answer]], expected: type[StoreError] | type[ChannelError]) -> Answer:
    """Repeat after retriable errors of the expected kind; all others are raised."""
    delay_s = FIRST_DELAY_S
    while True:
        try:
            return await attempt()
        except expected as error:
            if not error.retriable:
                raise
            logger.warning("%s; trying again in %g s", error, delay_s)
        await trio.sleep(delay_s)
        delay_s = min(delay_s * 2, LONGEST_DELAY_S)
