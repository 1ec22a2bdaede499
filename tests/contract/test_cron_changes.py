"""Changes: one decision at a time, from what is there then, carried out as a whole; one open plan for each job."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from store.jobs import (
    KEEP_OUTPUTS,
    Change,
    Hints,
    Job,
    JobStatus,
    Rules,
    RunState,
    Trigger,
    TriggerKind,
    TriggerState,
)
from store.protocols import RuleBroken
from tests.contract.cron_rows import (
    ANY,
    AT_NOON,
    DONE,
    HOUR,
    MINUTE,
    MOMENT,
    NOTHING,
    NOW,
    PASSED,
    WEBHOOK,
    Plan,
    added,
    changed,
    claim_one,
    ended,
    fired,
    job_now,
    new,
    passed,
    planned_of,
    running,
    settled,
    triggers_of,
)
from tests.contract.picture import cron_picture
from tests.contract.rows import HERE

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from store.cron_protocol import CronStore
    from store.protocols import Store
    from tests.contract.backends import Wall

PAUSED = Plan(status=JobStatus.PAUSED, withdraw=True)
PURGED = Plan(remove=True)
CANCELLED = Plan(status=JobStatus.CANCELLED, end=TriggerState.SKIPPED, reason="cancelled", drop_others="cancelled")


async def test_a_decision_sees_the_job_its_trigger_and_the_time(cron: CronStore, wall: Wall) -> None:
    """As they are there and then; a trigger that executes is shown too, a manual one never."""
    job = await added(cron, "a", MINUTE)
    await fired(cron, job)
    seen: list[tuple[Job, Trigger | None, datetime]] = []

    def look(job: Job, planned: Trigger | None, now: datetime) -> None:
        seen.append((job, planned, now))

    wall.pass_by(MINUTE)
    assert await cron.change_job("default", 1, look) == job
    assert seen[-1] == (job, await cron.trigger("default", "a#1"), wall.time)
    await settled(cron, passed(await claim_one(cron)), Plan(end=TriggerState.COMPLETED))
    claim = await claim_one(cron)
    await cron.change_job("default", 1, look)
    assert seen[-1] == (await job_now(cron, job), claim.trigger, wall.time)
    await settled(cron, passed(claim), PASSED)
    await cron.change_job("default", 1, look)
    assert seen[-1][1] is None


async def test_no_decision_leaves_everything_as_it_is(whole: Store, cron: CronStore, wall: Wall) -> None:
    """Not even the time of the last change moves."""
    job = await added(cron, "a")
    before = await cron_picture(whole)
    wall.pass_by(NOW)
    assert await changed(cron, job, NOTHING) == job
    assert await cron_picture(whole) == before


async def test_a_change_of_nobody_is_none(cron: CronStore) -> None:
    """Nothing is decided about what is not there."""
    assert await cron.change_job("default", 1, fails) is None
    assert await cron.change_job("nobody", 1, fails) is None


async def test_everything_about_a_job_can_change(cron: CronStore, wall: Wall) -> None:
    """Whatever the decision says is what is read afterwards, and when it was made. (A3, A4)"""
    job = await added(cron, "a")
    wall.pass_by(MINUTE)
    other = replace(
        job,
        spec=replace(job.spec, message="other", timing=AT_NOON, deliver_to=HERE, rules=Rules(max_retries=3)),
        status=JobStatus.PAUSED,
        reason="a \x00 reason",
        hints=Hints(MINUTE, wall.time + HOUR, wall.time + 2 * HOUR, "bus\x00y"),
        paused_until=wall.time + MOMENT,
        failures=2**40,
        runs=2**40 + 1,
        last_run_at=wall.time - MOMENT,
        last_run="r\x00",
        last_state=RunState.TIMEOUT,
    )
    expected = replace(other, updated_at=wall.time)
    assert await cron.change_job("default", 1, lambda *_: Change(other)) == expected
    assert await cron.job("default", 1) == expected


async def test_a_job_keeps_one_open_planned_trigger(cron: CronStore) -> None:
    """A next one is not added while one is open, be it pending or executing. (P4, P9)"""
    job = await added(cron, "a", NOW)
    assert (await changed(cron, job, Plan("second"))).next_at == job.next_at
    claim = await claim_one(cron)
    assert (await changed(cron, job, Plan("third", MINUTE))).next_at == job.next_at
    assert await planned_of(cron, job) == [claim.trigger]
    assert list(await triggers_of(cron, job)) == ["a#1"]


async def test_a_catch_up_is_planned_too(cron: CronStore) -> None:
    """It stands in the place of a scheduled one, so there is not one of each. (H21)"""
    job = await added(cron, "a")
    await changed(cron, job, Plan("late", NOW, kind=TriggerKind.CATCH_UP, withdraw=True))
    (late,) = await planned_of(cron, job)
    assert (late.id, late.kind) == ("late#1", TriggerKind.CATCH_UP)
    await changed(cron, job, Plan("more"))
    assert [one.id for one in await planned_of(cron, job)] == ["late#1"]


async def test_a_withdrawn_trigger_leaves_no_trace(cron: CronStore) -> None:
    """Its slot has not come; the job has no next time then. (32)"""
    job = await added(cron, "a")
    after = await changed(cron, job, PAUSED)
    assert (after.next_at, after.next_source) == (None, None)
    assert await cron.triggers("default", 1) == ()
    assert await cron.trigger("default", "a#1") is None
    assert await changed(cron, after, Plan(withdraw=True)) == await job_now(cron, job)


async def test_a_trigger_is_planned_anew(cron: CronStore, wall: Wall) -> None:
    """An edit withdraws it and puts another one in its place, even for the same slot. (C21)"""
    job = await added(cron, "a")
    after = await changed(cron, job, Plan("b", HOUR, withdraw=True))
    assert list(await triggers_of(cron, job)) == ["b#1"]
    assert after.next_at == wall.time + HOUR
    after = await changed(cron, job, Plan("c", MINUTE, withdraw=True))
    assert list(await triggers_of(cron, job)) == ["c#1"]
    assert after.next_at == wall.time + MINUTE


async def test_what_executes_is_not_withdrawn(cron: CronStore) -> None:
    """Only its owner ends it."""
    job = await added(cron, "a", NOW)
    claim = await claim_one(cron)
    await changed(cron, job, PAUSED)
    assert await planned_of(cron, job) == [claim.trigger]
    assert (await job_now(cron, job)).next_at == job.next_at


async def test_a_pending_planned_trigger_has_its_fate(cron: CronStore, wall: Wall) -> None:
    """It ends with a reason, and a next one comes in the same decision. (P5)"""
    job = await added(cron, "a")
    wall.pass_by(MINUTE)
    after = await changed(cron, job, replace(PASSED, next="b", withdraw=True))
    old = (await triggers_of(cron, job))["a#1"]
    assert (old.state, old.reason, old.ended_at) == (TriggerState.SKIPPED, "missed", wall.time)
    assert [one.id for one in await planned_of(cron, job)] == ["b#1"]
    assert after.next_at == wall.time + HOUR


async def test_a_pending_planned_trigger_is_put_off(cron: CronStore, wall: Wall) -> None:
    """It waits for another time, and the job's next time is that one. (A28)"""
    job = await added(cron, "a", NOW)
    after = await changed(cron, job, Plan(end=TriggerState.PENDING, again=HOUR, reason="tenant_disabled"))
    (only,) = await planned_of(cron, job)
    assert (only.id, only.due_at, only.slot, only.reason) == ("a#1", wall.time + HOUR, wall.time, "tenant_disabled")
    assert after.next_at == only.due_at


