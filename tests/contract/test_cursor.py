"""The cursor: how far a channel was read is written with what was read, by the holder of the lease alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from store.protocols import RuleBroken
from store.records import Cursor, SessionKey
from tests.contract.rows import delivered, sent

if TYPE_CHECKING:
    from store.protocols import MessageStore, Store

NOBODY = SessionKey("nobody", "main", "fake", "bot", "here")


def at(position: int, channel: str = "fake", account: str = "bot") -> Cursor:
    return Cursor(channel, account, position)


async def test_a_channel_that_was_never_read_has_no_cursor(store: MessageStore) -> None:
    """None is not zero: the channel decides where to start. (lesson 50)"""
    assert await store.cursor("fake", "bot") is None
    await delivered(store, sent("a"))
    assert await store.cursor("fake", "bot") is None


async def test_the_cursor_is_kept_with_its_batch(store: MessageStore) -> None:
    """What was read and how far are one write. (P1, lesson 50)"""
    await delivered(store, sent("a"), sent("b"), cursor=at(7))
    assert await store.cursor("fake", "bot") == 7
    assert [message.text for message in await store.waiting()] == ["a", "b"]


async def test_a_cursor_may_come_alone(store: MessageStore) -> None:
    """A batch in which nothing was for us still moves on; 0 is a position as well."""
    assert await store.accept([], at(0)) == ()
    assert await store.cursor("fake", "bot") == 0
    assert await store.accept([], at(3)) == ()
    assert await store.cursor("fake", "bot") == 3


async def test_the_cursor_only_moves_forward(store: MessageStore) -> None:
    """An older batch that comes late is kept, and does not turn the channel back."""
    await delivered(store, sent("b"), cursor=at(9))
    await delivered(store, sent("a"), cursor=at(4))
    assert await store.cursor("fake", "bot") == 9
    assert len(await store.waiting()) == 2


async def test_a_cursor_may_be_large_or_negative(store: MessageStore) -> None:
    """Whatever numbers a channel counts with, they come back exactly."""
    await store.accept([], at(-5))
    assert await store.cursor("fake", "bot") == -5
    await store.accept([], at(2**62))
    assert await store.cursor("fake", "bot") == 2**62


async def test_each_account_of_each_channel_has_its_own(store: MessageStore) -> None:
    """Another token, another bot, another cursor. (lesson 50)"""
    places = [("fake", "bot"), ("fake", "bot2"), ("fakebot", ""), ("", "fakebot")]
    for number, (channel, account) in enumerate(places):
        await store.accept([], at(number, channel, account))
    assert [await store.cursor(*place) for place in places] == [0, 1, 2, 3]


async def test_a_known_delivery_moves_the_cursor_too(store: MessageStore) -> None:
    """After a crash the same batch comes again: it makes no rows, and the channel goes on."""
    await delivered(store, sent("a"))
    (again,) = await delivered(store, sent("a"), cursor=at(2))
    assert not again.fresh
    assert await store.cursor("fake", "bot") == 2


async def test_a_refused_batch_leaves_the_cursor_where_it_was(store: MessageStore) -> None:
    """A batch that breaks a rule is not skipped: neither rows nor cursor are written. (P1)"""
    await store.accept([], at(1))
    with pytest.raises(RuleBroken, match="there is no tenant 'nobody'"):
        await store.accept([sent("a"), sent("b", NOBODY)], at(2))
    assert await store.cursor("fake", "bot") == 1
    assert await store.waiting() == ()


async def test_without_the_lease_a_batch_with_a_cursor_is_refused(whole: Store, store: MessageStore) -> None:
    """Two gateways never read one channel: None, and neither rows nor cursor are written."""
    await store.accept([], at(1))
    assert await whole.messages(None).accept([sent("a")], at(2)) is None
    assert await whole.messages(None).accept([], at(2)) is None
    assert await whole.messages(None).cursor("fake", "bot") is None
    assert await store.cursor("fake", "bot") == 1
    assert await store.waiting() == ()


async def test_without_the_lease_a_batch_alone_is_kept(whole: Store, store: MessageStore) -> None:
    """Everybody may hand in messages; who holds the lease finds them waiting."""
    (receipt,) = await delivered(whole.messages(None), sent("a"))
    assert receipt.fresh
    assert [message.id for message in await store.waiting()] == [receipt.id]


async def test_cursors_that_are_moved_at_once_end_at_the_furthest(store: MessageStore) -> None:
    """Whatever order the writes find, the highest position stays."""
    async with trio.open_nursery() as nursery:
        for position in (5, 9, 1, 7, 3, 8):
            nursery.start_soon(store.accept, [], at(position))
    assert await store.cursor("fake", "bot") == 9
