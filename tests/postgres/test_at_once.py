"""Several at once: what the server orders for us is in order, whoever asks."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import trio

from store.postgres import open_postgres
from store.records import (
    CHAT_LEASE,
    Address,
    DeliveryKey,
    Incoming,
    MessageState,
    Note,
    Role,
    Said,
    SessionKey,
    Standing,
)

if TYPE_CHECKING:
    from store.protocols import MessageStore
    from store.records import Receipt

HERE = SessionKey("default", "main", "fake", "bot", "here")
HALF = SessionKey("default", "main", "fake", "bot", "\ud800")


def delivery(name: str) -> Incoming:
    return Incoming(DeliveryKey("fake", "bot", name), HERE, "ann", name)


async def test_ids_of_a_session_rise_in_the_order_in_which_they_can_be_seen(database: str) -> None:
    """Whoever has seen a message never sees an older one of its session appear behind it. (P2)"""
    seen: list[int] = []
    async with open_postgres(database) as one, open_postgres(database) as two:
        lease = await one.acquire(CHAT_LEASE, "me", timedelta(days=1))
        holder = one.messages(lease)

        async def hand_in(messages: MessageStore, name: str) -> None:
            for number in range(15):
                await messages.accept([delivery(f"{name}/{number}")])

        async def look() -> None:
            while len(seen) < 120:
                ids = [message.id for message in await holder.waiting()]
                assert ids[: len(seen)] == seen
                seen[:] = ids

        async with trio.open_nursery() as nursery:
            nursery.start_soon(look)
            for number in range(4):
                nursery.start_soon(hand_in, one.messages(None), f"one {number}")
                nursery.start_soon(hand_in, two.messages(None), f"two {number}")
    assert len(seen) == 120


async def test_one_delivery_that_comes_twice_at_once_is_one_message(database: str) -> None:
    """Through whichever door: one of them made it, and all are answered with the same. (lesson 15)"""
    async with open_postgres(database) as one, open_postgres(database) as two:
        for number in range(20):
            receipts: list[Receipt] = []

            async def hand_in(messages: MessageStore, batch: list[Incoming], found: list[Receipt] = receipts) -> None:
                found.extend(await messages.accept(batch) or ())

            async with trio.open_nursery() as nursery:
                for store in (one, two, one, two):
                    nursery.start_soon(hand_in, store.messages(None), [delivery(str(number))])
            assert len({receipt.id for receipt in receipts}) == 1
            assert sorted(receipt.fresh for receipt in receipts) == [False, False, False, True]


async def test_a_lease_is_renewed_however_much_is_written_under_it(database: str) -> None:
    """A stream of writes does not keep their own holder from renewing, nor is it held up by who asks in vain."""
    async with open_postgres(database) as store, open_postgres(database) as other:
        lease = await store.acquire(CHAT_LEASE, "me", timedelta(minutes=5))
        assert lease is not None
        messages = store.messages(lease)

        async def work(caller: int) -> None:
            for number in range(15):
                receipts = await messages.accept([delivery(f"{caller}/{number}")])
                assert receipts
                ids = [receipts[0].id]
                await messages.begin("turn", ids)
                assert await messages.settle(
                    "turn", ids, MessageState.DONE, [Note(HERE, "hi")], [Said(Role.USER, "hi")]
                )

        async with trio.open_nursery() as nursery:
            for caller in range(8):
                nursery.start_soon(work, caller)
            for _ in range(20):
                assert await store.renew(lease, timedelta(minutes=5))
                assert await other.acquire(CHAT_LEASE, "other", timedelta(minutes=5)) is None
        assert await store.session(HERE) is not None
        assert [line.number for line in await store.transcript(HERE, limit=1000)] == list(range(1, 121))


async def test_half_a_character_is_nowhere_to_be_found(database: str) -> None:
    """It cannot be written, so whoever asks for it is told that there is nothing."""
    async with open_postgres(database) as store:
        lease = await store.acquire(CHAT_LEASE, "me", timedelta(days=1))
        messages = store.messages(lease)
        assert await store.session(HALF) is None
        assert await store.transcript(HALF) == ()
        assert await store.newest(HALF, 5) == ()
        assert (await store.trim(HALF, 5), await store.forget(HALF)) == (0, False)
        assert await messages.stop(HALF, 5) == ()
        assert await messages.standings([HALF]) == {HALF: Standing()}
        assert await messages.outbox(5, [Address("a", "b", "\ud800", "")]) == ()
        assert await store.tenant("\ud800") is None
        assert await store.token_for("\ud800") is None
        assert await store.beats("\ud800") == ()
