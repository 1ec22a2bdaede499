"""Tidying: what is too old goes, to the moment, and nothing else."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from store.records import KEEP_BEATS, KEEP_READINGS, REMEMBER_KEYS, MessageState, Reading, Tidied, WorkerStatus
from tests.contract.rows import NOTE, accepted, delivered, running, sent, waiting_replies

if TYPE_CHECKING:
    from store.protocols import MessageStore, Store
    from tests.contract.backends import Wall

MOMENT = timedelta(microseconds=1)
NOTHING = Tidied(0, 0, 0)


async def tidied(whole: Store) -> Tidied:
    """All rounds together, until there was nothing more to do."""
    total = NOTHING
    while (round_ := await whole.tidy()) != NOTHING:
        total = Tidied(*(one + other for one, other in zip(total, round_, strict=True)))
    return total


async def test_a_tidy_store_has_nothing_to_tidy(whole: Store, store: MessageStore) -> None:
    """What is young is left alone."""
    await store.settle("turn", await running(store, "a"), MessageState.DONE, [NOTE])
    await whole.beat("w1", WorkerStatus.ALIVE)
    await whole.record(Reading("w1"))
    assert await whole.tidy() == NOTHING


async def test_keys_go_after_a_week_to_the_moment(whole: Store, store: MessageStore, wall: Wall) -> None:
    """Counted from the end of a message, not from its acceptance; open ones never go. (P1)"""
    await accepted(store, "open")
    a, b = await running(store, "a", "b")
    wall.pass_by(timedelta(days=3))
    await store.settle("turn", [a], MessageState.DONE, [])
    wall.pass_by(MOMENT)
    await store.settle("turn", [b], MessageState.DONE, [])
    wall.pass_by(REMEMBER_KEYS - 2 * MOMENT)
    assert await tidied(whole) == NOTHING
    wall.pass_by(MOMENT)
    assert await tidied(whole) == Tidied(1, 0, 0)
    receipts = await delivered(store, sent("b"), sent("a"), sent("open"))
    assert [one.fresh for one in receipts] == [False, True, False]
    wall.pass_by(MOMENT)
    assert await tidied(whole) == Tidied(1, 0, 0)
    assert [message.text for message in await store.waiting()] == ["open", "a"]


async def test_a_delivery_after_a_week_is_new_without_tidying(store: MessageStore, wall: Wall) -> None:
    """When tidying comes late, the answer is the same: the age of the key decides."""
    ids = await running(store, "a")
    await store.settle("turn", ids, MessageState.DONE, [])
    wall.pass_by(REMEMBER_KEYS - MOMENT)
    assert not (await delivered(store, sent("a")))[0].fresh
    wall.pass_by(MOMENT)
    (again,) = await delivered(store, sent("a"))
    assert again.fresh
    assert again.id > ids[0]


async def test_a_key_that_came_again_is_open_and_stays(whole: Store, store: MessageStore, wall: Wall) -> None:
    """The new row of a forgotten key is not tidied away with the old one."""
    await store.settle("turn", await running(store, "a"), MessageState.DONE, [])
    wall.pass_by(REMEMBER_KEYS)
    await accepted(store, "a")
    assert await tidied(whole) == NOTHING
    assert [message.text for message in await store.waiting()] == ["a"]


async def test_replies_never_go_by_themselves(whole: Store, store: MessageStore, wall: Wall) -> None:
    """However old, what is to be said is still to be said, although its message is forgotten. (P6)"""
    await store.settle("turn", await running(store, "a"), MessageState.DONE, [NOTE])
    wall.pass_by(timedelta(days=400))
    assert await tidied(whole) == Tidied(1, 0, 0)
    assert await waiting_replies(store) == [NOTE.text]


async def test_beats_go_after_a_week_and_readings_after_a_month(whole: Store, wall: Wall) -> None:
    """To the moment; the worker stays listed until it leaves."""
    for _ in range(2):
        await whole.beat("w1", WorkerStatus.ALIVE)
        await whole.record(Reading("w1"))
        wall.pass_by(MOMENT)
    wall.pass_by(KEEP_BEATS - 3 * MOMENT)
    assert await tidied(whole) == NOTHING
    wall.pass_by(MOMENT)
    assert await tidied(whole) == Tidied(0, 1, 0)
    assert len(await whole.beats("w1")) == 1
    wall.pass_by(KEEP_READINGS - KEEP_BEATS)
    assert await tidied(whole) == Tidied(0, 1, 1)
    assert await whole.beats("w1") == ()
    assert len(await whole.readings()) == 1
    assert [worker.id for worker in await whole.workers()] == ["w1"]


async def test_a_great_deal_is_tidied_in_rounds(whole: Store, store: MessageStore, wall: Wall) -> None:
    """Called until there is nothing more, everything old is gone and counted once."""
    ids = await accepted(store, *(str(number) for number in range(2500)))
    await store.settle("", ids, MessageState.DROPPED, [])
    wall.pass_by(REMEMBER_KEYS)
    assert await tidied(whole) == Tidied(2500, 0, 0)
