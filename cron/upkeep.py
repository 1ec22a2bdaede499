"""What keeps schedules alive beside the loop: signs of life, orphans, and jobs without a trigger.

every minute        a beat of this worker and of each of its runs, and what the machine looks like
at the start, and   runs whose lease is over and whose worker is silent are settled as lost
every five minutes  active jobs that have no trigger get one, loudly: it should never happen
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import psutil
import trio

from cron.outcome import TENANT_DISABLED
from cron.plans import brought_back, revived, woken
from store.jobs import JobStatus
from store.protocols import StoreError
from store.records import Reading, WorkerStatus

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from cron.options import Options
    from cron.run import Persist, Runs
    from cron.telling import Tell
    from store.jobs import Job
    from store.protocols import Store

AT_A_TIME = 100
MEGABYTE = 1 << 20


class Upkeep:
    def __init__(
        self,
        store: Store,
        runs: Runs,
        options: Options,
        *,
        worker: str,
        persist: Persist,
        tell: Tell,
        new_id: Callable[[], str],
        lanes: Callable[[], Mapping[str, object]],
    ) -> None:
        self._store = store
        self._cron = store.cron
        self._runs = runs
        self._options = options
        self._worker = worker
        self._persist = persist
        self._tell = tell
        self._new_id = new_id
        self._lanes = lanes

    async def first(self) -> None:
        """Before anything is claimed."""
        await self._persist(self.beat)
        await self._persist(self.look_around)

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._every, self._options.beat.total_seconds(), self.beat)
            nursery.start_soon(self._every, self._options.upkeep.total_seconds(), self.look_around)

    async def leave(self) -> None:
        """The worker ends in good order."""
        try:
            await self._store.leave(self._worker)
        except StoreError as error:
            self._tell("leaving_failed", level="warning", error=str(error))

    async def beat(self) -> None:
        held = list(self._runs.holding.values())
        status = WorkerStatus.BUSY if held else WorkerStatus.IDLE
        await self._store.beat(self._worker, status, context={"runs": len(held)})
        for one in held:
            if one.run is not None:
                await self._store.beat(self._worker, WorkerStatus.BUSY, run=one.run.id)
        await self._store.record(await self._reading(len(held)))

    async def look_around(self) -> None:
        await self.settle_orphans()
        await self.revive()
        await self.wake()

    async def settle_orphans(self) -> None:
        silent = self._options.beat * self._options.missed_beats
        while True:
            claims = await self._cron.claim_orphans(self._worker, AT_A_TIME, self._options.lease, silent)
            for claim in claims:
                self._tell("orphan_found", level="warning", claim=claim)
                await self._runs.settle_lost(claim)
            if len(claims) < AT_A_TIME:
                return

    async def revive(self) -> None:
        while dead := await self._cron.unplanned(AT_A_TIME):
            for job in dead:
                after = await self._cron.change_job(job.tenant, job.id, revived(self._new_id))
                planned = after is not None and after.next_at is not None
                self._tell("dead_schedule", level="error", tenant=job.tenant, schedule_id=job.id, revived=planned)
            if len(dead) < AT_A_TIME:
                return

    async def wake(self) -> None:
        """Jobs that were paused with their tenant go on with it, also if whoever enabled it died over that."""
        for tenant in await self._store.tenants():
            async for job in self._jobs(tenant.id, JobStatus.PAUSED):
                if tenant.enabled and job.reason == TENANT_DISABLED:
                    await self._cron.change_job(*job.key, woken(self._new_id))

    async def bring_back(self) -> None:
        """After the clock was set back."""
        for tenant in await self._store.tenants():
            async for job in self._jobs(tenant.id, JobStatus.ACTIVE):
                if job.spec.timing.kind == "every":
                    await self._cron.change_job(*job.key, brought_back(self._new_id))

    async def _jobs(self, tenant: str, status: JobStatus) -> AsyncIterator[Job]:
        after = 0
        while page := await self._cron.jobs(tenant, statuses=(status,), after=after, limit=AT_A_TIME):
            for job in page:
                yield job
            after = page[-1].id

    async def _every(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            await trio.sleep(seconds)
            try:
                await self._persist(work)
            except StoreError as error:
                self._tell("upkeep_failed", level="error", error=str(error))

    async def _reading(self, runs: int) -> Reading:
        workers = await self._store.workers()
        return Reading(
            self._worker,
            active_workers=len(workers),
            active_runs=runs,
            cpu_percent=measured(psutil.cpu_percent),
            memory_mb=measured(used_memory),
            context={"lanes": dict(self._lanes())},
        )


def measured(figure: Callable[[], float]) -> float | None:
    """A figure that cannot be read is left out; it never stops anything."""
    try:
        return float(figure())
    except Exception:  # noqa: BLE001 - whatever the system says, a figure is worth nothing compared with the beat
        return None


def used_memory() -> float:
    return float(psutil.virtual_memory().used / MEGABYTE)
