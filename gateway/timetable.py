"""Cron inside a gateway: which parts it is made of, and that it goes on whatever happens to it (`keep_running`)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from random import SystemRandom
from typing import TYPE_CHECKING

import trio
from uuid_utils import uuid7

from cron import report
from cron.errors import SchedulerShutdownError
from cron.jobs import CronJobs
from cron.options import Options
from cron.service import CronService
from gateway.persist import persist
from gateway.plain import counted
from gateway.supervisor import keep_running, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from cron.run import Runner
    from cron.telling import Tell
    from gateway.settings import Settings
    from store.protocols import Store
    from store.records import SessionKey

logger = logging.getLogger("goclaw.cron")

NEXT_SHOWN = 3
LOOKED_AT = 1_000


def new_id() -> str:
    return str(uuid7())


@dataclass(frozen=True, slots=True)
class CronParts:
    """What cron needs besides a runner: its store, the name that it works under, and what time and chance are."""

    store: Store
    worker: str
    now: Callable[[], datetime]
    tell: Tell
    options: Options
    new_id: Callable[[], str] = new_id
    random: Callable[[], float] = SystemRandom().random


class Timetable:
    """Cron at work: jobs to be asked for, and a service that fires them."""

    def __init__(
        self,
        parts: CronParts,
        runner: Runner,
        settled: Callable[[], None],
        lanes: Callable[[], Mapping[str, object]] = dict,
    ) -> None:
        self.now = parts.now
        self.store = parts.store
        self._tell = parts.tell
        self.service = CronService(
            parts.store,
            runner,
            parts.options,
            worker=parts.worker,
            now=parts.now,
            persist=persist,
            tell=parts.tell,
            new_id=parts.new_id,
            random=parts.random,
            settled=settled,
            lanes=lanes,
        )
        self.jobs = CronJobs(
            parts.store, parts.options, now=parts.now, new_id=parts.new_id, persist=persist, poke=self.service.poke
        )
        self.left = trio.Event()
        """It was told to stop."""

    async def run(self) -> None:
        """Until stopped, where no supervisor looks after it."""
        await keep_running(self.service.run, self.failed, left=self.left)

    def failed(self, error: Exception, again_in_s: float) -> None:
        self._tell("service_failed", level="error", error=plain(error), again_in_s=again_in_s)
        logger.info("how cron failed", exc_info=error)

    async def zone_of(self, session: SessionKey | None) -> str:
        """The zone that was set for a conversation; empty if none was."""
        kept = None if session is None else await persist(partial(self.store.session, session))
        return "" if kept is None else kept.standing.policy.zone or ""

    async def next_fires(self, tenant: str, count: int = NEXT_SHOWN) -> tuple[str, ...]:
        """The tenant's next jobs, in words."""
        jobs = await self.jobs.list(tenant, limit=LOOKED_AT)
        planned = sorted((job for job in jobs if job.next_at is not None), key=lambda job: job.next_at or self.now())
        return tuple(report.line(job, self.now()) for job in planned[:count])

    async def stop(self, within_s: float) -> None:
        """Nothing new begins; what runs may finish within that time, else it is given back and runs again later."""
        self.left.set()
        try:
            await self.service.stop(within=timedelta(seconds=within_s))
        except SchedulerShutdownError as error:
            text = f"{counted(error.running, 'run')} of jobs did not end within {within_s:g} s"
            self._tell("runs_given_back", level="warning", error=f"{text}; to begin anew at the next start")


def cron_options(settings: Settings) -> Options:
    cron = settings.cron
    return Options(
        zone=cron.timezone,
        max_retries=cron.max_retries,
        retry_base=timedelta(seconds=cron.retry_base),
        retry_max=timedelta(seconds=cron.retry_max),
        lease=timedelta(seconds=cron.lease),
        run_timeout=timedelta(seconds=cron.run_timeout),
        catch_up=cron.catch_up,
        grace=timedelta(seconds=cron.grace),
        jitter_threshold=cron.jitter_threshold,
        max_jitter=timedelta(seconds=cron.max_jitter),
        poll=timedelta(seconds=cron.poll),
    )
