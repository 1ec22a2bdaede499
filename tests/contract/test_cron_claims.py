"""Claims: what is due, to the moment, is one worker's at a time; tenants take turns, and no job runs beside itself."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from store.jobs import JobStatus, TriggerState
from store.protocols import RuleBroken
from tests.contract.cron_rows import (
    DONE,
    HOUR,
    LEASE,
    MINUTE,
    MOMENT,
    NOW,
    PASSED,
    Plan,
    added,
    changed,
    claim_one,
    claimed,
    fired,
    job_now,
    passed,
    settled,
    started,
)
from tests.contract.picture import cron_picture

if TYPE_CHECKING:
    from store.cron_protocol import CronStore
    from store.protocols import Store
    from tests.contract.backends import Wall

AGAIN = Plan(end=TriggerState.PENDING, again=NOW)


# ── due ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_nothing_is_claimed_before_it_is_due(cron: CronStore, wall: Wall) -> None:
    """Not a microsecond early: a job of noon never runs at 11:59:59.999999. (T6)"""
    await added(cron, "a", HOUR)
    wall.pass_by(HOUR - MOMENT)
    assert await claimed(cron) == []
    wall.pass_by(MOMENT)
    assert await claimed(cron) == ["a#1"]


async def test_a_claim_tells_all_that_its_worker_needs(cron: CronStore, wall: Wall) -> None:
    """The trigger under a new token, the job as it is, the time by the store's clock, no lost run. (G5)"""
    job = await added(cron, "a", NOW)
    wall.pass_by(MINUTE)
    (claim,) = await cron.claim("w1", 1, LEASE)
    trigger = await cron.trigger("default", "a#1")
    assert (claim.trigger, claim.job, claim.claimed_at) == (trigger, job, wall.time)
    assert (claim.lost, claim.tenant_enabled) == (None, True)
    assert (claim.trigger.state, claim.trigger.owner, claim.trigger.token, claim.trigger.attempt) == (
        TriggerState.EXECUTING,
        "w1",
        1,
        0,
    )
    assert claim.trigger.leased_until == wall.time + LEASE
    assert await job_now(cron, job) == job


async def test_the_oldest_comes_first(cron: CronStore, wall: Wall) -> None:
    """By when it could be claimed, not by when it was made. (C3)"""
    for uid, after in (("a", 3 * MINUTE), ("b", MINUTE), ("c", 2 * MINUTE)):
        await added(cron, uid, after)
    wall.pass_by(HOUR)
    assert await claimed(cron, 2) == ["b#2", "c#3"]
    assert await claimed(cron, 2) == ["a#1"]


async def test_equal_times_go_by_id(cron: CronStore) -> None:
    """So that every store answers alike."""
    for uid in "cab":
        await added(cron, uid, NOW)
    assert await claimed(cron) == ["a#2", "b#3", "c#1"]


async def test_no_slot_no_claim(cron: CronStore) -> None:
    """Less than one is none. (G6)"""
    await added(cron, "a", NOW)
    for limit in (0, -1, -(2**70)):
        assert await cron.claim("w1", limit, LEASE) == ()
    assert await claimed(cron, 2**70) == ["a#1"]


async def test_a_backlog_is_claimed_in_batches(cron: CronStore) -> None:
    """At most so many at a time, each once, until there is no more. (C3)"""
    for number in range(25):
        await added(cron, f"{number}", NOW)
    batches = [await claimed(cron, 10) for _ in range(4)]
    assert [len(batch) for batch in batches] == [10, 10, 5, 0]
    assert len({one for batch in batches for one in batch}) == 25


async def test_a_second_claim_at_the_same_instant_gives_none_of_them(cron: CronStore) -> None:
    """What is claimed is claimed, for the same worker too. (C2, G5)"""
    for uid in "ab":
        await added(cron, uid, NOW)
    assert len(await claimed(cron)) == 2
    assert await claimed(cron) == await claimed(cron, worker="w2") == []


async def test_only_open_triggers_are_claimed(cron: CronStore) -> None:
    """Not what has ended, in whatever way. (G9)"""
    for uid, plan in (("a", PASSED), ("b", DONE), ("c", Plan(end=TriggerState.FAILED))):
        await added(cron, uid, NOW)
        await settled(cron, passed(await claim_one(cron)), plan)
    await changed(cron, await added(cron, "d", NOW), Plan(withdraw=True))
    await changed(cron, await added(cron, "e", NOW), Plan(stretch="s"))
    assert await claimed(cron) == ["e#5"]


async def test_a_claim_needs_a_name_of_whole_characters(whole: Store, cron: CronStore) -> None:
    """Half a one is refused, and nothing is claimed by it."""
    await added(cron, "a", NOW)
    before = await cron_picture(whole)
    with pytest.raises(RuleBroken):
        await cron.claim("\ud83d", 1, LEASE)
    with pytest.raises(RuleBroken):
        await cron.claim_orphans("\ud83d", 1, LEASE, MINUTE)
    assert await cron_picture(whole) == before


# ── whose turn ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def flooded(whole: Store, cron: CronStore, wall: Wall, *tenants: str) -> None:
    """The first tenant has ten jobs that were due before the only two of each other one."""
    for place, tenant in enumerate(tenants):
        await whole.create_tenant(tenant)
        for number in range(2 if place else 10):
            await added(cron, f"{tenant}{number}", place * MINUTE + number * MOMENT, tenant=tenant)
    wall.pass_by(HOUR)


async def test_tenants_take_turns(whole: Store, cron: CronStore, wall: Wall) -> None:
    """One each, and one each again: ten jobs of one do not come before the first of another. (A28)"""
    await flooded(whole, cron, wall, "a", "b", "c")
    found = await claimed(cron, 7)
    assert found == ["a0#1", "b0#1", "c0#1", "a1#2", "b1#2", "c1#2", "a2#3"]


