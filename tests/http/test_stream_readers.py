"""Live notifications: every reader sees every event of its tenant once and in order, whatever happens to it. (A24)"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest
import trio

from tests.http.firing import fire, make_jobs, ran
from tests.http.readers import Reader, kept
from tests.http.world import open_served

if TYPE_CHECKING:
    from pathlib import Path

    from store.protocols import Store
    from tests.http.world import Served

SETTINGS: dict[str, Any] = {"lane_cron": 20, "cron_max_jitter": 0}


async def all_see_all(served: Served, readers: list[Reader], runs: int, jobs: int = 10) -> None:
    """Fire them while the readers follow, one of another tenant among them, and compare with the store."""
    served.office.beat_s = 3600  # nobody finds by and by what it was not told of
    theirs = Reader([served.url], await served.tenant("others"))
    async with trio.open_nursery() as nursery, served.client(await served.secret()) as client:
        for reader in [theirs, *readers]:
            nursery.start_soon(reader.follow)
        for reader in [theirs, *readers]:
            await reader.opened.wait()
        numbers = await make_jobs(client, jobs)
        await fire([client], numbers, runs)
        newest = await ran(served.store, runs)
        for reader in readers:
            await reader.until(newest)
        nursery.cancel_scope.cancel()
    expected = await kept(served.store)
    assert len(expected) >= 2 * runs
    for reader in readers:
        assert reader.seen == expected
        assert not reader.resets
    assert theirs.seen == []


async def readers_for(served: Served, many: int, *, calm: int, seed: int = 1) -> list[Reader]:
    """Some that are never cut off, the others again and again."""
    secret = await served.secret("read")
    cuts = [None if number < calm else Random(f"{seed}-{number}") for number in range(many)]
    return [Reader([served.url], secret, one) for one in cuts]


async def test_twenty_readers_see_a_hundred_runs(tmp_path: Path, whole: Store) -> None:
    """Once and in order, most of them cut off again and again, in the middle of events too; nobody else's. (P11)"""
    async with open_served(whole, tmp_path, **SETTINGS) as served:
        readers = await readers_for(served, 20, calm=5)
        await all_see_all(served, readers, 100)
        assert sum(reader.connections for reader in readers) > 40, "hardly anybody was cut off: this shows nothing"


@pytest.mark.faults
@pytest.mark.parametrize(("many", "runs"), [(200, 1_000), (1_000, 200)])
async def test_very_many_readers_see_very_many_runs(tmp_path: Path, whole: Store, many: int, runs: int) -> None:
    """The same with hundreds of readers. (A24)"""
    async with open_served(whole, tmp_path, deadline_s=600, **SETTINGS) as served:
        readers = await readers_for(served, many, calm=many // 2)
        for reader in readers:
            reader.longest = 500_000
        await all_see_all(served, readers, runs, jobs=20)
