"""Tenants and cron: nobody sees, holds or ends what is another's, and a deleted one takes all of it along."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from store.jobs import Ended, Fire, Start, TriggerState
from tests.contract.cron_rows import (
    HOUR,
    LEASE,
    NOW,
    Plan,
    added,
    changed,
    claim_one,
    ended,
    fired,
    job_now,
    passed,
    running,
    settled,
    started,
)
from tests.contract.picture import LONG_AGO, cron_picture, picture
from tests.contract.rows import HERE, waiting_replies

if TYPE_CHECKING:
    from store.cron_protocol import CronStore
    from store.jobs import Claim
    from store.protocols import MessageStore, Store
    from tests.contract.backends import Wall

ALL = Plan("n", end=TriggerState.COMPLETED, note="answer", said="answer", news="run.completed", stretch="s")


async def fill(whole: Store, cron: CronStore, tenant: str) -> Claim:
    """Something of everything, under the names that other tenants use too; one run goes on."""
    await whole.create_tenant(tenant)
    claim = await running(cron, "a", tenant=tenant, deliver_to=replace(HERE, tenant=tenant))
    await settled(cron, ended(claim, output="x" * 9000), ALL)
    await fired(cron, await added(cron, "b", tenant=tenant), "f", key="k")
    claim = await claim_one(cron)
    await started(cron, claim, "r2")
    return claim


async def test_nobody_sees_what_is_anothers(whole: Store, cron: CronStore) -> None:
    """Every verb, asked by another tenant with ids that are there, finds nothing and changes nothing. (P11, A27)"""
    await whole.create_tenant("t")
    await fill(whole, cron, "default")
    before = await cron_picture(whole)

    def fails(*_: object) -> None:
        raise ZeroDivisionError

    assert await cron.job("t", 1) is None
    assert not [*await cron.jobs("t"), *await cron.triggers("t", 1), *await cron.notifications("t")]
    assert await cron.runs("t") == await cron.runs("t", job=1) == await cron.runs("t", since=LONG_AGO) == ()
    assert await cron.change_job("t", 1, fails) is None
    assert await cron.fire(Fire("f", "t", 2, key="k")) is None
    assert [await cron.trigger("t", name) for name in ("a#1", "f")] == [None, None]
    assert [await read("t", "r1") for read in (cron.run, cron.output)] == [None, None]
    assert await cron.counts("t") == (0, 0, 0, 0)
    assert await cron_picture(whole) == before


async def test_nobody_holds_what_is_anothers(whole: Store, cron: CronStore) -> None:
    """A claim that names another tenant is nobody's: not renewed, started or settled. (P11)"""
    await whole.create_tenant("t")
    claim = await fill(whole, cron, "default")
    before = await cron_picture(whole)
    forged = replace(
        claim,
        trigger=replace(claim.trigger, tenant="t"),
        job=replace(claim.job, spec=replace(claim.job.spec, tenant="t")),
    )
    assert await cron.renew([forged], LEASE) == (False,)
    assert await cron.start([Start(forged, "r9")]) == (None,)
    assert await cron.settle([ended(forged, "r2")], ALL.conclude) == (False,)
    assert await cron_picture(whole) == before


async def test_the_same_names_in_two_tenants_are_two(whole: Store, cron: CronStore) -> None:
    """Jobs, triggers, keys, runs and outputs of equal names live side by side, each with its own history. (P11, A26)"""
    ours = await fill(whole, cron, "default")
    before = await cron_picture(whole, ["default"], workers=())
    theirs = await fill(whole, cron, "t")
    assert ours.trigger.id == theirs.trigger.id
    assert await cron_picture(whole, ["default"], workers=()) == before
    assert await settled(cron, ended(theirs, "r2"), ALL)
    await changed(cron, theirs.job, Plan(remove=True))
    assert await cron_picture(whole, ["default"], workers=()) == before


