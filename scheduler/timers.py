"""One sleeping task for every deadline of the scheduler: debounce windows, run timeouts, runs that will not die.

A deadline that is called off costs nothing later: dead entries are swept out as soon as they outnumber the living.
With nothing to wait for the task sleeps without a deadline, so an idle scheduler never wakes up.
"""

from __future__ import annotations

import heapq
import itertools
import math
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

SWEEP_FROM = 64


class Timer:
    """A deadline that has neither come nor been called off while ``call`` is set."""

    __slots__ = ("call", "when")

    def __init__(self, when: float, call: Callable[[], None]) -> None:
        self.when = when
        self.call: Callable[[], None] | None = call


class Timers:
    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()
        self._dead = 0
        self._scope = trio.CancelScope()
        self._stopped = False

    def __len__(self) -> int:
        """How many deadlines are still to come."""
        return len(self._heap) - self._dead

    def at(self, when: float, call: Callable[[], None]) -> Timer:
        """Call ``call`` at ``when`` on trio's clock. It must not raise."""
        timer = Timer(when, call)
        heapq.heappush(self._heap, (when, next(self._order), timer))
        if when < self._scope.deadline:
            self._scope.deadline = when
        return timer

    def call_off(self, timer: Timer | None) -> None:
        if timer is None or timer.call is None:
            return
        timer.call = None
        if self._stopped:
            return
        self._dead += 1
        if self._dead > SWEEP_FROM and self._dead * 2 > len(self._heap):
            self._sweep()

    def rest(self) -> None:
        """With nothing to wait for, forget when the next wake-up would have been."""
        if len(self) == 0 and self._heap:
            self._sweep()
            self._scope.deadline = math.inf

    async def run(self) -> None:
        while not self._stopped:
            with trio.CancelScope(deadline=self._heap[0][0] if self._heap else math.inf) as self._scope:
                await trio.sleep_forever()
            self._fire(trio.current_time())

    def stop(self) -> None:
        self._stopped = True
        self._heap.clear()
        self._dead = 0
        self._scope.cancel()

    def _fire(self, now: float) -> None:
        while self._heap and self._heap[0][0] <= now:
            timer = heapq.heappop(self._heap)[2]
            if timer.call is None:
                self._dead -= 1
                continue
            call, timer.call = timer.call, None
            call()

    def _sweep(self) -> None:
        self._heap = [entry for entry in self._heap if entry[2].call is not None]
        heapq.heapify(self._heap)
        self._dead = 0
