"""One simulation of cron: a world played to its end, or to the first broken promise."""

from __future__ import annotations

import logging
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple
from unittest.mock import patch

import trio
from trio._core import _run as trio_internals
from trio.testing import MockClock

import cron.upkeep
from tests.simulation.cron.faulty_store import Crashed
from tests.simulation.cron.lives import live
from tests.simulation.cron.people import People
from tests.simulation.cron.plan import Plan, plan
from tests.simulation.cron.promises.alive import Alive
from tests.simulation.cron.promises.attempts import Attempts
from tests.simulation.cron.promises.punctual import Punctual
from tests.simulation.cron.promises.slots import Slots
from tests.simulation.cron.promises.told import Told
from tests.simulation.cron.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulation.cron.world import Event, Found

PUT_AWAY_S = 1200.0
LAST_WORDS = 40


class Played(NamedTuple):
    """What came of a seed."""

    seed: int
    history: list[Event]
    found: Found | None
    runs: int
    slots: int
    """Slots of cron jobs of which it was checked what became of them."""
    on_time: int
    """Claims of which it was checked that they were on the dot."""

    def __str__(self) -> str:
        if self.found is None:
            return (
                f"seed {self.seed}: all promises held over {len(self.history)} events, {self.runs} runs, "
                f"{self.slots} slots, {self.on_time} claims on the dot"
            )
        shown = self.history[: self.found.after][-LAST_WORDS:]
        return "\n".join(
            [
                f"seed {self.seed} breaks {self.found.promise}: {self.found.why}",
                "",
                *map(str, shown),
                "",
                f"replay it with: python -m tests.simulation.cron {self.seed} --trace",
            ]
        )


def simulate(seed: int) -> Played:
    return play(plan(seed))


def play(what: Plan) -> Played:
    world = World(what)
    slots, punctual = Slots(world), Punctual(world)
    world.promises = (Attempts(world), slots, Alive(world), punctual, Told(world))
    with prepared(world):
        try:
            trio.run(run_world, world, clock=MockClock(autojump_threshold=0))
        except* Crashed:
            pass  # the last words of those who lived when it was over
    return Played(what.seed, world.history, world.found, len(world.seen), slots.checked, punctual.on_time)


async def run_world(world: World) -> None:
    with world.everything:
        people = People(world)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(put_away, world)
            for number, fates in enumerate(world.plan.workers, start=1):
                nursery.start_soon(live, world, f"w{number}", fates)
            await people.begin()
            async with trio.open_nursery() as busy:
                busy.start_soon(people.act)
                busy.start_soon(jump, world)
                busy.start_soon(trio.sleep, world.plan.busy_s)
            await all_up(world)
            world.quiet = True
            world.tell("world", "quiet")
            for promise in world.promises:
                promise.quiet()
            await trio.sleep(world.plan.quiet_s)
            world.rows.put_away()
            for promise in world.promises:
                promise.end()
            world.tell("world", "ends")
            world.over()


async def all_up(world: World) -> None:
    """The last life of each worker has begun."""
    wanted = {f"w{number}.{len(fates) + 1}" for number, fates in enumerate(world.plan.workers, start=1)}
    while not wanted <= {life.name for life in world.living}:
        await world.begun.park()


async def jump(world: World) -> None:
    for one in world.plan.jumps:
        await trio.sleep(one.after_s)
        world.jump(one.span)


async def put_away(world: World) -> None:
    while True:
        await trio.sleep(PUT_AWAY_S)
        world.rows.put_away()


@contextmanager
def prepared(world: World) -> Iterator[None]:
    """The seed decides about the order of tasks; nobody measures the machine or writes logs."""
    logger = logging.getLogger("goclaw")
    state, level = trio_internals._r.getstate(), logger.level
    with ExitStack() as stack:
        stack.enter_context(patch.object(trio_internals, "_ALLOW_DETERMINISTIC_SCHEDULING", True))
        stack.enter_context(patch.object(cron.upkeep, "measured", lambda _: None))
        stack.callback(trio_internals._r.setstate, state)
        stack.callback(logger.setLevel, level)
        trio_internals._r.seed(world.plan.seed)
        logger.setLevel(logging.CRITICAL + 1)
        yield
