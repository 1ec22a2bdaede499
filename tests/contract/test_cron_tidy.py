"""Tidying what cron keeps: ended jobs, triggers, runs, outputs and news go when they are too old, to the moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.jobs import (
    KEEP_NEWS,
    KEEP_OUTPUTS,
    KEEP_RUNS,
    Change,
    Fire,
    Job,
    JobStatus,
    News,
    Stretch,
    Trigger,
    TriggerState,
)
from store.records import Tidied
from tests.contract.cron_rows import (
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
    ended,
    fired,
    job_now,
    run_now,
    running,
    settled,
    triggers_of,
)
from tests.contract.picture import cron_picture
from tests.contract.rows import HERE
from tests.contract.test_tidy import tidied

if TYPE_CHECKING:
    from datetime import datetime

    from store.cron_protocol import CronStore
    from store.protocols import MessageStore, Store
    from tests.contract.backends import Wall

CANCELLED = Plan(status=JobStatus.CANCELLED, withdraw=True)
LONG = "x" * 9000


async def went(whole: Store) -> int:
    """How much of cron's went, in all rounds together; nothing else did."""
    found = await tidied(whole)
    assert found == Tidied(0, 0, 0, found.cron)
    return found.cron


async def test_what_is_young_or_open_is_left_alone(whole: Store, cron: CronStore, wall: Wall) -> None:
    """However old, an open trigger, a running run and a job that has not ended never go. (P9)"""
    await running(cron, "runs")
    await added(cron, "waits", NOW)
    paused = await added(cron, "paused")
    await changed(cron, paused, Plan(status=JobStatus.PAUSED, withdraw=True))
    await fired(cron, paused)
    before = await cron_picture(whole)
    wall.pass_by(10 * KEEP_RUNS)
    assert await went(whole) == 1
    after = await cron_picture(whole)
    same = ("jobs", "triggers", "runs", "outputs", "counts", "unplanned")
    assert [after[name] for name in same] == [before[name] for name in same]


async def test_an_ended_job_goes_after_a_month(whole: Store, cron: CronStore, wall: Wall) -> None:
    """In whichever way it ended: counted from its last change, to the moment, with all its history."""
    jobs = [await added(cron, end) for end in JobStatus if end.ended]
    for job in jobs:
        await changed(cron, job, Plan(stretch="s"))
    wall.pass_by(HOUR)
    for job in jobs:
        await changed(cron, job, Plan(status=JobStatus(job.spec.uid), withdraw=True))
    wall.pass_by(KEEP_RUNS - HOUR - MOMENT)
    assert await went(whole) == 0
    wall.pass_by(MOMENT)
    assert await went(whole) == 3  # the stretches
    wall.pass_by(HOUR - MOMENT)
    assert await went(whole) == 0
    assert len(await cron.jobs("default")) == 3
    wall.pass_by(MOMENT)
    assert await went(whole) == 3
    assert await cron.jobs("default") == ()
    assert (await added(cron, "a")).id == 4


async def test_ended_triggers_go_after_a_month(whole: Store, cron: CronStore, wall: Wall) -> None:
    """Counted from their end, not from their slot; their idempotency key is free then. (G8)"""
    job = await added(cron, "a")
    await fired(cron, job, "f", key="k")
    wall.pass_by(MINUTE)
    await settled(cron, ended(await claim_one(cron), ""), Plan(end=TriggerState.COMPLETED))
    wall.pass_by(KEEP_RUNS - MOMENT)
    assert await went(whole) == 0
    assert (await fired(cron, job, "again", key="k")).id == "f"
    wall.pass_by(MOMENT)
    assert await went(whole) == 1
    assert list(await triggers_of(cron, job)) == ["a#1"]
    assert (await fired(cron, job, "again", key="k")).id == "again"


async def test_ended_runs_go_after_a_month(whole: Store, cron: CronStore, wall: Wall) -> None:
    """Counted from their end; those of a job that goes on too, and what it remembers of its last run stays. (A26)"""
    claim = await running(cron, "a")
    wall.pass_by(MINUTE)
    await settled(cron, ended(claim), Plan("n", 2 * KEEP_RUNS, end=TriggerState.COMPLETED))
    wall.pass_by(KEEP_NEWS)
    assert await went(whole) == 1
    wall.pass_by(KEEP_RUNS - KEEP_NEWS - MOMENT)
    assert await went(whole) == 0
    wall.pass_by(MOMENT)
    assert await went(whole) == 2
    assert (await cron.runs("default"), await cron.output("default", "r1")) == ((), None)
    assert (await job_now(cron, claim.job)).last_run == "r1"
    assert list(await triggers_of(cron, claim.job)) == ["n#1"]


