"""Accepting: everything of a batch is kept in order, and a second delivery leads to the first one's row."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import trio

from store.records import DeliveryKey, MessageState
from tests.contract.rows import HERE, THERE, accepted, delivered, receipt, running, sent, state

if TYPE_CHECKING:
    from store.protocols import MessageStore, Store
    from tests.contract.backends import Wall

THEIRS = replace(HERE, tenant="t")


async def test_a_batch_is_numbered_in_order(store: MessageStore, wall: Wall) -> None:
    """Each new message becomes an accepted row; ids rise in the order of the batch and over batches. (P2)"""
    first = await delivered(store, sent("a"), sent("b", THERE))
    second = await delivered(store, sent("c"))
    receipts = [*first, *second]
    ids = [receipt.id for receipt in receipts]
    assert ids == sorted(set(ids))
    for incoming, one in zip([sent("a"), sent("b", THERE), sent("c")], receipts, strict=True):
        assert (one.fresh, one.state) == (True, MessageState.ACCEPTED)
        assert one.message is not None
        assert (one.message.id, one.message.incoming, one.message.accepted_at) == (one.id, incoming, wall.time)
        assert (one.message.state, one.message.attempts, one.message.turn) == (MessageState.ACCEPTED, 0, "")


async def test_an_empty_batch_is_no_trouble(store: MessageStore) -> None:
    """Nothing in, nothing out."""
    assert await store.accept([]) == ()
    assert await store.resume() == ()


async def test_a_second_delivery_leads_to_the_first_row(store: MessageStore) -> None:
    """The same key again makes no row; what counts is what was said the first time. (lesson 15)"""
    (first,) = await delivered(store, sent("a"))
    (again,) = await delivered(store, replace(sent("a"), text="another text", sender="eve"))
    assert (again.id, again.fresh, again.message) == (first.id, False, first.message)
    assert [message.id for message in await store.resume()] == [first.id]


async def test_duplicates_inside_one_batch_are_told_apart(store: MessageStore) -> None:
    """A batch may repeat an older delivery and its own; only what is new becomes a row. (lesson 15)"""
    (old,) = await accepted(store, "old")
    receipts = await delivered(store, sent("a"), sent("old"), sent("b"), sent("a"), sent("c"))
    assert [one.fresh for one in receipts] == [True, False, True, False, True]
    a, old_again, b, a_again, c = [one.id for one in receipts]
    assert (old_again, a_again) == (old, a)
    assert [message.id for message in await store.resume()] == [old, a, b, c]


@pytest.mark.parametrize(
    "other",
    [
        DeliveryKey("fake", "bot", "2"),
        DeliveryKey("fake", "bot 2", "1"),
        DeliveryKey("other", "bot", "1"),
        DeliveryKey("fake", "bo", "t1"),
        DeliveryKey("fake", "", "bot1"),
        DeliveryKey("fake", "", "bot:1"),
        DeliveryKey("fake:bot", "", "1"),
    ],
)
async def test_keys_are_compared_part_by_part(store: MessageStore, other: DeliveryKey) -> None:
    """Channel, account and id each count; parts that read alike when joined are still different. (lesson 15)"""
    first, second = replace(sent("a"), key=DeliveryKey("fake", "bot", "1")), replace(sent("b"), key=other)
    assert [one.fresh for one in await delivered(store, first, second)] == [True, True]


async def test_the_same_delivery_in_two_tenants_is_two_messages(whole: Store, store: MessageStore) -> None:
    """A key counts inside its tenant: each is shown its own row, never the other's. (P11)"""
    await whole.create_tenant("t")
    ours, theirs = replace(sent("a"), text="ours"), replace(sent("a", THEIRS), text="theirs")
    receipts = await delivered(store, ours, theirs)
    assert [one.fresh for one in receipts] == [True, True]
    again = await delivered(store, theirs, ours)
    assert [one.message and one.message.incoming for one in again] == [theirs, ours]
    assert [one.id for one in again] == [one.id for one in reversed(receipts)]
    assert [message.incoming for message in await store.resume()] == [ours, theirs]


async def test_what_has_ended_is_recognised_in_its_own_tenant(whole: Store, store: MessageStore) -> None:
    """The end of one tenant's message says nothing about the other's, and is not said to it. (P11)"""
    await whole.create_tenant("t")
    ids = await running(store, "a", session=THEIRS)
    await store.settle("turn", ids, MessageState.STOPPED, [])
    (ours,) = await delivered(store, sent("a"))
    assert (ours.fresh, ours.state) == (True, MessageState.ACCEPTED)
    (theirs,) = await delivered(store, sent("a", THEIRS))
    assert (theirs.fresh, theirs.id, theirs.state) == (False, ids[0], MessageState.STOPPED)


