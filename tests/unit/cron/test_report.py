"""What people are told about jobs."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import trio

from cron import report
from cron.options import Options
from store.jobs import Rules
from tests.unit.cron.world import BEGINNING, CHAT, make_world

if TYPE_CHECKING:
    from cron.run import Work
    from store.jobs import Job
    from tests.unit.cron.world import World

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


async def why(world: World, job: Job) -> list[str]:
    cron = world.store.cron
    runs = await cron.runs(job.tenant, job=job.id)
    triggers = await cron.triggers(job.tenant, job.id)
    return report.why(await world.job(job), runs, triggers, world.wall()).splitlines()


async def test_a_new_job_is_echoed_with_its_next_three_times(autojump_clock: object) -> None:
    """In words, with the zone, so that a misunderstanding shows at once."""
    world = make_world()
    job = await world.add("every weekday at 9am", "what is new?", zone="Europe/Berlin")
    assert report.created(job, world.wall()).splitlines() == [
        "Scheduled #1: At 09:00, Monday to Friday (Europe/Berlin)",
        "Next: Tue 2026-03-03 09:00, Wed 2026-03-04 09:00, Thu 2026-03-05 09:00 (Europe/Berlin)",
        "Message: what is new?",
        "/cron cancel 1 takes it back.",
    ]
    once = await world.add("in 1 hour", "tea")
    assert report.created(once, world.wall()).splitlines()[1] == "Next: Mon 2026-03-02 13:00 (UTC)"
    interval = await world.add("every 15 minutes", "tea")
    assert report.created(interval, world.wall()).splitlines()[1] == (
        "Next: Mon 2026-03-02 12:15, Mon 2026-03-02 12:30, Mon 2026-03-02 12:45 (UTC)"
    )


async def test_a_list_shows_what_matters(autojump_clock: object) -> None:
    """Number, words, next time or state, last state, and what it is about; an empty one teaches."""
    world = make_world()
    assert report.listed([], world.wall()).startswith("Nothing is scheduled. For instance: /schedule")
    await world.add("every 10 minutes", "look\n at   it " + "x" * 100, name="look")
    paused = await world.add("every day at 09:00")
    await world.jobs.pause(*paused.key)
    await world.live(15 * MINUTE)
    lines = report.listed(await world.jobs.list("default"), world.wall()).splitlines()
    assert lines[0].startswith("#1 Every 10 minutes; next Mon 2026-03-02 12:20, last succeeded. look: look at it xxx")
    assert lines[0].endswith("…")
    assert lines[1] == "#2 At 09:00 every day (UTC); paused. work"


async def test_why_tells_what_the_schedule_says(autojump_clock: object) -> None:
    """Before the first run, after it, and while it runs."""
    world = make_world()
    job = await world.add("0 * * * *", name="hourly")
    assert await why(world, job) == [
        "Job #1 (hourly): At minute 0 of every hour",
        "It has not run yet.",
        "Next run: Mon 2026-03-02 13:00 (UTC), because that is what its schedule says.",
    ]

    async def slow(work: Work) -> str:
        await trio.sleep(30)
        return "ok"

    world.runner.act = slow
    async with world.running():
        await trio.sleep(3610)
        assert (await why(world, job))[1:] == [
            "Last run: Mon 2026-03-02 13:00, because that is what its schedule says; running.",
            "It is running now, attempt 1.",
        ]
        await trio.sleep(60)
    assert (await why(world, job))[1:] == [
        "Last run: Mon 2026-03-02 13:00, because that is what its schedule says; succeeded after 30 seconds.",
        "Next run: Mon 2026-03-02 14:00 (UTC), because that is what its schedule says.",
    ]


async def test_why_tells_of_failures_and_back_off(autojump_clock: object) -> None:
    """Which attempt comes when and why, and how much longer the distance has become."""
    world = make_world(options=Options(max_retries=1))

    async def fails(work: Work) -> str:
        await trio.lowlevel.checkpoint()
        raise RuntimeError("the model is away")

    world.runner.act = fails
    job = await world.add("every 10 minutes", deliver_to=CHAT)
    async with world.running():
        await trio.sleep(601)
        assert (await why(world, job))[2] == (
            "Next run: Mon 2026-03-02 12:10:02 (UTC), because attempt 1 failed (the model is away) "
            "and it is tried again."
        )
        await trio.sleep(10)
    assert (await why(world, job))[1:] == [
        "Last run: Mon 2026-03-02 12:10:02, because that is its interval after the run before; failed at once, "
        "attempt 2: the model is away. What it said is on its way.",
        "Next run: Mon 2026-03-02 12:30 (UTC), because that is its interval after the run before, "
        "2 times as long after a failure.",
    ]


async def test_why_tells_of_hints_limits_and_pauses(autojump_clock: object) -> None:
    """With the agent's own reason."""
    world = make_world()
    job = await world.add("every 1 hour", rules=Rules(min_interval=5 * MINUTE))
    await world.jobs.hint(*job.key, interval=20 * MINUTE, reason="the build is red")
    assert (await why(world, job))[2].endswith("because its agent asked for this pace: the build is red.")
    await world.jobs.hint(*job.key, interval=MINUTE)
    assert (await why(world, job))[2].endswith("because it may not run sooner than its shortest distance allows.")
    await world.jobs.pause(*job.key, until=BEGINNING + 3 * HOUR)
    assert (await why(world, job))[2].endswith("because it is paused until then.")
    await world.jobs.pause(*job.key, "holiday")
    assert (await why(world, job))[2] == "There is no next run: it is paused (holiday)."


async def test_why_tells_what_was_skipped(autojump_clock: object) -> None:
    """How many, from when to when, and the reason."""
    world = make_world()
    job = await world.add("0 * * * *")
    await trio.sleep(5.5 * 3600)
    await world.live(MINUTE)
    told = await why(world, job)
    assert told[1].startswith("Last run: Mon 2026-03-02 17:30, 4 hours 30 minutes late, because that is what")
    assert told[3] == (
        "Skipped: 4 times from Mon 2026-03-02 14:00 to Mon 2026-03-02 17:00: "
        "missed: they came due while nobody could run them."
    )
