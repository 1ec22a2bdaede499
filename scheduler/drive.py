"""Run one message's coroutine inside its own context, in a task that serves many messages.

A fresh trio task per message would give each its own ``contextvars`` for free and cost more than everything else
here together. Instead a worker task steps the coroutine by hand: each step runs in the message's context, and what
the coroutine yields to trio is yielded on by the worker.

    worker task ──step──▶ context.run(coroutine.send)  ──trap──▶ trio
         ▲                                                        │
         └───────────── value or exception (Cancelled) ◀──────────┘

A coroutine that ends within its first step needs none of this: the worker takes that step itself and calls `drive`
only with the first trap in hand.
Guarded by tests/unit/scheduler/test_context.py.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator
    from contextvars import Context

    Coro = Coroutine[Any, Any, Any]


def as_coroutine(awaitable: Awaitable[Any]) -> Coro:
    """A handler may be any callable that returns an awaitable."""
    if isinstance(awaitable, types.CoroutineType):
        return awaitable

    async def wait_for_it() -> Any:
        return await awaitable

    return wait_for_it()


@types.coroutine
def drive(context: Context, coroutine: Coro, trap: Any) -> Generator[Any, Any, Any]:
    """Carry a coroutine that has just yielded ``trap`` to its end, every step in ``context``."""
    run = context.run
    step: Callable[[Any], Any]
    given: Any
    try:
        while True:
            try:
                given = yield trap
                step = coroutine.send
            except BaseException as thrown:  # noqa: BLE001
                # Not handled here but handed to the coroutine, outside of this except block: while it handles one
                # exception another may be thrown in, and that one must reach it too.
                given = thrown
                step = coroutine.throw
            try:
                trap = run(step, given)
            except StopIteration as stop:
                return stop.value
    finally:
        given = None  # an exception kept here would keep its own traceback, and this frame, alive
        coroutine.close()
