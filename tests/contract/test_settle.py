"""Settling and stopping: whoever comes first decides, and messages and replies are written together or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from store.records import MessageState, Note
from tests.contract.rows import (
    HERE,
    NOTE,
    THERE,
    accepted,
    delivered,
    row,
    running,
    sent,
    state,
    stopped,
    waiting_replies,
)

if TYPE_CHECKING:
    from store.protocols import MessageStore


@pytest.mark.parametrize("end", [MessageState.DONE, MessageState.FAILED, MessageState.STOPPED])
async def test_a_turn_ends_with_all_its_messages_and_notes(store: MessageStore, end: MessageState) -> None:
    """Every message reaches its end and every note the outbox, in one step. (P6)"""
    ids = await running(store, "a", "b")
    assert await store.settle("turn", ids, end, [NOTE, Note(THERE, "by the way")])
    assert [await state(store, text) for text in ("a", "b")] == [end, end]
    replies = await store.outbox(10)
    assert [(reply.note, reply.answers) for reply in replies] == [
        (NOTE, tuple(ids)),
        (Note(THERE, "by the way"), tuple(ids)),
    ]
    assert await store.resume() == ()


async def test_settling_again_says_nothing_twice(store: MessageStore) -> None:
    """After a failure the settle is repeated: the second one is refused and adds no reply."""
    ids = await running(store, "a")
    assert await store.settle("turn", ids, MessageState.DONE, [NOTE])
    assert not await store.settle("turn", ids, MessageState.DONE, [NOTE])
    assert not await store.settle("turn", ids, MessageState.FAILED, [NOTE])
    assert await state(store, "a") is MessageState.DONE
    assert await waiting_replies(store) == [NOTE.text]


async def test_a_stop_that_came_first_wins(store: MessageStore) -> None:
    """A turn whose messages were stopped settles nothing and says nothing. (P7)"""
    ids = await running(store, "a", "b")
    assert await stopped(store, ids[-1]) == tuple(ids)
    assert not await store.settle("turn", ids, MessageState.DONE, [NOTE])
    assert await state(store, "a") is MessageState.STOPPED
    assert await waiting_replies(store) == []


async def test_a_settle_that_came_first_wins(store: MessageStore) -> None:
    """A stop does not reach what has ended, and does not take its answer back."""
    ids = await running(store, "a")
    await store.settle("turn", ids, MessageState.DONE, [NOTE])
    assert await stopped(store, ids[-1]) == ()
    assert await state(store, "a") is MessageState.DONE
    assert await waiting_replies(store) == [NOTE.text]


async def test_stop_and_settle_at_once_leave_one_winner(store: MessageStore) -> None:
    """Either the answer is there or the message is stopped; never both, never neither. (P7)"""
    ids = await running(store, "a")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.settle, "turn", ids, MessageState.DONE, [NOTE])
        nursery.start_soon(store.stop, HERE, ids[-1])
    said = await waiting_replies(store)
    assert (await state(store, "a"), said) in [(MessageState.DONE, [NOTE.text]), (MessageState.STOPPED, [])]


async def test_the_rest_of_a_turn_settles_without_what_was_stopped(store: MessageStore) -> None:
    """One message of a turn was stopped: it stays stopped, and the reply is about the others."""
    a, b = await running(store, "a", "b")
    await store.stop(HERE, b, only=[a])
    assert await store.settle("turn", [a, b], MessageState.DONE, [NOTE])
    assert [await state(store, text) for text in ("a", "b")] == [MessageState.STOPPED, MessageState.DONE]
    assert [reply.answers for reply in await store.outbox(10)] == [(b,)]


async def test_another_turn_cannot_settle(store: MessageStore) -> None:
    """The turn is the token: without it nothing is written. (P2)"""
    ids = await running(store, "a")
    assert not await store.settle("other", ids, MessageState.DONE, [NOTE])
    assert not await store.settle("", ids, MessageState.STOPPED, [NOTE])
    assert (await row(store, "a")).turn == "turn"
    assert await waiting_replies(store) == []


@pytest.mark.parametrize("end", [MessageState.DROPPED, MessageState.FAILED, MessageState.STOPPED])
async def test_an_empty_turn_settles_what_never_began(store: MessageStore, end: MessageState) -> None:
    """A dropped or refused message ends without a run, and its sender is told. (lesson 16)"""
    ids = await accepted(store, "a", "b")
    assert await store.settle("", ids, end, [NOTE])
    assert [await state(store, text) for text in ("a", "b")] == [end, end]
    assert await store.begin("turn", ids) == ()
    assert await waiting_replies(store) == [NOTE.text]


async def test_nothing_is_settled_for_nobody(store: MessageStore) -> None:
    """Without a message of its own a turn says nothing."""
    assert not await store.settle("turn", [], MessageState.DONE, [NOTE])
    assert not await store.settle("turn", [10_000], MessageState.DONE, [NOTE])
    assert await waiting_replies(store) == []


@pytest.mark.parametrize(("begun", "end"), [(False, MessageState.DONE), (True, MessageState.DROPPED)])
async def test_an_impossible_end_changes_nothing(store: MessageStore, begun: bool, end: MessageState) -> None:
    """A move that records forbid is the caller's mistake: it raises, and rows and outbox stay as they were."""
    ids = await running(store, "a", "b") if begun else await accepted(store, "a", "b")
    before = [await row(store, text) for text in ("a", "b")]
    with pytest.raises(ValueError, match="cannot go from"):
        await store.settle("turn" if begun else "", ids, end, [NOTE])
    assert [await row(store, text) for text in ("a", "b")] == before
    assert await waiting_replies(store) == []


