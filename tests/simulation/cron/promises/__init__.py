"""The promises, one file each. All are shown what a write changed, right after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.cron.rows import Step
    from tests.simulation.cron.world import World


class Promise:
    """Looks on, and reports to the world what must not be."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rows = world.rows

    def see(self, step: Step) -> None:
        """Look at what a write changed; `self.rows` is still as it was before."""

    def quiet(self) -> None:
        """From now on nothing goes wrong any more."""

    def end(self) -> None:
        """The quiet hours are over: look at what should have happened by now."""
