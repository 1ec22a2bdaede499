"""Many at once: whatever they do together, no message is lost, doubled or answered twice."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import trio

from store.records import CHAT_LEASE, MessageState, Note, Role, Said
from tests.contract.conftest import CENTURY
from tests.contract.rows import HERE, delivered, sent, waiting_replies

if TYPE_CHECKING:
    from store.protocols import MessageStore, Store

CALLERS = 20
SESSIONS = [replace(HERE, chat=f"chat {number}") for number in range(5)]


async def test_messages_of_many_are_each_answered_once(whole: Store, store: MessageStore) -> None:
    """Twenty callers accept, begin and settle side by side, some on the same sessions: one reply each. (P1, P6)"""

    async def work(caller: int) -> None:
        session = SESSIONS[caller % len(SESSIONS)]
        for number in range(3):
            text = f"{caller}.{number}"
            (receipt,) = await delivered(store, sent(text, session))
            (message,) = await store.begin(f"turn {text}", [receipt.id])
            said = [Said(Role.USER, text)]
            assert await store.settle(message.turn, [message.id], MessageState.DONE, [Note(session, text)], said)

    async with trio.open_nursery() as nursery:
        for caller in range(CALLERS):
            nursery.start_soon(work, caller)
    everything = sorted(f"{caller}.{number}" for caller in range(CALLERS) for number in range(3))
    assert sorted(await waiting_replies(store)) == everything
    lines = [line.said.text for session in SESSIONS for line in await whole.transcript(session)]
    assert sorted(lines) == everything
    assert await store.resume() == ()


async def test_a_senders_messages_keep_their_order_among_many(store: MessageStore) -> None:
    """Ids rise in the order in which one sender's deliveries were acknowledged, whoever else delivers. (P2)"""
    got: dict[int, list[int]] = {}

    async def deliver(caller: int) -> None:
        for number in range(4):
            receipts = await delivered(store, sent(f"{caller}.{number}a"), sent(f"{caller}.{number}b"))
            got.setdefault(caller, []).extend(one.id for one in receipts)

    async with trio.open_nursery() as nursery:
        for caller in range(CALLERS):
            nursery.start_soon(deliver, caller)
    assert all(ids == sorted(ids) for ids in got.values())
    assert [message.id for message in await store.waiting()] == sorted(one for ids in got.values() for one in ids)


async def test_settles_and_stops_at_once_leave_one_end_each(store: MessageStore) -> None:
    """Of ten turns and the stops that race them each message has one end, and a reply only if it is done. (P7)"""
    receipts = await delivered(store, *(sent(str(number)) for number in range(10)))
    for one in receipts:
        await store.begin(f"turn {one.id}", [one.id])
    ends: Counter[int] = Counter()

    async def settle(number: int) -> None:
        if await store.settle(f"turn {number}", [number], MessageState.DONE, [Note(HERE, str(number))]):
            ends[number] += 1

    async def stop(number: int) -> None:
        ends.update(message.id for message in await store.stop(HERE, number))

    calls = [(verb, one.id) for one in receipts for verb in (settle, stop)]
    Random(7).shuffle(calls)
    async with trio.open_nursery() as nursery:
        for verb, number in calls:
            nursery.start_soon(verb, number)
    assert dict(ends) == {one.id: 1 for one in receipts}
    replies = await waiting_replies(store)
    states = {one.id: one.state for one in await delivered(store, *(sent(str(number)) for number in range(10)))}
    assert sorted(replies) == sorted(str(number) for number, end in states.items() if end is MessageState.DONE)
    assert set(states.values()) <= {MessageState.DONE, MessageState.STOPPED}


async def test_work_ends_when_the_lease_goes_over(whole: Store, store: MessageStore) -> None:
    """While many work, the lease is taken over: each settle came before that or was refused, and none is half there."""
    receipts = await delivered(store, *(sent(str(number)) for number in range(CALLERS)))
    for one in receipts:
        await store.begin(f"turn {one.id}", [one.id])
    settled: list[int] = []

    async def settle(number: int) -> None:
        if await store.settle(f"turn {number}", [number], MessageState.DONE, [Note(HERE, str(number))]):
            settled.append(number)

    async def take_over() -> None:
        held = await whole.lease(CHAT_LEASE)
        assert held is not None
        await whole.release(held)

    async with trio.open_nursery() as nursery:
        for place, one in enumerate(receipts):
            nursery.start_soon(settle, one.id)
            if place == CALLERS // 2:
                nursery.start_soon(take_over)
    view = whole.messages(await whole.acquire(CHAT_LEASE, "next", CENTURY))
    assert sorted(await waiting_replies(view)) == sorted(str(number) for number in settled)
    rest = {message.id for message in await view.resume()}
    assert rest == {one.id for one in receipts} - set(settled)


async def test_readers_beside_writers_see_whole_writes(whole: Store, store: MessageStore) -> None:
    """Whoever reads while others settle finds a reply only with its transcript line, and lines only in pairs. (P6)"""
    receipts = await delivered(store, *(sent(str(number)) for number in range(CALLERS)))
    done = trio.Event()

    async def settle() -> None:
        for one in receipts:
            said = [Said(Role.USER, str(one.id)), Said(Role.ASSISTANT, str(one.id))]
            await store.begin("turn", [one.id])
            await store.settle("turn", [one.id], MessageState.DONE, [Note(HERE, str(one.id))], said)
        done.set()

    async def read() -> None:
        while not done.is_set():
            replies = await store.outbox(1000)
            lines = await whole.transcript(HERE, limit=1000)
            assert len(lines) % 2 == 0
            assert len(lines) >= 2 * len(replies)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(settle)
        for _ in range(3):
            nursery.start_soon(read)
    assert len(await whole.transcript(HERE, limit=1000)) == 2 * CALLERS