async def test_a_deleted_tenant_takes_its_jobs_along(whole: Store, store: MessageStore, cron: CronStore) -> None:
    """Jobs, triggers, runs, outputs and news in every state; nothing of it is ever due or held. (A26, P11)"""
    claim = await fill(whole, cron, "t")
    assert await whole.delete_tenant("t")
    for again in (False, True):
        if again:
            await whole.create_tenant("t")
        assert not [*await cron.jobs("t"), *await cron.runs("t"), *await cron.notifications("t")]
        assert not [*await cron.triggers("t", 1), *await cron.triggers("t", 2), *await cron.held("w1")]
        assert [await cron.run("t", "r1"), await cron.output("t", "r1"), await cron.trigger("t", "f")] == [None] * 3
        assert (await cron.next_due(), await cron.counts("t"), await cron.unplanned()) == (None, (0, 0, 0, 0), ())
        assert await waiting_replies(store) == []
        assert not await settled(cron, ended(claim, "r2"), ALL)
        assert await cron.renew([claim], LEASE) == (False,)
        assert await cron.start([Start(claim, "r3")]) == (None,)


async def test_a_tenant_that_comes_again_begins_anew(whole: Store, cron: CronStore) -> None:
    """Its jobs and its news are numbered from one, and nothing old stands in the way of an id."""
    await fill(whole, cron, "t")
    await whole.delete_tenant("t")
    claim = await fill(whole, cron, "t")
    assert claim.job.id == 2
    assert [one.seq for one in await cron.notifications("t")] == [1, 2, 3]


async def test_a_deleted_tenant_takes_nothing_of_others(whole: Store, store: MessageStore, cron: CronStore) -> None:
    """Also if a name begins alike. (P11)"""
    for tenant in ("default", "t2"):
        await fill(whole, cron, tenant)
    before = await picture(whole, store)
    await fill(whole, cron, "t")
    await whole.delete_tenant("t")
    assert await picture(whole, store) == before


async def test_a_claim_tells_whether_its_tenant_is_enabled(whole: Store, cron: CronStore, wall: Wall) -> None:
    """What a disabled one means is decided by whoever claims; it is told in every kind of claim. (A28)"""
    await whole.create_tenant("t")
    await added(cron, "a", NOW, tenant="t")
    await whole.enable_tenant("t", False)
    claim = await claim_one(cron)
    assert not claim.tenant_enabled
    assert [one.tenant_enabled for one in await cron.held("w1")] == [False]
    await whole.enable_tenant("t", True)
    assert [one.tenant_enabled for one in await cron.held("w1")] == [True]
    await whole.enable_tenant("t", False)
    wall.pass_by(LEASE)
    (orphan,) = await cron.claim_orphans("w2", 9, LEASE, NOW)
    assert not orphan.tenant_enabled
    assert await settled(cron, passed(orphan), Plan(end=TriggerState.PENDING, again=HOUR))


async def test_a_disabled_tenant_keeps_its_jobs(whole: Store, cron: CronStore) -> None:
    """Switching it off and on changes none of them. (A28)"""
    await whole.create_tenant("t")
    job = await added(cron, "a", tenant="t")
    before = await cron_picture(whole)
    for enabled in (False, True):
        await whole.enable_tenant("t", enabled)
        assert await job_now(cron, job) == job
        assert await cron_picture(whole) == before
    await added(cron, "b", tenant="t")


async def test_a_run_is_its_triggers(whole: Store, cron: CronStore) -> None:
    """Naming another tenant's run at the end of one's own claim leaves that run as it is. (P11)"""
    await fill(whole, cron, "default")
    before = await cron_picture(whole, ["default"], workers=())
    await whole.create_tenant("t")
    await added(cron, "a", NOW, tenant="t")
    (claim,) = await cron.claim("w2", 1, LEASE)
    assert await settled(cron, Ended(claim, "r2", output="not mine"), ALL)
    after = await cron_picture(whole, ["default"], workers=())
    assert {**after, "next due": None} == {**before, "next due": None}
    assert await cron.runs("t") == ()
