"""Many workers at once: each trigger is one worker's, each job keeps one plan, and no number is given twice."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import trio

from store.jobs import Bounds, Fire, JobStatus, RunState, Start, TriggerState
from tests.contract.cron_rows import (
    HOUR,
    LEASE,
    MINUTE,
    MOMENT,
    NOW,
    Plan,
    added,
    changed,
    ended,
    fired,
    job_now,
    new,
    passed,
    planned_of,
    running,
    settled,
    told,
)

if TYPE_CHECKING:
    from store.cron_protocol import CronStore
    from store.jobs import Claim
    from store.protocols import Store
    from tests.contract.backends import Wall

WORKERS = [f"w{number}" for number in range(10)]
DUE = 200


async def test_due_triggers_are_each_claimed_once(whole: Store, cron: CronStore) -> None:
    """Ten workers take two hundred in small batches: none is left out, none is anybody else's too. (G5, P4)"""
    await whole.create_tenant("t")
    for number in range(DUE):
        await added(cron, f"{number}", NOW, tenant=("default", "t")[number % 2])
    taken: dict[str, list[Claim]] = {worker: [] for worker in WORKERS}

    async def work(worker: str) -> None:
        while batch := await cron.claim(worker, 7, LEASE):
            assert len(batch) <= 7
            taken[worker] += batch

    async with trio.open_nursery() as nursery:
        for worker in WORKERS:
            nursery.start_soon(work, worker)
    rest = await cron.claim("last", DUE, LEASE)
    times = Counter(claim.job.key for claims in (*taken.values(), rest) for claim in claims)
    assert (len(times), set(times.values())) == (DUE, {1})
    for worker, claims in taken.items():
        assert {one.trigger.id for one in await cron.held(worker)} == {one.trigger.id for one in claims}


async def test_one_trigger_that_many_want_is_one_workers(cron: CronStore) -> None:
    """Exactly one gets it. (C2)"""
    await added(cron, "a", NOW)
    got: list[Claim] = []

    async def want(worker: str) -> None:
        got.extend(await cron.claim(worker, 1, LEASE))

    async with trio.open_nursery() as nursery:
        for worker in WORKERS:
            nursery.start_soon(want, worker)
    (only,) = got
    assert [one.trigger for one in await cron.held(only.trigger.owner)] == [only.trigger]


async def test_triggers_of_one_job_never_run_side_by_side(cron: CronStore) -> None:
    """However many wait and want: while one executes, no other of the job is given out. (P4, H17)"""
    job = await added(cron, "a", NOW)
    for number in range(9):
        await fired(cron, job, f"f{number}")
    at_once, most, done = 0, 0, 0

    async def work(worker: str) -> None:
        nonlocal at_once, most, done
        while done < 10:
            for claim in await cron.claim(worker, 3, LEASE):
                at_once += 1
                most = max(most, at_once)
                await trio.lowlevel.checkpoint()
                at_once -= 1
                done += 1
                assert await settled(cron, passed(claim), Plan(end=TriggerState.COMPLETED))

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for worker in WORKERS[:5]:
                nursery.start_soon(work, worker)
    assert most == 1
    assert {one.state for one in await cron.triggers("default", 1)} == {TriggerState.COMPLETED}


async def test_a_job_that_many_change_keeps_one_plan(cron: CronStore, wall: Wall) -> None:
    """Settled, edited, paused and resumed at once: one open planned trigger or none, and a true next time. (P9)"""
    jobs = [await added(cron, f"{number}", NOW) for number in range(8)]
    claims = await cron.claim("w1", 100, LEASE)
    calls = []
    for claim in claims:
        job = claim.job
        slot = job.id * MOMENT
        plans = [
            Plan("edit", MINUTE, offset=slot, withdraw=True),
            Plan("resume", HOUR, offset=slot, status=JobStatus.ACTIVE),
            Plan(status=JobStatus.PAUSED, withdraw=True),
            Plan("other", 2 * HOUR, offset=slot, withdraw=True),
        ]
        calls += [(changed, job, plan) for plan in plans]
        calls.append((finish, claim, Plan("next", 3 * HOUR, offset=slot, end=TriggerState.COMPLETED)))  # type: ignore[arg-type]
    Random(7).shuffle(calls)
    async with trio.open_nursery() as nursery:
        for verb, subject, plan in calls:
            nursery.start_soon(verb, cron, subject, plan)
    for job in jobs:
        planned = await planned_of(cron, job)
        assert len(planned) <= 1
        due = planned[0].due_at if planned else None
        assert (await job_now(cron, job)).next_at == due
    assert await cron.held("w1") == ()


async def finish(cron: CronStore, claim: Claim, plan: Plan) -> None:
    assert await settled(cron, passed(claim), plan)


