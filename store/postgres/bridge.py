"""One asyncio event loop in a thread of its own, called from trio: the only place where the two meet.

    trio task                      event-loop thread
    await bridge.run(f, x)  ────▶  a task runs f(x)
       │ cancelled?         ────▶  the task is cancelled
       ▼                    ◀────  it has really ended

`run` returns only when the task over there has ended, so that nothing goes on behind the caller's back and a database
connection is sane again. If the caller was cancelled meanwhile `trio.Cancelled` is raised; if the task had its value in
spite of that, the value is returned. A burst of calls wakes the other side once. The thread ends with the block; one
that cannot come to its end is given up after a while, so that no shutdown hangs.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

import outcome
import trio
import uvloop

from store.protocols import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

GOODBYE_S = 5.0
"""So long the thread is waited for. An event loop may wait for ever for a connection that was left open."""

log = logging.getLogger(__name__)


class Bridge:
    """Made by `open_bridge`; its verbs are for the trio thread, but for `tell`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._there = _Steps(loop.call_soon_threadsafe)
        self._back = _Steps(trio.lowlevel.current_trio_token().run_sync_soon)
        self._closed = False

    async def run(self, work: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
        """What ``work(*args)`` returns or raises, run as a task of the event loop."""
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._closed:
            raise StoreUnavailable("the store is closed: nothing was changed", retriable=False)
        call = _Call(self, _started(work, args))
        self.post(call.start)
        result: T = await call.end()
        return result

    def post(self, step: Callable[[], None]) -> None:
        """Have it called on the event loop; steps keep their order. When that is closed there is nothing left to do."""
        self._there.add(step)

    def tell(self, step: Callable[[], None]) -> None:
        """Have it called in the trio thread; for what happens on the event loop."""
        self._back.add(step)

    def close(self) -> None:
        """Whoever was taken before this is started first, so that it is there to be cancelled and waited for."""
        self._closed = True
        self.post(self._loop.stop)


class _Steps:
    """What another thread is to call, in order; a burst wakes it once.

    Whoever adds appends first and looks at ``woken`` then; the other side lowers ``woken`` first and looks at the queue
    then. So of a step that is added meanwhile either the other side sees it, or its adder sees that it must wake again.
    To be woken and find nothing is no harm.
    """

    def __init__(self, wake: Callable[[Callable[[], None]], object]) -> None:
        self.wake = wake
        self.woken = False
        self.queue: deque[Callable[[], None]] = deque()

    def add(self, step: Callable[[], None]) -> None:
        self.queue.append(step)
        if not self.woken:
            self.ring()

    def ring(self) -> None:
        self.woken = True
        with suppress(RuntimeError):  # the other side has ended, and with it everything that was under way there
            self.wake(self.call_all)

    def call_all(self) -> None:
        """A step that raises is reported by the loop that called us; those behind it are called in another round."""
        self.woken = False
        while self.queue:
            step = self.queue.popleft()
            try:
                step()
            except BaseException:
                self.ring()
                raise


class _Call:
    """One task over there and one that waits for it here."""

    def __init__(self, bridge: Bridge, work: Any) -> None:
        self.bridge = bridge
        self.work = work
        self.waiter = trio.lowlevel.current_task()
        self.raise_cancel: Callable[[], Any] | None = None
        self.task: asyncio.Task[Any] | None = None

    async def end(self) -> Any:
        """Its value; without one, a caller who was cancelled meanwhile hears of that and of nothing else."""
        result: outcome.Outcome[Any] = await trio.lowlevel.wait_task_rescheduled(self.abort)
        if isinstance(result, outcome.Error):
            if self.raise_cancel is not None:
                self.raise_cancel()
            if isinstance(result.error, asyncio.CancelledError):
                raise StoreUnavailable("the store was closed before this was done: open it and try again")
        return result.unwrap()

    def abort(self, raise_cancel: Callable[[], Any]) -> trio.lowlevel.Abort:
        """Wanted here; it is granted when the task over there has ended."""
        self.raise_cancel = raise_cancel
        self.bridge.post(self.cancel)
        return trio.lowlevel.Abort.FAILED

    # ── on the event loop ────────────────────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        self.task = asyncio.get_running_loop().create_task(self.work)
        self.task.add_done_callback(self.done)

    def cancel(self) -> None:
        if self.task is not None:
            self.task.cancel()

    def done(self, task: asyncio.Task[Any]) -> None:
        result: outcome.Outcome[Any] = outcome.Error(asyncio.CancelledError())
        if not task.cancelled():
            result = outcome.capture(task.result)
        self.bridge.tell(lambda: trio.lowlevel.reschedule(self.waiter, outcome.Value(result)))


async def _started(work: Callable[[*Ts], Awaitable[T]], args: tuple[*Ts]) -> T:
    return await work(*args)


@asynccontextmanager
async def open_bridge() -> AsyncIterator[Bridge]:
    """An event loop for the time of the block. What is left on it at the end is cancelled and waited for."""
    loop = uvloop.new_event_loop()
    bridge = Bridge(loop)
    thread = threading.Thread(target=_live, args=(loop,), name="store-bridge", daemon=True)
    thread.start()
    try:
        yield bridge
    finally:
        bridge.close()
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(thread.join, GOODBYE_S)
        if thread.is_alive():  # a daemon: it does not outlive the process
            log.error("the store's event loop has not ended after %g seconds: it is left behind", GOODBYE_S)


def _live(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        loop.run_until_complete(_wind_up())
    finally:
        asyncio.set_event_loop(None)
        loop.close()


async def _wind_up() -> None:
    """A task that is cancelled may begin another one to clean up, so once is not enough."""
    while left := asyncio.all_tasks() - {asyncio.current_task()}:
        for task in left:
            task.cancel()
        await asyncio.wait(left)
    await asyncio.get_running_loop().shutdown_asyncgens()
    await asyncio.get_running_loop().shutdown_default_executor()