async def test_a_fate_does_not_reach_what_executes(cron: CronStore) -> None:
    """Without a claim nobody ends a run's trigger. (P4)"""
    job = await added(cron, "a", NOW)
    claim = await claim_one(cron)
    await changed(cron, job, PASSED)
    assert await planned_of(cron, job) == [claim.trigger]


async def test_others_are_dropped_with_a_reason(cron: CronStore, wall: Wall) -> None:
    """Every pending trigger beside the one decided about is skipped; what executes goes on. (P5)"""
    job = await added(cron, "a", NOW)
    await claim_one(cron)
    for name in ("f1", "f2"):
        await fired(cron, job, name, key=name)
    await changed(cron, job, CANCELLED)
    found = await triggers_of(cron, job)
    assert found["a#1"].state is TriggerState.EXECUTING
    assert {(found[name].state, found[name].reason, found[name].ended_at) for name in ("f1", "f2")} == {
        (TriggerState.SKIPPED, "cancelled", wall.time)
    }


async def test_a_cancelled_job_has_nothing_left_to_fire(cron: CronStore, wall: Wall) -> None:
    """Its planned trigger has its fate, the others are dropped, and its history stays. (A3)"""
    job = await added(cron, "a", NOW)
    await fired(cron, job)
    after = await changed(cron, job, CANCELLED)
    assert (after.status, after.next_at) == (JobStatus.CANCELLED, None)
    assert {one.state for one in await cron.triggers("default", 1)} == {TriggerState.SKIPPED}
    assert await cron.claim("w1", 9, HOUR) == ()


