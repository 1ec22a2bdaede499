"""Two processes race for due triggers: each is claimed once and settled once. (R3, T19)"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import orjson
import pytest
import trio

from store.postgres import open_postgres
from tests.postgres.cron_pieces import NO_BOUNDS, at_once, new
from tests.postgres.databases import ask

if TYPE_CHECKING:
    from store.postgres import PostgresStore

TENANTS = 5


@pytest.mark.parametrize("slots", [500, pytest.param(5_000, marks=pytest.mark.faults)])
async def test_every_slot_is_run_once(database: str, slots: int) -> None:
    """However the two divide them, there is one run for each slot, and nothing is left."""
    async with open_postgres(database) as store:
        tenants = [f"tenant {number}" for number in range(TENANTS)]
        async with trio.open_nursery() as nursery:
            for tenant in tenants:
                nursery.start_soon(fill, store, tenant, slots // TENANTS)
        answers: dict[str, dict[str, object]] = {}
        async with trio.open_nursery() as nursery:
            for name in ("one", "two"):
                nursery.start_soon(contend, database, name, answers)
        claimed = [one for answer in answers.values() for one in answer["claimed"]]  # type: ignore[attr-defined]
        assert len(claimed) == len(set(claimed)) == slots
        assert sum(int(str(answer["settled"])) for answer in answers.values()) == slots
        rows = await ask(database, "SELECT state, attempt, count(*) FROM cron_triggers GROUP BY state, attempt")
        assert [tuple(row) for row in rows] == [("completed", 1, slots)]
        runs = await ask(
            database, "SELECT count(DISTINCT trigger), count(*), min(state), max(state) FROM cron_run_logs"
        )
        assert tuple(runs[0]) == (slots, slots, "succeeded", "succeeded")
        for tenant in tenants:
            news = [one.seq for one in await store.cron.notifications(tenant, limit=10 * slots)]
            assert news == list(range(1, 2 * slots // TENANTS + 1))


async def fill(store: PostgresStore, tenant: str, jobs: int) -> None:
    await store.create_tenant(tenant)
    for number in range(jobs):
        await store.cron.add_job(new(str(number), tenant), at_once, NO_BOUNDS)


async def contend(dsn: str, name: str, answers: dict[str, dict[str, object]]) -> None:
    command = [sys.executable, "-m", "tests.postgres.cron_contender", dsn, name]
    ended = await trio.run_process(command, capture_stdout=True)
    answers[name] = orjson.loads(ended.stdout)
