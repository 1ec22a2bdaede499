"""How messages are, asked by what they were delivered as: many at once, whoever works on them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from store.records import REMEMBER_KEYS, MessageState, Note, OwnKey
from tests.contract.rows import HERE, THERE, accepted, delivered, running, sent

if TYPE_CHECKING:
    from store.protocols import MessageStore, Store
    from tests.contract.backends import Wall

THEIRS = replace(HERE, tenant="t")


async def test_many_are_asked_for_at_once(whole: Store, store: MessageStore) -> None:
    """Waiting, running and ended ones, without a lease too; what was never delivered is left out. (P6)"""
    await accepted(store, "a", session=THERE)
    ids = await running(store, "b")
    await running(store, "c", turn="other")
    await store.settle("turn", ids, MessageState.FAILED, [Note(HERE, "it failed")])
    keys = [sent("a", THERE).own_key, sent("b").own_key, sent("c").own_key, sent("never").own_key]
    expected = dict(zip(keys, [MessageState.ACCEPTED, MessageState.FAILED, MessageState.RUNNING], strict=False))
    assert await store.states(keys) == await whole.messages(None).states(keys) == expected
    assert await store.states([]) == {}


async def test_another_tenants_delivery_is_another_one(whole: Store, store: MessageStore) -> None:
    """The same key is asked for inside its tenant only. (P11)"""
    await whole.create_tenant("t")
    await delivered(store, sent("a"))
    assert await store.states([sent("a", THEIRS).own_key]) == {}


async def test_any_key_may_be_asked_for(store: MessageStore) -> None:
    """Also one that no store could ever keep, or with characters that are written in another way."""
    odd = replace(sent("a"), key=sent("a").key._replace(external_id="\x00 \ue000 🦀"))
    await delivered(store, odd)
    half = OwnKey("default", "c", "", "\ud800")
    assert await store.states([odd.own_key, half]) == {odd.own_key: MessageState.ACCEPTED}


async def test_what_is_forgotten_is_left_out(store: MessageStore, wall: Wall) -> None:
    """An ended one is known for a week, an open one for as long as it is open."""
    await accepted(store, "open")
    ids = await running(store, "ended")
    await store.settle("turn", ids, MessageState.DONE, [])
    wall.pass_by(REMEMBER_KEYS - timedelta(seconds=1))
    keys = [sent("open").own_key, sent("ended").own_key]
    assert list((await store.states(keys)).values()) == [MessageState.ACCEPTED, MessageState.DONE]
    wall.pass_by(timedelta(seconds=2))
    assert await store.states(keys) == {keys[0]: MessageState.ACCEPTED}