async def test_a_stretch_is_one_row(cron: CronStore, wall: Wall) -> None:
    """First, last, how many and why: slots that will never run are not forgotten. (P5, 25)"""
    job = await added(cron, "a")
    await changed(cron, job, Plan(stretch="s"))
    row = (await triggers_of(cron, job))["s#1"]
    first = wall.time - HOUR
    assert (row.slot, row.last, row.count, row.reason) == (first, first + 2 * MINUTE, 3, "missed")
    assert (row.state, row.kind, row.ended_at) == (TriggerState.SKIPPED, TriggerKind.SCHEDULE, wall.time)
    assert [one.id for one in await planned_of(cron, job)] == ["a#1"]


async def test_a_removed_job_takes_its_history_along(whole: Store, cron: CronStore) -> None:
    """Triggers, runs and outputs are gone; the news of them, and whatever others have, are not. (A3)"""
    other = await added(cron, "other")
    before = await cron_picture(whole)
    claim = await running(cron, "a")
    await settled(cron, ended(claim, output="x" * 9000))
    await fired(cron, claim.job)
    await changed(cron, claim.job, PURGED)
    after = await cron_picture(whole)
    news = await cron.notifications("default")
    assert [one.news.kind for one in news] == ["run.started"]
    assert after == before | {"news": [news, ()]}
    assert await cron.job("default", claim.job.id) is None
    assert await cron.triggers("default", claim.job.id) == ()
    assert (await cron.run("default", "r1"), await cron.output("default", "r1")) == (None, None)
    assert await job_now(cron, other) == other


async def test_the_names_of_a_removed_job_are_free(whole: Store, cron: CronStore, wall: Wall) -> None:
    """Asked for again it is a new job, and a run of an old name says only what it says itself."""
    claim = await running(cron, "a")
    await settled(cron, ended(claim, output="x" * 9000))
    await changed(cron, claim.job, PURGED)
    again = await running(cron, "a")
    assert again.job.id == 2
    assert await cron.output("default", "r1") == ""
    wall.pass_by(KEEP_OUTPUTS)
    assert (await whole.tidy()).cron == 2  # the news


async def test_editing_one_job_leaves_the_others_alone(whole: Store, cron: CronStore, wall: Wall) -> None:
    """Not a field and not a trigger of another job moves, however late those are. (32)"""
    await whole.create_tenant("t")
    jobs = [await added(cron, uid, MINUTE, tenant=tenant) for tenant in ("default", "t") for uid in "ab"]
    wall.pass_by(HOUR)
    plans = [Plan("n", withdraw=True, agent="x"), PAUSED, CANCELLED, Plan(drop_others="x", stretch="s"), PURGED]
    for plan in plans:
        await changed(cron, jobs[0], plan)
    for job in jobs[1:]:
        assert await job_now(cron, job) == job
        assert [one.due_at for one in await planned_of(cron, job)] == [job.next_at]


async def test_a_new_agent_gets_the_open_triggers(cron: CronStore) -> None:
    """Claims look at the agent, so what is open follows an edit; what has ended tells who it was. (C21)"""
    claim = await running(cron, "a")
    await settled(cron, ended(claim))
    await fired(cron, claim.job)
    await changed(cron, claim.job, Plan(agent="other"))
    agents = {one.id: one.agent for one in await cron.triggers("default", 1)}
    assert agents == {"a#1": "main", "next#1": "other", "fire": "other"}
    assert [one.trigger.agent for one in await cron.claim("w1", 9, HOUR)] == ["other"]


