"""The world that one simulation of cron takes place in: its clock, its store, its history. Little logic of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import trio

from store.cron_protocol import DUE
from store.memory import MemoryStore
from tests.simulation.cron.rows import Rows
from tests.unit.cron.world import WallClock

if TYPE_CHECKING:
    from datetime import timedelta

    from cron.service import CronService
    from tests.simulation.cron.plan import Plan
    from tests.simulation.cron.promises import Promise

MOST_EVENTS = 100_000
"""And one for each second."""


class Event(NamedTuple):
    at: float
    wall: str
    who: str
    what: str
    detail: str

    def __str__(self) -> str:
        return f"{self.at:11.3f} {self.wall} {self.who:<6} {self.what:<12} {self.detail}"


class Found(NamedTuple):
    """A broken promise."""

    promise: str
    why: str
    after: int
    """How many events had happened."""


class Seen(NamedTuple):
    """What the runner saw of one attempt."""

    run: str
    trigger: str
    job: tuple[str, int]
    began: float
    ended: float | None
    how: str


@dataclass(eq=False, slots=True)
class Life:
    """A worker from one start to its end. A dead one reaches the store no more."""

    worker: str
    number: int
    dead: bool = False
    leaving: bool = False
    service: CronService | None = None
    ready_since: float | None = None
    words: list[trio.MemorySendChannel[str]] = field(default_factory=list)
    everything: trio.CancelScope = field(default_factory=trio.CancelScope)

    @property
    def name(self) -> str:
        return f"{self.worker}.{self.number}"


class World:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.wall = WallClock(plan.beginning)
        self.store = MemoryStore(self.wall, ("north", "south"))
        self.history: list[Event] = []
        self.found: Found | None = None
        self.lives: list[Life] = []
        self.seen: dict[str, Seen] = {}
        self.going_on: dict[str, tuple[str, int]] = {}
        """Runs that are carried out now, with their jobs."""
        self.rows = Rows(self)
        self.promises: tuple[Promise, ...] = ()
        self.everything = trio.CancelScope()
        self.quiet = False
        """Nothing goes wrong any more and nobody acts."""
        self.troubled_at = self.jumped_at = float("-inf")
        """When the store last misbehaved, and when the clock last jumped."""
        self.purged: set[tuple[str, int]] = set()
        self.hinted: dict[tuple[str, int], int] = {}
        """How often somebody proposed a next run."""
        self.begun = trio.lowlevel.ParkingLot()
        """Who waits for a life to begin."""
        self._numbers = count(1)

    def random(self, about: str) -> Random:
        return Random(f"{self.plan.seed} {about}")

    def new_id(self) -> str:
        return f"id-{next(self._numbers):07}"

    def tell(self, who: str, what: str, detail: str = "") -> None:
        at = trio.current_time() if trio.lowlevel.in_trio_run() else 0.0
        self.history.append(Event(at, f"{self.wall():%m-%d %H:%M:%S}", who, what, detail))
        if len(self.history) > MOST_EVENTS + self.plan.busy_s:
            self.report("P13", "a storm: far too much happens")

    def report(self, promise: str, why: str) -> None:
        """Keep the first broken promise; the simulation ends there."""
        if self.found is None:
            self.found = Found(promise, why, len(self.history))
            self.over()

    def over(self) -> None:
        """Nobody says or writes anything any more."""
        for life in self.lives:
            life.dead = True
        self.everything.cancel()

    def trouble(self, who: str, what: str) -> None:
        self.troubled_at = trio.current_time()
        self.tell(who, "trouble", what)

    def jump(self, span: timedelta) -> None:
        self.wall.jump(span)
        self.jumped_at = trio.current_time()
        self.tell("clock", "jumped", f"{span.total_seconds():+g} s")

    def calm_since(self, moment: float) -> bool:
        """Whether neither the store nor the clock misbehaved from then on."""
        return self.troubled_at < moment and self.jumped_at < moment

    def spread(self, word: str = DUE, but: Life | None = None) -> None:
        """Tell everybody else who listens to the store."""
        for life in self.lives:
            if life is not but and not life.dead:
                for words in life.words:
                    try:
                        words.send_nowait(word)
                    except (trio.WouldBlock, trio.BrokenResourceError, trio.ClosedResourceError):
                        continue  # words wait there already, or nobody listens any more

    @property
    def living(self) -> list[Life]:
        return [life for life in self.lives if life.ready_since is not None and not life.dead]
