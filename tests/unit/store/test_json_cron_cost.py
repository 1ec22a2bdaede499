"""What the verbs of cron cost: as much among many jobs as among few, counted in rows that are looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import trio

from store.files import open_json
from store.files.shards import Shards
from store.jobs import Bounds, JobStatus
from tests.contract.backends import Wall
from tests.contract.cron_rows import (
    HOUR,
    LEASE,
    Plan,
    added,
    ended,
    new,
    settled,
    started,
)
from tests.unit.store.cron_life import ANSWER

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from store.cron_protocol import CronStore
    from store.files import JsonStore

K = TypeVar("K")
R = TypeVar("R")


class Watched(Shards[K, R]):
    """Counts the rows that are looked at."""

    __slots__ = ("looks",)

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    def __getitem__(self, key: K) -> R:
        self.looks += 1
        return super().__getitem__(key)

    def get(self, key: K, default: Any = None) -> Any:
        self.looks += 1
        return super().get(key, default)

    def __iter__(self) -> Any:
        self.looks += len(self)
        return super().__iter__()

    def items(self) -> Any:
        self.looks += len(self)
        return super().items()

    def values(self) -> Any:
        self.looks += len(self)
        return super().values()


async def looks(place: Path, count: int) -> dict[str, int]:
    """How many rows each verb looks at in a store with so many jobs."""
    wall = Wall()
    async with open_json(place, wall) as store:
        for table in store.tables.cron.every:
            table.rows = Watched()
        store.journal.do = at_once(store)  # type: ignore[method-assign, assignment]
        for number in range(count):
            await added(store.cron, str(number), agent=f"agent {number % 3}")
        found: dict[str, int] = {}

        async def watch(name: str, verb: Awaitable[object]) -> None:
            before = total(store)
            await verb
            found[name] = total(store) - before

        cron = store.cron
        await watch("add", added(cron, "one more"))
        await watch("refuse", refused(cron))
        await watch("next due", cron.next_due())
        await watch("idle claim", cron.claim("w1", 5, LEASE))
        await watch("unplanned", cron.unplanned())
        await watch("counts", cron.counts("default"))
        wall.pass_by(2 * HOUR)
        claims = await cron.claim("w1", 1, LEASE)
        await watch("claim", cron.claim("w1", 5, LEASE))
        await watch("claim beside a full agent", cron.claim("w1", 5, LEASE, room={"agent 0": 0, "agent 1": 0}))
        await watch("start", started(cron, claims[0]))
        await watch("settle", settled(cron, ended(claims[0]), ANSWER))
        await watch("some jobs", cron.jobs("default", statuses=[JobStatus.PAUSED]))
        await watch("tidy", store.tidy())
        return found


def at_once(store: JsonStore) -> Callable[[Callable[[], Any]], Awaitable[Any]]:
    """Without the disk, which is not what is measured here."""

    async def do(act: Callable[[], Any]) -> Any:
        await trio.lowlevel.checkpoint()
        result = act()
        store.tables.log.clear()
        return result

    return do


async def refused(cron: CronStore) -> None:
    assert await cron.add_job(new("too many"), Plan("t").first, Bounds(of_agent=1)) is None


def total(store: JsonStore) -> int:
    return sum(table.rows.looks for table in store.tables.cron.every if isinstance(table.rows, Watched))


async def test_no_verb_costs_more_when_there_are_more_jobs(tmp_path: Path) -> None:
    """As many rows are looked at among twenty thousand jobs as among a thousand. (P13)"""
    few, many = await looks(tmp_path / "few", 1_000), await looks(tmp_path / "many", 20_000)
    assert few == many
    assert max(many.values()) < 100
