"""The lives of a worker: each is a service of its own on the same store, and ends gently or not."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, cast

import trio

from cron.errors import SchedulerShutdownError
from cron.service import CronService
from gateway.persist import persist
from tests.simulation.cron.faulty_store import FaultyStore
from tests.simulation.cron.runner import SeededRunner
from tests.simulation.cron.world import Life

if TYPE_CHECKING:
    from store.jobs import Claim
    from store.protocols import Store
    from tests.simulation.cron.plan import Fate
    from tests.simulation.cron.world import World

STOP_WITHIN = timedelta(seconds=20)


async def live(world: World, worker: str, fates: tuple[Fate, ...]) -> None:
    """One life after the other; the last one lasts."""
    async with trio.open_nursery() as nursery:
        for number, fate in enumerate(fates, start=1):
            life = await begin(world, worker, number, nursery)
            await trio.sleep(fate.after_s)
            await end(world, life, fate.how)
            await trio.sleep(fate.down_s)
        await begin(world, worker, len(fates) + 1, nursery)


async def begin(world: World, worker: str, number: int, nursery: trio.Nursery) -> Life:
    life = Life(worker, number)
    world.lives.append(life)
    random = world.random(f"service {life.name}")
    life.service = CronService(
        cast("Store", FaultyStore(world, life)),
        SeededRunner(world, life),
        world.plan.options,
        worker=worker,
        now=world.wall,
        persist=persist,
        tell=Told(world, life),
        new_id=world.new_id,
        random=random.random,
        look_s=world.plan.look_s,
    )
    nursery.start_soon(carry, world, life)
    return life


async def carry(world: World, life: Life) -> None:
    world.tell(life.name, "begins")
    assert life.service is not None
    try:
        with life.everything:
            async with trio.open_nursery() as nursery:
                await nursery.start(life.service.run)
                life.ready_since = trio.current_time()
                world.tell(life.name, "ready")
                world.begun.unpark_all()
    except Exception as error:  # noqa: BLE001 - what ends a living service is a finding, not an accident
        early = life.leaving and life.ready_since is None  # it was told to end before it was ready
        if not life.dead and not early:
            world.report("alive", f"the service of {life.name} ended with {error!r}")
    finally:
        life.ready_since = None
        life.dead = True


async def end(world: World, life: Life, how: str) -> None:
    world.tell(life.name, how)
    life.leaving = True
    if how == "crash":
        life.dead = True
        life.everything.cancel()
    elif how == "cancel":
        life.everything.cancel()
    elif life.service is not None:
        try:
            await life.service.stop(within=STOP_WITHIN)
        except SchedulerShutdownError as error:
            world.tell(life.name, "left over", str(error))
        life.everything.cancel()


class Told:
    """Hears what a service tells; some of it must never be heard."""

    def __init__(self, world: World, life: Life) -> None:
        self._world = world
        self._life = life

    def __call__(self, event: str, *, level: str = "info", claim: Claim | None = None, **facts: object) -> None:
        if self._life.dead:
            return
        about = "" if claim is None else f"{claim.trigger.tenant} #{claim.trigger.job} {claim.trigger.id} "
        said = " ".join(f"{name}={fact}" for name, fact in facts.items())
        self._world.tell(self._life.name, event, f"{about}{said}")
        if event == "dead_schedule":
            self._world.report("P9", f"a schedule was found dead: {said}")
        if event == "settle_refused" or (event == "check_failed" and "StoreUnavailable" not in said):
            self._world.report("alive", f"{event}: {said}")
