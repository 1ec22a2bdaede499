"""The loads that cron is put under: our service and its jobs on a store, with a runner that does nothing.

A look is what the loop does once a second: it reads the clock. An ask is what it does when something may have changed
(a job was added, the poll): it claims what is due and asks when the next one is. Both find nothing here.
"""

from __future__ import annotations

import random
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING
from uuid import uuid4

import trio

from bench.store_loads import utc_now
from cron import plans
from cron.jobs import CronJobs, Wish
from cron.options import Options
from cron.run import Answer
from cron.schedule import at, every, parse_cron
from cron.service import CronService
from cron.telling import tell_nobody
from gateway.persist import persist
from store.jobs import Bounds, Change, NewJob, Next

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence

    from cron.run import Work
    from cron.schedule import Schedule
    from store.jobs import Job, Trigger
    from store.protocols import Store

OPTIONS = Options(bounds=Bounds(), jitter_threshold=1_000_000, poll=timedelta(hours=1))
"""Nothing is spread out, nothing is bounded, and nobody asks in between."""
TENANT = "default"
SLOTS = 100
ADDERS = 100
FILLERS = 500
BUSY_ADDERS = 5
PAUSE_S = 0.02
MESSAGE = "look at the calendar and say what is next"
ANSWER = "done"


def new_id() -> str:
    return str(uuid4())


def daily(number: int) -> Schedule:
    """Once a day, in some hours: while we measure, nothing is due by itself."""
    return parse_cron(f"{number % 60} {(utc_now().hour + 3 + number % 18) % 24} * * *")


@dataclass(eq=False)
class NoopRunner:
    """Ends every attempt at once. Without slots nothing is claimed."""

    slots: int = 0
    late_s: list[float] = field(default_factory=list)
    """How long after it was due each attempt was here."""

    def room(self) -> int:
        return self.slots

    async def run(self, work: Work) -> Answer:
        if work.job.next_at is not None:
            self.late_s.append((utc_now() - work.job.next_at).total_seconds())
        return Answer(ANSWER)


async def share_out(numbers: Iterable[int], callers: int, act: Callable[[int], Awaitable[object]]) -> None:
    """So many tasks go through the numbers together, each taking the next one."""
    left = iter(numbers)

    async def work() -> None:
        for number in left:
            await act(number)

    async with trio.open_nursery() as nursery:
        for _ in range(callers):
            nursery.start_soon(work)


