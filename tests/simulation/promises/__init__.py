"""The promises, one file each. Every event is shown to all of them right after the step in which it happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tests.simulation.history import Event


class Promise(Protocol):
    def see(self, place: int, event: Event) -> None:
        """Look at what happened; report what must not."""

    def end(self) -> None:
        """The quiet period is over: look at what should have happened by now."""
