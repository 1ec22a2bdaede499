"""How long the event loop was held up: every step of every task is timed, by the clock and by the processor.

On a busy machine another process may take the processor in the middle of a step. The clock then shows it, the time that
this thread was really computing does not. Python's garbage collector also works inside of steps; what it took is told
apart, because it is mended elsewhere than a step that does too much.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter, thread_time
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(slots=True, eq=False)
class Steps(trio.abc.Instrument):
    """The longest step so far, in several ways of looking at it."""

    count: int = 0
    longest_s: float = 0.0
    longest_computing_s: float = 0.0
    longest_besides_s: float = 0.0
    """Computing, but for the garbage collector."""
    longest_collection_s: float = 0.0
    longest_task: str = ""
    _began: tuple[float, float] | None = None
    """None until the first step has begun: the one that it was put up in is not seen whole."""
    _collecting: float = 0.0
    _collected_s: float = 0.0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._collected_s = 0.0
        self._began = (perf_counter(), thread_time())

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if self._began is None:
            return
        computing = thread_time() - self._began[1]
        self.count += 1
        self.longest_s = max(self.longest_s, perf_counter() - self._began[0])
        self.longest_besides_s = max(self.longest_besides_s, computing - self._collected_s)
        if computing > self.longest_computing_s:
            self.longest_computing_s, self.longest_task = computing, task.name

    def collect(self, phase: str, info: dict[str, int]) -> None:
        """What the garbage collector says when it starts and stops, in whichever thread it does."""
        if phase == "start":
            self._collecting = thread_time()
        else:
            took = thread_time() - self._collecting
            self._collected_s += took
            self.longest_collection_s = max(self.longest_collection_s, took)


@contextmanager
def watching_steps() -> Iterator[Steps]:
    """Only while it is measured: it costs something at every step."""
    steps = Steps()
    trio.lowlevel.add_instrument(steps)
    gc.callbacks.append(steps.collect)
    try:
        yield steps
    finally:
        gc.callbacks.remove(steps.collect)
        trio.lowlevel.remove_instrument(steps)