@pytest.mark.parametrize("ended", [False, True])
async def test_a_deleted_tenant_takes_only_its_own_keys_along(
    whole: Store, store: MessageStore, *, ended: bool
) -> None:
    """The same delivery in another tenant is still recognised, open or ended. (P11)"""
    await whole.create_tenant("t")
    receipts = await delivered(store, sent("a"), sent("a", THEIRS))
    if ended:
        await store.begin("turn", [one.id for one in receipts])
        await store.settle("turn", [one.id for one in receipts], MessageState.DONE, [])
    assert await whole.delete_tenant("t")
    await whole.create_tenant("t")
    ours, theirs = await delivered(store, sent("a"), sent("a", THEIRS))
    assert (ours.id, ours.fresh) == (receipts[0].id, False)
    assert theirs.fresh


@pytest.mark.parametrize("end", [MessageState.DONE, MessageState.FAILED, MessageState.QUARANTINED])
async def test_what_has_ended_is_still_recognised(store: MessageStore, end: MessageState) -> None:
    """A late second delivery learns the end, gets no row to work on, and changes nothing. (lesson 15)"""
    ids = await running(store, "a")
    await store.settle("turn", ids, end, [])
    again = await receipt(store, "a")
    assert (again.id, again.state, again.message) == (ids[0], end, None)
    assert await store.resume() == ()


async def test_a_second_delivery_during_the_run_finds_it_running(store: MessageStore) -> None:
    """A message that is being worked on is not offered as new work."""
    await running(store, "a")
    assert await state(store, "a") is MessageState.RUNNING


async def test_deliveries_at_the_same_time_make_one_row(store: MessageStore) -> None:
    """Ten tasks that deliver the same batch make its rows once. (lesson 15)"""
    fresh: list[bool] = []
    ids: set[tuple[int, ...]] = set()

    async def deliver() -> None:
        receipts = await delivered(store, sent("a"), sent("b"))
        fresh.extend(one.fresh for one in receipts)
        ids.add(tuple(one.id for one in receipts))

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(deliver)
    assert sum(fresh) == 2
    assert len(ids) == 1


async def test_a_cancelled_accept_keeps_all_or_nothing(store: MessageStore) -> None:
    """Whoever is cancelled in the middle may deliver again: the batch is there as a whole or not at all. (P1)"""
    with trio.CancelScope() as scope:
        scope.cancel()
        await delivered(store, sent("a"), sent("b"))
    receipts = await delivered(store, sent("a"), sent("b"))
    assert receipts[0].fresh == receipts[1].fresh
    assert len(await store.resume()) == 2


async def test_keys_are_remembered_for_seven_days(store: MessageStore, wall: Wall) -> None:
    """A delivery that comes again within a week is recognised, afterwards it is new."""
    ids = await running(store, "a")
    await store.settle("turn", ids, MessageState.DONE, [])
    wall.pass_by(timedelta(days=7) - timedelta(seconds=1))
    assert await state(store, "a") is MessageState.DONE
    wall.pass_by(timedelta(seconds=2))
    (again,) = await delivered(store, sent("a"))
    assert again.fresh
    assert again.id > ids[0]


async def test_the_key_of_an_open_message_is_never_forgotten(store: MessageStore, wall: Wall) -> None:
    """However long a message waits or runs, its second delivery does not make a second row. (P1)"""
    await accepted(store, "waits")
    await running(store, "runs")
    wall.pass_by(timedelta(days=30))
    receipts = await delivered(store, sent("waits"), sent("runs"))
    assert [one.fresh for one in receipts] == [False, False]
    assert len(await store.resume()) == 2


async def test_an_ended_message_is_forgotten_although_an_older_one_is_open(store: MessageStore, wall: Wall) -> None:
    """One message that stays open does not make the store remember all that came after it."""
    await accepted(store, "open")
    ids = await running(store, "a")
    await store.settle("turn", ids, MessageState.DONE, [])
    wall.pass_by(timedelta(days=8))
    assert [one.fresh for one in await delivered(store, sent("a"))] == [True]


async def test_a_text_is_kept_as_it_is(store: MessageStore) -> None:
    """Line ends, NULs, emoji and long texts come back as they went in."""
    texts = ["", " \r\n\t ", "\x00", "🦀 ümläut ‮", "x" * 100_000]
    for text in texts:
        (one,) = await delivered(store, replace(sent(text[:5]), text=text, session=HERE))
        assert one.message is not None
        assert one.message.text == text
