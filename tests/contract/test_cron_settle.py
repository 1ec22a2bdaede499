"""Settling: how an attempt ended, what it said, where that goes, and what follows for its job are one write."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from store.jobs import LONGEST_SUMMARY, Change, Delivery, Ended, Job, RunState, TriggerState
from store.records import Note, Role, Said
from tests.contract.cron_rows import (
    HOUR,
    MINUTE,
    NOW,
    PASSED,
    Plan,
    added,
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
from tests.contract.rows import HERE, waiting_replies

if TYPE_CHECKING:
    from datetime import datetime

    from store.cron_protocol import CronStore
    from store.jobs import Trigger
    from store.protocols import MessageStore, Store
    from tests.contract.backends import Wall

ALL = Plan("next", end=TriggerState.COMPLETED, stretch="s", note="the answer", said="the answer", news="run.completed")
CRAB = "🦀"


# ── how it ended ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_success_ends_run_and_trigger_and_plans_the_next(cron: CronStore, wall: Wall) -> None:
    """In one write: what the run was, what its trigger became, and when the job is next. (A4, A21, C7, C17)"""
    claim = await running(cron, "a")
    wall.pass_by(MINUTE)
    assert await settled(cron, ended(claim, output="done\x00", tokens_in=2**40, tokens_out=7))
    run = await run_now(cron)
    assert (run.state, run.ended_at, run.summary, run.error) == (RunState.SUCCEEDED, wall.time, "done\x00", "")
    assert (run.tokens_in, run.tokens_out, run.delivery) == (2**40, 7, Delivery.NONE)
    assert run.started_at == wall.time - MINUTE
    trigger = (await triggers_of(cron, claim.job))["a#1"]
    assert (trigger.state, trigger.ended_at, trigger.leased_until) == (TriggerState.COMPLETED, wall.time, None)
    assert (trigger.owner, trigger.token, trigger.attempt) == ("w1", claim.trigger.token, 1)
    job = await job_now(cron, claim.job)
    assert (job.runs, job.last_run, job.last_state) == (1, "r1", RunState.SUCCEEDED)
    assert (job.next_at, job.updated_at) == (wall.time + HOUR, wall.time)
    assert [one.id for one in await planned_of(cron, job)] == ["next#1"]


async def test_a_failure_is_told_as_it_was(cron: CronStore) -> None:
    """Its state and its words; the trigger ends as decided. (C6, C7)"""
    for state in (RunState.FAILED, RunState.TIMEOUT, RunState.CANCELLED):
        claim = await running(cron, state, state)
        plan = Plan("next", end=TriggerState.FAILED, reason="gave up")
        assert await settled(cron, ended(claim, state, state, error="it\x00 broke", output="so far"), plan)
        run = await run_now(cron, state)
        assert (run.state, run.error, run.summary) == (state, "it\x00 broke", "so far")
        trigger = (await triggers_of(cron, claim.job))[claim.trigger.id]
        assert (trigger.state, trigger.reason) == (TriggerState.FAILED, "gave up")


async def test_a_failed_attempt_waits_for_the_next(cron: CronStore, wall: Wall) -> None:
    """The same trigger is pending again, later, its slot and attempts kept, and no other one is planned. (P4, L16)"""
    claim = await running(cron, "a")
    plan = Plan("next", end=TriggerState.PENDING, again=MINUTE, reason="try again")
    assert await settled(cron, ended(claim, state=RunState.FAILED), plan)
    (trigger,) = await cron.triggers("default", 1)
    assert trigger == replace(
        claim.trigger,
        state=TriggerState.PENDING,
        reason="try again",
        due_at=wall.time + MINUTE,
        attempt=1,
        owner="",
        leased_until=None,
    )
    assert (await job_now(cron, claim.job)).next_at == wall.time + MINUTE
    assert await cron.next_due() == MINUTE


async def test_an_attempt_may_not_count(cron: CronStore) -> None:
    """A shutdown costs none: the next run has the same number. (L16)"""
    claim = await running(cron, "a")
    back = Plan(end=TriggerState.PENDING, again=NOW, counts=False)
    await settled(cron, ended(claim, state=RunState.CANCELLED), back)
    assert (await triggers_of(cron, claim.job))["a#1"].attempt == 0
    assert (await started(cron, await claim_one(cron), "r2")).attempt == 1


async def test_what_was_not_attempted_is_passed_over(cron: CronStore) -> None:
    """No run is made up for it; the trigger says why it did not run. (P5)"""
    job = await added(cron, "a", NOW)
    assert await settled(cron, passed(await claim_one(cron)), replace(PASSED, next="n"))
    trigger = (await triggers_of(cron, job))["a#1"]
    assert (trigger.state, trigger.reason, trigger.attempt) == (TriggerState.SKIPPED, "missed", 0)
    assert await cron.runs("default") == ()
    assert [one.id for one in await planned_of(cron, job)] == ["n#1"]


async def test_not_counting_what_was_not_attempted_takes_nothing_away(cron: CronStore) -> None:
    """There are never fewer attempts than none."""
    await added(cron, "a", NOW)
    await settled(cron, passed(await claim_one(cron)), Plan(end=TriggerState.PENDING, again=NOW, counts=False))
    assert (await claim_one(cron)).trigger.attempt == 0


# ── what it said ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_short_output_is_its_summary(cron: CronStore) -> None:
    """To the last byte. (A21)"""
    for number, output in enumerate(["", "short", "x" * LONGEST_SUMMARY, CRAB * (LONGEST_SUMMARY // 4)]):
        claim = await running(cron, f"{number}", f"r{number}")
        await settled(cron, ended(claim, f"r{number}", output=output))
        assert (await run_now(cron, f"r{number}")).summary == output
        assert await cron.output("default", f"r{number}") == output


async def test_a_long_output_is_kept_whole_beside_its_summary(cron: CronStore) -> None:
    """The summary has whole characters, within 4,096 bytes, and says that there is more. (A21)"""
    texts = ["x" * (LONGEST_SUMMARY + 1), "x" + CRAB * 2000, "xyz" + CRAB * 2000, "é\x00" * 90_000]
    for number, output in enumerate(texts):
        claim = await running(cron, f"{number}", f"r{number}")
        await settled(cron, ended(claim, f"r{number}", output=output))
        summary = (await run_now(cron, f"r{number}")).summary
        assert LONGEST_SUMMARY - 4 < len(summary.encode()) <= LONGEST_SUMMARY
        assert summary.endswith("…[truncated]")
        assert output.startswith(summary.removesuffix("…[truncated]"))
        assert await cron.output("default", f"r{number}") == output


async def test_a_long_error_is_shortened(cron: CronStore) -> None:
    """Like a summary; nobody reads more of it."""
    claim = await running(cron, "a")
    await settled(cron, ended(claim, state=RunState.FAILED, error="é" * 9000), Plan(end=TriggerState.FAILED))
    error = (await run_now(cron)).error
    assert len(error.encode()) <= LONGEST_SUMMARY
    assert error.endswith("…[truncated]")


# ── delivery ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_answer_goes_out_with_its_run(store: MessageStore, cron: CronStore) -> None:
    """The note is in the outbox from the same write on, and the run waits for it. (L15, 37)"""
    claim = await running(cron, "a", deliver_to=HERE)
    await settled(cron, ended(claim), Plan(end=TriggerState.COMPLETED, note="the answer"))
    (reply,) = await store.outbox(9)
    assert (reply.note, reply.answers) == (Note(HERE, "the answer", run="r1"), ())
    assert (await run_now(cron)).delivery is Delivery.WAITING


async def test_what_was_delivered_is_told_to_its_run(store: MessageStore, cron: CronStore) -> None:
    """Delivered only if the channel said so. (37)"""
    claim = await running(cron, "a", deliver_to=HERE)
    await settled(cron, ended(claim), Plan(end=TriggerState.COMPLETED, note="the answer"))
    before = await run_now(cron)
    (reply,) = await store.outbox(9)
    assert await store.progress(reply.id, 1, "live")
    assert await run_now(cron) == before
    assert await store.sent(reply.id)
    assert await run_now(cron) == replace(before, delivery=Delivery.DELIVERED)
    assert not await store.sent(reply.id, failed="too late")
    assert (await run_now(cron)).delivery is Delivery.DELIVERED


async def test_a_failed_delivery_is_not_a_failed_run(store: MessageStore, cron: CronStore) -> None:
    """The run keeps its state, and why nobody got its answer. (37)"""
    claim = await running(cron, "a", deliver_to=HERE)
    await settled(cron, ended(claim), Plan(end=TriggerState.COMPLETED, note="the answer"))
    before = await run_now(cron)
    (reply,) = await store.outbox(9)
    assert await store.sent(reply.id, failed="blocked\x00")
    assert await run_now(cron) == replace(before, delivery=Delivery.FAILED, delivery_error="blocked\x00")
    assert await waiting_replies(store) == []


async def test_a_delivery_reaches_only_its_own_run(whole: Store, store: MessageStore, cron: CronStore) -> None:
    """Another tenant's run of the same id stays as it is. (P11)"""
    await whole.create_tenant("t")
    for tenant in ("default", "t"):
        session = replace(HERE, tenant=tenant)
        claim = await running(cron, "a", tenant=tenant, deliver_to=session)
        await settled(cron, ended(claim), Plan(end=TriggerState.COMPLETED, note=tenant))
    (_, theirs) = await store.outbox(9)
    assert await store.sent(theirs.id)
    assert (await run_now(cron)).delivery is Delivery.WAITING
    assert (await run_now(cron, tenant="t")).delivery is Delivery.DELIVERED


