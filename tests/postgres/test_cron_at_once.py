"""Many callers at once, through two doors: nobody waits in a circle, and the promises about rows hold all the while."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import trio

from store.jobs import Change, Fire, Next
from store.postgres import open_postgres
from tests.postgres.cron_pieces import LEASE, NO_BOUNDS, at_once, done, new, new_id, run_all
from tests.postgres.databases import ask

if TYPE_CHECKING:
    from datetime import datetime

    from store.jobs import Job, Notification, Trigger
    from store.postgres import PostgresStore

JOBS = 12
ROUNDS = 15
TENANTS = ("default", "acme", "zebra")
ODD = """
SELECT tenant_id, id FROM cron_jobs AS job WHERE (
    SELECT count(*) FROM cron_triggers AS it
    WHERE it.tenant_id = job.tenant_id AND it.job = job.id AND kind IN ('schedule', 'catch-up') AND claim_at IS NOT NULL
) <> 1
"""
UNTRUE = """
SELECT job.id FROM cron_jobs AS job JOIN cron_triggers AS it ON it.tenant_id = job.tenant_id AND it.job = job.id
WHERE it.kind IN ('schedule', 'catch-up') AND it.claim_at IS NOT NULL AND job.next_at IS DISTINCT FROM it.due_at
"""


async def fill(store: PostgresStore) -> None:
    for tenant in TENANTS:
        await store.create_tenant(tenant)
        for number in range(JOBS):
            await store.cron.add_job(new(str(number), tenant), at_once, NO_BOUNDS)


async def work(store: PostgresStore, name: str, batch: int) -> None:
    """Claims come in the order of turns, so that batches of several workers meet jobs in different orders."""
    for turn in range(ROUNDS):
        claims = await store.cron.claim(name, batch, LEASE, after=TENANTS[turn % len(TENANTS)])
        ended = await run_all(store.cron, claims)
        assert all(await store.cron.renew(claims, LEASE))
        assert all(await store.cron.settle(ended[::-1], done))


async def edit(store: PostgresStore, tenant: str) -> None:
    def renamed(job: Job, planned: Trigger | None, now: datetime) -> Change:
        following = Next(new_id(), now, now, "baseline-interval")
        return Change(replace(job, spec=replace(job.spec, agent=new_id())), withdraw=True, next=following)

    for turn in range(ROUNDS):
        number = turn % JOBS + 1
        assert await store.cron.change_job(tenant, number, renamed) is not None
        assert await store.cron.fire(Fire(new_id(), tenant, number)) is not None


async def watch(store: PostgresStore, tenant: str, seen: list[Notification], over: trio.Event) -> None:
    """Reads on from the last number, as a listener would."""
    while True:
        ended = over.is_set()
        more = await store.cron.notifications(tenant, after=seen[-1].seq if seen else 0, limit=50)
        seen += more
        if ended and not more:
            return


async def test_nobody_waits_in_a_circle(database: str) -> None:
    """Claims, starts, renewals, ends, edits and fires at once: none fails, each job has one open planned trigger, and
    a reader who reads on sees every notification in order without a gap. (lesson 32)"""
    over = trio.Event()
    seen: dict[str, list[Notification]] = {tenant: [] for tenant in TENANTS}
    async with open_postgres(database) as one, open_postgres(database) as two:
        await fill(one)
        with trio.fail_after(120):
            async with trio.open_nursery() as readers:
                for tenant in TENANTS:
                    readers.start_soon(watch, one, tenant, seen[tenant], over)
                async with trio.open_nursery() as nursery:
                    for number, store in enumerate((one, two, one, two)):
                        nursery.start_soon(work, store, f"w{number}", 4 + number)
                    for tenant in TENANTS:
                        nursery.start_soon(edit, two, tenant)
                over.set()
        assert await ask(database, ODD) == []
        assert await ask(database, UNTRUE) == []
        for tenant in TENANTS:
            everything = await one.cron.notifications(tenant, limit=10_000)
            assert [note.seq for note in everything] == list(range(1, len(everything) + 1))
            assert seen[tenant] == list(everything)


async def test_jobs_that_are_added_at_once_have_their_own_numbers(database: str) -> None:
    """Numbers count from 1 without a gap, bounds hold, and one uid is one job. (N2)"""
    async with open_postgres(database) as one, open_postgres(database) as two:
        found: list[Job | None] = []

        async def add(store: PostgresStore, uid: str) -> None:
            found.append(await store.cron.add_job(new(uid), at_once, NO_BOUNDS._replace(of_tenant=15)))

        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(add, one, str(number))
                nursery.start_soon(add, two, str(number))
        kept = [job for job in found if job is not None]
        assert {job.id for job in kept} == set(range(1, 16))
        assert len({job.spec.uid for job in kept}) == 15


async def test_one_idempotency_key_is_one_trigger(database: str) -> None:
    """Whoever fires it with the same key at the same time is answered with the same trigger."""
    async with open_postgres(database) as one, open_postgres(database) as two:
        await one.cron.add_job(new("a"), at_once, NO_BOUNDS)
        for number in range(10):
            found: list[Trigger | None] = []

            async def fire(store: PostgresStore, key: str, into: list[Trigger | None] = found) -> None:
                into.append(await store.cron.fire(Fire(new_id(), "default", 1, key=key)))

            async with trio.open_nursery() as nursery:
                for store in (one, two, one, two):
                    nursery.start_soon(fire, store, str(number))
            assert len({one.id for one in found if one is not None}) == 1
