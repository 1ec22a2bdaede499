"""News: numbered per tenant without a gap, in the order in which they can be seen, and as they were given."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import trio

from store.cron_protocol import NEWS
from store.jobs import KEEP_NEWS, Change, Job, News, Start, Trigger, TriggerState
from store.protocols import POLL
from tests.contract.cron_rows import (
    ANY,
    LEASE,
    MINUTE,
    NOW,
    Plan,
    added,
    changed,
    ended,
    new,
    running,
    settled,
    told,
)

if TYPE_CHECKING:
    from datetime import datetime

    from store.cron_protocol import CronStore
    from store.jobs import NewsKind
    from store.protocols import Store
    from tests.contract.backends import Wall

SKIPPED = Plan(news="run.skipped")


async def test_numbers_have_no_gaps(cron: CronStore) -> None:
    """From one on, over starts, ends and changes. (A24)"""
    claim = await running(cron, "a")
    await settled(cron, ended(claim), Plan(end=TriggerState.COMPLETED, news="run.completed"))
    await changed(cron, claim.job, SKIPPED)
    kinds = ["run.started", "run.completed", "run.skipped"]
    assert await told(cron) == [(number, kind) for number, kind in enumerate(kinds, start=1)]


async def test_each_tenant_has_its_own_numbers(whole: Store, cron: CronStore) -> None:
    """What happens to others neither uses nor shows them. (P11)"""
    await whole.create_tenant("t")
    ours, theirs = await added(cron, "a"), await added(cron, "a", tenant="t")
    for job in (ours, theirs, theirs, ours, theirs):
        await changed(cron, job, SKIPPED)
    assert [one.seq for one in await cron.notifications("default")] == [1, 2]
    assert [one.seq for one in await cron.notifications("t")] == [1, 2, 3]
    assert {one.news.tenant for one in await cron.notifications("t")} == {"t"}
    assert await cron.notifications("nobody") == ()


async def test_the_newest_number_is_known_without_reading_all(whole: Store, cron: CronStore) -> None:
    """Whoever wants only what comes from now on begins there, also when all of it was tidied away. (A24)"""
    assert await cron.told("default") == await cron.told("nobody") == 0
    job = await added(cron, "a")
    for expected in (1, 2):
        await changed(cron, job, SKIPPED)
        assert await cron.told("default") == expected


async def test_listeners_hear_of_news(whole: Store, cron: CronStore) -> None:
    """In every store, so that a stream waits for the word and not for the clock. (A24)"""
    job = await added(cron, "a")
    with trio.fail_after(30):
        async with whole.listen() as words:
            assert await anext(words) == POLL
            await changed(cron, job, SKIPPED)
            while (word := await anext(words)) != f"{NEWS}default:1":
                assert not word.startswith(NEWS)


async def test_a_write_that_failed_uses_no_number(cron: CronStore) -> None:
    """Nobody who reads on waits for one that never comes. (A24)"""
    job = await added(cron, "a")
    await changed(cron, job, SKIPPED)

    def fails(job: Job, planned: Trigger | None, now: datetime) -> Change:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await cron.change_job("default", 1, fails)
    await changed(cron, job, SKIPPED)
    assert await told(cron) == [(1, "run.skipped"), (2, "run.skipped")]


async def test_a_reader_goes_on_from_a_number(cron: CronStore) -> None:
    """In order, after that one, as many as asked for. (A24)"""
    job = await added(cron, "a")
    for _ in range(12):
        await changed(cron, job, SKIPPED)
    assert [one.seq for one in await cron.notifications("default")] == list(range(1, 13))
    assert [one.seq for one in await cron.notifications("default", after=9)] == [10, 11, 12]
    assert [one.seq for one in await cron.notifications("default", after=2, limit=2)] == [3, 4]
    assert await cron.notifications("default", after=12) == await cron.notifications("default", limit=0) == ()


async def test_news_come_back_as_they_were_given(cron: CronStore, wall: Wall) -> None:
    """Any data that JSON can hold, with the time of the write. (A24)"""
    data = {"a": [1, None, 2.5, {"b": "\x00"}], "": True, "\x00": "🦀", "big": 2**53}
    kinds: list[NewsKind] = ["run.started", "run.completed", "run.failed", "run.skipped"]
    given = tuple(News(kind, "default", 1, "r\x00", data) for kind in kinds)
    await added(cron, "a")
    wall.pass_by(MINUTE)
    await cron.change_job("default", 1, lambda job, planned, now: Change(job, news=given))
    found = await cron.notifications("default")
    assert [(one.seq, one.at) for one in found] == [(number, wall.time) for number in (1, 2, 3, 4)]
    assert tuple(one.news for one in found) == given


async def test_several_news_of_one_write_keep_their_order(cron: CronStore) -> None:
    """One after the other, with the numbers that follow each other."""
    job = await added(cron, "a")
    several = tuple(News("run.skipped", "default", 1, str(number)) for number in range(5))
    await cron.change_job("default", 1, lambda job, planned, now: Change(job, news=several))
    assert [one.news.run for one in await cron.notifications("default")] == list("01234")
    await changed(cron, job, SKIPPED)
    assert [one.seq for one in await cron.notifications("default", after=4)] == [5, 6]


async def test_a_job_begins_with_news(cron: CronStore) -> None:
    """What its first decision tells is told with it, and only once."""
    for _ in range(2):
        await cron.add_job(new("a"), replace(SKIPPED, next="n").first, ANY)
    assert await told(cron) == [(1, "run.skipped")]


async def test_a_batch_of_starts_is_numbered_in_its_order(cron: CronStore) -> None:
    """As the runs were asked for."""
    for uid in "abc":
        await added(cron, uid, NOW)
    claims = await cron.claim("w1", 9, LEASE)
    await cron.start([Start(claim, f"r{claim.job.id}") for claim in reversed(claims)])
    assert [one.news.run for one in await cron.notifications("default")] == ["r3", "r2", "r1"]


async def test_numbers_go_on_after_old_news_are_gone(whole: Store, cron: CronStore, wall: Wall) -> None:
    """None is used again, not even when nothing is left: a reader's place stays true. (A24)"""
    job = await added(cron, "a")
    for _ in range(3):
        await changed(cron, job, SKIPPED)
    wall.pass_by(KEEP_NEWS)
    while any(await whole.tidy()):
        pass
    assert await told(cron) == []
    await changed(cron, job, SKIPPED)
    assert await told(cron) == [(4, "run.skipped")]
