"""One end for each attempt: whole or not at all, by whoever has the claim, from what the job is by then."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from store.jobs import Change, Ended, Fire, Job, JobStatus, RunState, Start, TriggerState
from store.protocols import RuleBroken
from store.records import Note, Role, Said
from tests.contract.cron_rows import (
    DONE,
    HOUR,
    LEASE,
    MINUTE,
    MOMENT,
    NOW,
    Plan,
    added,
    changed,
    claim_one,
    ended,
    fired,
    job_now,
    passed,
    planned_of,
    run_now,
    running,
    settled,
    started,
    told,
    triggers_of,
)
from tests.contract.picture import cron_picture, picture
from tests.contract.rows import HERE, waiting_replies

if TYPE_CHECKING:
    from datetime import datetime

    from store.cron_protocol import CronStore
    from store.jobs import Claim, Trigger
    from store.protocols import MessageStore, Store
    from tests.contract.backends import Wall

ALL = Plan("next", end=TriggerState.COMPLETED, stretch="s", note="the answer", said="the answer", news="run.completed")
CRAB = "🦀"


# ── all or nothing ───────────────────────────────────────────────────────────────────────────────────────────────────


def fails(*_: object) -> Change:
    raise ZeroDivisionError


async def test_a_decision_that_fails_settles_nothing(whole: Store, store: MessageStore, cron: CronStore) -> None:
    """What was raised comes out, and the claim can still be settled. (P9)"""
    claim = await running(cron, "a", deliver_to=HERE)
    before = await picture(whole, store)
    with pytest.raises(ZeroDivisionError):
        await cron.settle([ended(claim)], fails)
    assert await picture(whole, store) == before
    assert await settled(cron, ended(claim), ALL)


def odd(field: str, value: object) -> Any:
    """A decision in which one part cannot be kept."""

    def conclude(job: Job, trigger: Trigger, end: Ended, now: datetime) -> Change:
        change = ALL.conclude(job, trigger, end, now)
        parts = {
            "said": {"said": (Said(Role.USER, "fine"), Said(Role.USER, "odd", {"not json": value}))},
            "news": {"news": (replace(change.news[0], data={"not json": value}),)},
            "note": {"notes": (*change.notes, Note(replace(HERE, tenant="t"), "to another"))},
            "chat": {"notes": (Note(replace(HERE, chat="\ud83d"), "half"),)},
        }
        return replace(change, **parts[field])  # type: ignore[arg-type]

    return conclude


async def test_what_cannot_be_kept_settles_nothing(whole: Store, store: MessageStore, cron: CronStore) -> None:
    """One part that breaks a rule, and no other part is written: not the run, not the plan, not the answer. (P11)"""
    await whole.create_tenant("t")
    claim = await running(cron, "a", deliver_to=HERE)
    before = await picture(whole, store)
    parts = [("said", float("nan")), ("said", {1}), ("news", float("inf")), ("note", 0), ("chat", 0)]
    for part, value in parts:
        with pytest.raises(RuleBroken):
            await cron.settle([ended(claim)], odd(part, value))
        assert await picture(whole, store) == before
    for half in (ended(claim, output="\ud83d"), ended(claim, error="\ud83d")):
        with pytest.raises(RuleBroken):
            await settled(cron, half, ALL)
        assert await picture(whole, store) == before
    assert await settled(cron, ended(claim), ALL)


async def test_what_was_handed_in_cannot_be_changed_afterwards(whole: Store, cron: CronStore) -> None:
    """Whoever still holds the data changes only their own."""
    claim = await running(cron, "a", deliver_to=HERE)
    data: dict[str, object] = {"deep": [1]}

    def conclude(job: Job, trigger: Trigger, end: Ended, now: datetime) -> Change:
        change = ALL.conclude(job, trigger, end, now)
        said = (Said(Role.USER, "x", data),)
        return replace(change, said=said, news=(replace(change.news[0], data=data),))

    await cron.settle([ended(claim)], conclude)
    data["deep"] = "other"
    assert (await cron.notifications("default", after=1))[0].news.data == {"deep": [1]}
    assert (await whole.transcript(HERE))[0].said.data == {"deep": [1]}


# ── whose claim ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_stale_claim_settles_nothing(whole: Store, store: MessageStore, cron: CronStore, wall: Wall) -> None:
    """Another owner has it: False, not a word of it is kept, and nothing is even decided. (T19, P4)"""
    old = await running(cron, "a", deliver_to=HERE)
    wall.pass_by(LEASE)
    again = await claim_one(cron, "w2")
    before = await picture(whole, store)
    assert await cron.settle([ended(old)], fails) == (False,)
    assert await picture(whole, store) == before
    assert await settled(cron, ended(again), ALL)
    assert not await settled(cron, ended(old), ALL)


async def test_a_lease_that_is_over_but_free_settles(cron: CronStore, wall: Wall) -> None:
    """As long as nobody else has claimed it, the work that was done counts."""
    claim = await running(cron, "a")
    wall.pass_by(HOUR)
    assert await settled(cron, ended(claim))
    assert (await run_now(cron)).state is RunState.SUCCEEDED


@pytest.mark.parametrize(
    "plan", [ALL, Plan(end=TriggerState.PENDING, again=MINUTE, note="again")], ids=["end", "again"]
)
async def test_settling_twice_is_settling_once(
    whole: Store, store: MessageStore, cron: CronStore, wall: Wall, plan: Plan
) -> None:
    """After a lost answer it is asked again: True, and nothing is there twice. (P4, P6)"""
    claim = await running(cron, "a", deliver_to=HERE)
    assert await settled(cron, ended(claim), plan)
    before = await picture(whole, store)
    assert await settled(cron, ended(claim), plan)
    assert await cron.settle([ended(claim)] * 2, fails) == (True, True)
    assert await picture(whole, store) == before


async def test_the_same_claim_twice_in_a_batch_counts_once(store: MessageStore, cron: CronStore) -> None:
    """True for both, one answer, one next trigger."""
    claim = await running(cron, "a", deliver_to=HERE)
    assert await cron.settle([ended(claim)] * 2, ALL.conclude) == (True, True)
    assert await waiting_replies(store) == ["the answer"]
    assert (await job_now(cron, claim.job)).runs == 1


async def test_a_lost_run_is_settled_by_the_next_owner(cron: CronStore, wall: Wall) -> None:
    """It ends with its trigger in one write, its attempt counts, and another one has the next number. (27)"""
    await running(cron, "a")
    wall.pass_by(LEASE)
    again = await claim_one(cron, "w2")
    assert again.lost is not None
    lost = ended(again, again.lost.id, RunState.FAILED, error="its worker is gone")
    assert await settled(cron, lost, Plan(end=TriggerState.PENDING, again=NOW))
    run = await run_now(cron)
    assert (run.state, run.error, run.worker, run.attempt) == (RunState.FAILED, "its worker is gone", "w1", 1)
    third = await claim_one(cron, "w2")
    assert (third.lost, (await started(cron, third, "r2")).attempt) == (None, 2)


async def test_an_ended_run_stays_as_it_ended(cron: CronStore) -> None:
    """A later claim of the trigger that names it again does not change its end. (P4)"""
    claim = await running(cron, "a")
    await settled(cron, ended(claim, state=RunState.FAILED, error="first"), Plan(end=TriggerState.PENDING, again=NOW))
    before = await run_now(cron)
    assert await settled(cron, ended(await claim_one(cron), error="second"), DONE)
    assert await run_now(cron) == before


async def test_a_batch_of_many(whole: Store, cron: CronStore, store: MessageStore, wall: Wall) -> None:
    """Of several tenants, some stale, some twice: each is judged by itself and answered in its place. (T19)"""
    await whole.create_tenant("t")
    for number in range(10):
        tenant = ("default", "t")[number % 2]
        await added(cron, f"{number}", NOW, tenant=tenant, deliver_to=replace(HERE, tenant=tenant))
    claims = await cron.claim("w1", 10, LEASE)
    await cron.start([Start(claim, f"r{claim.job.spec.uid}") for claim in claims])
    wall.pass_by(LEASE)
    (taken, *mine) = claims
    assert (await claim_one(cron, "w2")).trigger.id == taken.trigger.id
    ends = [ended(claim, f"r{claim.job.spec.uid}") for claim in (taken, *mine, mine[0])]
    assert await cron.settle(ends, ALL.conclude) == (False, *[True] * 10)
    assert len(await store.outbox(99)) == 9
    assert [len(await cron.notifications(tenant)) for tenant in ("default", "t")] == [9, 10]
    assert [one.seq for one in await cron.notifications("t")] == list(range(1, 11))
    jobs = [job for tenant in ("default", "t") for job in await cron.jobs(tenant)]
    assert [job.next_at for job in jobs if job.key != taken.job.key] == [wall.time + HOUR] * 9
    assert await cron.settle([], fails) == ()


async def test_a_batch_of_one_job(cron: CronStore) -> None:
    """Two triggers of it, one long settled: the second decision sees what the first has left. (C21)"""
    job = await added(cron, "a", NOW)
    await fired(cron, job)
    first = await claim_one(cron)
    await settled(cron, passed(first), DONE)
    second = await claim_one(cron)
    await started(cron, second)
    assert await cron.settle([passed(first), ended(second)], DONE.conclude) == (True, True)
    assert sorted(await triggers_of(cron, job)) == ["a#1", "fire", "next#1"]
    assert (await job_now(cron, job)).runs == 1


async def test_jobs_of_a_batch_that_share_a_chat(whole: Store, store: MessageStore, cron: CronStore) -> None:
    """Every answer and every line is there, in the order of the batch. (P2)"""
    for uid in "abc":
        await added(cron, uid, NOW, deliver_to=HERE)
    claims = await cron.claim("w1", 9, LEASE)

    def conclude(job: Job, trigger: Trigger, end: Ended, now: datetime) -> Change:
        return Plan(end=TriggerState.COMPLETED, note=job.spec.uid, said=job.spec.uid).conclude(job, trigger, end, now)

    assert await cron.settle([passed(claim) for claim in claims], conclude) == (True,) * 3
    assert await waiting_replies(store) == ["a", "b", "c"]
    assert [(line.number, line.said.text) for line in await whole.transcript(HERE)] == [(1, "a"), (2, "b"), (3, "c")]


# ── meanwhile ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_decision_sees_the_job_as_it_is_then(cron: CronStore, wall: Wall) -> None:
    """Paused, edited or hinted while the run went on: the plan after it knows, and its own trigger too. (C21)"""
    claim = await running(cron, "a")
    paused = await changed(cron, claim.job, Plan(status=JobStatus.PAUSED, agent="other", withdraw=True))
    wall.pass_by(MINUTE)
    seen: list[tuple[Job, Trigger, Ended, datetime]] = []

    def conclude(job: Job, trigger: Trigger, end: Ended, now: datetime) -> Change:
        seen.append((job, trigger, end, now))
        return Change(job, fate=DONE.change(job, now).fate)

    end = ended(claim)
    trigger = (await triggers_of(cron, claim.job))["a#1"]
    assert await cron.settle([end], conclude) == (True,)
    assert seen[-1] == (paused, trigger, end, wall.time)
    assert (trigger.attempt, trigger.agent) == (1, "other")
    after = await job_now(cron, claim.job)
    assert (after.status, after.next_at) == (JobStatus.PAUSED, None)


async def test_a_job_cancelled_during_its_run_is_settled(cron: CronStore) -> None:
    """The run's end is written, and the job stays cancelled if so decided. (A3)"""
    claim = await running(cron, "a")
    await changed(cron, claim.job, Plan(status=JobStatus.CANCELLED, drop_others="cancelled"))
    assert await settled(cron, ended(claim), Plan(end=TriggerState.COMPLETED))
    assert (await run_now(cron)).state is RunState.SUCCEEDED
    assert (await job_now(cron, claim.job)).status is JobStatus.CANCELLED
    assert await planned_of(cron, claim.job) == []


