"""What follows from the end of an attempt: each of these was once found by the simulation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
import trio

from cron.errors import AgentMissing
from cron.options import Options
from store.jobs import Rules
from store.protocols import StoreUnavailable
from tests.unit.cron.world import ToldRunner, WallClock, make_world

if TYPE_CHECKING:
    from cron.run import Work

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
PATIENT = Options(run_timeout=HOUR)


async def long_work(work: Work) -> str:
    await trio.sleep(17 * 60)
    return "ok"


async def test_a_pause_during_a_long_run_accounts_for_the_slots_that_passed(autojump_clock: object) -> None:
    """They were due while the job was active, so they end as skipped; those of the pause are nobody's. (P5)"""
    world = make_world(options=PATIENT)
    world.runner.act = long_work
    job = await world.add("*/5 * * * *")
    async with world.running():
        await trio.sleep(5 * 60 + 12 * 60)
        await world.jobs.pause(job.tenant, job.id)
        await trio.sleep(3600)
    assert await world.states(job) == ["completed", "skipped(already_running)x2"]


async def test_an_edit_during_a_long_run_accounts_for_the_slots_of_both_schedules(autojump_clock: object) -> None:
    """Up to the edit those of the old one, from then on those of the new one. (P5)"""
    world = make_world(options=PATIENT)
    world.runner.act = long_work
    job = await world.add("*/5 * * * *")
    async with world.running():
        await trio.sleep(5 * 60 + 6 * 60)
        await world.jobs.edit(job.tenant, job.id, when="*/3 * * * *")
        await trio.sleep(12 * 60)
    slots = [(one.slot - NOON) // MINUTE for one in await world.triggers(job)]
    assert slots == [5, 10, 12, 24]
    assert await world.states(job) == ["completed", "skipped(already_running)", "skipped(already_running)x4", "pending"]


async def test_a_deletion_accounts_for_what_was_overdue(autojump_clock: object) -> None:
    """Also who cancels a job finds every slot in its history. (P5)"""
    world = make_world()
    job = await world.add("*/5 * * * *")
    await trio.sleep(3600)
    await world.jobs.cancel(job.tenant, job.id)
    assert await world.states(job) == ["skipped(cancelled)x12"]


async def test_slots_under_a_run_without_an_agent_are_accounted_for(autojump_clock: object) -> None:
    """The job is paused; what passed while its last run went on is in its history, whatever its overlap. (P5)"""
    for overlap in ("skip", "queue"):
        world = make_world(options=PATIENT, wall=WallClock(NOON - timedelta(seconds=trio.current_time())))

        async def gone(work: Work) -> str:
            await trio.sleep(12 * 60)
            raise AgentMissing("there is no such agent")

        world.runner.act = gone
        job = await world.add("*/5 * * * *", rules=Rules(overlap=overlap))
        await world.live(HOUR)
        assert (await world.job(job)).status == "paused"
        assert (await world.states(job))[1:] == ["skipped(already_running)x2"]


async def test_a_hint_that_was_passed_over_does_not_fire_again(autojump_clock: object) -> None:
    """A moment that an agent proposed and that came too late is over; it is not now. (T4)"""
    world = make_world(options=Options(grace=10 * MINUTE))
    job = await world.add("every 6 hours")
    await world.jobs.hint(job.tenant, job.id, next_at=NOON + MINUTE, lasts=24 * HOUR)
    await trio.sleep(3600)
    await world.live(HOUR)
    assert await world.states(job) == ["skipped(missed)", "pending"]
    assert world.runner.works == []
    assert (await world.job(job)).hints.next_at is None


async def test_a_due_hint_that_was_paused_away_does_not_come_back(autojump_clock: object) -> None:
    """It ends as skipped with the pause, and the job goes on by its schedule. (T4)"""
    world = make_world()
    job = await world.add("every 6 hours")
    await world.jobs.hint(job.tenant, job.id, next_at=NOON + MINUTE)
    await trio.sleep(120)
    await world.jobs.pause(job.tenant, job.id)
    after = await world.jobs.resume(job.tenant, job.id)
    assert after.next_source == "baseline-interval"
    assert await world.states(job) == ["skipped(paused)", "pending"]


async def test_a_run_that_a_shutdown_ended_is_told_as_ended(autojump_clock: object) -> None:
    """Whoever shows what runs must hear that it does not any more, and that it will again."""
    world = make_world()
    world.runner.act = long_work
    await world.add("in 1 minute")
    await world.live(2 * MINUTE)
    news = [one.news for one in await world.store.cron.notifications("default")]
    assert [one.kind for one in news] == ["run.started", "run.failed"]
    assert (news[1].data["status"], news[1].data["again"]) == ("cancelled", True)


async def test_what_waits_for_another_attempt_is_not_withdrawn_when_the_clock_went_back(autojump_clock: object) -> None:
    """Its slot lies ahead again, but it has a history: a hint leaves it alone, a pause ends it as skipped. (P4, R6)"""
    world = make_world(options=Options(retry_base=MINUTE, retry_max=MINUTE))

    async def fails(work: Work) -> str:
        raise RuntimeError("no")

    world.runner.act = fails
    job = await world.add("*/5 * * * *")
    async with world.running():
        await trio.sleep(5 * 60 + 10)
        world.wall.jump(-MINUTE)
        await world.jobs.hint(job.tenant, job.id, next_at=world.wall() + 3 * MINUTE)
        (first,) = await world.triggers(job)
        await world.jobs.pause(job.tenant, job.id)
    assert (first.slot, first.attempt) == (NOON + 5 * MINUTE, 1)
    assert await world.states(job) == ["skipped(paused)"]


async def test_a_worker_claims_again_what_it_had_lost(autojump_clock: object) -> None:
    """Its lease ran out while it could not renew: the older claim dies, the newer one is carried out. (P4, R6)"""
    world = make_world(runner=ToldRunner(limit=2))
    world.runner.act = long_work
    job = await world.add("in 1 minute", rules=Rules(run_timeout=HOUR))
    with pytest.MonkeyPatch.context() as patch:
        async with world.running() as service:
            await trio.sleep(90)
            patch.setattr(type(world.store.cron), "renew", nobody_renews)
            world.wall.jump(HOUR)
            await trio.sleep(5)
            patch.undo()
            await trio.sleep(30)
            assert world.runner.active == 1
            assert service.running() == 1
            await trio.sleep(1800)
            assert service.running() == 0
            assert service.is_running
    assert [run.state for run in await world.runs(job)] == ["timeout", "succeeded"]


async def nobody_renews(self: object, claims: object, span: object) -> tuple[bool, ...]:
    await trio.lowlevel.checkpoint()
    raise StoreUnavailable("the store is away for a moment")


async def test_a_slow_answer_about_the_next_due_time_makes_nobody_late(autojump_clock: object) -> None:
    """What the store says is counted from the question. (G3)"""
    world = make_world()
    real = type(world.store.cron).next_due

    async def slow(self: object) -> timedelta | None:
        span = await real(self)  # type: ignore[arg-type]
        await trio.sleep(0.7)
        return span

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(world.store.cron), "next_due", slow)
        job = await world.add("every 10 minutes")
        await world.live(HOUR)
    assert {run.lateness for run in await world.runs(job)} == {timedelta(0)}
