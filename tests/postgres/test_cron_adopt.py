"""Jobs from files into a database: all of it arrives, and what went on there since is not touched."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from store.copying import Everything
from store.jobs import (
    Job,
    JobStatus,
    News,
    Notification,
    Rules,
    Run,
    RunState,
    Source,
    Timing,
    Trigger,
    TriggerKind,
    TriggerState,
)
from store.postgres import adopt, open_postgres
from store.records import Tenant
from tests.postgres.cron_pieces import LEASE, NO_BOUNDS, at_once, done, new, run_all

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from store.postgres import PostgresStore

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
SOURCE: Source = "baseline-interval"
TENANTS = tuple(Tenant(name, "", "UTC", True, NOW) for name in ("default", "ac\0me"))


def job(number: int, tenant: str = "default", uid: str = "") -> Job:
    spec = replace(
        new(uid or f"files {number}", tenant),
        timing=Timing("cron", "Europe/Berlin", cron="0 9 * * *"),
        rules=Rules("queue", "skip", HOUR, max_retries=2, run_timeout=HOUR),
    )
    return Job(number, spec, NOW, NOW, next_at=NOW, next_source=SOURCE, runs=3, last_slot=NOW - HOUR)


def trigger(one: Job, name: str, state: TriggerState = TriggerState.PENDING) -> Trigger:
    found = Trigger(
        f"{name} {one.id}",
        one.tenant,
        one.id,
        one.spec.agent,
        TriggerKind.SCHEDULE,
        NOW,
        NOW,
        NOW,
        state,
        source=SOURCE,
    )
    if state is TriggerState.EXECUTING:
        return replace(found, attempt=1, token=4, owner="gone", leased_until=NOW + HOUR)
    return found


def run(one: Trigger, name: str, state: RunState) -> Run:
    ended_at = None if state is RunState.RUNNING else NOW
    return Run(
        name, one.tenant, one.job, one.id, 1, one.agent, one.kind, SOURCE, "gone", "", NOW, HOUR, state, ended_at, "hi"
    )


def packed(
    *jobs: Job, triggers: tuple[Trigger, ...] = (), runs: tuple[Run, ...] = (), newest: datetime = NOW
) -> Everything:
    numbers = {tenant.id: max((one.id for one in jobs if one.tenant == tenant.id), default=0) for tenant in TENANTS}
    return Everything(
        source="files",
        id=0,
        change=0,
        newest=newest,
        tenants=TENANTS,
        tokens=(),
        sessions=(),
        messages=(),
        ended=(),
        replies=(),
        cursors=(),
        workers=(),
        beats=(),
        readings=(),
        jobs=jobs,
        triggers=triggers or tuple(trigger(one, "t") for one in jobs),
        runs=runs,
        outputs=tuple((one.tenant, one.id, "hi, and more") for one in runs),
        news=tuple(
            (one.tenant, Notification(1, NOW, News("run.started", one.tenant, one.id, "r"))) for one in jobs[:1]
        ),
        numbers=tuple((tenant, number, int(tenant == jobs[0].tenant)) for tenant, number in numbers.items()),
    )


@pytest.fixture
async def database(database: str) -> AsyncIterator[PostgresStore]:
    async with open_postgres(database, now=lambda: NOW) as store:
        yield store


async def test_jobs_keep_their_numbers(database: PostgresStore) -> None:
    """Jobs, triggers, runs, outputs and notifications are there as they were, and the next job counts on."""
    jobs = (job(3), job(7), job(3, "ac\0me"))
    old = run(trigger(jobs[0], "t"), "r", RunState.SUCCEEDED)
    copied = await adopt(database, packed(*jobs, runs=(old,)))
    assert (copied.jobs, copied.runs) == (3, 1)
    cron = database.cron
    assert await cron.jobs("default") == jobs[:2]
    assert await cron.jobs("ac\0me") == jobs[2:]
    assert await cron.triggers("default", 3) == (trigger(jobs[0], "t"),)
    assert await cron.runs("default") == (old,)
    assert await cron.output("default", "r") == "hi, and more"
    assert [one.news.job for one in await cron.notifications("default")] == [3]
    added = await cron.add_job(new("here"), at_once, NO_BOUNDS)
    assert added is not None
    assert added.id == 8


async def test_what_executed_waits_again(database: PostgresStore) -> None:
    """Its owner is gone: the attempt is counted, the run has failed, and the next claim is told of no lost run."""
    held = trigger(job(1), "t", TriggerState.EXECUTING)
    await adopt(database, packed(job(1), triggers=(held,), runs=(run(held, "r", RunState.RUNNING),)))
    (claim,) = await database.cron.claim("w", 5, LEASE)
    assert (claim.trigger.attempt, claim.trigger.token, claim.lost) == (1, 5, None)
    found = await database.cron.run("default", "r")
    assert found is not None
    assert (found.state, found.error, found.ended_at) == (RunState.FAILED, "lost when moved", NOW)


async def test_copying_again_changes_nothing(database: PostgresStore) -> None:
    """What went on in the database stays, also if it has gone on in the files in another way."""
    await adopt(database, packed(job(1), job(2)))
    cron = database.cron
    assert all(await cron.settle(await run_all(cron, await cron.claim("w", 1, LEASE)), done))
    before = await cron.jobs("default"), await cron.triggers("default", 1), await cron.notifications("default")
    copied = await adopt(database, packed(replace(job(1), status=JobStatus.PAUSED), job(2)))
    assert (copied.jobs, copied.runs) == (0, 0)
    assert before == (
        await cron.jobs("default"),
        await cron.triggers("default", 1),
        await cron.notifications("default"),
    )


async def test_what_was_deleted_in_the_database_does_not_come_back(database: PostgresStore) -> None:
    """A job that was copied once is not new, whatever became of it; one that was made since is."""
    await adopt(database, packed(job(1)))
    await database.cron.change_job("default", 1, lambda one, planned, now: replace(at_once(one), remove=True))
    later = replace(job(2), created_at=NOW + HOUR)
    assert (await adopt(database, packed(job(1), later, newest=NOW + HOUR))).jobs == 1
    assert [one.id for one in await database.cron.jobs("default")] == [2]


async def test_a_number_that_is_taken_is_not_shared(database: PostgresStore) -> None:
    """A job of the database keeps its number; the newcomer gets the next free one, and all of its rows with it."""
    mine = await database.cron.add_job(new("mine"), at_once, NO_BOUNDS)
    assert mine is not None
    old = run(trigger(job(1), "t"), "r", RunState.SUCCEEDED)
    copied = await adopt(database, packed(job(1), job(2), runs=(old,)))
    assert copied.jobs == 2
    cron = database.cron
    assert [(one.id, one.spec.uid) for one in await cron.jobs("default")] == [
        (1, "mine"),
        (2, "files 2"),
        (3, "files 1"),
    ]
    assert [one.id for one in await cron.triggers("default", 3)] == ["t 1"]
    assert [one.id for one in await cron.runs("default", job=3)] == ["r"]
    assert [one.news.job for one in await cron.notifications("default")] == [3]
    assert await cron.job("default", 1) == mine
    again = await adopt(database, packed(job(1), job(2), runs=(old,)))
    assert again.jobs == 0
