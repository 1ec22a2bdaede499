"""Workers: who is there, their signs of life, and what the machines looked like."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from store.protocols import RuleBroken
from store.records import Beat, MachineSnapshot, Reading, Worker, WorkerStatus

if TYPE_CHECKING:
    from store.protocols import Store
    from tests.contract.backends import Wall

SECOND = timedelta(seconds=1)


async def test_the_first_beat_introduces_a_worker(whole: Store, wall: Wall) -> None:
    """Every later one moves on what was seen of it last, not when it started."""
    await whole.beat("w1", WorkerStatus.ALIVE)
    start = wall.time
    wall.pass_by(SECOND)
    await whole.beat("w1", WorkerStatus.BUSY, run="r1")
    assert await whole.workers() == (Worker("w1", WorkerStatus.BUSY, start, wall.time),)


@pytest.mark.parametrize("status", WorkerStatus)
async def test_every_status_is_kept(whole: Store, status: WorkerStatus) -> None:
    """What a worker says of itself comes back as said."""
    await whole.beat("w1", status)
    assert [worker.status for worker in await whole.workers()] == [status]
    assert [beat.status for beat in await whole.beats("w1")] == [status]


async def test_beats_are_read_newest_first(whole: Store, wall: Wall) -> None:
    """With run and context, those of one worker only, also when many fall into one moment."""
    for number in range(4):
        await whole.beat("w1", WorkerStatus.BUSY, run=f"r{number}", context={"step": number, "of": [4, None]})
        await whole.beat("w2", WorkerStatus.IDLE)
    assert [beat.run for beat in await whole.beats("w1")] == ["r3", "r2", "r1", "r0"]
    assert await whole.beats("w1", 1) == (Beat("w1", WorkerStatus.BUSY, "r3", {"step": 3, "of": [4, None]}, wall.time),)
    assert await whole.beats("w2", 1) == (Beat("w2", WorkerStatus.IDLE, "", {}, wall.time),)
    assert await whole.beats("w3") == await whole.beats("w1", 0) == ()


async def test_ten_beats_are_read_unless_told(whole: Store) -> None:
    """The usual look is a short one."""
    for _ in range(12):
        await whole.beat("w1", WorkerStatus.IDLE)
    assert len(await whole.beats("w1")) == 10
    assert len(await whole.beats("w1", 12)) == 12


async def test_who_leaves_is_not_listed_any_more(whole: Store, wall: Wall) -> None:
    """Its beats stay readable; when it comes again it starts anew."""
    await whole.beat("w1", WorkerStatus.ALIVE)
    await whole.beat("w2", WorkerStatus.ALIVE)
    assert await whole.leave("w1")
    assert not await whole.leave("w1")
    assert not await whole.leave("nobody")
    assert [worker.id for worker in await whole.workers()] == ["w2"]
    assert len(await whole.beats("w1")) == 1
    wall.pass_by(SECOND)
    await whole.beat("w1", WorkerStatus.IDLE)
    assert (await whole.workers())[0] == Worker("w1", WorkerStatus.IDLE, wall.time, wall.time)
    assert len(await whole.beats("w1")) == 2


async def test_workers_are_listed_by_id(whole: Store) -> None:
    """In the order of the characters' numbers."""
    names = ["b", "a", "Z", "é", "_", "10", "9", "🦀"]
    for name in names:
        await whole.beat(name, WorkerStatus.IDLE)
    assert [worker.id for worker in await whole.workers()] == sorted(names)


async def test_readings_are_read_newest_first(whole: Store, wall: Wall) -> None:
    """Every figure comes back exactly; one that could not be read stays unknown."""
    full = Reading("w1", 2, 7, 12.625, 300.1, {"load": [0.5, 1]})
    bare = Reading("w2")
    await whole.record(full)
    wall.pass_by(SECOND)
    await whole.record(bare)
    await whole.record(full)
    assert await whole.readings() == (
        MachineSnapshot(full, wall.time),
        MachineSnapshot(bare, wall.time),
        MachineSnapshot(full, wall.time - SECOND),
    )
    assert len(await whole.readings(2)) == 2
    assert await whole.readings(0) == ()


async def test_a_reading_does_not_introduce_a_worker(whole: Store) -> None:
    """Only a beat does."""
    await whole.record(Reading("w1"))
    assert await whole.workers() == ()


async def test_a_context_that_is_no_json_is_refused(whole: Store) -> None:
    """Neither beat, worker nor reading is kept."""
    with pytest.raises(RuleBroken, match="JSON"):
        await whole.beat("w1", WorkerStatus.BUSY, context={"a": object()})
    with pytest.raises(RuleBroken, match="JSON"):
        await whole.record(Reading("w1", context={"a": {1}}))
    assert not [*await whole.workers(), *await whole.beats("w1"), *await whole.readings()]
