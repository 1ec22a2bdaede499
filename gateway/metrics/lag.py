"""How late the event loop is: a task asks to be woken every half second and sees how late it was.

While it is late nothing else goes on either: no message is taken in, no stop is heard, no lease renewed. Something
holds the thread, or the machine did not let the process run.

It measures only while somebody looks: a look at the figures or at readiness keeps it going for five minutes, so whoever
asks once a minute has it all, and a gateway that nobody watches is not woken (P13).
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

import trio

from gateway.metrics.figures import Histogram

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger("goclaw.loop")

PERIOD_S = 0.5
"""Whatever holds the loop for longer than this is seen for certain."""
LOOKED_AT_S = 300.0
STALL_S = 5.0
"""So late counts as a stall: it is longer than any wait for a disk or a full collection of garbage."""
REMEMBERED_S = 60.0
BOUNDS_S = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Lag:
    def __init__(self, clock: Callable[[], float] = trio.current_time) -> None:
        self._clock = clock
        self.late_s = Histogram(BOUNDS_S)
        self.stalls = 0
        self.stalled_at = float("-inf")
        """When the last stall was over, by the loop's clock, and how long it was."""
        self.stalled_s = 0.0
        self._latest: deque[tuple[float, float]] = deque()  # when, how late: none behind a later one that is as large
        self._until = float("-inf")
        self._wanted = trio.Event()

    def look(self) -> None:
        """Somebody wants to know, and probably will again."""
        self._until = self._clock() + LOOKED_AT_S
        self._wanted.set()

    def worst_s(self) -> float:
        """The largest of the last minute: not since the last look, so that several may look."""
        self._forget()
        return self._latest[0][1] if self._latest else 0.0

    def since_stall_s(self) -> float:
        """How long ago the last stall was over; infinite without any."""
        return self._clock() - self.stalled_at

    async def run(self) -> None:
        """Measure, for ever; asleep while nobody looks."""
        while True:
            if self._clock() >= self._until:
                self._wanted = trio.Event()
                await self._wanted.wait()
            wanted_at = self._clock() + PERIOD_S
            await trio.sleep_until(wanted_at)
            self.note(self._clock() - wanted_at)

    def note(self, late_s: float) -> None:
        late_s, now = max(late_s, 0.0), self._clock()
        self.late_s.add(late_s)
        while self._latest and self._latest[-1][1] <= late_s:
            self._latest.pop()
        self._latest.append((now, late_s))
        self._forget()
        if late_s >= STALL_S:
            self.stalls += 1
            self.stalled_at, self.stalled_s = now, late_s
            logger.warning(
                "nothing went on for %.1f s: something held the loop, or the process was not let run", late_s
            )

    def _forget(self) -> None:
        while self._latest and self._latest[0][0] < self._clock() - REMEMBERED_S:
            self._latest.popleft()