BROKEN: list[Callable[[Job], Change]] = [
    lambda job: Change(replace(job, spec=replace(job.spec, message=" "))),
    lambda job: Change(replace(job, spec=replace(job.spec, deliver_to=replace(HERE, tenant="t")))),
    lambda job: Change(replace(job, reason="\ud83d")),
    lambda job: Change(replace(job, last_run="\ud83d")),
    lambda job: Change(replace(job, hints=Hints(reason="\ud83d"))),
    lambda job: Plan("\ud83d", withdraw=True).change(job, job.created_at),
    lambda job: replace(Plan("n", withdraw=True).change(job, job.created_at), stretches=half_stretch(job)),
    lambda job: Plan(end=TriggerState.SKIPPED, reason="\ud83d").change(job, job.created_at),
    lambda job: Plan(withdraw=True, drop_others="\ud83d").change(job, job.created_at),
    lambda job: Plan(note="\ud83d").change(job, job.created_at),
    lambda job: Plan(said="\ud83d").change(job, job.created_at),
]


async def test_a_change_that_breaks_a_rule_changes_nothing(whole: Store, cron: CronStore) -> None:
    """It is refused as a whole: the trigger that it would withdraw is still there. (P9)"""
    await whole.create_tenant("t")
    job = await added(cron, "a", deliver_to=HERE)
    await fired(cron, job)
    before = await cron_picture(whole)
    for broken in BROKEN:
        with pytest.raises(RuleBroken):
            await cron.change_job("default", 1, lambda job, planned, now: broken(job))  # noqa: B023 - called at once
        assert await cron_picture(whole) == before


def half_stretch(job: Job) -> Any:
    (stretch,) = Plan(stretch="s").change(job, job.created_at).stretches
    return (replace(stretch, reason="\ud83d"),)


async def test_a_decision_that_fails_changes_nothing(whole: Store, cron: CronStore) -> None:
    """Whatever is raised comes out, and everything is as it was."""
    await added(cron, "a")
    before = await cron_picture(whole)
    with pytest.raises(ZeroDivisionError):
        await cron.change_job("default", 1, fails)
    assert await cron_picture(whole) == before


async def test_the_next_time_is_true_after_every_verb(cron: CronStore, wall: Wall) -> None:
    """It is when the open planned trigger is due, or was, or nothing if there is none; always. (A4, P9)"""
    job = await added(cron, "a", NOW)

    async def true() -> None:
        planned = await planned_of(cron, job)
        assert len(planned) <= 1
        due = planned[0].due_at if planned else None
        assert (await job_now(cron, job)).next_at == due

    await fired(cron, job)
    await true()
    plans = [Plan(end=TriggerState.PENDING, again=MINUTE), DONE, Plan(withdraw=True), PASSED, Plan()]
    for number, plan in enumerate(plans):
        for claim in await cron.claim("w1", 1, MINUTE):
            await true()
            await settled(cron, passed(claim), replace(plan, next=f"s{number}", after=NOW, offset=-MOMENT))
            await true()
        await changed(cron, job, replace(plan, next=f"c{number}", after=HOUR))
        await true()
        wall.pass_by(HOUR)


async def test_jobs_without_a_plan_are_found(whole: Store, cron: CronStore) -> None:
    """A schedule never dies silently: active ones that lost their trigger are told, in order. (P9)"""
    await whole.create_tenant("t")
    lost = [await added(cron, uid, tenant=tenant, timing=AT_NOON) for tenant in ("default", "t") for uid in "ab"]
    assert await cron.unplanned() == ()
    for job in lost:
        await changed(cron, job, Plan(withdraw=True))
        await fired(cron, job)
    assert [job.key for job in await cron.unplanned()] == [job.key for job in lost]
    assert [job.key for job in await cron.unplanned(3)] == [job.key for job in lost[:3]]
    assert await cron.unplanned(0) == ()
    await changed(cron, lost[0], Plan("again"))
    assert [job.key for job in await cron.unplanned()] == [job.key for job in lost[1:]]


async def test_jobs_that_need_no_plan_are_not_told(cron: CronStore) -> None:
    """Paused, ended and webhook jobs, and those whose trigger executes. (P9)"""
    await cron.add_job(new("hook", timing=WEBHOOK), Plan().first, ANY)
    await changed(cron, await added(cron, "paused"), PAUSED)
    await changed(cron, await added(cron, "over"), CANCELLED)
    await added(cron, "runs", NOW)
    await claim_one(cron)
    assert await cron.unplanned() == ()


def fails(*_: object) -> Change:
    raise ZeroDivisionError
