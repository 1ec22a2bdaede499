"""Jobs: numbered for people, bounded, changed by one decision at a time, and read without being touched."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from store.jobs import (
    LONGEST_MESSAGE,
    Bounds,
    Change,
    Job,
    JobStatus,
    Rules,
    Timing,
    Trigger,
    TriggerKind,
    TriggerState,
)
from store.protocols import RuleBroken
from store.records import SessionKey
from tests.contract.cron_rows import (
    ANY,
    AT_NOON,
    HOUR,
    HOURLY,
    MINUTE,
    MOMENT,
    NOW,
    WEBHOOK,
    Plan,
    added,
    changed,
    claim_one,
    fired,
    job_now,
    new,
    triggers_of,
)
from tests.contract.picture import cron_picture
from tests.contract.rows import HERE

if TYPE_CHECKING:
    from store.cron_protocol import CronStore
    from store.protocols import Store
    from tests.contract.backends import Wall

PAUSED = Plan(status=JobStatus.PAUSED, withdraw=True)
PURGED = Plan(remove=True)
CANCELLED = Plan(status=JobStatus.CANCELLED, end=TriggerState.SKIPPED, reason="cancelled", drop_others="cancelled")


# ── asked for ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_jobs_are_numbered_from_one_in_each_tenant(whole: Store, cron: CronStore) -> None:
    """People type the number, so every tenant begins anew. (A27)"""
    await whole.create_tenant("t")
    made = [await added(cron, uid, tenant=tenant) for tenant in ("default", "t") for uid in "abc"]
    assert [job.key for job in made] == [(tenant, number) for tenant in ("default", "t") for number in (1, 2, 3)]


async def test_no_number_is_used_again(cron: CronStore) -> None:
    """Whoever remembers the number of a job that is gone does not meet another one: not even when the last one goes."""
    for uid in "ab":
        await changed(cron, await added(cron, uid), PURGED)
    assert (await added(cron, "c")).id == 3
    assert [job.id for job in await cron.jobs("default")] == [3]


async def test_a_job_that_is_refused_costs_no_number(cron: CronStore) -> None:
    """Numbers count jobs, not wishes."""
    await added(cron, "a")
    assert await cron.add_job(new("b"), Plan("b").first, Bounds(of_tenant=1)) is None
    assert (await added(cron, "c")).id == 2


async def test_a_new_job_is_kept_as_it_was_asked_for(cron: CronStore, wall: Wall) -> None:
    """Every field of it, and its first trigger, are there to be read. (A1)"""
    spec = new(
        "a\x00é",
        name="näme\x00",
        message="  look\n🦀 ",
        timing=AT_NOON,
        rules=Rules("queue", "skip", MOMENT, "completion", MINUTE, 9 * HOUR, 0, timedelta(days=3, seconds=1), True),
        deliver_to=replace(HERE, thread="7", epoch=3),
        session="named",
        session_name="journal",
        work_source="inbox",
        owner="ann",
        made_by_agent=True,
    )
    job = await cron.add_job(spec, Plan("n", MINUTE, offset=MOMENT).first, ANY)
    due = wall.time + MINUTE
    assert job == Job(1, spec, wall.time, wall.time, next_at=due, next_source="baseline-interval")
    assert await cron.job("default", 1) == job
    (trigger,) = await cron.triggers("default", 1)
    kind, source = TriggerKind.SCHEDULE, "baseline-interval"
    assert trigger == Trigger(
        "n#1",
        "default",
        1,
        "main",
        kind,
        due + MOMENT,
        due,
        wall.time,
        source=source,  # type: ignore[arg-type]
        trace="trace 1",
    )
    assert await cron.trigger("default", "n#1") == trigger


async def test_any_schedule_comes_back(cron: CronStore) -> None:
    """To the microsecond and with its zone."""
    odd = Timing("every", every=timedelta(days=400, microseconds=7))
    for timing in (HOURLY, AT_NOON, WEBHOOK, odd):
        job = await added(cron, timing.kind + str(timing.every), timing=timing)
        assert (await job_now(cron, job)).spec.timing == timing


async def test_an_instant_comes_back(cron: CronStore, wall: Wall) -> None:
    """A one-shot is kept to the microsecond."""
    timing = Timing("at", at=wall.time + 3 * MOMENT)
    assert (await job_now(cron, await added(cron, "a", timing=timing))).spec.timing == timing


async def test_asking_twice_makes_one_job(cron: CronStore, wall: Wall) -> None:
    """The same uid is the same job, whatever the second wish says and whatever the bounds: a repeat is harmless."""
    job = await added(cron, "a")
    wall.pass_by(MINUTE)
    again = await cron.add_job(new("a", message="other"), Plan("other").first, Bounds(0, 0))
    assert again == job
    assert await cron.jobs("default") == (job,)
    assert list(await triggers_of(cron, job)) == ["a#1"]


async def test_a_job_is_found_by_what_it_was_asked_for_with(cron: CronStore) -> None:
    """Also when it has ended; not when nobody asked so, or when it was removed."""
    job = await added(cron, "a")
    assert await cron.job_with("default", "a") == job
    over = await changed(cron, job, CANCELLED)
    assert await cron.job_with("default", "a") == over
    assert await cron.job_with("default", "b") is None
    await cron.change_job("default", job.id, PURGED.decide)
    assert await cron.job_with("default", "a") is None


async def test_a_uid_belongs_to_its_tenant(whole: Store, cron: CronStore) -> None:
    """Another tenant's job of the same uid is another job. (P11)"""
    await whole.create_tenant("t")
    assert await cron.job_with("t", "a") is None
    ours, theirs = await added(cron, "a"), await added(cron, "a", tenant="t")
    assert await cron.job_with("t", "a") == theirs
    assert (ours.tenant, theirs.tenant) == ("default", "t")
    assert await cron.jobs("default") == (ours,)


