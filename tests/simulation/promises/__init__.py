"""The promises, one file each. All are shown what happened right after the step in which it did."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.history import Event


class Promise:
    """Looks on, and reports to the world what must not be. Looks at whatever it cares for."""

    def see(self, place: int, event: Event) -> None:
        """Look at something that happened, at that place of the history."""

    def after_step(self, now: float) -> None:
        """Look at the state of things; comes after all events of a task's step."""

    def end(self) -> None:
        """The quiet period is over: look at what should have happened by now."""