async def test_whole_outputs_go_after_a_week(whole: Store, cron: CronStore, wall: Wall) -> None:
    """What is left to read is the summary, until the run goes too."""
    claim = await running(cron, "a")
    wall.pass_by(MINUTE)
    await settled(cron, ended(claim, output=LONG), Plan("n", 2 * KEEP_RUNS, end=TriggerState.COMPLETED))
    wall.pass_by(KEEP_OUTPUTS - MOMENT)
    assert await went(whole) == 1  # the news of the start
    assert await cron.output("default", "r1") == LONG
    wall.pass_by(MOMENT)
    assert await went(whole) == 1
    assert await cron.output("default", "r1") == (await run_now(cron)).summary != LONG
    wall.pass_by(KEEP_RUNS - KEEP_OUTPUTS)
    assert await went(whole) == 2


async def test_an_output_goes_with_its_run(whole: Store, cron: CronStore, wall: Wall) -> None:
    """When tidying comes late, output, run and trigger go together, each counted."""
    await settled(cron, ended(await running(cron, "a"), output=LONG), Plan(end=TriggerState.COMPLETED))
    wall.pass_by(KEEP_RUNS)
    assert await went(whole) == 4
    assert await cron.output("default", "r1") is None


async def test_news_go_after_a_week(whole: Store, cron: CronStore, wall: Wall) -> None:
    """To the moment, each by its own time. (A24)"""
    job = await added(cron, "a")
    for _ in range(2):
        await changed(cron, job, Plan(news="run.skipped"))
        wall.pass_by(MOMENT)
    wall.pass_by(KEEP_NEWS - 3 * MOMENT)
    assert await went(whole) == 0
    wall.pass_by(MOMENT)
    assert await went(whole) == 1
    assert [one.seq for one in await cron.notifications("default")] == [2]
    wall.pass_by(MOMENT)
    assert await went(whole) == 1


async def test_a_slot_of_a_job_that_goes_on_is_forgotten_alone(whole: Store, cron: CronStore, wall: Wall) -> None:
    """What is younger, open or another job's stays. (32)"""
    old = await added(cron, "old", NOW)
    await settled(cron, ended(await claim_one(cron), ""), Plan("n", 2 * KEEP_RUNS, end=TriggerState.COMPLETED))
    wall.pass_by(KEEP_RUNS - MINUTE)
    young = await added(cron, "young")
    await changed(cron, young, PASSED)
    wall.pass_by(MINUTE)
    assert await went(whole) == 1
    assert list(await triggers_of(cron, old)) == ["n#1"]
    assert list(await triggers_of(cron, young)) == ["young#2"]


async def test_an_answer_is_sent_although_its_run_is_forgotten(
    whole: Store, store: MessageStore, cron: CronStore, wall: Wall
) -> None:
    """The outbox is not tidied, and nobody misses the run. (P6)"""
    claim = await running(cron, "a", deliver_to=HERE)
    await settled(cron, ended(claim), Plan(end=TriggerState.COMPLETED, note="the answer"))
    wall.pass_by(KEEP_RUNS)
    await tidied(whole)
    (reply,) = await store.outbox(9)
    assert reply.note.run == "r1"
    assert await store.sent(reply.id)


async def test_a_great_deal_is_tidied_in_rounds(whole: Store, cron: CronStore, wall: Wall) -> None:
    """Called until there is nothing more, everything old is gone and counted once."""
    await added(cron, "a", 2 * KEEP_RUNS)

    def much(job: Job, planned: Trigger | None, now: datetime) -> Change:
        slots = [(number, now - number * MINUTE) for number in range(2500)]
        stretches = tuple(Stretch(f"s{number}", slot, slot, 1, "missed") for number, slot in slots)
        return Change(job, stretches=stretches, news=(News("run.skipped", "default", 1, ""),) * 1500)

    await cron.change_job("default", 1, much)
    wall.pass_by(KEEP_RUNS)
    assert await went(whole) == 4000
    assert [one.id for one in await cron.triggers("default", 1)] == ["a#1"]


async def test_what_was_tidied_can_be_asked_for_again(whole: Store, cron: CronStore, wall: Wall) -> None:
    """Settling, starting or firing what is gone is refused as anything unknown is. (T19)"""
    claim = await running(cron, "a")
    await settled(cron, ended(claim), CANCELLED)
    await changed(cron, claim.job, Plan(end=TriggerState.COMPLETED))
    wall.pass_by(KEEP_RUNS)
    await tidied(whole)
    assert await cron.jobs("default") == ()
    assert not await settled(cron, ended(claim))
    assert await cron.renew([claim], LEASE) == (False,)
    assert await cron.fire(Fire("f", "default", 1)) is None
