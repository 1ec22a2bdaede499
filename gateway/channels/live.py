"""Work in progress, kept apart by turn, and passing words: what stands between the conversation and the input line.

Filled by the gateway's thread and drawn by the terminal's own; a lock keeps the two apart. Of a turn's text only the
end is kept, for no more of it is ever seen.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

from rich.cells import cell_len, chop_cells

from gateway.channels.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KEPT = 8_000  # characters of a turn
HINT_S = 6.0
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
STEP_S = 0.1
MOST_LINES = 8

Drawn = tuple[str, str]
"""A style and a text, as prompt_toolkit has them."""


@dataclass(slots=True)
class Growing:
    name: str
    begun: float
    text: str = ""


@dataclass(slots=True)
class Hint:
    text: str
    until: float


@dataclass(slots=True)
class Live:
    now: Callable[[], float] = monotonic
    _turns: dict[str, Growing] = field(default_factory=dict)
    _hints: deque[Hint] = field(default_factory=lambda: deque(maxlen=2))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def show(self, turn: str, name: str, text: str) -> None:
        with self._lock:
            growing = self._turns.setdefault(turn, Growing(name, self.now()))
            growing.text = (growing.text + printable(text))[-KEPT:]

    def clear(self, turn: str) -> None:
        with self._lock:
            self._turns.pop(turn, None)

    def hint(self, text: str) -> None:
        with self._lock:
            self._hints.append(Hint(" ".join(printable(text).split()), self.now() + HINT_S))

    def answered(self, turn: str) -> None:
        """An answer takes the place of the turn's work, and of whatever was said in passing."""
        with self._lock:
            self._turns.pop(turn, None)
            self._hints.clear()

    @property
    def any(self) -> bool:
        with self._lock:
            self._forget()
            return bool(self._turns or self._hints)

    def drawn(self, width: int, height: int) -> list[Drawn]:
        """At most ``height`` lines of at most ``width`` columns, each with its end."""
        with self._lock:
            self._forget()
            lines = [*self._lines(max(width, 4), max(height - len(self._hints), 1))]
            lines += [("class:hint", hint.text) for hint in self._hints]
        # What takes no room at all is cut into no pieces.
        cut = [(style, (chop_cells(text, max(width, 4)) or [""])[0]) for style, text in lines[-max(height, 1) :]]
        return [(style, f"{text}\n") for style, text in cut]

    def _forget(self) -> None:
        while self._hints and self._hints[0].until <= self.now():
            self._hints.popleft()

    def _lines(self, width: int, height: int) -> Iterator[Drawn]:
        if len(self._turns) > height:
            yield "class:status", f"{self._spinner()} {len(self._turns)} at work"
            return
        for growing in self._turns.values():
            seconds = int(self.now() - growing.begun)
            yield "class:status", f"{self._spinner()} {growing.name} {seconds} s"
            room = min(height // len(self._turns) - 1, MOST_LINES)
            if room > 0:
                yield from (("class:growing", line) for line in tail(growing.text, width, room))

    def _spinner(self) -> str:
        return SPINNER[int(self.now() / STEP_S) % len(SPINNER)]


def tail(text: str, width: int, count: int) -> list[str]:
    """The last lines of a text as a terminal of so many columns breaks them, blank ones at the end left out."""
    lines: list[str] = []
    for line in reversed(text.rstrip().expandtabs().split("\n")):
        lines = [*wrapped(line, width), *lines]
        if len(lines) >= count:
            break
    return lines[-count:] if lines != [""] else []


def wrapped(line: str, width: int) -> list[str]:
    """Broken at blanks where there are some, and never within a wide character."""
    lines, current = [], ""
    for word in line.split(" "):
        longer = f"{current} {word}" if current else word
        if cell_len(longer) <= width:
            current = longer
            continue
        if current:
            lines.append(current)
        *full, current = chop_cells(word, width) or [""]
        lines += full
    return [*lines, current]
