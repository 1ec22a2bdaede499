"""Processes that run jobs are killed and frozen: no slot is lost, none succeeds twice, and no schedule dies.

Runs are at least once: whatever a killed process was doing is done again.
"""

from __future__ import annotations

import os
import signal
from datetime import timedelta
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING

import pytest
import trio

from cron.jobs import Wish
from cron.schedule import at
from gateway.clock import utc_now
from store.jobs import JobStatus, RunState
from tests.faults.cron_child import SLOTS, jobs_on, opened
from tests.faults.talking import started

if TYPE_CHECKING:
    from pathlib import Path

    from store.jobs import Run
    from store.protocols import Store
    from tests.faults.talking import Talker

CHILD = "tests.faults.cron_child"
RECURRING = 5
EVERYTHING = 1_000_000
SOON = timedelta(milliseconds=100)


async def fill(store: Store, one_shots: int) -> None:
    jobs = jobs_on(store)
    for number in range(RECURRING):
        await jobs.create(Wish("default", "main", "quick" if number % 2 else "flaky", "every 1s"))
    soon = utc_now() + timedelta(seconds=2)
    for number in range(one_shots):
        await jobs.create(Wish("default", "main", ("quick", "flaky")[number % 2], at(max(soon, utc_now() + SOON))))


async def all_done(store: Store, one_shots: int) -> bool:
    jobs = await store.cron.jobs("default", statuses=[JobStatus.COMPLETED], limit=EVERYTHING)
    return len(jobs) == one_shots


class Pack:
    """Processes that work on one store, replaced as they are killed."""

    def __init__(self, nursery: trio.Nursery, kind: str, place: str, size: int) -> None:
        self.nursery, self.kind, self.place, self.size = nursery, kind, place, size
        self.members: list[Talker] = []
        self.born = 0

    async def fill_up(self) -> None:
        while len(self.members) < self.size:
            self.born += 1
            name = f"child {self.born}"
            self.members.append(await started(self.nursery, CHILD, name, self.kind, self.place, name))
            await self.members[-1].until("up")

    async def kill_one(self, random: Random) -> None:
        """After a drawn number of its lines: what it was doing then is anybody's guess."""
        victim = self.members.pop(random.randrange(len(self.members)))
        for _ in range(random.randrange(1, 12)):
            await victim.next_line()
        os.kill(victim.process.pid, signal.SIGKILL)
        await victim.process.wait()


async def play(kind: str, place: str, *, size: int, kills: int, one_shots: int, seed: int) -> int:
    """So many kills, then everything in peace until it is done. Returns how many attempts there were."""
    random = Random(seed)
    with trio.fail_after(600):
        if kind == "json":
            async with opened(kind, place) as store:
                await fill(store, one_shots)
        async with trio.open_nursery() as nursery:
            pack = Pack(nursery, kind, place, size)
            if kind == "json":
                for _ in range(kills):
                    await pack.fill_up()
                    await pack.kill_one(random)
                await pack.fill_up()
                for _ in range(one_shots * 4 + RECURRING * 10):
                    await pack.members[0].next_line()
                await pack.kill_one(random)
            else:
                async with opened(kind, place) as store:
                    await fill(store, one_shots)
                    for _ in range(kills):
                        await pack.fill_up()
                        await pack.kill_one(random)
                    await pack.fill_up()
                    while not await all_done(store, one_shots):
                        await pack.members[0].next_line()
                    for number in range(1, RECURRING + 1):  # each of them still fires
                        await heard_of(pack.members, number)
            nursery.cancel_scope.cancel()
    async with opened(kind, place) as store:
        return await check(store, one_shots, kills)


async def heard_of(members: list[Talker], job: int) -> None:
    """Somebody runs it."""
    async with trio.open_nursery() as nursery:

        async def listen(member: Talker) -> None:
            while (await member.until("done"))["job"] != job:
                pass
            nursery.cancel_scope.cancel()

        for member in members:
            nursery.start_soon(listen, member)


