"""Firing: one more trigger beside the schedule, once for each wish, whatever the schedule says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from store.jobs import Fire, JobStatus, Trigger, TriggerKind, TriggerState
from store.protocols import RuleBroken
from tests.contract.cron_rows import (
    ANY,
    DONE,
    HOUR,
    MINUTE,
    WEBHOOK,
    Plan,
    added,
    changed,
    claim_one,
    claimed,
    fired,
    job_now,
    new,
    passed,
    planned_of,
    settled,
    triggers_of,
)
from tests.contract.picture import cron_picture

if TYPE_CHECKING:
    from store.cron_protocol import CronStore
    from store.protocols import Store
    from tests.contract.backends import Wall


async def test_a_fired_trigger_is_due_now_beside_the_planned_one(cron: CronStore, wall: Wall) -> None:
    """The schedule goes on as if nothing had been: "run now" moves no plan and counts as no slot. (C22, J1)"""
    job = await added(cron, "a", HOUR)
    wall.pass_by(MINUTE)
    trigger = await fired(cron, job, "f", key="k\x00", trace="t\x00")
    kind, now = TriggerKind.MANUAL, wall.time
    assert trigger == Trigger("f", "default", 1, "main", kind, now, now, now, key="k\x00", trace="t\x00")
    assert await cron.trigger("default", "f") == trigger
    assert await job_now(cron, job) == job
    assert [one.id for one in await planned_of(cron, job)] == ["a#1"]
    claim = await claim_one(cron)
    assert claim.trigger.id == "f"
    await settled(cron, passed(claim), Plan(end=TriggerState.COMPLETED))
    assert [one.id for one in await planned_of(cron, job)] == ["a#1"]
    assert (await job_now(cron, job)).next_at == job.next_at


async def test_the_same_id_fires_once(whole: Store, cron: CronStore, wall: Wall) -> None:
    """Asked again after a lost answer: the same trigger, as it is by then."""
    job = await added(cron, "a")
    await fired(cron, job, "f")
    await settled(cron, passed(await claim_one(cron)), Plan(end=TriggerState.COMPLETED))
    before = await cron_picture(whole)
    again = await fired(cron, job, "f", key="other")
    assert again.state is TriggerState.COMPLETED
    assert await cron_picture(whole) == before


async def test_the_same_key_fires_once(whole: Store, cron: CronStore) -> None:
    """Whatever the id, and also when the first one has ended or was for another job of the tenant. (G8)"""
    job, other = await added(cron, "a"), await added(cron, "b")
    first = await fired(cron, job, "f1", key="k")
    assert await fired(cron, job, "f2", key="k") == first
    await settled(cron, passed(await claim_one(cron)), Plan(end=TriggerState.COMPLETED))
    before = await cron_picture(whole)
    assert (await fired(cron, other, "f3", key="k")).id == "f1"
    assert await cron_picture(whole) == before
    assert await claimed(cron) == []


async def test_without_a_key_every_wish_fires(cron: CronStore) -> None:
    """No key is no key in common; an empty one is one. (G8)"""
    job = await added(cron, "a")
    names = [(await fired(cron, job, f"f{number}")).id for number in range(3)]
    assert names == ["f0", "f1", "f2"]
    assert [(await fired(cron, job, f"e{number}", key="")).id for number in range(2)] == ["e0", "e0"]


async def test_a_key_and_an_id_belong_to_their_tenant(whole: Store, cron: CronStore) -> None:
    """The same ones of another tenant fire another trigger, and neither sees the other's. (G8, P11)"""
    await whole.create_tenant("t")
    ours, theirs = await added(cron, "a"), await added(cron, "a", tenant="t")
    await fired(cron, ours, "f", key="k")
    await fired(cron, theirs, "f", key="k")
    assert [one.trigger.tenant for one in await cron.claim("w1", 9, HOUR)] == ["default", "t"]


async def test_an_ended_job_does_not_fire(whole: Store, cron: CronStore) -> None:
    """None, and nothing is kept; what was fired before is still told. (G20)"""
    for end in (one for one in JobStatus if one.ended):
        job = await added(cron, end)
        fire = await fired(cron, job, f"before {end}", key=f"key {end}")
        await changed(cron, job, Plan(status=end, withdraw=True))
        before = await cron_picture(whole)
        assert await cron.fire(Fire("f", *job.key)) is None
        assert await fired(cron, job, fire.id) == await fired(cron, job, "x", key=fire.key) == fire
        assert await cron_picture(whole) == before


async def test_a_job_that_nobody_knows_does_not_fire(cron: CronStore) -> None:
    """None, and nothing waits for it."""
    assert await cron.fire(Fire("f", "default", 1)) is None
    assert await cron.fire(Fire("f", "nobody", 1)) is None
    assert await cron.trigger("default", "f") is None
    assert await cron.next_due() is None


async def test_a_paused_job_can_be_fired(cron: CronStore) -> None:
    """Paused is its schedule, not the job: whoever asks for a run gets one. (L14)"""
    job = await added(cron, "a")
    await changed(cron, job, Plan(status=JobStatus.PAUSED, withdraw=True))
    await fired(cron, job, "f")
    assert await claimed(cron) == ["f"]


async def test_a_webhook_job_fires_only_so(cron: CronStore) -> None:
    """It has no planned trigger, before and after. (H5)"""
    job = await cron.add_job(new("a", timing=WEBHOOK), Plan().first, ANY)
    assert job is not None
    assert job.next_at is None
    await fired(cron, job, "f", kind=TriggerKind.WEBHOOK)
    await settled(cron, passed(await claim_one(cron)), Plan(end=TriggerState.COMPLETED))
    assert list(await triggers_of(cron, job)) == ["f"]
    assert (await job_now(cron, job)).next_at is None


async def test_a_manual_trigger_is_not_withdrawn(cron: CronStore) -> None:
    """Only the planned one is: what somebody asked for stays until it ran or was dropped."""
    job = await added(cron, "a")
    await fired(cron, job, "f")
    await changed(cron, job, Plan("b", withdraw=True))
    assert sorted(await triggers_of(cron, job)) == ["b#1", "f"]


async def test_a_manual_run_can_bring_back_a_lost_plan(cron: CronStore) -> None:
    """Settling it adds a next trigger if there is none, and only then. (P9)"""
    job = await added(cron, "a")
    await fired(cron, job, "f1")
    await settled(cron, passed(await claim_one(cron)), DONE)
    assert [one.id for one in await planned_of(cron, job)] == ["a#1"]
    await changed(cron, job, Plan(withdraw=True))
    await fired(cron, job, "f2")
    await settled(cron, passed(await claim_one(cron)), DONE)
    assert [one.id for one in await planned_of(cron, job)] == ["next#1"]


async def test_half_a_character_fires_nothing(whole: Store, cron: CronStore) -> None:
    """It is refused, and nothing is kept."""
    await added(cron, "a")
    before = await cron_picture(whole)
    for fire in (
        Fire("\ud83d", "default", 1),
        Fire("f", "default", 1, key="\ud83d"),
        Fire("f", "default", 1, trace="\ud83d"),
    ):
        with pytest.raises(RuleBroken):
            await cron.fire(fire)
        assert await cron_picture(whole) == before