class Cron:
    """Our service and its jobs on a store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.runner = NoopRunner()
        self.settled = 0
        self._wanted = 0
        self._all_settled = trio.Event()
        self.service = self._service()
        self.jobs = CronJobs(
            store, OPTIONS, now=utc_now, new_id=new_id, persist=persist, poke=lambda: self.service.poke()
        )

    def _service(self) -> CronService:
        return CronService(
            self.store,
            self.runner,
            OPTIONS,
            worker="bench",
            now=utc_now,
            persist=persist,
            tell=tell_nobody,
            new_id=new_id,
            random=random.random,
            settled=self._note,
        )

    def _note(self) -> None:
        self.settled += 1
        if self.settled >= self._wanted:
            self._all_settled.set()

    async def add(self, when: Schedule, *, at_once: bool = False) -> Job:
        return await self.jobs.create(Wish(TENANT, "main", MESSAGE, when, at_once=at_once))

    async def fill(self, count: int) -> None:
        """What `add` leaves, without the checks."""

        async def one(number: int) -> None:
            spec = NewJob(new_id(), TENANT, "main", MESSAGE, daily(number).timing)
            await self.store.cron.add_job(spec, partial(plans.begun, new_id=new_id), OPTIONS.bounds)

        await share_out(range(count), FILLERS, one)

    # ── what is measured ─────────────────────────────────────────────────────────────────────────────────────────────

    async def seconds_to_add(self, count: int, callers: int) -> float:
        """For one job: it is on the disk when its caller goes on. They go again afterwards."""
        added: list[int] = []

        async def one(number: int) -> None:
            added.append((await self.add(daily(number))).id)

        start = perf_counter()
        await share_out(range(count), callers, one)
        took = perf_counter() - start
        await share_out(added, callers, lambda job: self.jobs.cancel(TENANT, job, purge=True))
        return took / count

    async def seconds_to_look(self, count: int) -> float:
        return await self._seconds_to_check(count, ask=False)

    async def seconds_to_ask(self, count: int) -> float:
        return await self._seconds_to_check(count, ask=True)

    async def _seconds_to_check(self, count: int, *, ask: bool) -> float:
        """For one step of the loop, the service standing still otherwise."""
        service = self._service()
        self.runner.slots = SLOTS
        async with trio.open_nursery() as nursery:
            await service._check(nursery)
            start = perf_counter()
            for _ in range(count):
                if ask:
                    service.poke()
                await service._check(nursery)
            took = perf_counter() - start
        assert service.state().trigger_count == 0
        return took / count

    async def seconds_to_fire(self, count: int) -> float:
        """From the moment there are slots until so many due jobs have run and are settled and planned again."""
        await share_out(range(1, count + 1), ADDERS, self._make_due)
        async with self.running():
            start = perf_counter()
            await self.fire(count)
            return perf_counter() - start

    async def _make_due(self, job: int) -> None:
        await self.store.cron.change_job(TENANT, job, due_now)

    async def fire(self, count: int, slots: int = SLOTS) -> None:
        """Give the lane slots and wait until so many have been settled."""
        self.settled, self._wanted, self._all_settled = 0, count, trio.Event()
        self.runner.slots = slots
        self.service.poke()
        await self._all_settled.wait()

    @asynccontextmanager
    async def running(self, slots: int = 0) -> AsyncIterator[CronService]:
        """The service at work, first without slots."""
        self.runner.slots = slots
        self.service = self._service()
        async with trio.open_nursery() as nursery:
            await nursery.start(self.service.run)
            yield self.service
            await self.service.stop()


def due_now(job: Job, trigger: Trigger | None, now: datetime) -> Change:
    """In the place of what is planned."""
    return Change(job, withdraw=True, next=Next(new_id(), now, now, "baseline-cron"))


# ── lateness ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def late(store: Store, count: int, over_s: float) -> list[float]:
    """Seconds between when each of so many one-shots was due and when the runner had it, due times spread evenly."""
    cron = Cron(store)
    begin = utc_now() + timedelta(seconds=1 + count / 500)
    due = [begin + timedelta(seconds=over_s * number / count) for number in range(count)]
    await share_out(range(count), ADDERS, lambda number: cron.add(at(due[number])))
    assert utc_now() < begin
    async with cron.running():
        await cron.fire(count, slots=count)
    return cron.runner.late_s


# ── everything at once ───────────────────────────────────────────────────────────────────────────────────────────────


async def busy(cron: Cron, seconds: float, recurring: int) -> tuple[int, int]:
    """The service from its start: jobs that fire every second while others are added; then it is idle for a while.

    How many were fired and how many added.
    """
    made: list[int] = []
    added = 0

    async def make(number: int) -> None:
        made.append((await cron.add(every(timedelta(seconds=1)), at_once=True)).id)

    async def add_on(number: int) -> None:
        nonlocal added
        while perf_counter() < end:
            await cron.add(daily(number + added))
            added += 1
            await trio.sleep(PAUSE_S)

    async with cron.running(SLOTS) as service:
        await share_out(range(recurring), ADDERS, make)
        end = perf_counter() + seconds
        await share_out(range(BUSY_ADDERS), BUSY_ADDERS, add_on)
        await share_out(made, ADDERS, partial(cron.jobs.cancel, TENANT))
        await trio.sleep(seconds / 10)
        return service.state().trigger_count, added


# ── when is the next one ─────────────────────────────────────────────────────────────────────────────────────────────

EXPRESSIONS = (
    "*/5 * * * *",
    "0 * * * *",
    "0 9 * * *",
    "30 8 * * 1-5",
    "15 10,14,18 * * *",
    "0 0 1 * *",
    "0 12 * * 0",
    "20 4 1,15 * *",
    "*/10 8-18 * * 1-5",
    "0 3 29 2 *",
)
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Sydney")


def instants(count: int, seed: int = 1) -> list[datetime]:
    """Somewhere in three years, to the second."""
    numbers = random.Random(seed)
    beginning = datetime(2025, 1, 1, tzinfo=UTC)
    return [beginning + timedelta(seconds=numbers.randrange(3 * 365 * 86_400)) for _ in range(count)]


def pairs() -> list[tuple[str, str]]:
    return [(expression, zone) for expression in EXPRESSIONS for zone in ZONES]


def next_after_each(moments: Sequence[datetime]) -> tuple[float, list[datetime | None]]:
    """Seconds, and the next time of every expression in every zone after each moment."""
    schedules = [parse_cron(*pair) for pair in pairs()]
    start = perf_counter()
    found = [schedule.next_after(moment) for schedule in schedules for moment in moments]
    return perf_counter() - start, found


def next_in_a_row(beginning: datetime, count: int) -> tuple[float, list[datetime | None]]:
    """Seconds, and so many times of every expression in every zone, one after the other."""
    schedules = [parse_cron(*pair) for pair in pairs()]
    found: list[datetime | None] = []
    start = perf_counter()
    for schedule in schedules:
        moment: datetime | None = beginning
        for _ in range(count):
            assert moment is not None
            moment = schedule.next_after(moment)
            found.append(moment)
    return perf_counter() - start, found
