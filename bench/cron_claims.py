"""Jobs on Postgres from due to done, by us and by two job queues of Python, on one server with as many connections.

Every contender has a database of its own, a worker for each connection, and jobs that do nothing. What is counted is
over when the last job is recorded as done. The queues run on uvloop, as our bridge does. The server has counted the
rows of all tables before, as it does by itself within a minute: on tables that it knows nothing of, it plans badly.
Each round is played twice with the same connections and only the second time counts, so that no contender is measured
while its statements are parsed and planned for the first time.

    ours           claim (a lease), start (a run, its news), settle (run, trigger, job, news, the next trigger): three
                   transactions for a batch
    procrastinate  fetch_job and finish_job, two transactions for a job: it has no batches
    pgqueuer       dequeue and log_jobs, two transactions for a batch
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import asyncpg
import procrastinate
import trio
from pgqueuer.domain.types import QueueEntrypoint, QueueManagerId
from pgqueuer.ports.repository import EntrypointExecutionParameter
from pgqueuer.queries import Queries
from procrastinate.jobs import Job as ProcrastinateJob
from procrastinate.jobs import Status

from bench.cron_loads import ANSWER, MESSAGE, OPTIONS, TENANT, new_id, share_out
from bench.standins import uvloop_factory
from cron import plans
from cron.outcome import Concluding
from store.jobs import Ended, NewJob, RunState, Start, Timing
from store.postgres import open_postgres
from tests.postgres.databases import execute, named

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from store.protocols import Store

QUEUE = "bench"
AT_ONCE = 500
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Batches:
    """So many jobs, taken so many at a time by so many workers."""

    jobs: int
    size: int
    connections: int


@dataclass(frozen=True, slots=True)
class Taken:
    seconds: float
    wal: int
    """Bytes that the server wrote for it."""


def make_database(dsn: str, name: str) -> str:
    execute(dsn, f'CREATE DATABASE "{name}"')
    return named(dsn, name)


# ── ours ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class HandClock:
    """Goes on by hand, so that jobs which recur are due when we want them to be."""

    def __init__(self) -> None:
        self.moment = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.moment


class Ours:
    """Jobs that recur, so that the next trigger of each is planned as well; made once, and due again in every round."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.clock = HandClock()
        self.stored = 0

    def __call__(self, load: Batches) -> Taken:
        return trio.run(self._take, load)

    async def _take(self, load: Batches) -> Taken:
        async with open_postgres(self.dsn, now=self.clock, connections=load.connections) as store:
            await share_out(range(self.stored, load.jobs), 2 * load.connections, partial(self._add, store))
            self.stored = load.jobs
            await self._once(store, load)
            return await self._once(store, load)

    async def _once(self, store: Store, load: Batches) -> Taken:
        self.clock.moment += HOUR
        before = await trio.to_thread.run_sync(get_ready, self.dsn)
        start = perf_counter()
        done = await cycles(store, load)
        took = perf_counter() - start
        assert done == load.jobs
        return Taken(took, await trio.to_thread.run_sync(written, self.dsn) - before)

    async def _add(self, store: Store, number: int) -> None:
        spec = NewJob(new_id(), TENANT, "main", MESSAGE, Timing("every", every=HOUR))
        assert await store.cron.add_job(spec, partial(plans.begun, new_id=new_id), OPTIONS.bounds) is not None


async def cycles(store: Store, load: Batches) -> int:
    """Claim, start and settle until nothing is due, as the service does; how many were settled."""
    settled = 0
    conclude = Concluding(OPTIONS, new_id, lambda: 0.5)

    async def work(number: int) -> None:
        nonlocal settled
        worker = f"bench-{number}"
        while claims := await store.cron.claim(worker, load.size, OPTIONS.lease):
            runs = await store.cron.start([Start(claim, new_id()) for claim in claims])
            ended = [
                Ended(claim, run.id, run.started_at, RunState.SUCCEEDED, output=ANSWER)
                for claim, run in zip(claims, runs, strict=True)
                if run is not None
            ]
            kept = await store.cron.settle(ended, conclude)
            settled += sum(kept)

    async with trio.open_nursery() as nursery:
        for number in range(load.connections):
            nursery.start_soon(work, number)
    return settled


# ── the queues ───────────────────────────────────────────────────────────────────────────────────────────────────────