async def test_news_of_many_have_no_gaps(cron: CronStore) -> None:
    """Twenty runs begin and end side by side: forty numbers, each once, and no reader sees one too early. (A24)"""
    for number in range(20):
        await added(cron, f"{number}", NOW)
    claims = await cron.claim("w1", 100, LEASE)
    over = False

    async def work(claim: Claim) -> None:
        await cron.start([Start(claim, f"r{claim.job.id}")])
        plan = Plan("n", end=TriggerState.COMPLETED, news="run.completed")
        assert await settled(cron, ended(claim, f"r{claim.job.id}"), plan)

    async def read() -> None:
        last = 0
        while not over:
            found = [one.seq for one in await cron.notifications("default", after=last)]
            assert found == list(range(last + 1, last + 1 + len(found)))
            last += len(found)

    async with trio.open_nursery() as readers:
        readers.start_soon(read)
        async with trio.open_nursery() as nursery:
            for claim in claims:
                nursery.start_soon(work, claim)
        over = True
    assert [seq for seq, _ in await told(cron)] == list(range(1, 41))


async def test_jobs_asked_for_by_many_get_numbers_of_their_own(cron: CronStore) -> None:
    """No two are the same, none is left out, and the bound holds. (A1)"""
    made = []

    async def ask(uid: str) -> None:
        made.append(await cron.add_job(new(uid), Plan(uid).first, Bounds(of_tenant=15)))

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(ask, f"{number}")
    assert sorted(job.id for job in made if job is not None) == list(range(1, 16))
    assert made.count(None) == 5


async def test_one_wish_of_many_is_one_job(cron: CronStore) -> None:
    """The same uid at once: one job, and everybody is told of it."""
    made = []

    async def ask() -> None:
        made.append(await cron.add_job(new("a"), Plan("a").first, Bounds(of_tenant=1)))

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(ask)
    assert {job and job.id for job in made} == {1}
    assert len(await cron.jobs("default")) == 1


async def test_one_key_of_many_fires_once(cron: CronStore) -> None:
    """The same idempotency key at once: one trigger, and everybody is told of it. (G8)"""
    await added(cron, "a")
    found = []

    async def fire(number: int) -> None:
        found.append(await cron.fire(Fire(f"f{number}", "default", 1, key="k")))

    async with trio.open_nursery() as nursery:
        for number in range(10):
            nursery.start_soon(fire, number)
    assert len({one and one.id for one in found}) == 1
    assert len(await cron.claim("w1", 100, LEASE)) == 1


async def test_of_two_owners_one_settles(cron: CronStore, wall: Wall) -> None:
    """The old one comes back while another takes over: one of the two ends is kept, and the other is refused. (T19)"""
    old = [await running(cron, f"{number}", f"r{number}") for number in range(10)]
    wall.pass_by(LEASE)
    kept: dict[str, RunState] = {}

    async def take_over() -> None:
        for claim in await cron.claim("w2", 1, LEASE):
            assert claim.lost is not None
            end = ended(claim, claim.lost.id, RunState.FAILED)
            assert await settled(cron, end, Plan(end=TriggerState.FAILED))
            assert kept.setdefault(claim.lost.id, RunState.FAILED) is RunState.FAILED

    async def come_back(claim: Claim, run: str) -> None:
        if await settled(cron, ended(claim, run), Plan(end=TriggerState.COMPLETED)):
            assert kept.setdefault(run, RunState.SUCCEEDED) is RunState.SUCCEEDED

    async with trio.open_nursery() as nursery:
        for number, claim in enumerate(old):
            nursery.start_soon(come_back, claim, f"r{number}")
            nursery.start_soon(take_over)
    assert {run.id: run.state for run in await cron.runs("default")} == kept


async def test_leases_are_renewed_beside_claims(cron: CronStore, wall: Wall) -> None:
    """Whoever renews while others look for what is over keeps its own, or is told that it lost it; never both. (T7)"""
    for number in range(20):
        await added(cron, f"{number}", NOW)
    claims = await cron.claim("w1", 20, LEASE)
    wall.pass_by(LEASE)
    kept: list[str] = []
    taken: list[str] = []

    async def renew(claim: Claim) -> None:
        if await cron.renew([claim], LEASE) == (True,):
            kept.append(claim.trigger.id)

    async def claim() -> None:
        taken.extend(one.trigger.id for one in await cron.claim("w2", 5, LEASE))

    async with trio.open_nursery() as nursery:
        for place, one in enumerate(claims):
            nursery.start_soon(renew, one)
            if place % 5 == 0:
                nursery.start_soon(claim)
    assert not set(kept) & set(taken)
    assert {one.trigger.id for one in await cron.held("w1")} == {one.trigger.id for one in claims} - set(taken)
