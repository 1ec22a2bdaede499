"""One-shots: kept until they have succeeded or were ended on purpose."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import trio

from cron.options import Options
from store.jobs import JobStatus, Rules
from tests.unit.cron.world import BEGINNING, CHAT, make_world

if TYPE_CHECKING:
    from cron.run import Work

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


async def fails(work: Work) -> str:
    await trio.lowlevel.checkpoint()
    raise RuntimeError("the model is away")


async def endless(work: Work) -> str:
    await trio.sleep_forever()
    return ""


async def test_a_one_shot_that_fails_is_tried_again_and_then_says_so(autojump_clock: object) -> None:
    """Four attempts with growing pauses, then the job has failed and its chat is told why. (J4, L16)"""
    world = make_world()
    world.runner.act = fails
    job = await world.add("in 1 minute", deliver_to=CHAT)
    await world.live(5 * MINUTE)
    after = await world.job(job)
    assert (after.status, after.reason) == (JobStatus.FAILED, "the model is away")
    runs = await world.runs(job)
    assert [(run.attempt, run.state) for run in runs] == [(n, "failed") for n in (1, 2, 3, 4)]
    pauses = [(later.started_at - earlier.started_at).total_seconds() for earlier, later in pairwise(runs)]
    assert pauses == [2, 4, 8]
    (note,) = [reply.note for reply in world.store.outbox.values()]  # type: ignore[attr-defined]
    assert note.text.startswith("Job #1 failed after 4 attempts: the model is away.")
    assert (note.session, note.run) == (CHAT, runs[-1].id)


async def test_a_one_shot_that_recovers_is_done(autojump_clock: object) -> None:
    """A failure before a success costs nothing but an attempt. (J4)"""
    world = make_world()

    async def second_time(work: Work) -> str:
        await trio.lowlevel.checkpoint()
        if work.run.attempt == 1:
            raise RuntimeError("not yet")
        return "ok"

    world.runner.act = second_time
    job = await world.add("in 1 minute")
    await world.live(5 * MINUTE)
    assert (await world.job(job)).status is JobStatus.COMPLETED
    assert await world.states(job) == ["completed"]
    assert [run.state for run in await world.runs(job)] == ["failed", "succeeded"]


async def test_a_one_shot_survives_a_crash_in_the_middle(autojump_clock: object) -> None:
    """What ran when the process died is recorded as failed and tried again, not lost and not for ever. (J5, 27)"""
    world = make_world()
    job = await world.add("in 1 minute")
    world.runner.act = endless
    for _ in range(10):
        await world.crash_after(2 * MINUTE)
    assert (await world.job(job)).status is JobStatus.FAILED
    runs = await world.runs(job)
    assert len(runs) == 4
    assert all(run.state == "failed" and run.error.startswith("orphaned") for run in runs)


async def test_a_one_shot_due_while_nobody_was_there_runs_at_the_start(autojump_clock: object) -> None:
    """Once, however late it is within its grace. (J6, 26)"""
    world = make_world()
    job = await world.add("in 1 minute")
    await trio.sleep(5 * 3600)
    await world.live(MINUTE)
    (run,) = await world.runs(job)
    assert run.state == "succeeded"
    assert run.lateness == 5 * HOUR - MINUTE
    assert (await world.job(job)).status is JobStatus.COMPLETED


async def test_a_one_shot_that_is_too_late_is_missed_and_says_so(autojump_clock: object) -> None:
    """Beyond its grace it does not run; it is never left active without a next run. (26)"""
    world = make_world(options=Options(grace=HOUR))
    job = await world.add("in 1 minute", deliver_to=CHAT)
    await trio.sleep(5 * 3600)
    await world.live(MINUTE)
    after = await world.job(job)
    assert (after.status, after.reason, after.next_at) == (JobStatus.FAILED, "missed", None)
    assert await world.states(job) == ["skipped(missed)"]
    assert await world.runs(job) == []
    (note,) = [reply.note.text for reply in world.store.outbox.values()]  # type: ignore[attr-defined]
    assert note == "Job #1 did not run: it was due at 2026-03-02 12:01 UTC and that was too long ago."


async def test_a_one_shot_is_deleted_only_after_success(autojump_clock: object) -> None:
    """When that was asked for; a failed one stays for people to see. (L14)"""
    world = make_world(options=Options(max_retries=0))
    rules = Rules(delete_after_success=True)
    good = await world.add("in 1 minute", rules=rules)
    await world.live(2 * MINUTE)
    assert await world.store.cron.job(*good.key) is None
    world.runner.act = fails
    bad = await world.add("in 1 minute", rules=rules)
    await world.live(2 * MINUTE)
    assert (await world.job(bad)).status is JobStatus.FAILED


async def test_a_paused_one_shot_waits_and_runs_when_resumed(autojump_clock: object) -> None:
    """Its time passed while it was paused: it is due at once when it is resumed. (A29)"""
    world = make_world()
    job = await world.add("in 1 minute")
    await world.jobs.pause(*job.key)
    await world.live(HOUR)
    assert world.runner.works == []
    await world.jobs.resume(*job.key)
    await world.live(MINUTE)
    (run,) = await world.runs(job)
    assert run.started_at - BEGINNING == HOUR
