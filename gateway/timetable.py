"""Cron inside a gateway: which parts it is made of, and that it goes on whatever happens to it.

run ──▶ service ──▶ stopped
   ▲        │ crashed: said in the log
   └─ rest ─┘         longer each time; the chat does not notice
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from random import SystemRandom
from typing import TYPE_CHECKING

import trio
from uuid_utils import uuid7

from cron.errors import SchedulerShutdownError
from cron.jobs import CronJobs
from cron.options import Options
from cron.service import CronService
from gateway.commands import counted
from gateway.persist import persist

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from cron.run import Runner
    from cron.telling import Tell
    from gateway.settings import Settings
    from store.protocols import Store

logger = logging.getLogger("goclaw.cron")

FIRST_REST_S = 1.0
LONGEST_REST_S = 60.0
CALM_S = 300.0
"""Who has worked for so long rests as briefly as the first time."""


def new_id() -> str:
    return str(uuid7())


@dataclass(frozen=True, slots=True)
class CronParts:
    """What cron needs besides a runner: its store, the name that it works under, and what time and chance are."""

    store: Store
    worker: str
    now: Callable[[], datetime]
    tell: Tell
    new_id: Callable[[], str] = new_id
    random: Callable[[], float] = SystemRandom().random


class Timetable:
    """Cron at work: jobs to be asked for, and a service that fires them."""

    def __init__(
        self,
        parts: CronParts,
        options: Options,
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
            options,
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
            parts.store, options, now=parts.now, new_id=parts.new_id, persist=persist, poke=self.service.poke
        )
        self._left = trio.Event()

    async def run(self) -> None:
        """Until stopped."""
        rest_s = FIRST_REST_S
        while not self._left.is_set():
            began = trio.current_time()
            try:
                await self.service.run()
            except Exception as error:  # the supervisor: said, and started again after a rest
                if trio.current_time() - began >= CALM_S:
                    rest_s = FIRST_REST_S
                self._tell("service_failed", level="error", error=plain(error), again_in_s=rest_s)
                logger.info("how cron failed", exc_info=error)
            else:
                return
            with trio.move_on_after(rest_s):
                await self._left.wait()
            rest_s = min(rest_s * 2, LONGEST_REST_S)

    async def stop(self, within_s: float) -> None:
        """Nothing new begins; what runs may finish within that time, else it is given back and runs again later."""
        self._left.set()
        try:
            await self.service.stop(within=timedelta(seconds=within_s))
        except SchedulerShutdownError as error:
            text = f"{counted(error.running, 'run')} of jobs did not end within {within_s:g} s"
            self._tell("runs_given_back", level="warning", error=f"{text}; to begin anew at the next start")


def plain(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return repr(error)


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
