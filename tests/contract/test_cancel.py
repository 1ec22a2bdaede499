"""Cancelling: whoever is interrupted in the middle of a verb finds all of it done or none of it, and may go on."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import trio

from store.memory import MemoryStore
from store.records import CHAT_LEASE, Cursor, MessageState, NewToken, Note, Role, Said, SessionPolicy, WorkerStatus
from tests.contract.conftest import CENTURY
from tests.contract.picture import normal, picture
from tests.contract.rows import HERE, NOTE, THERE, running, sent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from store.protocols import MessageStore, Store
    from tests.contract.backends import Wall

    Moment = Callable[[trio.CancelScope, float], Awaitable[None]]
    Verb = Callable[[Store, MessageStore, list[int]], Awaitable[object]]

SAID = [Said(Role.USER, "a"), Said(Role.ASSISTANT, "b")]
VERBS: dict[str, Verb] = {
    "accept": lambda whole, store, ids: store.accept([sent("x"), sent("y", THERE)], Cursor("fake", "bot", 7)),
    "begin": lambda whole, store, ids: store.begin("next", ids[2:]),
    "settle": lambda whole, store, ids: store.settle(
        "turn", ids[:2], MessageState.DONE, [NOTE, Note(THERE, "too")], SAID, 0.5
    ),
    "stop": lambda whole, store, ids: store.stop(HERE, ids[-1]),
    "put back": lambda whole, store, ids: store.put_back("turn", ids[:2]),
    "resume": lambda whole, store, ids: store.resume(),
    "remember": lambda whole, store, ids: whole.remember(HERE, SAID),
    "set policy": lambda whole, store, ids: whole.set_policy(HERE, SessionPolicy(cap=1)),
    "create tenant": lambda whole, store, ids: whole.create_tenant("t2"),
    "delete tenant": lambda whole, store, ids: whole.delete_tenant("t"),
    "add token": lambda whole, store, ids: whole.add_token(NewToken("k2", "default", "", "d2")),
    "beat": lambda whole, store, ids: whole.beat("w1", WorkerStatus.BUSY),
    "acquire": lambda whole, store, ids: whole.acquire("other", "ann", timedelta(minutes=1)),
}


async def fill(whole: Store, store: MessageStore) -> list[int]:
    """Two messages that run, two that wait, and a tenant with something of its own."""
    await whole.create_tenant("t")
    await whole.add_token(NewToken("k1", "t", "", "d1"))
    ids = await running(store, "a", "b")
    receipts = await store.accept([sent("c"), sent("d")])
    assert receipts is not None
    return [*ids, *(one.id for one in receipts)]


async def everything(whole: Store, store: MessageStore) -> object:
    """The picture and, which it does not show, which of the messages run, in which turn and how often."""
    receipts = await store.accept([sent(text) for text in "abcd"])
    return normal({**await picture(whole, store), "receipts": receipts})


async def before_it_starts(scope: trio.CancelScope, usual: float) -> None:
    scope.cancel()


async def soon_after_it_started(scope: trio.CancelScope, usual: float) -> None:
    await trio.lowlevel.checkpoint()
    scope.cancel()


async def in_the_middle(scope: trio.CancelScope, usual: float) -> None:
    scope.deadline = trio.current_time() + usual / 2


MOMENTS = [before_it_starts, soon_after_it_started, in_the_middle]


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("verb", list(VERBS.values()), ids=list(VERBS))
async def test_a_cancelled_verb_did_all_or_nothing(
    whole: Store, store: MessageStore, wall: Wall, verb: Verb, moment: Moment
) -> None:
    """Whatever the moment, the store is as before or as after, never between, and works on. (P1)"""
    model = MemoryStore(wall)
    twin = model.messages(await model.acquire(CHAT_LEASE, "contract", CENTURY))
    ids, twins = await fill(whole, store), await fill(model, twin)
    started = trio.current_time()
    before = await everything(model, twin)
    assert await everything(whole, store) == before
    usual = (trio.current_time() - started) / 20
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(moment, scope, usual)
            await verb(whole, store, ids)
    await verb(model, twin, twins)
    after = await everything(model, twin)
    found = await everything(whole, store)
    assert found in (before, after)
    if found == before:
        await verb(whole, store, ids)
        assert await everything(whole, store) == after
