"""Leases: a claim lasts as long as it is renewed; what a lost worker held is taken over with the run it had begun."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from store.jobs import RunState, TriggerState
from store.records import WorkerStatus
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
    ended,
    fired,
    passed,
    running,
    settled,
    triggers_of,
)
from tests.contract.picture import cron_picture

if TYPE_CHECKING:
    from store.cron_protocol import CronStore
    from store.protocols import Store
    from tests.contract.backends import Wall

AGAIN = Plan(end=TriggerState.PENDING, again=NOW)


# ── leases ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_lease_that_is_over_can_be_claimed_at_once(cron: CronStore, wall: Wall) -> None:
    """At its last moment, not before; the next owner has a higher token and is told of the lost run. (C4, G16)"""
    claim = await running(cron, "a")
    begun = await cron.run("default", "r1")
    wall.pass_by(LEASE - MOMENT)
    assert await claimed(cron, worker="w2") == []
    wall.pass_by(MOMENT)
    (again,) = await cron.claim("w2", 1, LEASE)
    assert again.lost == begun
    assert again.trigger.token > claim.trigger.token
    assert (again.trigger.owner, again.trigger.attempt) == ("w2", 1)
    assert again.trigger.leased_until == wall.time + LEASE


async def test_a_claim_that_never_began_has_lost_nothing(cron: CronStore, wall: Wall) -> None:
    """Its attempt does not count, and there is no run to end."""
    await added(cron, "a", NOW)
    await claim_one(cron)
    wall.pass_by(LEASE)
    again = await claim_one(cron, "w2")
    assert (again.lost, again.trigger.attempt) == (None, 0)


async def test_an_ended_run_is_not_lost(cron: CronStore) -> None:
    """Another attempt of the same trigger brings only what is still running."""
    claim = await running(cron, "a")
    await settled(cron, ended(claim, state=RunState.FAILED), AGAIN)
    assert (await claim_one(cron)).lost is None


async def test_a_lost_lease_comes_in_its_turn(cron: CronStore, wall: Wall) -> None:
    """It could be claimed when its lease was over, and stands in line by that. (C3)"""
    await running(cron, "a")
    for uid, after in (("b", LEASE - MOMENT), ("c", LEASE + MOMENT)):
        await added(cron, uid, after)
    wall.pass_by(HOUR)
    assert await claimed(cron, worker="w2") == ["b#2", "a#1", "c#3"]


async def test_tokens_rise_with_every_claim(cron: CronStore, wall: Wall) -> None:
    """Also after an end that led to another attempt. (T19)"""
    await added(cron, "a", NOW)
    tokens = []
    for _ in range(3):
        claim = await claim_one(cron)
        tokens.append(claim.trigger.token)
        await settled(cron, passed(claim), AGAIN)
        again = await claim_one(cron)
        tokens.append(again.trigger.token)
        wall.pass_by(LEASE)
    assert tokens == sorted(set(tokens))


async def test_a_renewed_lease_lasts_from_then_on(cron: CronStore, wall: Wall) -> None:
    """A long run does not run twice: nobody else gets it while it is renewed. (T7)"""
    claim = await running(cron, "a")
    for _ in range(3):
        wall.pass_by(LEASE - MOMENT)
        assert await cron.renew([claim], LEASE) == (True,)
        assert await claimed(cron, worker="w2") == []
    renewed = (await triggers_of(cron, claim.job))["a#1"]
    assert renewed.leased_until == wall.time + LEASE
    assert (renewed.token, renewed.owner) == (claim.trigger.token, "w1")
    wall.pass_by(LEASE)
    assert await claimed(cron, worker="w2") == ["a#1"]


async def test_a_lease_that_is_over_but_free_is_renewed(cron: CronStore, wall: Wall) -> None:
    """As long as nobody else has it, it is still its owner's."""
    claim = await running(cron, "a")
    wall.pass_by(HOUR)
    assert await cron.renew([claim], LEASE) == (True,)
    assert await claimed(cron, worker="w2") == []