async def check(store: Store, one_shots: int, kills: int) -> int:
    jobs = await store.cron.jobs("default", limit=EVERYTHING)
    runs = await store.cron.runs("default", limit=EVERYTHING)
    assert len(jobs) == one_shots + RECURRING
    assert [job.status for job in jobs] == [JobStatus.ACTIVE] * RECURRING + [JobStatus.COMPLETED] * one_shots
    assert all(job.runs == 1 for job in jobs[RECURRING:]), "a slot was lost, or succeeded twice"
    assert await store.cron.unplanned() == ()
    by_trigger: dict[str, list[Run]] = {}
    for run in reversed(runs):
        by_trigger.setdefault(run.trigger, []).append(run)
    for attempts in by_trigger.values():
        assert sum(run.state is RunState.SUCCEEDED for run in attempts) <= 1
        # A start that was given back cost nothing, so its number comes again.
        counted = [run for run in attempts if run.state is not RunState.CANCELLED]
        assert [run.attempt for run in counted] == list(range(1, len(counted) + 1))
        assert all(one.ended_at and one.ended_at <= other.started_at for one, other in pairwise(attempts))
    lost = [run for run in runs if run.error.startswith("orphaned")]
    assert len(lost) <= (kills + 1) * SLOTS
    for job in jobs[:RECURRING]:
        open_ = [one for one in await store.cron.triggers("default", job.id, limit=EVERYTHING) if one.state.open]
        assert len([one for one in open_ if one.kind.planned]) == 1
    return len(runs)


async def test_two_on_one_database_survive_kills(database: str) -> None:
    """Six kills: no slot lost, at most one success each, all schedules alive at the end. (R2, P4, P9, T19)"""
    assert await play("postgres", database, size=2, kills=6, one_shots=40, seed=1) > 40


@pytest.mark.faults
async def test_two_on_one_database_survive_many_kills(database: str) -> None:
    """Sixty kills over two thousand jobs. (R2, P4, P9, T19)"""
    assert await play("postgres", database, size=2, kills=60, one_shots=2000, seed=2) > 2000


async def test_a_directory_survives_kills(tmp_path: Path) -> None:
    """Four kills of the one process that works there; it goes on without waiting for a lease. (R1, J5, 27)"""
    assert await play("json", str(tmp_path / "store"), size=1, kills=4, one_shots=20, seed=3) > 20


@pytest.mark.faults
async def test_a_directory_survives_many_kills(tmp_path: Path) -> None:
    """Forty of them. (R1, J5, 27)"""
    assert await play("json", str(tmp_path / "store"), size=1, kills=40, one_shots=200, seed=4) > 200


async def test_a_frozen_owner_finds_its_run_dead_and_its_word_refused(database: str) -> None:
    """SIGSTOP beyond the lease: another owner runs it; the first one's run dies on waking and changes nothing. (R4)"""
    with trio.fail_after(120):
        async with opened("postgres", database) as store, trio.open_nursery() as nursery:
            job = await jobs_on(store).create(Wish("default", "main", "long", "every 1h", at_once=True))
            frozen = await started(nursery, CHILD, "frozen", "postgres", database, "frozen")
            assert (await frozen.until("began"))["attempt"] == 1
            os.kill(frozen.process.pid, signal.SIGSTOP)
            other = await started(nursery, CHILD, "other", "postgres", database, "other")
            assert (await other.until("done"))["attempt"] == 2
            assert (await other.until("event"))["event"] == "run_succeeded"
            os.kill(frozen.process.pid, signal.SIGCONT)
            assert (await frozen.until("died"))["attempt"] == 1
            events = [(await frozen.until("event"))["event"]]
            if events == ["lease_lost"]:
                events.append((await frozen.until("event"))["event"])
            assert events[-1] == "settle_stale"
            runs = await store.cron.runs("default", job=job.id)
            nursery.cancel_scope.cancel()
    second, first = runs
    assert (first.state, second.state) == (RunState.FAILED, RunState.SUCCEEDED)
    assert first.error.startswith("orphaned: the worker frozen-")
    assert first.ended_at is not None
    assert first.ended_at <= second.started_at
