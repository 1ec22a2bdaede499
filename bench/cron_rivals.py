"""What a user would take instead of our service: APScheduler, a scan of all jobs, croniter, cronsim.

APScheduler   its asyncio scheduler with its memory job store: nothing is on a disk, no history is kept
scan          a list of jobs that every tick goes through; a change writes the whole file, not waiting for the disk
"""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime, timedelta
from time import perf_counter
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import orjson
from apscheduler.events import EVENT_JOB_EXECUTED
from apscheduler.executors.asyncio import AsyncIOExecutor
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.interval import IntervalTrigger
from croniter import croniter
from cronsim import CronSim

from bench.cron_loads import MESSAGE, pairs
from bench.store_loads import utc_now

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

YEAR_S = 365 * 86_400


async def noop() -> None:
    """What every job does."""


def later(numbers: random.Random) -> datetime:
    """Some time of the coming year, but not too soon."""
    return utc_now() + timedelta(seconds=numbers.randrange(86_400, YEAR_S))


class Apscheduler:
    """It keeps its loop from one measurement to the next; between them that stands still."""

    def __init__(self, stored: int) -> None:
        self.numbers = random.Random(1)
        self.runner = asyncio.Runner()
        self.ended = 0
        self.wanted = 0
        self.all_ended: asyncio.Event | None = None
        self.runner.run(self._fill(stored))

    async def _fill(self, stored: int) -> None:
        self.scheduler = AsyncIOScheduler(
            jobstores={"default": MemoryJobStore()},
            executors={"default": AsyncIOExecutor()},
            job_defaults={"misfire_grace_time": None},
            timezone=UTC,
        )
        self.scheduler.add_listener(self._note, EVENT_JOB_EXECUTED)
        times = sorted(later(self.numbers) for _ in range(stored))
        self.first = [self._add(moment).id for moment in times][:1000]
        self.scheduler.start()

    def _add(self, moment: datetime) -> Any:
        return self.scheduler.add_job(noop, IntervalTrigger(days=1, timezone=UTC), next_run_time=moment)

    def _note(self, event: object) -> None:
        self.ended += 1
        if self.all_ended is not None and self.ended >= self.wanted:
            self.all_ended.set()

    def seconds_to_add(self, count: int) -> float:
        return self.runner.run(self._seconds_to_add(count))

    async def _seconds_to_add(self, count: int) -> float:
        moments = [later(self.numbers) for _ in range(count)]
        added = []
        start = perf_counter()
        for moment in moments:
            added.append(self._add(moment))
            await asyncio.sleep(0)  # its scheduler looks at what is due now after every change
        took = perf_counter() - start
        self.scheduler.pause()
        for job in added:
            job.remove()
        self.scheduler.resume()
        return took / count

    def seconds_to_tick(self, count: int) -> float:
        """What it does when it wakes up and nothing is due."""
        start = perf_counter()
        for _ in range(count):
            self.scheduler._process_jobs()
        return (perf_counter() - start) / count

    def seconds_to_fire(self, count: int) -> float:
        return self.runner.run(self._seconds_to_fire(count))

    async def _seconds_to_fire(self, count: int) -> float:
        self.scheduler.pause()
        due = utc_now()
        for job in self.first[:count]:
            self.scheduler.modify_job(job, next_run_time=due)
        self.ended, self.wanted, self.all_ended = 0, count, asyncio.Event()
        start = perf_counter()
        self.scheduler.resume()
        await self.all_ended.wait()
        return perf_counter() - start

    def close(self) -> None:
        self.runner.run(self._close())
        self.runner.close()

    async def _close(self) -> None:
        self.scheduler.shutdown(wait=False)


class Scan:
    def __init__(self, path: Path, stored: int) -> None:
        self.path = path
        self.numbers = random.Random(1)
        self.jobs = [self._job(number) for number in range(stored)]
        self.write()

    def _job(self, number: int) -> dict[str, Any]:
        return {
            "id": f"job-{number}",
            "enabled": True,
            "schedule": {"kind": "every", "every_s": 86_400, "tz": "UTC"},
            "payload": {"agent": "main", "message": MESSAGE, "deliver": False},
            "next_s": later(self.numbers).timestamp(),
            "last_s": None,
        }

    def write(self) -> None:
        temporary = self.path.with_suffix(".tmp")
        temporary.write_bytes(orjson.dumps(self.jobs))
        temporary.replace(self.path)

    def due(self) -> list[dict[str, Any]]:
        now = utc_now().timestamp()
        return [job for job in self.jobs if job["enabled"] and job["next_s"] <= now]

    async def tick(self) -> int:
        found = self.due()
        for job in found:
            await noop()
            job["last_s"] = utc_now().timestamp()
            job["next_s"] = job["last_s"] + job["schedule"]["every_s"]
        if found:
            self.write()
        return len(found)

    def seconds_to_add(self, count: int) -> float:
        before = len(self.jobs)
        start = perf_counter()
        for number in range(count):
            self.jobs.append(self._job(before + number))
            self.write()
        took = perf_counter() - start
        del self.jobs[before:]
        return took / count

    def seconds_to_tick(self, count: int) -> float:
        async def ticks() -> float:
            start = perf_counter()
            for _ in range(count):
                await self.tick()
            return perf_counter() - start

        return asyncio.run(ticks()) / count

    def seconds_to_fire(self, count: int) -> float:
        async def fire() -> float:
            start = perf_counter()
            assert await self.tick() == count
            return perf_counter() - start

        for job in self.jobs[:count]:
            job["next_s"] = 0.0
        return asyncio.run(fire())


# ── when is the next one ─────────────────────────────────────────────────────────────────────────────────────────────


def croniter_after_each(moments: Sequence[datetime]) -> tuple[float, list[datetime | None]]:
    """One object for each expression and zone; it is told where to begin."""
    made = [(croniter(expression, moments[0]), ZoneInfo(zone)) for expression, zone in pairs()]
    start = perf_counter()
    found = [one.get_next(datetime, moment.astimezone(zone)) for one, zone in made for moment in moments]
    return perf_counter() - start, list(found)


def cronsim_after_each(moments: Sequence[datetime]) -> tuple[float, list[datetime | None]]:
    """An object for each question: there is no other way to ask it from somewhere."""
    made = [(expression, ZoneInfo(zone)) for expression, zone in pairs()]
    start = perf_counter()
    found = [next(CronSim(expression, moment.astimezone(zone))) for expression, zone in made for moment in moments]
    return perf_counter() - start, list(found)


def croniter_in_a_row(beginning: datetime, count: int) -> tuple[float, list[datetime | None]]:
    made = [croniter(expression, beginning.astimezone(ZoneInfo(zone))) for expression, zone in pairs()]
    start = perf_counter()
    found = [one.get_next(datetime) for one in made for _ in range(count)]
    return perf_counter() - start, list(found)


def cronsim_in_a_row(beginning: datetime, count: int) -> tuple[float, list[datetime | None]]:
    made = [CronSim(expression, beginning.astimezone(ZoneInfo(zone))) for expression, zone in pairs()]
    start = perf_counter()
    found = [next(one) for one in made for _ in range(count)]
    return perf_counter() - start, list(found)
