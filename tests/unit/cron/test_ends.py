"""How attempts end, and what follows for their jobs."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import trio

from cron.errors import AgentMissing, PermanentFailure, RunStopped
from cron.options import Options
from store.jobs import Delivery, JobStatus
from store.records import Lease, Role
from tests.unit.cron.world import BEGINNING, CHAT, ToldRunner, make_world

if TYPE_CHECKING:
    from cron.run import Work
    from tests.unit.cron.world import World

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def raises(error: Exception) -> object:
    async def act(work: Work) -> str:
        await trio.lowlevel.checkpoint()
        raise error

    return act


async def news_of(world: World) -> list[str]:
    return [one.news.kind for one in await world.store.cron.notifications("default", limit=1000)]


async def test_a_failing_recurring_job_backs_off_and_never_dies(autojump_clock: object) -> None:
    """Retries are inside one occurrence; then the failure counts, and the distance doubles. (T3, T9, C10)"""
    world = make_world()
    world.runner.act = raises(RuntimeError("no"))  # type: ignore[assignment]
    job = await world.add("every 10 minutes")
    await world.live(timedelta(hours=3))
    firsts = [run.started_at - BEGINNING for run in await world.runs(job) if run.attempt == 1]
    # After each occurrence the distance from slot to slot is 2, 4, 8 times the interval.
    assert firsts == [10 * MINUTE, 30 * MINUTE, 70 * MINUTE, 150 * MINUTE]
    after = await world.job(job)
    assert (after.status, after.failures) == (JobStatus.ACTIVE, 4)
    assert after.next_at is not None
    world.runner.act = None
    await world.live(timedelta(hours=10))
    assert (await world.job(job)).failures == 0


async def test_a_failing_cron_job_keeps_its_times(autojump_clock: object) -> None:
    """The calendar is not moved by failures, and one failed start ends nothing. (T9, A22, C9)"""
    world = make_world()
    world.runner.act = raises(RuntimeError("cannot set up"))  # type: ignore[assignment]
    job = await world.add("0 * * * *")
    await world.live(timedelta(hours=3, minutes=5))
    firsts = [run.started_at - BEGINNING for run in await world.runs(job) if run.attempt == 1]
    assert firsts == [HOUR, 2 * HOUR, 3 * HOUR]
    assert (await world.job(job)).failures == 3


async def test_a_permanent_error_is_not_tried_again(autojump_clock: object) -> None:
    """Trying again would not help, so the occurrence is over. (38)"""
    world = make_world()
    world.runner.act = raises(PermanentFailure("the message may have been sent"))  # type: ignore[assignment]
    job = await world.add("0 * * * *")
    await world.live(timedelta(hours=1, minutes=5))
    assert [run.attempt for run in await world.runs(job)] == [1]
    assert await world.states(job) == ["failed(the message may have been sent)", "pending"]


async def test_a_missing_agent_pauses_the_job(autojump_clock: object) -> None:
    """It is said why and how to go on; resumed, it goes on. (A23)"""
    world = make_world()
    world.runner.act = raises(AgentMissing("research"))  # type: ignore[assignment]
    job = await world.add("0 * * * *", agent="research", deliver_to=CHAT)
    await world.live(timedelta(hours=3))
    after = await world.job(job)
    assert (after.status, after.reason, after.next_at) == (JobStatus.PAUSED, 'there is no agent "research"', None)
    assert len(await world.runs(job)) == 1
    (note,) = [reply.note.text for reply in world.store.outbox.values()]  # type: ignore[attr-defined]
    assert note == 'Job #1 failed: there is no agent "research". It is paused; /cron resume 1 when that is mended.'
    world.runner.act = None
    await world.jobs.resume(*job.key)
    await world.live(timedelta(hours=1, minutes=5))
    assert (await world.runs(job))[-1].state == "succeeded"


async def test_a_missing_agent_of_a_run_that_was_asked_for_pauses_nothing(autojump_clock: object) -> None:
    """The schedule is left alone, so that no slot of it goes unaccounted for. (C22, P5)"""
    world = make_world()
    world.runner.act = raises(AgentMissing("research"))  # type: ignore[assignment]
    job = await world.add("0 * * * *", agent="research")
    async with world.running():
        await world.jobs.run_now(*job.key)
        await trio.sleep(60)
    after = await world.job(job)
    assert (after.status, after.next_at) == (JobStatus.ACTIVE, job.next_at)
    assert [run.state for run in await world.runs(job)] == ["failed"]


async def test_a_run_that_a_person_stopped_is_no_failure(autojump_clock: object) -> None:
    """It is not tried again, does not count, and the schedule goes on."""
    world = make_world()
    world.runner.act = raises(RunStopped("stopped"))  # type: ignore[assignment]
    job = await world.add("0 * * * *")
    await world.live(timedelta(hours=1, minutes=5))
    assert await world.states(job) == ["failed(stopped)", "pending"]
    after = await world.job(job)
    assert (after.failures, after.status) == (0, JobStatus.ACTIVE)


async def test_every_run_is_told_from_its_start_to_its_end(autojump_clock: object) -> None:
    """Started, then completed or failed, numbered without gaps; skipped slots are told too. (A21, A24)"""
    world = make_world(options=Options(max_retries=1))

    async def second_time(work: Work) -> str:
        await trio.lowlevel.checkpoint()
        if work.run.attempt == 1:
            raise RuntimeError("not yet")
        return "ok"

    world.runner.act = second_time
    await world.add("0 * * * *")
    await trio.sleep(2.5 * 3600)
    await world.live(5 * MINUTE)
    assert await news_of(world) == ["run.started", "run.failed", "run.started", "run.completed", "run.skipped"]
    news = await world.store.cron.notifications("default")
    assert [one.seq for one in news] == [1, 2, 3, 4, 5]
    assert news[1].news.data["again"] is True
    assert news[3].news.data["result_summary"] == "ok"


async def test_an_answer_is_delivered_where_the_job_was_made(autojump_clock: object) -> None:
    """In the outbox with the run that said it; the run tells what became of it. (37)"""
    world = make_world()
    job = await world.add("in 1 minute", "say hi", deliver_to=CHAT)
    await world.live(2 * MINUTE)
    (run,) = await world.runs(job)
    assert (run.delivery, run.tokens_in, run.tokens_out) == (Delivery.WAITING, 3, 5)
    lease = await world.store.acquire("chat", "me", HOUR)
    assert isinstance(lease, Lease)
    messages = world.store.messages(lease)
    (reply,) = await messages.outbox(10)
    assert (reply.note.text, reply.note.session, reply.note.run) == ("done: say hi", CHAT, run.id)
    await messages.sent(reply.id, failed="the chat is gone")
    (run,) = await world.runs(job)
    assert (run.state, run.delivery, run.delivery_error) == ("succeeded", Delivery.FAILED, "the chat is gone")


async def test_a_job_without_a_place_to_answer_says_nothing(autojump_clock: object) -> None:
    """Delivery none is absolute: neither answers nor failures go anywhere. (37)"""
    world = make_world()
    await world.add("in 1 minute")
    await world.live(2 * MINUTE)
    world.runner.act = raises(RuntimeError("no"))  # type: ignore[assignment]
    job = await world.add("in 1 minute")
    await world.live(2 * MINUTE)
    assert (await world.job(job)).status is JobStatus.FAILED
    assert world.store.outbox == {}  # type: ignore[attr-defined]


async def test_a_job_of_a_chat_is_remembered_there(autojump_clock: object) -> None:
    """The transcript of the conversation has the job's words and the answer."""
    world = make_world()
    await world.add("in 1 minute", "say hi", deliver_to=CHAT, session="chat")
    await world.live(2 * MINUTE)
    lines = await world.store.transcript(CHAT)
    assert [(one.said.role, one.said.text) for one in lines] == [
        (Role.SYSTEM, "say hi"),
        (Role.ASSISTANT, "done: say hi"),
    ]
    assert world.runner.works[0].session == str(CHAT)