def on_asyncio(work: Callable[[], Coroutine[Any, Any, Taken]]) -> Taken:
    with asyncio.Runner(loop_factory=uvloop_factory()) as runner:
        return runner.run(work())


def get_ready(dsn: str) -> int:
    """Count the rows of all tables, as a server does by itself within a minute; then as `written`."""
    return asyncio.run(_ask(dsn, "ANALYZE"))


def written(dsn: str) -> int:
    """How many bytes the server has ever written to its log."""
    return asyncio.run(_ask(dsn))


async def _ask(dsn: str, before: str | None = None) -> int:
    connection = await asyncpg.connect(dsn)
    try:
        if before is not None:
            await connection.execute(before)
        return int(await connection.fetchval("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"))
    finally:
        await connection.close()


@dataclass(frozen=True, slots=True)
class Procrastinate:
    dsn: str

    def install(self) -> None:
        async def apply() -> None:
            async with self._app(1) as app:
                await app.schema_manager.apply_schema_async()

        asyncio.run(apply())

    def __call__(self, load: Batches) -> Taken:
        return on_asyncio(partial(self._take, load))

    @asynccontextmanager
    async def _app(self, connections: int) -> AsyncIterator[procrastinate.App]:
        connector = procrastinate.PsycopgConnector(conninfo=self.dsn, min_size=connections, max_size=connections)
        app = procrastinate.App(connector=connector)
        async with app.open_async():
            yield app

    async def _take(self, load: Batches) -> Taken:
        async with self._app(load.connections) as app:
            workers = [await app.job_manager.register_worker() for _ in range(load.connections)]
            await self._once(app.job_manager, workers, load)
            return await self._once(app.job_manager, workers, load)

    async def _once(self, manager: Any, workers: list[int], load: Batches) -> Taken:
        job = ProcrastinateJob(
            queue=QUEUE, lock=None, queueing_lock=None, task_name="noop", task_kwargs={"message": "look"}
        )
        for first in range(0, load.jobs, AT_ONCE):
            await manager.batch_defer_jobs_async([job] * min(AT_ONCE, load.jobs - first))
        before = await asyncio.to_thread(get_ready, self.dsn)
        start = perf_counter()
        done = await asyncio.gather(*(self._work(manager, worker) for worker in workers))
        took = perf_counter() - start
        assert sum(done) == load.jobs
        return Taken(took, await asyncio.to_thread(written, self.dsn) - before)

    async def _work(self, manager: Any, worker: int) -> int:
        done = 0
        while (job := await manager.fetch_job([QUEUE], worker)) is not None:
            await manager.finish_job(job, Status.SUCCEEDED, delete_job=False)
            done += 1
        return done


@dataclass(frozen=True, slots=True)
class Pgqueuer:
    dsn: str

    def install(self) -> None:
        async def apply() -> None:
            connection = await asyncpg.connect(self.dsn)
            await Queries.from_asyncpg_connection(connection).install()
            await connection.close()

        asyncio.run(apply())

    def __call__(self, load: Batches) -> Taken:
        return on_asyncio(partial(self._take, load))

    async def _take(self, load: Batches) -> Taken:
        size = load.connections
        async with asyncpg.create_pool(self.dsn, min_size=size, max_size=size) as pool:
            queries = Queries.from_asyncpg_pool(pool)
            await self._once(queries, load)
            return await self._once(queries, load)

    async def _once(self, queries: Any, load: Batches) -> Taken:
        for first in range(0, load.jobs, AT_ONCE):
            count = min(AT_ONCE, load.jobs - first)
            await queries.enqueue([QUEUE] * count, [b"look"] * count, [0] * count)
        before = await asyncio.to_thread(get_ready, self.dsn)
        start = perf_counter()
        done = await asyncio.gather(*(self._work(queries, load.size) for _ in range(load.connections)))
        took = perf_counter() - start
        assert sum(done) == load.jobs
        return Taken(took, await asyncio.to_thread(written, self.dsn) - before)

    async def _work(self, queries: Any, size: int) -> int:
        done, manager = 0, QueueManagerId(uuid4())
        wanted = {QueueEntrypoint(QUEUE): EntrypointExecutionParameter(concurrency_limit=0)}
        while jobs := await queries.dequeue(size, wanted, manager, None, timedelta(seconds=30)):
            await queries.log_jobs([(job, "successful", None) for job in jobs])
            done += len(jobs)
        return done
