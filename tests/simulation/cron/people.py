"""What people do to jobs, at random times, through a store that stumbles for them too."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, cast

import trio

from cron.errors import CronError
from cron.jobs import CronJobs, Wish
from cron.phrases import parse_phrase
from gateway.persist import persist
from store.jobs import JobStatus
from tests.simulation.cron.faulty_store import FaultyStore
from tests.simulation.cron.plan import EXPRESSIONS, a_job
from tests.simulation.cron.world import Life

if TYPE_CHECKING:
    from random import Random

    from store.jobs import Job
    from store.protocols import Store
    from tests.simulation.cron.plan import Cast
    from tests.simulation.cron.world import World

DEEDS = {
    "add": 6,
    "edit": 3,
    "reword": 1,
    "pause": 5,
    "pause a while": 1,
    "resume": 7,
    "hint a moment": 3,
    "hint a pace": 2,
    "unhint": 1,
    "run now": 6,
    "cancel": 1,
    "purge": 1,
    "disable": 1,
    "enable": 2,
}


class People:
    def __init__(self, world: World) -> None:
        self._world = world
        self._random: Random = world.random("people")
        self._fired: dict[tuple[str, str], str] = {}
        self.jobs = CronJobs(
            cast("Store", FaultyStore(world, Life("people", 0))),
            world.plan.options,
            now=world.wall,
            new_id=world.new_id,
            persist=persist,
            poke=self._poke,
        )

    async def begin(self) -> None:
        for cast_ in self._world.plan.jobs:
            await self.add(cast_)

    async def act(self) -> None:
        plan, random = self._world.plan, self._random
        moments = sorted(random.uniform(0, plan.busy_s) for _ in range(plan.actions))
        for moment in moments:
            await trio.sleep(max(moment - trio.current_time(), 0))
            (deed,) = random.choices(list(DEEDS), list(DEEDS.values()))
            await self._do(deed)
        await trio.sleep(1)
        for tenant in ("north", "south"):
            await self.jobs.enable_tenant(tenant, True)

    async def add(self, cast_: Cast, *, at_once: bool = False) -> Job:
        when = parse_phrase(cast_.when, now=self._world.wall(), zone=cast_.zone)
        wish = Wish(cast_.tenant, cast_.agent, "work", when, zone=cast_.zone, rules=cast_.rules, at_once=at_once)
        job = await self.jobs.create(wish)
        self._world.tell("people", "added", f"{job.tenant} #{job.id} {cast_.when} {cast_.zone} {cast_.rules}")
        return job

    async def _do(self, deed: str) -> None:
        known = sorted(self._world.rows.jobs)
        if deed == "add" or not known:
            await self.add(a_job(self._random), at_once=self._random.random() < 0.1)
            return
        key = self._random.choice(known)
        self._world.tell("people", deed, f"{key[0]} #{key[1]}")
        try:
            await self._change(deed, *key)
        except CronError as error:
            self._world.tell("people", "refused", f"{error}")

    async def _change(self, deed: str, tenant: str, number: int) -> None:
        random, jobs, now = self._random, self.jobs, self._world.wall()
        if deed == "edit":
            await jobs.edit(tenant, number, when=random.choice(EXPRESSIONS))
        elif deed == "reword":
            await jobs.edit(tenant, number, message="other work", agent=random.choice(("main", "other")))
        elif deed == "pause":
            await jobs.pause(tenant, number)
        elif deed == "pause a while":
            await jobs.pause(tenant, number, until=now + timedelta(minutes=random.randint(1, 60)))
        elif deed == "resume":
            paused = [job for job in self._world.rows.jobs.values() if job.status is JobStatus.PAUSED]
            for job in paused or [self._world.rows.jobs[tenant, number]]:
                await jobs.resume(*job.key)
        elif deed == "hint a moment":
            self._world.hinted[tenant, number] = self._world.hinted.get((tenant, number), 0) + 1
            await jobs.hint(tenant, number, next_at=now + timedelta(seconds=random.randint(1, 1200)))
        elif deed == "hint a pace":
            await jobs.hint(tenant, number, interval=timedelta(minutes=random.randint(1, 40)))
        elif deed == "unhint":
            await jobs.clear_hints(tenant, number)
        elif deed == "run now":
            await self._run_now(tenant, number)
        elif deed in ("cancel", "purge"):
            if deed == "purge":
                self._world.purged.add((tenant, number))
            await jobs.cancel(tenant, number, purge=deed == "purge")
        else:
            await jobs.enable_tenant(tenant, deed == "enable")

    async def _run_now(self, tenant: str, number: int) -> None:
        key = self._random.choice((None, f"key-{number}-{self._random.randint(1, 3)}"))
        trigger = await self.jobs.run_now(tenant, number, key=key)
        if key is None or trigger.id not in self._world.rows.triggers:
            return
        known = self._fired.setdefault((tenant, key), trigger.id)
        if known != trigger.id and known in self._world.rows.triggers:
            self._world.report("P4", f"the key {key} fired {known} and {trigger.id}")
        self._fired[tenant, key] = trigger.id

    def _poke(self) -> None:
        for life in self._world.living[:1]:
            if life.service is not None:
                life.service.poke()