@pytest.mark.parametrize("state", [MessageState.ACCEPTED, MessageState.RUNNING])
async def test_settling_is_ending(store: MessageStore, state: MessageState) -> None:
    """A turn settles in an end or not at all: everything else is the caller's mistake and changes nothing."""
    ids = await running(store, "a")
    with pytest.raises(ValueError, match=f"{state} is no end: a turn settles as done, stopped, dropped, failed"):
        await store.settle("turn", ids, state, [NOTE])
    assert (await row(store, "a")).turn == "turn"
    assert await waiting_replies(store) == []


async def test_a_stop_reaches_up_to_its_own_place(store: MessageStore) -> None:
    """What came before the cut is stopped, running or not; what came after goes on. (lesson 22)"""
    (a,) = await running(store, "a")
    b, c = await accepted(store, "b", "c")
    assert await stopped(store, b) == (a, b)
    assert [message.text for message in await store.resume()] == ["c"]
    assert await store.begin("next", [a, b, c]) != ()


async def test_a_stop_never_leaves_its_session(store: MessageStore) -> None:
    """Other conversations go on, even when their messages are named. (lesson 22, P11)"""
    (there,) = await accepted(store, "there", session=THERE)
    (here,) = await accepted(store, "here")
    assert await stopped(store, here, only=[there, here]) == (here,)
    assert await stopped(store, here) == ()
    assert [message.text for message in await store.resume()] == ["there"]


async def test_a_stop_may_be_one_persons(store: MessageStore) -> None:
    """With a sender only that person's messages are stopped. (lesson 23)"""
    await accepted(store, "ann 1", sender="ann")
    await accepted(store, "bob 1", sender="bob")
    (last,) = await accepted(store, "ann 2", sender="ann")
    assert len(await stopped(store, last, sender="ann")) == 2
    assert [message.text for message in await store.resume()] == ["bob 1"]


async def test_a_stop_may_be_about_some_messages(store: MessageStore) -> None:
    """With `only` nothing else is touched; none named is none stopped, and the cut and the sender still count. (L10)"""
    a, b, c = await accepted(store, "a", "b", "c")
    assert await stopped(store, c, only=[]) == ()
    assert await stopped(store, b, only=[c]) == ()
    assert await stopped(store, c, sender="bob", only=[a]) == ()
    assert await stopped(store, c, only=[b]) == (b,)
    assert [message.text for message in await store.resume()] == ["a", "c"]


async def test_stopping_again_finds_nothing(store: MessageStore) -> None:
    """A repeated stop changes nothing; the answer tells only what it stopped itself."""
    ids = await accepted(store, "a")
    assert await stopped(store, ids[-1]) == tuple(ids)
    assert await stopped(store, ids[-1]) == ()


async def test_a_stop_does_not_reach_into_the_future(store: MessageStore) -> None:
    """A stop of an idle session arms nothing: the next message is accepted and begins. (lesson 21)"""
    await store.stop(HERE, 10_000)
    (receipt,) = await delivered(store, sent("next"))
    assert receipt.state is MessageState.ACCEPTED
    assert len(await store.begin("turn", [receipt.id])) == 1


async def test_urgent_replies_come_first_then_the_order(store: MessageStore) -> None:
    """The answer to a command overtakes what waits; all others keep their order. (P2, P7)"""
    ids = await accepted(store, *"abcd")
    for number, urgent in zip(ids, (False, True, False, True), strict=True):
        note = Note(HERE, f"{number}{' urgent' if urgent else ''}", urgent=urgent)
        await store.settle("", [number], MessageState.FAILED, [note])
    a, b, c, d = ids
    assert await waiting_replies(store) == [f"{b} urgent", f"{d} urgent", f"{a}", f"{c}"]


async def test_the_outbox_is_asked_in_pieces(store: MessageStore) -> None:
    """At most as many as asked for; a reply stays until it was sent."""
    ids = await accepted(store, *"abc")
    for number in ids:
        await store.settle("", [number], MessageState.FAILED, [Note(HERE, str(number))])
    first = await store.outbox(2)
    assert [reply.note.text for reply in first] == [str(number) for number in ids[:2]]
    assert await store.outbox(2) == first
    await store.sent(first[0].id)
    assert await waiting_replies(store) == [str(number) for number in ids[1:]]


async def test_sent_may_be_said_again(store: MessageStore) -> None:
    """A repeated or unknown `sent` takes nothing else out of the outbox."""
    ids = await accepted(store, *"ab")
    for number in ids:
        await store.settle("", [number], MessageState.FAILED, [Note(HERE, str(number))])
    first = (await store.outbox(1))[0]
    await store.sent(first.id)
    await store.sent(first.id)
    await store.sent(10_000)
    assert await waiting_replies(store) == [str(ids[1])]


async def test_replies_outlive_a_restart(store: MessageStore) -> None:
    """What was to be said is still to be said after a resume. (P6)"""
    ids = await running(store, "a")
    await store.settle("turn", ids, MessageState.DONE, [NOTE])
    await store.resume()
    assert await waiting_replies(store) == [NOTE.text]
