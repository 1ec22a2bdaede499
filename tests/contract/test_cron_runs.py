"""Runs: a row before the work begins, numbered attempts, and a history that can be read in both directions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from store.jobs import Delivery, RunState, Start, TriggerKind, TriggerState
from store.protocols import RuleBroken
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
    passed,
    run_now,
    running,
    settled,
    started,
    told,
    triggers_of,
)
from tests.contract.picture import cron_picture

if TYPE_CHECKING:
    from store.cron_protocol import CronStore
    from store.protocols import Store
    from tests.contract.backends import Wall


async def test_a_run_is_written_before_the_work_begins(cron: CronStore, wall: Wall) -> None:
    """Running, with all that is known by then: whose, why then, which attempt, how late, on which trace. (C5, C20)"""
    await added(cron, "a", MINUTE)
    wall.pass_by(2 * MINUTE)
    claim = await claim_one(cron)
    wall.pass_by(MOMENT)
    run = await started(cron, claim)
    assert await cron.run("default", "r1") == run
    assert (run.tenant, run.job, run.trigger, run.agent) == ("default", 1, "a#1", "main")
    assert (run.kind, run.source, run.worker, run.trace) == (
        TriggerKind.SCHEDULE,
        "baseline-interval",
        "w1",
        "trace 1",
    )
    assert (run.attempt, run.started_at, run.lateness) == (1, wall.time, MINUTE + MOMENT)
    assert (run.state, run.ended_at, run.summary, run.error) == (RunState.RUNNING, None, "", "")
    assert (run.tokens_in, run.tokens_out, run.delivery, run.delivery_error) == (0, 0, Delivery.NONE, "")


async def test_the_attempt_counts_from_the_start(cron: CronStore) -> None:
    """Not from the claim: what was never begun was not tried. (C5)"""
    job = await added(cron, "a", NOW)
    claim = await claim_one(cron)
    assert (await triggers_of(cron, job))["a#1"].attempt == 0
    await started(cron, claim)
    now = (await triggers_of(cron, job))["a#1"]
    assert now == replace(claim.trigger, attempt=1)


async def test_attempts_of_a_trigger_are_numbered(cron: CronStore, wall: Wall) -> None:
    """Each is a run of its own; lateness counts from when the attempt was due. (P4, L16)"""
    await added(cron, "a", NOW)
    for number in (1, 2, 3):
        claim = await claim_one(cron)
        run = await started(cron, claim, f"r{number}")
        assert (run.attempt, run.lateness) == (number, NOW)
        await settled(cron, ended(claim, run.id, RunState.FAILED), Plan(end=TriggerState.PENDING, again=MINUTE))
        wall.pass_by(MINUTE)
    assert [(one.attempt, one.trigger) for one in await cron.runs("default")] == [(n, "a#1") for n in (3, 2, 1)]


async def test_a_manual_run_says_so(cron: CronStore) -> None:
    """Its kind and trace are those of its trigger. (G19)"""
    job = await added(cron, "a")
    await fired(cron, job, trace="a trace", kind=TriggerKind.WEBHOOK)
    run = await started(cron, await claim_one(cron))
    assert (run.kind, run.source, run.trace) == (TriggerKind.WEBHOOK, None, "a trace")


async def test_the_start_is_news(cron: CronStore, wall: Wall) -> None:
    """In the same write as the run itself. (A21)"""
    await running(cron, "a")
    (only,) = await cron.notifications("default")
    assert (only.seq, only.at) == (1, wall.time)
    assert (only.news.kind, only.news.tenant, only.news.job, only.news.run) == ("run.started", "default", 1, "r1")
    assert only.news.data == {"agent": "main", "status": "running", "attempt": 1, "trace": "trace 1"}


async def test_a_start_that_is_repeated_leads_to_the_same_run(whole: Store, cron: CronStore, wall: Wall) -> None:
    """After a lost answer it is asked again: no second run, attempt or news. (P4)"""
    claim = await running(cron, "a")
    before = await cron_picture(whole)
    wall.pass_by(NOW)
    assert await cron.start([Start(claim, "r1"), Start(claim, "r1")]) == (await run_now(cron),) * 2
    assert await cron_picture(whole) == before


async def test_what_is_not_mine_any_more_is_not_started(whole: Store, cron: CronStore, wall: Wall) -> None:
    """Taken over, settled or removed: no run, no news, and the others of the batch begin all the same. (T19)"""
    claims = {}
    for uid in ("mine", "settled", "taken", "gone"):
        await added(cron, uid, NOW)
        claims[uid] = await claim_one(cron, span=MINUTE if uid == "taken" else LEASE)
    await settled(cron, passed(claims["settled"]), DONE)
    wall.pass_by(MINUTE)
    await claim_one(cron, "w2")
    await changed(cron, claims["gone"].job, Plan(remove=True))
    runs = await cron.start([Start(claims[uid], f"run {uid}") for uid in ("taken", "mine", "settled", "gone")])
    assert [run and run.id for run in runs] == [None, "run mine", None, None]
    assert [run.id for run in await cron.runs("default")] == ["run mine"]
    assert await told(cron) == [(1, "run.started")]
    assert await cron.start([]) == ()


async def test_a_repeated_start_is_refused_when_another_owner_has_it(whole: Store, cron: CronStore, wall: Wall) -> None:
    """Whoever hears the answer this late must not go on with the work. (T7)"""
    old = await running(cron, "a")
    wall.pass_by(LEASE)
    await claim_one(cron, "w2")
    before = await cron_picture(whole)
    assert await cron.start([Start(old, "r1")]) == (None,)
    assert await cron_picture(whole) == before


async def test_a_run_needs_a_name_of_whole_characters(whole: Store, cron: CronStore) -> None:
    """Half a one is refused, and nothing is begun."""
    await added(cron, "a", NOW)
    claim = await claim_one(cron)
    before = await cron_picture(whole)
    with pytest.raises(RuleBroken):
        await cron.start([Start(claim, "\ud83d")])
    assert await cron_picture(whole) == before


# ── read ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def history(cron: CronStore, wall: Wall) -> None:
    """Four runs, a minute apart, of the jobs 1, 2, 1 and 2."""
    for uid in "ab":
        await added(cron, uid, NOW)
    for number in (1, 2, 3, 4):
        claim = await claim_one(cron)
        await started(cron, claim, f"r{number}")
        plan = Plan(f"n{number}", NOW, offset=number * MOMENT, end=TriggerState.COMPLETED)
        await settled(cron, ended(claim, f"r{number}"), plan)
        wall.pass_by(MINUTE)


async def test_runs_are_read_newest_first(cron: CronStore, wall: Wall) -> None:
    """All of a tenant or those of one job, as many as asked for. (A26)"""
    await history(cron, wall)
    assert [run.id for run in await cron.runs("default")] == ["r4", "r3", "r2", "r1"]
    assert [run.id for run in await cron.runs("default", limit=2)] == ["r4", "r3"]
    assert [run.id for run in await cron.runs("default", job=1)] == ["r3", "r1"]
    assert [run.id for run in await cron.runs("default", job=2, limit=1)] == ["r4"]
    assert await cron.runs("default", job=9) == await cron.runs("default", limit=0) == ()


async def test_a_reader_goes_on_from_a_time(cron: CronStore, wall: Wall) -> None:
    """Since then, that moment included, oldest first, so that the last one read tells where to go on. (A25)"""
    await history(cron, wall)
    since = wall.time - 3 * MINUTE
    assert [run.id for run in await cron.runs("default", since=since)] == ["r2", "r3", "r4"]
    assert [run.id for run in await cron.runs("default", since=since + MOMENT)] == ["r3", "r4"]
    assert [run.id for run in await cron.runs("default", since=since, limit=2)] == ["r2", "r3"]
    assert [run.id for run in await cron.runs("default", since=since, job=1)] == ["r3"]
    assert await cron.runs("default", since=wall.time) == ()


async def test_runs_of_the_same_moment_go_by_id(cron: CronStore) -> None:
    """So that every store answers alike, in both directions."""
    for uid in "abc":
        await added(cron, uid, NOW)
    claims = await cron.claim("w1", 9, LEASE)
    await cron.start([Start(claim, f"r{claim.job.id % 3}") for claim in claims])
    assert [run.id for run in await cron.runs("default")] == ["r2", "r1", "r0"]
    some = (await run_now(cron)).started_at
    assert [run.id for run in await cron.runs("default", since=some)] == ["r0", "r1", "r2"]


async def test_a_hundred_runs_are_read_unless_more_are_asked_for(cron: CronStore) -> None:
    """A list has an end. (A29)"""
    for number in range(101):
        await added(cron, f"{number}", NOW)
    claims = await cron.claim("w1", 200, LEASE)
    await cron.start([Start(claim, f"r{claim.job.id}") for claim in claims])
    assert len(await cron.runs("default")) == 100
    assert len(await cron.runs("default", limit=2**70)) == 101
    assert len(await cron.notifications("default")) == 100


async def test_triggers_are_read_latest_slot_first(cron: CronStore, wall: Wall) -> None:
    """Equal slots by id, highest first; as many as asked for."""
    job = await added(cron, "a", HOUR)
    for name in ("f1", "f2"):
        await fired(cron, job, name)
    await changed(cron, job, Plan(stretch="s"))
    found = [one.id for one in await cron.triggers("default", 1)]
    assert found == ["a#1", "f2", "f1", "s#1"]
    assert [one.id for one in await cron.triggers("default", 1, limit=2)] == found[:2]
    assert await cron.triggers("default", 1, limit=0) == await cron.triggers("default", 2) == ()


async def test_a_run_that_nobody_knows_said_nothing(cron: CronStore) -> None:
    """None, not an empty text; one that runs has said nothing yet."""
    assert (await cron.run("default", "r1"), await cron.output("default", "r1")) == (None, None)
    await running(cron, "a")
    assert await cron.output("default", "r1") == ""
