"""What a user would write without goclaw: a task per message, a lock per session, a limit on how many go at once.

Both keep the order inside a session and the limit, as ours does. Neither can be stopped, asked or observed, drops
nothing, times nothing out, and keeps a lock for every session for ever.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections import defaultdict
from time import perf_counter
from typing import TYPE_CHECKING, Any

import trio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bench.loads import Load

    Handler = Callable[[Any], Awaitable[None]]
    LoopFactory = Callable[[], asyncio.AbstractEventLoop]


def on_asyncio(load: Load, handler: Handler, loop_factory: LoopFactory | None = None) -> float:
    """Seconds from the first message to the end of the last one."""

    async def main() -> float:
        slots = asyncio.Semaphore(load.limit)
        locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

        async def one(session: str, number: int) -> None:
            async with locks[session], slots:
                await handler(number)

        started = perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for number, session in load.messages():
                tasks.create_task(one(session, number))
        return perf_counter() - started

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(main())


def on_trio(load: Load, handler: Handler) -> float:
    """Seconds from the first message to the end of the last one.

    Trio starts the tasks of one batch in either order. So that a session's messages take its lock in theirs, the
    sender pauses after each wave of one message per session; that is a few checkpoints in all, and no task waits.
    """

    async def main() -> float:
        slots = trio.CapacityLimiter(load.limit)
        locks: defaultdict[str, trio.Lock] = defaultdict(trio.Lock)

        async def one(session: str, number: int) -> None:
            async with locks[session], slots:
                await handler(number)

        started = perf_counter()
        async with trio.open_nursery() as tasks:
            for number, session in load.messages():
                if number % load.sessions == 0:
                    await trio.lowlevel.checkpoint()
                tasks.start_soon(one, session, number)
        return perf_counter() - started

    return trio.run(main)


def uvloop_factory() -> LoopFactory | None:
    """The faster event loop that many put under asyncio, if it is installed."""
    if importlib.util.find_spec("uvloop") is None:
        return None
    factory: LoopFactory = importlib.import_module("uvloop").new_event_loop
    return factory


async def asyncio_noop(_: object) -> None:
    pass


async def asyncio_checkpoint(_: object) -> None:
    await asyncio.sleep(0)
