"""One simulation: a world played to its end, or to the first broken promise.

Trio runs here as a guest of a loop that only counts: a world that cannot end, because tasks hang that nobody can
cancel, is thrown away where it stands.
"""

from __future__ import annotations

import gc
import logging
import sys
import warnings
from collections import deque
from contextlib import ExitStack, contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

import trio
from trio._core import _run as trio_internals
from trio.testing import MockClock

import gateway.app
from scheduler import Scheduler
from tests.simulation import people
from tests.simulation.history import What
from tests.simulation.ledger import Ledger
from tests.simulation.lives import Process, Watcher
from tests.simulation.plan import plan
from tests.simulation.promises.ends import Ends
from tests.simulation.promises.limits import Limits
from tests.simulation.promises.order import Order
from tests.simulation.promises.progress import Progress
from tests.simulation.promises.stops import Stops
from tests.simulation.promises.swiftness import Swiftness
from tests.simulation.seeded_agent import LONGEST_DEAFNESS_S
from tests.simulation.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.simulation.history import Event, Found
    from tests.simulation.promises import Promise

QUIET_S = 4 * 3600.0
FOR_EVER_S = 1e7
MOST_IDLE_TICKS = 1000
LAST_WORDS = 30


class Played(NamedTuple):
    """What came of a seed."""

    seed: int
    history: list[Event]
    found: Found | None

    def __str__(self) -> str:
        if self.found is None:
            return f"seed {self.seed}: all promises held over {len(self.history)} events"
        shown = self.history[: self.found.after][-LAST_WORDS:]
        return "\n".join(
            [
                f"seed {self.seed} breaks {self.found.promise}: {self.found.why}",
                "",
                *map(str, shown),
                "",
                f"replay it with: make simulate SEED={self.seed}",
            ]
        )


def simulate(seed: int) -> Played:
    world = World(plan(seed))
    with prepared(world):
        stuck = play(world)
    played = Played(seed, world.history, world.found)
    if stuck:
        del world
        throw_away()
    return played


class Look(trio.abc.Instrument):
    """Shows the promises what happened, after every step of every task."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._ledger = Ledger()
        self._seen = 0
        self._promises: tuple[Promise, ...] = (
            Limits(world),
            Progress(world),
            Order(world, self._ledger),
            Stops(world, self._ledger),
            Swiftness(world, self._ledger),
            Ends(world, self._ledger),
        )
        self.broken: Exception | None = None

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if self.broken is None and self._world.found is None:
            try:
                self._look()
            except Exception as error:  # noqa: BLE001 - trio would only log it; the simulation raises it
                self.broken = error
            if self._world.found is not None or self.broken is not None:
                self._world.everything.cancel()
        self._world.step += 1

    def end(self) -> None:
        self._look()
        for promise in self._promises:
            promise.end()

    def _look(self) -> None:
        history = self._world.history
        if self._seen < len(history):
            history[self._seen :] = in_order(history[self._seen :])
        while self._seen < len(history) and self._world.found is None:
            event = history[self._seen]
            self._ledger.see(self._seen, event)
            for promise in self._promises:
                promise.see(self._seen, event)
            self._seen += 1
        now = trio.current_time()
        for promise in self._promises:
            promise.after_step(now)


def in_order(events: list[Event]) -> list[Event]:
    """Helpers that are cancelled together have no order among themselves: give them one."""
    ordered: list[Event] = []
    for helpers, together in groupby(events, key=ends_a_helper):
        block = list(together)
        ordered += sorted(block) if helpers else block
    return ordered


def ends_a_helper(event: Event) -> bool:
    return event.session.startswith("sub:") and event.what in (What.CANCELLING, What.STUCK, What.FENCED, What.ENDED)


def play(world: World) -> bool:
    """Tick until the world has ended. True if it could not: then it is left standing."""
    look = Look(world)
    ticks: deque[Callable[[], object]] = deque()
    results: list[Any] = []
    trio.lowlevel.start_guest_run(
        live, world, look,
        run_sync_soon_threadsafe=ticks.append,
        done_callback=results.append,
        clock=MockClock(autojump_threshold=0),
        instruments=[look],
    )  # fmt: skip
    step, still = 0, 0
    while not results and still < MOST_IDLE_TICKS:
        ticks.popleft()()
        step, still = world.step, still + 1 if step == world.step else 0
    if look.broken is not None:
        raise look.broken
    if not results:
        world.report("P8", "tasks hang that nobody can cancel")
    elif world.found is None:
        results[0].unwrap()
    return not results


async def live(world: World, look: Look) -> None:
    async with trio.open_nursery() as nursery:
        world.everything = nursery.cancel_scope
        nursery.start_soon(watch, world)
        async with trio.open_nursery() as lives:
            await run_lives(world, look, lives)
        nursery.cancel_scope.cancel()


async def watch(world: World) -> None:
    """Time leaps over everything that nobody waits for; it comes here only when nobody waits for anything."""
    await trio.sleep(FOR_EVER_S)
    world.report("P8", "everything waits for something that will never come")
    world.everything.cancel()


async def run_lives(world: World, look: Look, nursery: trio.Nursery) -> None:
    async with trio.open_nursery() as writers:
        writers.start_soon(people.write, world)
        writers.start_soon(resize, world)
        for fate in world.plan.fates:
            await Process(world, nursery).end(fate)
        process = Process(world, nursery)
    _, opened = await world.reachable()
    with trio.move_on_after(QUIET_S) as patience:
        await opened.drained()
        await trio.sleep(2 * LONGEST_DEAFNESS_S)  # who was fenced keeps a lane's slot for as long as it lives
        await opened.drained()
    if patience.cancelled_caught:
        world.report("P8", f"after {QUIET_S:g} quiet seconds something still waits or runs")
    look.end()
    await process.close()


async def resize(world: World) -> None:
    """Change the lanes while they are in use."""
    for change in world.plan.resizes:
        await trio.sleep(change.after_s)
        life = world.life
        if life.scheduler is not None and not life.dead:
            world.tell(What.RESIZED, life, text=change.lane, detail=str(change.limit))
            life.scheduler.lanes.resize(change.lane, change.limit)


@contextmanager
def prepared(world: World) -> Iterator[None]:
    """The seed decides about the order of tasks; the scheduler is watched; nobody writes logs."""
    watcher, logger = Watcher(world), logging.getLogger("goclaw")
    state, level = trio_internals._r.getstate(), logger.level
    with ExitStack() as stack:
        stack.enter_context(patch.object(trio_internals, "_ALLOW_DETERMINISTIC_SCHEDULING", True))
        stack.enter_context(patch.object(gateway.app, "open_scheduler", watcher.opener()))
        stack.enter_context(patch.object(Scheduler, "schedule", watcher.scheduling(Scheduler.schedule)))
        stack.callback(trio_internals._r.setstate, state)
        stack.callback(logger.setLevel, level)
        trio_internals._r.seed(world.plan.seed)
        logger.setLevel(logging.CRITICAL + 1)
        yield


def throw_away() -> None:
    """What is left of a world that could not end complains as it goes."""
    with warnings.catch_warnings(), patch.object(sys, "unraisablehook", lambda _: None):
        warnings.simplefilter("ignore")
        gc.collect()
