"""A store with a little of everything that cron keeps, and what its indexes say."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import orjson

from store.files import open_json
from store.files.frames import encode
from store.files.ordered import Ordered, Tally
from store.files.tables import Tables
from store.jobs import LONGEST_SUMMARY, JobStatus, Rules, Timing
from tests.contract.backends import Wall
from tests.contract.cron_rows import (
    DONE,
    HOUR,
    Plan,
    added,
    changed,
    claim_one,
    ended,
    fired,
    running,
    settled,
    started,
)
from tests.contract.rows import HERE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from store.files import JsonStore
    from tests.faults.faulty_disk import FaultyDisk

ANSWER = Plan("next", end=DONE.end, note="answer", said="answer", news="run.completed", stretch="missed")
RULES = Rules("queue", "skip", HOUR, "completion", HOUR, 2 * HOUR, 3, timedelta(microseconds=1), True)


async def live(store: JsonStore) -> None:
    """A little of everything: jobs of two tenants, runs that ended and one that goes on, a job that is over."""
    cron = store.cron
    await store.create_tenant("t")
    claim = await running(cron, "a", deliver_to=HERE, rules=RULES)
    await settled(cron, ended(claim, output="x" * (LONGEST_SUMMARY + 1)), ANSWER)
    other = await added(cron, "b", tenant="t", agent="other", timing=Timing("cron", "Europe/Berlin", cron="0 9 * * *"))
    await fired(cron, other, key="once", trace="trace")
    await started(cron, await claim_one(cron), "r2")
    over = await added(cron, "c", timing=Timing("at", at=store.now() + HOUR))
    await changed(cron, over, Plan(end=DONE.end, status=JobStatus.COMPLETED))
    await added(cron, "d", session="named", session_name="log", made_by_agent=True)


@asynccontextmanager
async def living(place: Path, disk: FaultyDisk | None = None) -> AsyncIterator[JsonStore]:
    async with open_json(place, Wall(), disk=disk) as store:
        await live(store)
        yield store


def indexes(tables: Tables) -> dict[str, Any]:
    """What each index says; those by age leave what has gone lying, so only what they would find counts."""
    found: dict[str, Any] = {}
    for name, index in vars(tables.cron).items():
        if isinstance(index, Ordered):
            found[name] = list(index)
        elif isinstance(index, Tally):
            found[name] = dict(index.of)
        elif name.endswith("_by_age"):
            found[name] = sorted({(at, key) for at, key in index.heap if index.time_of(key) == at})
    return found


def rebuilt(tables: Tables) -> Tables:
    """The same rows in tables that have never seen anything else, by way of JSON."""
    again = Tables()
    for table in tables.cron.every:
        again.take_in(orjson.loads(encode((table.name, key, row))) for key, row in table.rows.items())
    return again
