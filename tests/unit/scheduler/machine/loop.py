"""Trio on the thread of the caller, moving only while the caller wants it to.

A guest run hands its ticks to `deque.append`; `run` works them off until its own command has ended. Between two
commands nothing moves at all, there is no second thread and no real clock, so an example plays the same every time
(importing hypothesis makes trio's choice among runnable tasks reproducible).

    caller ──run(command)──▶ tick, tick, tick … ──▶ command done ──▶ result or exception
"""

from __future__ import annotations

import gc
import warnings
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")
MOST_TICKS = 20_000
LONG_S = 10_000.0


class NeverRests(AssertionError):
    """The tasks keep each other busy without end."""


class Loop:
    """One guest run. ``nursery`` belongs to the caller; what is left in it when the loop ends is cancelled."""

    nursery: trio.Nursery

    def __init__(self) -> None:
        self.clock = MockClock()
        self._ticks: deque[Callable[[], object]] = deque()
        self._command: Callable[[], Awaitable[None]] | None = None
        self._stopped = False
        self._over = False
        trio.lowlevel.start_guest_run(
            self._serve,
            run_sync_soon_threadsafe=self._ticks.append,
            done_callback=self._done,
            clock=self.clock,
        )

    def run(self, command: Callable[[], Awaitable[T]]) -> T:
        """Have ``command`` done inside trio. It may wait for tasks to block, never for time or input."""
        results: list[T] = []
        errors: list[Exception] = []

        async def carry_out() -> None:
            try:
                results.append(await command())
            except Exception as error:  # noqa: BLE001 - raised again below, where the caller can see it
                errors.append(error)

        self._command = carry_out
        self._tick_until(lambda: bool(results or errors))
        if errors:
            raise errors[0]
        return results[0]

    def end(self) -> None:
        """Let the run end. One that cannot, because a task hangs, is thrown away."""
        if self._over:
            return
        if self.run(self._emptied):
            self._stopped = True
            self._tick_until(lambda: self._over)
        else:
            self._throw_away()

    async def _emptied(self) -> bool:
        self.nursery.cancel_scope.cancel()
        for _ in range(50):
            await wait_all_tasks_blocked()
            if not self.nursery.child_tasks:
                break
            self.clock.jump(LONG_S)
        return not self.nursery.child_tasks

    def _tick_until(self, done: Callable[[], bool]) -> None:
        for _ in range(MOST_TICKS):
            if done():
                return
            self._ticks.popleft()()
        self._throw_away()
        raise NeverRests(f"not at rest after {MOST_TICKS} rounds of the event loop")

    def _throw_away(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._over = True
            self._ticks.clear()
            gc.collect()

    async def _serve(self) -> None:
        async with trio.open_nursery() as self.nursery:
            with trio.CancelScope(shield=True):
                while not self._stopped:
                    command, self._command = self._command, None
                    await (trio.lowlevel.checkpoint if command is None else command)()

    def _done(self, result: Any) -> None:
        self._over = True
        result.unwrap()