async def test_an_answer_outlives_its_job(store: MessageStore, cron: CronStore) -> None:
    """What is to be said is said, although the run that said it is gone. (P6)"""
    claim = await running(cron, "a", deliver_to=HERE)
    await settled(cron, ended(claim), Plan(note="the answer", remove=True))
    assert await cron.run("default", "r1") is None
    (reply,) = await store.outbox(9)
    assert await store.sent(reply.id)


async def test_an_aside_does_not_make_a_run_wait(store: MessageStore, cron: CronStore) -> None:
    """Only a note that names the run is its delivery."""
    claim = await running(cron, "a", deliver_to=HERE)

    def conclude(job: Job, trigger: Trigger, end: Ended, now: datetime) -> Change:
        return replace(PASSED.change(job, now), notes=(Note(HERE, "paused it", urgent=True),))

    await cron.settle([ended(claim)], conclude)
    assert (await run_now(cron)).delivery is Delivery.NONE
    assert await waiting_replies(store) == ["paused it"]


async def test_what_was_said_is_in_the_transcript(whole: Store, cron: CronStore) -> None:
    """In the session that answers go to, so that a person can talk about it."""
    claim = await running(cron, "a", deliver_to=HERE)
    await settled(cron, ended(claim), Plan(end=TriggerState.COMPLETED, said="the answer"))
    (line,) = await whole.transcript(HERE)
    assert (line.number, line.said) == (1, Said(Role.ASSISTANT, "the answer", {"job": 1}))