async def test_a_job_purged_during_its_run_is_gone(whole: Store, store: MessageStore, cron: CronStore) -> None:
    """What its run comes back with is refused and brings nothing back. (A3)"""
    claim = await running(cron, "a", deliver_to=HERE)
    await changed(cron, claim.job, Plan(remove=True))
    before = await picture(whole, store)
    assert await cron.settle([ended(claim)], fails) == (False,)
    assert await picture(whole, store) == before


async def test_a_trigger_fired_during_a_run_is_not_touched_by_its_end(cron: CronStore) -> None:
    """Unless the decision drops it. (J1)"""
    claim = await running(cron, "a")
    asked = await cron.fire(Fire("f", "default", 1))
    await settled(cron, ended(claim))
    assert await cron.trigger("default", "f") == asked


async def test_a_job_may_go_with_its_success(whole: Store, cron: CronStore) -> None:
    """A one-shot that was asked to be deleted leaves nothing but the news of it. (L14)"""
    claim = await running(cron, "a")
    assert await settled(cron, ended(claim), Plan(remove=True, news="run.completed"))
    assert not [*await cron.jobs("default"), *await cron.runs("default")]
    assert await told(cron) == [(1, "run.started"), (2, "run.completed")]
    assert not await settled(cron, ended(claim), ALL)


async def test_a_slot_that_was_settled_is_never_claimed_again(cron: CronStore, wall: Wall) -> None:
    """Saved or not before a restart, an ended trigger is ended. (P4, 34)"""
    claim = await running(cron, "a")
    await settled(cron, ended(claim), Plan(end=TriggerState.COMPLETED))
    wall.pass_by(10 * HOUR)
    assert await cron.claim("w2", 9, LEASE) == ()
    assert await cron.claim_orphans("w2", 9, LEASE, NOW) == ()


async def test_jobs_keep_apart(whole: Store, cron: CronStore) -> None:
    """The end of one is nothing to any other. (32, 33)"""
    for number in range(20):
        await added(cron, f"{number}", NOW)
    claims: tuple[Claim, ...] = await cron.claim("w1", 20, LEASE)
    before = await cron_picture(whole)
    assert await settled(cron, passed(claims[7]), Plan("n", MINUTE, offset=MOMENT, end=TriggerState.FAILED))
    after = await cron_picture(whole)
    assert isinstance(before["jobs"], list)
    assert isinstance(after["jobs"], list)
    differ = [one.id for one, other in zip(before["jobs"], after["jobs"], strict=True) if one != other]
    assert differ == [claims[7].job.id]
