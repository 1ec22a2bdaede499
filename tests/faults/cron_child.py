"""A process that runs jobs, to be killed or frozen: `python -m tests.faults.cron_child postgres|json PLACE NAME`.

It says when a run begins, when it is done and when it dies, and what the service tells that matters here.
"""

from __future__ import annotations

import os
import sys
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import trio
import uuid_utils

from cron.jobs import CronJobs
from cron.options import Options
from cron.run import Answer
from cron.service import CronService
from gateway.clock import utc_now
from gateway.persist import persist
from store.files import open_json
from store.jobs import Bounds
from store.postgres import open_postgres
from tests.faults.talking import say

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cron.run import Work
    from store.jobs import Claim
    from store.protocols import Store

LEASE = timedelta(seconds=3)
OPTIONS = Options(
    lease=LEASE,
    beat=timedelta(seconds=1),
    upkeep=timedelta(seconds=2),
    poll=timedelta(seconds=1),
    max_retries=100,
    retry_base=timedelta(milliseconds=50),
    retry_max=timedelta(milliseconds=200),
    jitter_threshold=10_000,
    bounds=Bounds(),
)
SLOTS = 4
TOLD = {"run_succeeded", "settle_stale", "lease_lost", "claim_lost", "check_failed", "dead_schedule"}


class Hands:
    """Does what a job's message says: `quick`, `flaky`, or `long` at its first attempt."""

    def __init__(self, seed: str) -> None:
        self.active = 0
        self.random = Random(seed)

    def room(self) -> int:
        return SLOTS - self.active

    async def run(self, work: Work) -> Answer:
        about = {"job": work.job.id, "run": work.run.id, "attempt": work.run.attempt}
        self.active += 1
        say(began=work.prompt, **about)
        try:
            if work.prompt == "long" and work.run.attempt == 1:
                await trio.sleep(60)
            await trio.sleep(self.random.random() * 0.05)
            if work.prompt == "flaky" and self.random.random() < 0.2:
                raise RuntimeError("it does not always work")
        except trio.Cancelled:
            say(died=work.prompt, **about)
            raise
        finally:
            self.active -= 1
        say(done=work.prompt, **about)
        return Answer("ok")


def new_id() -> str:
    return str(uuid_utils.uuid7())


def tell(event: str, *, level: str = "info", claim: Claim | None = None, **facts: object) -> None:
    if event in TOLD:
        say(event=event, job=claim and claim.job.id, **{name: str(fact) for name, fact in facts.items()})


@asynccontextmanager
async def opened(kind: str, place: str) -> AsyncIterator[Store]:
    async with open_postgres(place) if kind == "postgres" else open_json(Path(place), utc_now) as store:
        yield store


def jobs_on(store: Store) -> CronJobs:
    return CronJobs(store, OPTIONS, now=utc_now, new_id=new_id, persist=persist, poke=lambda: None)


async def main(kind: str, place: str, name: str) -> None:
    # A directory has one worker at a time, always the same; a database has as many as there are processes.
    worker = "files" if kind == "json" else f"{name}-{os.getpid()}"
    async with opened(kind, place) as store:
        service = CronService(
            store,
            Hands(name),
            OPTIONS,
            worker=worker,
            now=utc_now,
            persist=persist,
            tell=tell,
            new_id=new_id,
            random=Random(name).random,
        )
        say(up=name)
        await service.run()


if __name__ == "__main__":
    trio.run(main, sys.argv[1], sys.argv[2], sys.argv[3])