async def test_turns_go_round_from_claim_to_claim(whole: Store, cron: CronStore, wall: Wall) -> None:
    """One at a time, beginning after whoever was last: nobody waits for more than the others' one each."""
    await flooded(whole, cron, wall, "a", "b", "c")
    order, after = [], ""
    for _ in range(7):
        (claim,) = await cron.claim("w1", 1, LEASE, after=after)
        after = claim.trigger.tenant
        order.append(after)
    assert order == ["a", "b", "c", "a", "b", "c", "a"]


async def test_turns_begin_after_a_name(whole: Store, cron: CronStore) -> None:
    """In the order of the characters' numbers, and after the last one with the first; the name need not be known."""
    for tenant in ("é", "b", "B", "a"):
        await whole.create_tenant(tenant)
        await added(cron, tenant, NOW, tenant=tenant)
    turns = {"": "B", "a": "b", "b": "é", "aa": "b", "é": "B", "🦀": "B", "A": "B"}
    for after, first in turns.items():
        (claim,) = await cron.claim("w1", 1, LEASE, after=after)
        assert claim.trigger.tenant == first
        await settled(cron, passed(claim), Plan(end=TriggerState.PENDING, again=NOW))


async def test_inside_a_tenant_the_oldest_comes_first(whole: Store, cron: CronStore, wall: Wall) -> None:
    """Whoever's turn it is."""
    await whole.create_tenant("t")
    for tenant in ("default", "t"):
        for uid, after in (("x", MINUTE), ("y", NOW)):
            await added(cron, f"{tenant} {uid}", after, tenant=tenant)
    wall.pass_by(HOUR)
    assert await claimed(cron, 4) == ["default y#2", "t y#2", "default x#1", "t x#1"]


async def test_an_agent_gets_what_it_has_room_for(cron: CronStore, wall: Wall) -> None:
    """At most so many of those named; the others as many as there are. (H17)"""
    for number, agent in enumerate(("x", "x", "x", "y", "y", "z")):
        await added(cron, f"{number}", number * MOMENT, agent=agent)
    wall.pass_by(HOUR)
    assert await claimed(cron, room={"x": 2, "y": 0}) == ["0#1", "1#2", "5#6"]
    assert await claimed(cron, room={"x": 0, "y": -1}) == []
    assert await claimed(cron, room={}) == ["2#3", "3#4", "4#5"]


async def test_room_is_for_an_agent_in_all_tenants(whole: Store, cron: CronStore) -> None:
    """What one tenant's jobs take of it the others' do not get."""
    await whole.create_tenant("t")
    for tenant in ("default", "t"):
        await added(cron, tenant, NOW, tenant=tenant, agent="x")
    assert await claimed(cron, room={"x": 1}) == ["default#1"]
    assert await claimed(cron, room={"x": 1}) == ["t#1"]


async def test_no_room_for_one_agent_costs_another_nothing(cron: CronStore, wall: Wall) -> None:
    """However many of the full one's wait in front. (J3, 29)"""
    for number in range(30):
        await added(cron, f"{number}", number * MOMENT, agent="full")
    await added(cron, "free", MINUTE, agent="free")
    wall.pass_by(HOUR)
    assert await claimed(cron, 1, room={"full": 0}) == ["free#31"]


async def test_a_job_never_runs_beside_itself(cron: CronStore) -> None:
    """A manual trigger waits while the scheduled one executes, and comes when that has ended. (P4, H17, 28)"""
    job = await added(cron, "a", NOW)
    await fired(cron, job)
    claim = await claim_one(cron)
    assert await claimed(cron) == []
    await settled(cron, passed(claim), DONE)
    assert (await claim_one(cron)).trigger.id == "fire"
    assert await claimed(cron) == []


async def test_one_claim_takes_one_trigger_of_a_job(cron: CronStore) -> None:
    """Two that are due at once are not both in it. (P4)"""
    job = await added(cron, "a", NOW)
    for name in ("f1", "f2"):
        await fired(cron, job, name)
    await added(cron, "b", NOW)
    first = await cron.claim("w1", 9, LEASE)
    assert sorted(claim.job.id for claim in first) == [1, 2]


async def test_a_waiting_attempt_lets_another_trigger_go_first(cron: CronStore, wall: Wall) -> None:
    """What waits to be tried again does not execute, so a manual one may run meanwhile. (L16)"""
    job = await added(cron, "a", NOW)
    await settled(cron, passed(await claim_one(cron)), Plan(end=TriggerState.PENDING, again=MINUTE))
    await fired(cron, job)
    assert await claimed(cron) == ["fire"]
    wall.pass_by(MINUTE)
    assert await claimed(cron) == []


async def test_each_is_claimed_by_as_many_as_begin(cron: CronStore) -> None:
    """Claims of several workers are apart."""
    for number in range(6):
        await added(cron, f"{number}", NOW)
    taken = Counter([*await claimed(cron, 2), *await claimed(cron, 2, "w2"), *await claimed(cron, 9, "w3")])
    assert set(taken.values()) == {1}
    assert len(taken) == 6
    assert [len(await cron.held(worker)) for worker in ("w1", "w2", "w3")] == [2, 2, 2]


async def test_a_paused_jobs_claim_shows_it(cron: CronStore) -> None:
    """The job comes as it is at the time of the claim; what it means is decided by whoever claims. (C21)"""
    job = await added(cron, "a", NOW)
    await changed(cron, job, Plan(status=JobStatus.PAUSED))
    claim = await claim_one(cron)
    assert claim.job == await job_now(cron, job)
    assert claim.job.status is JobStatus.PAUSED
    await started(cron, claim)