async def test_a_job_that_changed_is_still_the_one_asked_for(cron: CronStore) -> None:
    """Asked for again it is answered as it is, also when it has ended."""
    job = await added(cron, "a")
    over = await changed(cron, job, CANCELLED)
    assert await cron.add_job(new("a"), Plan("x").first, ANY) == over


@pytest.mark.parametrize("bounds", [Bounds(of_tenant=2), Bounds(of_agent=2), Bounds(2, 5), Bounds(5, 2)], ids=str)
async def test_no_more_jobs_than_the_bounds_allow(cron: CronStore, whole: Store, bounds: Bounds) -> None:
    """The third of two is refused, and nothing of it is kept."""
    for uid in "ab":
        assert await cron.add_job(new(uid), Plan(uid).first, bounds) is not None
    before = await cron_picture(whole)
    assert await cron.add_job(new("c"), Plan("c", news="run.skipped", stretch="s").first, bounds) is None
    assert await cron_picture(whole) == before


async def test_bounds_count_what_is_meant(whole: Store, cron: CronStore) -> None:
    """Another agent's jobs do not count for this agent, another tenant's for nobody, paused ones like active ones."""
    await whole.create_tenant("t")
    for uid in "ab":
        await added(cron, uid, tenant="t")
    await changed(cron, await added(cron, "a"), PAUSED)
    await added(cron, "b", agent="other")
    assert await cron.add_job(new("c"), Plan("c").first, Bounds(of_agent=1)) is None
    assert await cron.add_job(new("c"), Plan("c").first, Bounds(of_agent=2)) is not None
    assert await cron.add_job(new("d"), Plan("d").first, Bounds(of_tenant=3)) is None
    assert await cron.add_job(new("d"), Plan("d").first, Bounds(of_tenant=4)) is not None


async def test_ended_jobs_make_room(cron: CronStore) -> None:
    """They are history and count for no bound."""
    for end in (one for one in JobStatus if one.ended):
        job = await cron.add_job(new(end), Plan(end).first, Bounds(1, 1))
        assert job is not None
        await changed(cron, job, replace(CANCELLED, status=end))