async def test_a_fresh_run_stands_alone(autojump_clock: object) -> None:
    """Each run of such a job has a session of its own, and its environment names trace, run, trigger and job. (G19)"""
    world = make_world()
    job = await world.add("every 1 minute")
    await world.live(timedelta(seconds=125))
    first, second = world.runner.works
    assert first.session == f"cron:default:1:{first.run.id}"
    assert first.session != second.session
    (trigger, _, _) = await world.triggers(job)
    assert first.environ == {
        "GOCLAW_TRACE_ID": trigger.trace,
        "GOCLAW_RUN_ID": first.run.id,
        "GOCLAW_TRIGGER_ID": trigger.id,
        "GOCLAW_JOB_ID": "1",
    }
    assert first.run.trace == trigger.trace != second.run.trace


async def test_a_long_answer_is_kept_whole_beside_its_summary(autojump_clock: object) -> None:
    """The summary has at most 4,096 bytes and says that it is cut; the output has everything. (A21)"""
    world = make_world()

    async def talks(work: Work) -> str:
        await trio.lowlevel.checkpoint()
        return "ä" * 10_000

    world.runner.act = talks
    job = await world.add("in 1 minute")
    await world.live(2 * MINUTE)
    (run,) = await world.runs(job)
    assert len(run.summary.encode()) <= 4096
    assert run.summary.endswith("…[truncated]")
    assert await world.store.cron.output("default", run.id) == "ä" * 10_000