async def test_what_is_not_mine_is_not_renewed(whole: Store, cron: CronStore, wall: Wall) -> None:
    """Each by itself: settled, taken over and removed are refused, the others are not held up by them. (T19)"""
    claims = {}
    for uid in ("mine", "settled", "taken", "gone"):
        await added(cron, uid, NOW)
        claims[uid] = await claim_one(cron, span=MINUTE if uid == "taken" else LEASE)
    await settled(cron, passed(claims["settled"]), DONE)
    wall.pass_by(MINUTE)
    taken = await claim_one(cron, "w2")
    await changed(cron, claims["gone"].job, Plan(remove=True))
    asked = [claims[uid] for uid in ("taken", "mine", "settled", "gone")]
    assert await cron.renew(asked, HOUR) == (False, True, False, False)
    assert (await triggers_of(cron, taken.job))["taken#3"] == taken.trigger
    assert await cron.renew([], HOUR) == ()


async def test_an_older_claim_of_the_same_worker_is_stale_too(whole: Store, cron: CronStore, wall: Wall) -> None:
    """The token decides, not the name: what a frozen task still holds is refused. (T7, T19)"""
    old = await running(cron, "a")
    wall.pass_by(LEASE)
    await claim_one(cron)
    before = await cron_picture(whole)
    assert await cron.renew([old], HOUR) == (False,)
    assert not await settled(cron, ended(old))
    assert await cron_picture(whole) == before


# ── orphans ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def beating(whole: Store, *workers: str) -> None:
    for worker in workers:
        await whole.beat(worker, WorkerStatus.ALIVE)


async def test_the_runs_of_a_silent_worker_are_taken_over(whole: Store, cron: CronStore, wall: Wall) -> None:
    """Two heartbeats missed and the lease over: another worker gets trigger and lost run together. (G15, 27)"""
    await beating(whole, "w1")
    claim = await running(cron, "a")
    wall.pass_by(LEASE)
    (orphan,) = await cron.claim_orphans("w2", 9, HOUR, LEASE)
    assert orphan.lost is not None
    assert (orphan.lost.id, orphan.trigger.owner) == ("r1", "w2")
    assert orphan.trigger.token > claim.trigger.token
    assert orphan.trigger.leased_until == wall.time + HOUR
    assert await cron.claim_orphans("w3", 9, HOUR, LEASE) == ()


@pytest.mark.parametrize("left", [True, False])
async def test_the_runs_of_a_worker_that_is_not_there_are_taken_over(
    whole: Store, cron: CronStore, wall: Wall, left: bool
) -> None:
    """It has left, or nobody ever heard of it: it need not be silent for long. (G17)"""
    if left:
        await beating(whole, "w1")
        await whole.leave("w1")
    await running(cron, "a")
    wall.pass_by(LEASE)
    assert [one.trigger.id for one in await cron.claim_orphans("w2", 9, HOUR, timedelta(days=9))] == ["a#1"]


async def test_a_worker_that_is_alive_is_spared(whole: Store, cron: CronStore, wall: Wall) -> None:
    """Heard of within that time, to the moment: its run is no orphan although the lease is over. (G15)"""
    await running(cron, "a")
    wall.pass_by(LEASE)
    await beating(whole, "w1")
    wall.pass_by(2 * MINUTE - MOMENT)
    assert await cron.claim_orphans("w2", 9, HOUR, 2 * MINUTE) == ()
    wall.pass_by(MOMENT)
    assert len(await cron.claim_orphans("w2", 9, HOUR, 2 * MINUTE)) == 1


async def test_a_lease_that_is_not_over_is_spared(cron: CronStore, wall: Wall) -> None:
    """However silent its worker is. (G16)"""
    await running(cron, "a")
    wall.pass_by(LEASE - MOMENT)
    assert await cron.claim_orphans("w2", 9, HOUR, NOW) == ()
    wall.pass_by(MOMENT)
    assert len(await cron.claim_orphans("w2", 9, HOUR, NOW)) == 1


