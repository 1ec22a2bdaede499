"""What others hear when jobs change, fire and end."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import trio

from store.jobs import Change, Ended, Fate, Fire, Next, RunState, TriggerState
from store.postgres import open_postgres
from store.records import Note, SessionKey
from tests.postgres.cron_pieces import LEASE, NO_BOUNDS, at_once, done_for_good, new, new_id, run_all

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable
    from datetime import datetime

    from store.jobs import Job, Trigger

HERE = SessionKey("default", "main", "fake", "bot", "here")
FAR = timedelta(hours=1)


async def said(words: AsyncIterator[str], verb: Awaitable[object], last: str) -> set[str]:
    """What is heard of it, up to the word that comes last."""
    await verb
    heard: set[str] = set()
    with trio.fail_after(10):
        while last not in heard:
            heard.add(await anext(words))
    return heard


async def test_whoever_waits_hears_of_it(database: str) -> None:
    """A new job, an edit, a fire and a trigger that follows soon wake the others; each change has its word."""
    async with open_postgres(database) as store, store.listen() as heard:
        cron, words = store.cron, aiter(heard)
        assert await anext(words) == "poll"
        assert await said(words, cron.add_job(new("a"), at_once, NO_BOUNDS), "cache:cron") == {"due", "cache:cron"}
        assert await said(words, cron.change_job("default", 1, paused), "cache:cron") == {"cache:cron"}
        assert await said(words, cron.fire(Fire("f", "default", 1)), "due") == {"due"}
        claims = await cron.claim("w", 5, LEASE)
        ended = await run_all(cron, claims)
        assert await anext(words) == "notification:default:1"
        assert await said(words, cron.settle(ended, soon), "notification:default:2") == {
            "due",
            "outbox",
            "notification:default:2",
        }


async def test_a_far_plan_wakes_nobody(database: str) -> None:
    """The end of a run whose next one is an hour away is told only to those who read what happened."""
    async with open_postgres(database) as store:
        await store.cron.add_job(new("a"), at_once, NO_BOUNDS)
        ended = await run_all(store.cron, await store.cron.claim("w", 5, LEASE))
        async with store.listen() as heard:
            words = aiter(heard)
            assert await anext(words) == "poll"
            assert await said(words, store.cron.settle(ended, later), "notification:default:2") == {
                "notification:default:2"
            }


async def test_a_name_too_long_for_a_word_keeps_nobody_from_working(database: str) -> None:
    """A word holds 8,000 bytes; of a tenant with a longer name nobody is told, and its notifications are there."""
    tenant = "\0" * 5_000
    async with open_postgres(database) as store:
        await store.create_tenant(tenant)
        await store.cron.add_job(new("a", tenant), at_once, NO_BOUNDS)
        ended = await run_all(store.cron, await store.cron.claim("w", 5, LEASE))
        assert await store.cron.settle(ended, done_for_good) == (True,)
        assert [one.seq for one in await store.cron.notifications(tenant)] == [1, 2]


def paused(job: Job, planned: Trigger | None, now: datetime) -> Change:
    return Change(replace(job, reason="a break"), withdraw=True)


def soon(job: Job, trigger: Trigger, ended: Ended, now: datetime) -> Change:
    change = done_for_good(job, trigger, ended, now)
    due = now + timedelta(seconds=59)
    return replace(change, next=Next(new_id(), due, due, None), notes=(Note(HERE, "hi", run=ended.run),))


def later(job: Job, trigger: Trigger, ended: Ended, now: datetime) -> Change:
    change = done_for_good(job, trigger, ended, now)
    assert ended.state is RunState.SUCCEEDED
    return replace(change, fate=Fate(TriggerState.COMPLETED), next=Next(new_id(), now + FAR, now + FAR, None))
