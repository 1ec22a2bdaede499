"""A cron service on the store without a disk, a wall clock that can be set, and a runner that does as it is told."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

import trio

from cron.errors import RunTimedOut
from cron.jobs import CronJobs, Wish
from cron.options import Options
from cron.run import Answer
from cron.service import CronService
from gateway.persist import persist
from store.memory import MemoryStore
from store.records import SessionKey

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from cron.run import Work
    from store.jobs import Claim, Job, Run, Trigger
    from store.protocols import Store

BEGINNING = datetime(2026, 3, 2, 12, tzinfo=UTC)  # a Monday
CHAT = SessionKey("default", "main", "terminal", "", "local")


class WallClock:
    """Goes with trio's clock; it can be set."""

    def __init__(self, beginning: datetime = BEGINNING) -> None:
        self.beginning = beginning
        self.offset = timedelta(0)

    def __call__(self) -> datetime:
        steady = trio.current_time() if trio.lowlevel.in_trio_run() else 0.0
        return self.beginning + self.offset + timedelta(seconds=steady)

    def jump(self, span: timedelta) -> None:
        self.offset += span


@dataclass(eq=False)
class ToldRunner:
    """Carries attempts out as `act` says: returns text, raises, takes its time."""

    limit: int = 1
    act: Callable[[Work], Awaitable[str]] | None = None
    active: int = 0
    most: int = 0
    works: list[Work] = field(default_factory=list)
    done: list[Work] = field(default_factory=list)

    def room(self) -> int:
        return self.limit - self.active

    async def run(self, work: Work) -> Answer:
        self.active += 1
        self.most = max(self.most, self.active)
        self.works.append(work)
        try:
            with trio.move_on_after(work.timeout.total_seconds()) as scope:
                text = await self.act(work) if self.act is not None else f"done: {work.prompt}"
            if scope.cancelled_caught:
                raise RunTimedOut(f"it took longer than {work.timeout.total_seconds():g} s")
            self.done.append(work)
            return Answer(text, 3, 5)
        finally:
            self.active -= 1

    @property
    def jobs(self) -> list[int]:
        """Which jobs were run, in order."""
        return [work.job.id for work in self.works]


@dataclass(eq=False)
class World:
    store: Store
    wall: WallClock
    options: Options = field(default_factory=Options)
    runner: ToldRunner = field(default_factory=ToldRunner)
    worker: str = "w1"
    random: Callable[[], float] = lambda: 0.5
    look_s: float = 1.0
    told: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    numbers: Any = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.service = self.make_service()
        self.jobs = CronJobs(
            self.store,
            self.options,
            now=self.wall,
            new_id=self.new_id,
            persist=persist,
            poke=lambda: self.service.poke(),
        )

    def make_service(self) -> CronService:
        return CronService(
            self.store,
            self.runner,
            self.options,
            worker=self.worker,
            now=self.wall,
            persist=persist,
            tell=self.tell,
            new_id=self.new_id,
            random=self.random,
            lanes=lambda: {"cron": self.runner.limit},
            look_s=self.look_s,
        )

    def new_id(self) -> str:
        return f"id-{next(self.numbers):06}"

    def tell(self, event: str, *, level: str = "info", claim: Claim | None = None, **facts: object) -> None:
        self.told.append((event, {"level": level, "job": claim and claim.job.id, **facts}))

    def events(self, name: str) -> list[dict[str, Any]]:
        return [facts for event, facts in self.told if event == name]

    # ── asking ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def add(self, when: Any, message: str = "work", **wish: Any) -> Job:
        return await self.jobs.create(
            Wish(wish.pop("tenant", "default"), wish.pop("agent", "main"), message, when, **wish)
        )

    async def job(self, job: Job) -> Job:
        found = await self.store.cron.job(*job.key)
        assert found is not None
        return found

    async def runs(self, job: Job) -> list[Run]:
        """Oldest first."""
        return list(reversed(await self.store.cron.runs(job.tenant, job=job.id, limit=100_000)))

    async def triggers(self, job: Job) -> list[Trigger]:
        """The earliest slot first."""
        return list(reversed(await self.store.cron.triggers(job.tenant, job.id, limit=100_000)))

    async def states(self, job: Job) -> list[str]:
        """What became of each slot, earliest first, with the reason."""
        return [
            f"{one.state}{f'({one.reason})' if one.reason else ''}{f'x{one.count}' if one.count > 1 else ''}"
            for one in await self.triggers(job)
        ]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[CronService]:
        """The service, from its start to a cancel: like a process that is told to end at once."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self.service.run)
            yield self.service
            nursery.cancel_scope.cancel()

    async def crash_after(self, span: timedelta) -> None:
        """One life that ends without a word to the store."""
        line = Silenced(self.store.cron)
        self.service = self.make_service()
        self.service._cron = self.service._runs._store = self.service._upkeep._cron = line
        self.service._runs._starts._verb = line.start
        async with self.running():
            await trio.sleep(span.total_seconds())
            line.dead = True

    async def live(self, span: timedelta) -> None:
        """One life of the service, so long."""
        self.service = self.make_service()
        async with self.running():
            await trio.sleep(span.total_seconds())


class Silenced:
    """A store that a dead process can say nothing to any more; everything else is passed on."""

    def __init__(self, cron: Any) -> None:
        self.cron = cron
        self.dead = False

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self.cron, name)

        async def ask(*args: Any, **named: Any) -> Any:
            if self.dead:
                await trio.sleep_forever()
            return await verb(*args, **named)

        return ask


def make_world(**changes: Any) -> World:
    wall = changes.pop("wall", None) or WallClock()
    store = changes.pop("store", None) or MemoryStore(wall)
    return World(store, wall, **changes)