async def test_what_waits_is_no_orphan(cron: CronStore) -> None:
    """Pending triggers have no owner who could be silent."""
    await added(cron, "a", NOW)
    assert await cron.claim_orphans("w2", 9, HOUR, NOW) == ()


async def test_orphans_come_oldest_first(whole: Store, cron: CronStore, wall: Wall) -> None:
    """As many as asked for."""
    for number in range(4):
        await added(cron, f"{number}", NOW)
        await claim_one(cron, span=LEASE - number * MINUTE)
    wall.pass_by(HOUR)
    found = [[one.trigger.id for one in await cron.claim_orphans("w2", limit, HOUR, NOW)] for limit in (0, 3, 3)]
    assert found == [[], ["3#4", "2#3", "1#2"], ["0#1"]]


# ── held ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_worker_finds_what_it_holds(whole: Store, cron: CronStore, wall: Wall) -> None:
    """After a lost answer or a restart: its own claims with the runs that were begun, also if a lease is over. (G17)"""
    mine = await running(cron, "a")
    await added(cron, "b", NOW)
    await claim_one(cron)
    await added(cron, "c", NOW)
    await claim_one(cron, "w2")
    wall.pass_by(HOUR)
    held = await cron.held("w1")
    assert [(one.trigger.id, one.lost and one.lost.id) for one in held] == [("a#1", "r1"), ("b#2", None)]
    assert held[0].trigger.token == mine.trigger.token
    assert await cron.renew(held, LEASE) == (True, True)
    assert await settled(cron, ended(held[0]))
    assert [one.trigger.id for one in await cron.held("w1")] == ["b#2"]
    assert await cron.held("w3") == ()


async def test_what_is_held_can_be_handed_back(cron: CronStore) -> None:
    """A shutdown costs no attempt, and somebody else goes on at once."""
    claim = await running(cron, "a")
    back = Plan(end=TriggerState.PENDING, again=NOW, counts=False)
    assert await settled(cron, ended(claim, state=RunState.CANCELLED), back)
    assert await cron.held("w1") == ()
    again = await claim_one(cron, "w2")
    assert (again.trigger.attempt, again.lost) == (0, None)


# ── how long until then ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_nothing_is_ever_due_without_a_trigger(cron: CronStore) -> None:
    """Nobody has to wake up for it. (P13)"""
    assert await cron.next_due() is None
    job = await added(cron, "a", NOW)
    await changed(cron, job, PASSED)
    assert await cron.next_due() is None


async def test_the_earliest_pending_trigger_is_waited_for(whole: Store, cron: CronStore, wall: Wall) -> None:
    """Of whichever tenant; what is late is due since then."""
    await whole.create_tenant("t")
    await added(cron, "a", HOUR)
    await added(cron, "b", MINUTE, tenant="t")
    assert await cron.next_due() == MINUTE
    wall.pass_by(MINUTE + MOMENT)
    assert await cron.next_due() == -MOMENT


async def test_the_end_of_a_lease_is_waited_for(cron: CronStore, wall: Wall) -> None:
    """What executes can be claimed then, and its renewal moves that. (C4)"""
    await added(cron, "a", NOW)
    claim = await claim_one(cron)
    assert await cron.next_due() == LEASE
    wall.pass_by(MINUTE)
    assert await cron.next_due() == LEASE - MINUTE
    await cron.renew([claim], HOUR)
    assert await cron.next_due() == HOUR


async def test_what_waits_behind_its_own_job_is_not_due(cron: CronStore) -> None:
    """It cannot be claimed, so nobody turns in circles for it until the other one has ended. (P13, 30)"""
    job = await added(cron, "a", NOW)
    await fired(cron, job)
    claim = await claim_one(cron)
    assert await claimed(cron) == []
    assert await cron.next_due() == LEASE
    await settled(cron, passed(claim), DONE)
    assert await cron.next_due() == NOW