async def test_without_a_target_nothing_is_said(whole: Store, cron: CronStore) -> None:
    """Nowhere is nowhere, whatever happens. (37)"""
    claim = await running(cron, "a")
    await settled(cron, ended(claim), Plan(end=TriggerState.COMPLETED, said="the answer"))
    assert await whole.sessions("default") == ()


async def test_news_are_numbered_with_the_write(cron: CronStore, wall: Wall) -> None:
    """After that of the start, in the order in which they were told. (A21)"""
    claim = await running(cron, "a")
    await settled(cron, ended(claim), ALL)
    assert await told(cron) == [(1, "run.started"), (2, "run.completed")]
    (_, last) = await cron.notifications("default")
    assert (last.at, last.news.run, last.news.data) == (wall.time, "r1", {"job": 1})


async def test_slots_that_passed_meanwhile_are_settled_with_it(cron: CronStore, wall: Wall) -> None:
    """One row for the whole stretch, beside the next trigger. (P5, H8)"""
    claim = await running(cron, "a")
    wall.pass_by(2 * HOUR)
    await settled(cron, ended(claim), ALL)
    found = await triggers_of(cron, claim.job)
    states = {name: one.state for name, one in found.items()}
    assert states == {
        "a#1": TriggerState.COMPLETED,
        "s#1": TriggerState.SKIPPED,
        "next#1": TriggerState.PENDING,
    }
    assert (found["s#1"].slot, found["s#1"].count) == (wall.time - HOUR, 3)


async def test_a_decision_about_others_is_carried_out_too(cron: CronStore) -> None:
    """A success may drop what waits and withdraw what was planned; its own trigger has its own fate. (P5)"""
    job = await added(cron, "a", HOUR)
    for name in ("f1", "f2"):
        await fired(cron, job, name)
    claim = await claim_one(cron)
    await settled(cron, passed(claim), Plan("n", end=TriggerState.COMPLETED, withdraw=True, drop_others="enough"))
    found = {name: (one.state, one.reason) for name, one in (await triggers_of(cron, job)).items()}
    assert found == {
        "f1": (TriggerState.COMPLETED, ""),
        "f2": (TriggerState.SKIPPED, "enough"),
        "n#1": (TriggerState.PENDING, ""),
    }
