"""The store without a disk: what has ended costs next to nothing, and after a week and a tidying nothing."""

from __future__ import annotations

import gc
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import trio_test

from store.memory import MemoryStore
from store.records import CHAT_LEASE, Message, MessageState, Note
from tests.contract.backends import Wall
from tests.contract.rows import HERE, NOTE, THERE, accepted, delivered, running, sent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from store.protocols import MessageStore

    Verb = Callable[[MessageStore, str, list[int]], Awaitable[object]]


async def leased(whole: MemoryStore) -> MessageStore:
    return whole.messages(await whole.acquire(CHAT_LEASE, "test", timedelta(days=365)))


async def test_an_ended_message_lets_its_text_go() -> None:
    """Rows and sent replies are not kept: only the key of a message stays. (P13)"""
    store = await leased(MemoryStore(Wall()))
    session = replace(HERE, chat="forgotten")
    ids = await running(store, "a text to be forgotten", session=session)
    await store.settle("turn", ids, MessageState.DONE, [NOTE])
    for reply in await store.outbox(10):
        await store.sent(reply.id)
    del reply
    gc.collect()
    assert not [one for one in gc.get_objects() if isinstance(one, Message) and one.session == session]


async def test_a_long_chat_does_not_grow() -> None:
    """A thousand messages over three weeks of daily tidying leave only the keys of the last week. (P13)"""
    wall = Wall()
    whole = MemoryStore(wall)
    store = await leased(whole)
    for number in range(1000):
        ids = await running(store, str(number))
        await store.settle("turn", ids, MessageState.DONE, [NOTE])
        for reply in await store.outbox(10):
            await store.sent(reply.id)
        wall.pass_by(timedelta(days=21) / 1000)
        if number % 47 == 0:
            await whole.tidy()
    await whole.tidy()
    assert len(whole.seen) <= 1000 * 7 / 21 + 1
    assert not whole.open
    assert not whole.outbox


VERBS: dict[str, Verb] = {
    "begin": lambda store, turn, ids: store.begin(turn, ids),
    "done": lambda store, turn, ids: store.settle(turn, ids, MessageState.DONE, [Note(HERE, "done")]),
    "failed": lambda store, turn, ids: store.settle(turn, ids, MessageState.FAILED, [Note(HERE, "failed")]),
    "stop here": lambda store, turn, ids: store.stop(HERE, max(ids)),
    "stop some": lambda store, turn, ids: store.stop(THERE, max(ids), only=ids),
    "put back": lambda store, turn, ids: store.put_back(turn, ids),
    "resume": lambda store, turn, ids: store.resume(),
    "deliver again": lambda store, turn, ids: delivered(store, *(sent(str(number)) for number in range(6))),
}

steps = st.lists(
    st.tuples(
        st.sampled_from(list(VERBS)),
        st.sampled_from(["turn 1", "turn 2"]),
        st.lists(st.integers(min_value=1, max_value=6), min_size=1, max_size=6, unique=True),
    ),
    max_size=30,
)


@settings(max_examples=150, deadline=None)
@given(steps)
def test_no_history_loses_or_doubles_a_message(history: list[tuple[str, str, list[int]]]) -> None:
    """After any calls in any order each message is open once or ended once, and was answered by one turn at most."""

    @trio_test
    async def check() -> None:
        store = await leased(MemoryStore(Wall()))
        await accepted(store, "0", "1", "2")
        await accepted(store, "3", "4", "5", session=THERE)
        for verb, turn, ids in history:
            await VERBS[verb](store, turn, ids)
        receipts = await delivered(store, *(sent(str(number)) for number in range(6)))
        assert [(one.id, one.fresh) for one in receipts] == [(number, False) for number in range(1, 7)]
        answered = Counter(number for reply in await store.outbox(1000) for number in reply.answers)
        for one in receipts:
            assert (one.message is None) == one.state.terminal
            assert one.message is None or one.message.state is one.state
            expected = one.state in (MessageState.DONE, MessageState.FAILED)
            assert answered[one.id] == expected

    check()