BROKEN: list[dict[str, Any]] = [
    {"tenant": "nobody"},
    {"message": ""},
    {"message": " \n\t"},
    {"message": "é" * (LONGEST_MESSAGE // 2) + "x"},
    {"message": "half \ud83d"},
    {"name": "\ud83d"},
    {"agent": "\ud83d"},
    {"owner": "\ud83d"},
    {"session_name": "\ud83d"},
    {"work_source": "\ud83d"},
    {"uid": "\ud83d"},
    {"timing": Timing("cron", cron="\ud83d")},
    {"timing": Timing("every", zone="\ud83d", every=HOUR)},
    {"deliver_to": SessionKey("t", "main", "fake", "bot", "here")},
    {"deliver_to": SessionKey("default", "main", "fake", "bot", "\ud83d")},
]


async def test_a_job_that_breaks_a_rule_is_not_kept(whole: Store, cron: CronStore) -> None:
    """Unknown tenant, no or too long a message, half a character, a chat of another tenant: refused, nothing kept."""
    await whole.create_tenant("t")
    before = await cron_picture(whole)
    for fields in BROKEN:
        with pytest.raises(RuleBroken):
            await cron.add_job(replace(new("a"), **fields), Plan("n").first, ANY)
        assert await cron_picture(whole) == before
    assert (await added(cron, "a")).id == 1


async def test_the_longest_message_is_taken(cron: CronStore) -> None:
    """Counted in bytes, the last one included."""
    message = "é" * (LONGEST_MESSAGE // 2)
    assert (await job_now(cron, await added(cron, "a", message=message))).spec.message == message


async def test_a_plan_that_fails_leaves_no_job(whole: Store, cron: CronStore) -> None:
    """Whatever goes wrong while its first trigger is worked out, there is no job without one. (P9)"""
    with pytest.raises(ZeroDivisionError):
        await cron.add_job(new("a"), fails, ANY)
    assert await cron.jobs("default") == ()
    assert (await added(cron, "a")).id == 1


def fails(*_: object) -> Change:
    raise ZeroDivisionError


# ── read ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_jobs_are_listed_by_their_numbers(cron: CronStore) -> None:
    """Ten comes after nine; pages follow each other without a gap."""
    made = [await added(cron, f"{number}") for number in range(12)]
    assert await cron.jobs("default") == tuple(made)
    assert await cron.jobs("default", limit=5) == tuple(made[:5])
    assert await cron.jobs("default", after=5, limit=5) == tuple(made[5:10])
    assert await cron.jobs("default", after=12) == await cron.jobs("default", limit=0) == ()
    assert await cron.jobs("default", after=-1, limit=-1) == ()


async def test_jobs_are_listed_by_status(cron: CronStore) -> None:
    """Only those asked for, and a page is full of them."""
    made = [await added(cron, f"{number}") for number in range(6)]
    for job in made[::2]:
        await changed(cron, job, PAUSED)
    await changed(cron, made[5], CANCELLED)
    paused = await cron.jobs("default", statuses=[JobStatus.PAUSED], limit=2)
    assert [job.id for job in paused] == [1, 3]
    assert [job.id for job in await cron.jobs("default", statuses={JobStatus.PAUSED}, after=3)] == [5]
    both = {JobStatus.ACTIVE, JobStatus.CANCELLED}
    assert [job.id for job in await cron.jobs("default", statuses=both)] == [2, 4, 6]
    assert await cron.jobs("default", statuses=()) == ()


async def test_two_hundred_are_listed_unless_more_are_asked_for(cron: CronStore) -> None:
    """A list has an end. (A29)"""
    for number in range(201):
        await added(cron, f"{number}")
    assert len(await cron.jobs("default")) == 200
    assert len(await cron.jobs("default", limit=2**70)) == 201


async def test_looking_changes_nothing(whole: Store, cron: CronStore, wall: Wall) -> None:
    """However late it is, a job that has not run is still due after any number of looks. (32)"""
    job = await added(cron, "a", MINUTE)
    wall.pass_by(timedelta(days=5))
    before = await cron_picture(whole)
    for _ in range(2):
        assert await cron_picture(whole) == before
    assert (await job_now(cron, job)).next_at == job.next_at
    assert (await claim_one(cron)).trigger.id == "a#1"


async def test_counts_tell_what_there_is(cron: CronStore) -> None:
    """Active and paused jobs, pending and executing triggers; what has ended is not counted."""
    for uid, after in (("a", NOW), ("b", HOUR), ("c", HOUR)):
        await added(cron, uid, after)
    paused = await changed(cron, await added(cron, "d"), PAUSED)
    await changed(cron, await added(cron, "e"), CANCELLED)
    await fired(cron, paused)
    await claim_one(cron)
    assert await cron.counts("default") == (3, 1, 3, 1)
    assert await cron.counts("nobody") == (0, 0, 0, 0)