@pytest.mark.parametrize("text", ["half \ud800 a character", "", "nul \x00 inside"])
async def test_an_odd_answer_is_an_answer(autojump_clock: object, text: str) -> None:
    """Nothing that an agent says keeps its run from being settled."""
    world = make_world()

    async def talks(work: Work) -> str:
        await trio.lowlevel.checkpoint()
        return text

    world.runner.act = talks
    job = await world.add("in 1 minute", deliver_to=CHAT)
    await world.live(2 * MINUTE)
    assert [run.state for run in await world.runs(job)] == ["succeeded"]


async def test_a_job_that_adds_a_job_runs_to_its_end(autojump_clock: object) -> None:
    """A run that changes jobs, its own among them, is neither cancelled nor started again. (N1, 39)"""
    world = make_world(options=Options(jobs_in_runs=True))

    async def adds(work: Work) -> str:
        if work.prompt == "adds":
            await world.add("in 1 minute", "added")
            await world.jobs.edit(*work.job.key, message="adds")
            await trio.sleep(5)
        return "ok"

    world.runner.act = adds
    job = await world.add("in 1 minute", "adds")
    await world.live(5 * MINUTE)
    assert [work.prompt for work in world.runner.done] == ["adds", "added"]
    assert [run.state for run in await world.runs(job)] == ["succeeded"]


async def test_a_hint_written_during_a_run_counts_for_the_plan_after_it(autojump_clock: object) -> None:
    """And so do an edit and a pause: the job is read when the run is settled. (C21)"""
    world = make_world(runner=ToldRunner(limit=3))

    async def changes(work: Work) -> str:
        await trio.sleep(5)
        if work.prompt == "hint":
            await world.jobs.hint(*work.job.key, interval=2 * MINUTE, reason="busy day")
        elif work.prompt == "pause":
            await world.jobs.pause(*work.job.key, "enough")
        else:
            await world.jobs.edit(*work.job.key, when="every 3 minutes")
        return "ok"

    world.runner.act = changes
    hinted = await world.add("every 1 hour", "hint")
    paused = await world.add("every 1 hour", "pause")
    edited = await world.add("every 1 hour", "edit")
    await world.live(HOUR + timedelta(seconds=30))
    after = [await world.job(job) for job in (hinted, paused, edited)]
    assert [job.next_at and job.next_at - BEGINNING for job in after] == [62 * MINUTE, None, 63 * MINUTE]
    assert after[0].next_source == "ai-interval"
    assert after[1].status is JobStatus.PAUSED


async def test_a_one_shot_hint_is_used_once(autojump_clock: object) -> None:
    """It fires then, and afterwards the baseline counts again. (T4)"""
    world = make_world()
    job = await world.add("every 1 hour")
    await world.jobs.hint(*job.key, next_at=BEGINNING + 5 * MINUTE, lasts=HOUR)
    await world.live(timedelta(hours=1, minutes=10))
    assert [run.started_at - BEGINNING for run in await world.runs(job)] == [5 * MINUTE, 65 * MINUTE]
    assert [run.source for run in await world.runs(job)] == ["ai-oneshot", "baseline-interval"]
