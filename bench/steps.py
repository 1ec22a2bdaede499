"""How long the event loop was held up: every step of every task is timed, by the clock and by the processor.

On a busy machine another process may take the processor in the middle of a step. The clock then shows it, the time that
this thread was really computing does not.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter, thread_time
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(slots=True, eq=False)
class Steps(trio.abc.Instrument):
    """The longest step so far."""

    count: int = 0
    longest_s: float = 0.0
    longest_computing_s: float = 0.0
    longest_task: str = ""
    _began: tuple[float, float] | None = None
    """None until the first step has begun: the one that it was put up in is not seen whole."""

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._began = (perf_counter(), thread_time())

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if self._began is None:
            return
        computing = thread_time() - self._began[1]
        self.count += 1
        self.longest_s = max(self.longest_s, perf_counter() - self._began[0])
        if computing > self.longest_computing_s:
            self.longest_computing_s, self.longest_task = computing, task.name


@contextmanager
def watching_steps() -> Iterator[Steps]:
    """Only while it is measured: it costs something at every step."""
    steps = Steps()
    trio.lowlevel.add_instrument(steps)
    try:
        yield steps
    finally:
        trio.lowlevel.remove_instrument(steps)
