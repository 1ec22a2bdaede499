"""Jobs as people change them: nothing is lost quietly, nothing bad is stored."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import trio

from cron.errors import BadInput, JobNotFound, PastError, PhraseError, QuotaReached, ZoneError
from cron.jobs import NotAllowed
from cron.options import Options
from cron.schedule import at, every
from store.jobs import Bounds, JobStatus, Rules
from tests.unit.cron.world import BEGINNING, CHAT, make_world

if TYPE_CHECKING:
    from cron.run import Work

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)

BAD: list[tuple[dict[str, Any], str, type[Exception]]] = [
    ({"when": "0 0 31 4 *"}, "phrase", PhraseError),
    ({"when": "99 * * * *"}, "phrase", PhraseError),
    ({"when": "every 0 hours"}, "phrase", PhraseError),
    ({"when": "in -5 minutes"}, "phrase", PhraseError),
    ({"when": "every 0s"}, "phrase", PhraseError),
    ({"when": "on 2020-01-01"}, "phrase", PhraseError),
    ({"when": at(BEGINNING - MINUTE)}, "schedule", PastError),
    ({"zone": "Mars/Olympus"}, "zone", ZoneError),
    ({"zone": "../../etc/passwd"}, "zone", ZoneError),
    ({"message": ""}, "message", BadInput),
    ({"message": "   \n "}, "message", BadInput),
    ({"message": "x" * 16_001}, "message", BadInput),
    ({"message": "ä" * 8_001}, "message", BadInput),
    ({"name": "n" * 201}, "name", BadInput),
    ({"rules": Rules(min_interval=HOUR, max_interval=MINUTE)}, "min_interval", BadInput),
    ({"rules": Rules(min_interval=timedelta(0))}, "min_interval", BadInput),
    ({"rules": Rules(max_interval=-MINUTE)}, "max_interval", BadInput),
    ({"rules": Rules(run_timeout=timedelta(0))}, "run_timeout", BadInput),
    ({"rules": Rules(run_timeout=timedelta(days=2))}, "run_timeout", BadInput),
    ({"rules": Rules(grace=-MINUTE)}, "grace", BadInput),
    ({"rules": Rules(max_retries=-1)}, "max_retries", BadInput),
    ({"rules": Rules(overlap="pile up")}, "overlap", BadInput),  # type: ignore[arg-type]
    ({"session": "named"}, "session_name", BadInput),
    ({"session": "chat"}, "session", BadInput),
    ({"session": "other"}, "session", BadInput),
    ({"work_source": "imap:inbox"}, "work_source", BadInput),
]


@pytest.mark.parametrize(("wish", "field", "error"), BAD)
async def test_what_cannot_be_meant_is_refused_and_nothing_is_stored(
    wish: dict[str, Any], field: str, error: type[BadInput]
) -> None:
    """With the field, the value and an example. (T12)"""
    world = make_world()
    wish = {"when": "every 1 hour", "message": "work", **wish}
    with pytest.raises(error) as told:
        await world.add(wish.pop("when"), wish.pop("message"), **wish)
    assert isinstance(told.value, BadInput)
    assert told.value.field == field
    assert told.value.example
    assert await world.jobs.list("default", everything=True) == ()
    assert (await world.store.cron.counts("default")).pending == 0


async def test_an_edit_is_checked_like_a_new_job() -> None:
    """A bad edit changes nothing."""
    world = make_world()
    job = await world.add("every 1 hour")
    for bad in (
        {"when": "99 * * * *"},
        {"when": "every 0.05s"},
        {"message": ""},
        {"message": "  "},
        {"agent": ""},
        {"session": "bogus"},
        {"zone": "Nowhere"},
        {"rules": {"min_interval": -MINUTE}},
        {"rules": {"max_interval": timedelta.max}},
    ):
        with pytest.raises(BadInput):
            await world.jobs.edit(*job.key, **bad)
    assert await world.job(job) == job


async def test_looking_moves_nothing(autojump_clock: object) -> None:
    """Lists, states and edits of other fields leave a due job due. (32)"""
    world = make_world()
    job = await world.add("every 1 hour")
    other = await world.add("every 2 hours")
    await trio.sleep(3700)
    await world.jobs.list("default")
    await world.jobs.get(*job.key)
    await world.jobs.edit(*job.key, message="other words", name="named")
    (trigger,) = await world.triggers(job)
    assert (trigger.state, trigger.slot - BEGINNING) == ("pending", HOUR)
    assert await world.job(other) == other
    await world.live(MINUTE)
    assert [work.prompt for work in world.runner.works] == ["other words"]


async def test_an_edited_schedule_takes_effect_at_once(autojump_clock: object) -> None:
    """What has not come is planned anew without a trace; what was due ends as skipped, with the reason. (32)"""
    world = make_world()
    job = await world.add("every 1 hour")
    after = await world.jobs.edit(*job.key, when="every 10 minutes")
    assert (after.next_at, await world.states(job)) == (BEGINNING + 10 * MINUTE, ["pending"])
    await trio.sleep(900)
    await world.jobs.edit(*job.key, when="every 20 minutes")
    assert await world.states(job) == ["skipped(edited)", "pending"]
    assert (await world.job(job)).next_at == BEGINNING + 35 * MINUTE


async def test_a_paused_job_fires_nothing_and_a_resumed_one_goes_on(autojump_clock: object) -> None:
    """Slots of the pause are no slots; what was due when it began ends as skipped. (L14, A29)"""
    world = make_world()
    job = await world.add("0 * * * *")
    await world.jobs.pause(*job.key, "holiday")
    await world.live(3 * HOUR)
    assert await world.triggers(job) == []
    after = await world.job(job)
    assert (after.status, after.reason, after.next_at) == (JobStatus.PAUSED, "holiday", None)
    resumed = await world.jobs.resume(*job.key)
    assert resumed.next_at is not None
    assert resumed.next_at - BEGINNING == 4 * HOUR
    await trio.sleep(3700)
    await world.jobs.pause(*job.key)
    assert await world.states(job) == ["skipped(paused)"]


async def test_a_pause_until_a_moment_ends_by_itself(autojump_clock: object) -> None:
    """It fires then, whatever else was planned. (C16)"""
    world = make_world()
    job = await world.add("every 10 minutes")
    until = BEGINNING + 3 * HOUR
    after = await world.jobs.pause(*job.key, until=until)
    assert (after.next_at, after.next_source) == (until, "paused")
    await world.live(timedelta(hours=3, minutes=15))
    assert [run.started_at - BEGINNING for run in await world.runs(job)] == [3 * HOUR, 3 * HOUR + 10 * MINUTE]
    with pytest.raises(PastError):
        await world.jobs.pause(*job.key, until=BEGINNING)


async def test_a_cancelled_job_keeps_its_history_and_a_purged_one_does_not(autojump_clock: object) -> None:
    """Neither fires again; what waited ends as skipped. (G20, A3)"""
    world = make_world()
    job = await world.add("every 10 minutes")
    await world.live(15 * MINUTE)
    await world.jobs.run_now(*job.key)
    await world.jobs.cancel(*job.key)
    assert await world.states(job) == ["completed", "skipped(cancelled)", "skipped(cancelled)"]
    assert [one.id for one in await world.jobs.list("default")] == []
    assert [one.id for one in await world.jobs.list("default", everything=True)] == [1]
    await world.live(HOUR)
    assert len(await world.runs(job)) == 1
    with pytest.raises(NotAllowed):
        await world.jobs.run_now(*job.key)
    await world.jobs.cancel(*job.key, purge=True)
    with pytest.raises(JobNotFound, match="schedule #1 not found"):
        await world.jobs.get(*job.key)
    assert await world.runs(job) == []


async def test_a_job_cancelled_during_its_run_says_nothing_more(autojump_clock: object) -> None:
    """The run is recorded, its answer is not delivered, and nothing follows."""
    world = make_world()

    async def cancels(work: Work) -> str:
        await world.jobs.cancel(*work.job.key)
        return "too late"

    world.runner.act = cancels
    job = await world.add("every 10 minutes", deliver_to=CHAT)
    await world.live(HOUR)
    assert [run.state for run in await world.runs(job)] == ["succeeded"]
    assert (await world.job(job)).status is JobStatus.CANCELLED
    assert world.store.outbox == {}  # type: ignore[attr-defined]


async def test_a_job_purged_during_its_run_leaves_nothing(autojump_clock: object) -> None:
    """Its settling is refused as stale, and the service goes on."""
    world = make_world()

    async def purges(work: Work) -> str:
        await world.jobs.cancel(*work.job.key, purge=True)
        return "gone"

    world.runner.act = purges
    job = await world.add("every 10 minutes")
    other = await world.add("every 15 minutes", "other")
    world.runner.act = purges
    async with world.running():
        await trio.sleep(660)
        world.runner.act = None
        await trio.sleep(600)
    assert await world.store.cron.job(*job.key) is None
    assert [run.state for run in await world.runs(other)] == ["succeeded"]
    assert world.events("settle_stale")


async def test_there_are_no_more_jobs_than_allowed() -> None:
    """The limit is told with what to do; ended jobs do not count. (S24)"""
    world = make_world(options=Options(bounds=Bounds(of_tenant=2, of_agent=1)))
    first = await world.add("every 1 hour")
    with pytest.raises(QuotaReached, match="/cron list"):
        await world.add("every 1 hour")
    await world.add("every 1 hour", agent="other")
    with pytest.raises(QuotaReached):
        await world.add("every 1 hour", agent="third")
    await world.jobs.cancel(*first.key)
    await world.add("every 1 hour")


async def test_an_agent_may_not_schedule_a_storm() -> None:
    """Its jobs keep a distance, and a run of a job makes none. (S25, 39)"""
    world = make_world()
    with pytest.raises(BadInput, match="an agent's job may run every 1 minute at most"):
        await world.add("every 10s", made_by_agent=True)
    await world.add("* * * * *", made_by_agent=True)
    with pytest.raises(NotAllowed, match="may not make jobs"):
        await world.add("every 1 hour", inside_run=True)


@pytest.mark.parametrize(
    "hint",
    [
        {"interval": timedelta(0)},
        {"interval": -MINUTE},
        {"interval": timedelta(seconds=30)},
        {"lasts": timedelta(0)},
        {"lasts": timedelta.max},
        {"next_at": BEGINNING - MINUTE},
        {"next_at": BEGINNING.replace(tzinfo=None)},
    ],
)
async def test_a_bad_hint_is_refused(hint: dict[str, Any]) -> None:
    """And the job stays as it was."""
    world = make_world()
    job = await world.add("every 1 hour")
    with pytest.raises(BadInput):
        await world.jobs.hint(*job.key, **hint)
    assert await world.job(job) == job


async def test_hints_count_at_once_and_end_by_themselves(autojump_clock: object) -> None:
    """A pace of two minutes for ten minutes, then the hourly one again. (C11, C17, C21)"""
    world = make_world()
    job = await world.add("every 1 hour")
    hinted = await world.jobs.hint(*job.key, interval=2 * MINUTE, lasts=timedelta(minutes=9))
    assert (hinted.next_at, hinted.next_source) == (BEGINNING + 2 * MINUTE, "ai-interval")
    await world.live(timedelta(hours=1, minutes=15))
    starts = [run.started_at - BEGINNING for run in await world.runs(job)]
    assert starts == [2 * MINUTE, 4 * MINUTE, 6 * MINUTE, 8 * MINUTE, 10 * MINUTE, 70 * MINUTE]
    await world.jobs.hint(*job.key, interval=MINUTE)
    cleared = await world.jobs.clear_hints(*job.key)
    assert cleared.next_source == "baseline-interval"


async def test_limits_hold_over_hints(autojump_clock: object) -> None:
    """No sooner than the shortest distance, no later than the longest, whoever asked. (C15)"""
    world = make_world()
    rules = Rules(min_interval=10 * MINUTE, max_interval=HOUR)
    job = await world.add(every(30 * MINUTE), rules=rules)
    sooner = await world.jobs.hint(*job.key, interval=MINUTE)
    assert (sooner.next_at, sooner.next_source) == (BEGINNING + 10 * MINUTE, "clamped-min")
    later = await world.jobs.hint(*job.key, interval=5 * HOUR)
    assert (later.next_at, later.next_source) == (BEGINNING + HOUR, "clamped-max")


async def test_a_disabled_tenant_fires_nothing_and_goes_on_when_enabled(autojump_clock: object) -> None:
    """Recurring jobs are looked at every hour, one-shots are paused; both are planned anew when it is enabled. (A28)"""
    world = make_world(look_s=60)
    await world.store.create_tenant("t")
    recurring = await world.add("*/10 * * * *", tenant="t")
    once = await world.add("in 5 minutes", tenant="t")
    await world.jobs.enable_tenant("t", False)
    await world.live(timedelta(hours=2, minutes=30))
    assert world.runner.works == []
    assert (await world.job(once)).status is JobStatus.PAUSED
    assert all(state.startswith("skipped(tenant_disabled)") for state in (await world.states(recurring))[:-1])
    await world.jobs.enable_tenant("t", True)
    await world.live(15 * MINUTE)
    assert [run.started_at - BEGINNING for run in await world.runs(recurring)] == [160 * MINUTE]
    assert [run.started_at - BEGINNING for run in await world.runs(once)] == [150 * MINUTE]
    triggers = await world.triggers(recurring)
    assert sum(trigger.count for trigger in triggers if trigger.state == "skipped") == 15
    assert not await world.jobs.enable_tenant("nobody", True)


async def test_a_tenant_that_was_enabled_by_somebody_who_died_over_it_goes_on(autojump_clock: object) -> None:
    """The next round of upkeep finds what was paused with it. (A28)"""
    world = make_world()
    await world.store.create_tenant("t")
    once = await world.add("in 5 minutes", tenant="t")
    await world.jobs.enable_tenant("t", False)
    await world.live(10 * MINUTE)
    assert (await world.job(once)).status is JobStatus.PAUSED
    await world.store.enable_tenant("t", True)
    await world.live(MINUTE)
    assert (await world.job(once)).status is JobStatus.COMPLETED


async def test_neither_limits_nor_hints_move_a_one_shot(autojump_clock: object) -> None:
    """It was asked for at a moment, and that is when it runs."""
    world = make_world()
    job = await world.add("in 5 hours", rules=Rules(max_interval=HOUR))
    hinted = await world.jobs.hint(*job.key, interval=2 * MINUTE)
    assert job.next_at == hinted.next_at == BEGINNING + 5 * HOUR


async def test_the_zone_of_a_job_comes_from_its_tenant_then_the_settings() -> None:
    """And is stored with the job. (10, T10)"""
    world = make_world(options=Options(zone="Asia/Tokyo"))
    await world.store.create_tenant("t", zone="Europe/Berlin")
    jobs = [
        await world.add("every day at 09:00"),
        await world.add("every day at 09:00", tenant="t"),
        await world.add("every day at 09:00", tenant="t", zone="America/New_York"),
    ]
    assert [job.spec.timing.zone for job in jobs] == ["Asia/Tokyo", "Europe/Berlin", "America/New_York"]


async def test_another_tenants_job_is_not_there() -> None:
    """Whatever is asked of it. (P11)"""
    world = make_world()
    await world.store.create_tenant("t")
    await world.add("every 1 hour")
    for ask in (world.jobs.get, world.jobs.pause, world.jobs.resume, world.jobs.cancel, world.jobs.run_now):
        with pytest.raises(JobNotFound):
            await ask("t", 1)


async def test_a_first_run_at_once_when_asked_for(autojump_clock: object) -> None:
    """What somebody says in a chat waits for its interval; what a file configures may begin now."""
    world = make_world()
    job = await world.add("every 1 hour", at_once=True)
    await world.live(timedelta(hours=1, minutes=1))
    assert [run.started_at - BEGINNING for run in await world.runs(job)] == [timedelta(0), HOUR]
