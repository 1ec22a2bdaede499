"""Jobs that another program, or an older one, has written and this one cannot read: they stop no other. (lesson 33)"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from store.jobs import Ended, RunState
from store.postgres import open_postgres
from tests.postgres.cron_pieces import LEASE, NO_BOUNDS, at_once, done, new, new_id, run_all
from tests.postgres.databases import ask

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from store.cron_protocol import CronStore

SPOILT = [
    "UPDATE cron_jobs SET deliver_to = 'odd' WHERE id = 1",
    """UPDATE cron_jobs SET rules = '{"overlap": "odd"}' WHERE id = 1""",
    """UPDATE cron_jobs SET rules = '{"unheard": 1}' WHERE id = 1""",
]


@pytest.fixture
async def cron(database: str) -> AsyncIterator[CronStore]:
    """One with three jobs that are due."""
    async with open_postgres(database) as opened:
        for uid in ("strange", "good", "better"):
            await opened.cron.add_job(new(uid), at_once, NO_BOUNDS)
        yield opened.cron


@pytest.mark.parametrize("spoil", SPOILT, ids=["address", "word", "field"])
async def test_a_job_that_cannot_be_read_takes_nobodys_place(
    database: str, cron: CronStore, spoil: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The first in the queue is left out and named in the log, and whoever asks for one gets another one."""
    await ask(database, spoil)
    assert [claim.job.id for claim in await cron.claim("w", 1, LEASE)] == [2]
    assert "the claim" in caplog.text
    assert [claim.job.id for claim in await cron.claim("w", 5, LEASE)] == [3]
    assert {claim.job.id for claim in await cron.held("w")} == {2, 3}
    assert [job.id for job in await cron.jobs("default")] == [2, 3]
    assert await cron.job("default", 1) is None
    assert await cron.change_job("default", 1, lambda job, planned, now: None) is None
    caplog.clear()


async def test_nobody_turns_in_circles_for_it(database: str, cron: CronStore, caplog: pytest.LogCaptureFixture) -> None:
    """It is out of the way for as long as a lease, like what executes."""
    await ask(database, SPOILT[0])
    claims = await cron.claim("w", 5, LEASE)
    assert await cron.claim("w", 5, LEASE) == ()
    wait = await cron.next_due()
    assert wait is not None
    assert wait > timedelta(0)
    assert all(await cron.settle(await run_all(cron, claims), done))
    caplog.clear()


async def test_what_becomes_unreadable_is_settled_for_nobody(
    database: str, cron: CronStore, caplog: pytest.LogCaptureFixture
) -> None:
    """Its end is refused as if the job were gone; that of the others in the same batch is kept."""
    claims = await cron.claim("w", 5, LEASE)
    await ask(database, SPOILT[0])
    ended = [Ended(claim, run=new_id(), state=RunState.SUCCEEDED) for claim in claims]
    assert await cron.settle(ended, done) == (False, True, True)
    assert "the job 1 of the tenant 'default'" in caplog.text
    caplog.clear()
