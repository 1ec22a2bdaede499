"""The outbox: ordered per address, continued where it was left, and emptied only by `sent`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from store.protocols import RuleBroken
from store.records import MessageState, Note, SessionKey
from tests.contract.rows import HERE, NOTE, THERE, accepted, delivered, running, sent, state, waiting_replies

if TYPE_CHECKING:
    from store.protocols import MessageStore
    from store.records import Reply

THREAD = replace(HERE, thread="7")
LATER = replace(HERE, epoch=1)


async def say(store: MessageStore, *notes: Note) -> list[Reply]:
    """Bring these notes into the outbox, each about a message of its own, oldest first."""
    for note in notes:
        (receipt,) = await delivered(store, sent(f"for {note}"))
        assert await store.settle("", [receipt.id], MessageState.FAILED, [note])
    return sorted(await store.outbox(1000), key=lambda reply: reply.id)


async def test_waiting_is_what_was_accepted_and_does_not_run(store: MessageStore) -> None:
    """In order, over all sessions, as often as asked; what runs or has ended is not among it."""
    await accepted(store, "a")
    await running(store, "b")
    await accepted(store, "c", session=THERE)
    await store.settle("", await accepted(store, "d"), MessageState.DROPPED, [])
    first = await store.waiting()
    assert [message.text for message in first] == ["a", "c"]
    assert {(message.state, message.attempts, message.turn) for message in first} == {(MessageState.ACCEPTED, 0, "")}
    assert await store.waiting() == first
    assert await state(store, "b") is MessageState.RUNNING


async def test_what_was_put_back_waits_again_in_its_place(store: MessageStore) -> None:
    """The order is that of the acceptance, whatever ran meanwhile. (P2)"""
    ids = await running(store, "a")
    await accepted(store, "b")
    await store.put_back("turn", ids)
    assert [message.text for message in await store.waiting()] == ["a", "b"]


async def test_a_reply_starts_with_nothing_sent(store: MessageStore) -> None:
    """Its note, the messages it is about, no part sent, no live message."""
    (reply,) = await say(store, NOTE)
    assert (reply.note, reply.parts, reply.live) == (NOTE, 0, "")
    assert len(reply.answers) == 1


async def test_replies_to_busy_addresses_are_passed_over(store: MessageStore) -> None:
    """Who waits for one chat can still serve the others; a thread is an address of its own, an epoch is not. (P2)"""
    notes = [Note(HERE, "here"), Note(THREAD, "thread"), Note(THERE, "there"), Note(LATER, "later")]
    await say(store, *notes)
    rest = await store.outbox(1000, skip=[HERE.address])
    assert [reply.note.text for reply in rest] == ["thread", "there"]
    assert [reply.note.text for reply in await store.outbox(1, skip={HERE.address, THREAD.address})] == ["there"]
    assert await store.outbox(1000, skip=[note.session.address for note in notes]) == ()


@pytest.mark.parametrize(
    "other",
    [replace(HERE, channel="fake2"), replace(HERE, account=""), replace(HERE, chat="her"), replace(HERE, thread="e")],
    ids=["channel", "account", "chat", "thread"],
)
async def test_an_address_counts_part_by_part(store: MessageStore, other: SessionKey) -> None:
    """Skipping one address never holds up another that reads alike."""
    await say(store, Note(HERE, "here"), Note(other, "other"))
    assert [reply.note.text for reply in await store.outbox(9, skip=[HERE.address])] == ["other"]
    assert [reply.note.text for reply in await store.outbox(9, skip=[other.address])] == ["here"]


async def test_urgent_replies_are_passed_over_too(store: MessageStore) -> None:
    """An urgent reply overtakes in its chat and over all chats, but not a busy address."""
    await say(store, Note(HERE, "1"), Note(THERE, "2"), Note(HERE, "3", urgent=True), Note(THERE, "4", urgent=True))
    assert [reply.note.text for reply in await store.outbox(9)] == ["3", "4", "1", "2"]
    assert [reply.note.text for reply in await store.outbox(9, skip=[HERE.address])] == ["4", "2"]


async def test_an_outbox_asked_for_nothing_gives_nothing(store: MessageStore) -> None:
    """A limit of 0 is 0."""
    await say(store, NOTE)
    assert await store.outbox(0) == ()


async def test_a_restart_goes_on_where_the_channel_was(store: MessageStore) -> None:
    """Parts taken and the live message's id are read back with the reply. (design 6)"""
    first, other = await say(store, Note(HERE, "long"), Note(THERE, "other"))
    assert await store.progress(first.id, 2, "live 17")
    await store.resume()
    assert list(await store.outbox(9)) == [replace(first, parts=2, live="live 17"), other]


async def test_parts_never_become_fewer(store: MessageStore) -> None:
    """A late word about an early part does not have the rest said twice; the live id is the newest said."""
    (reply,) = await say(store, NOTE)
    assert await store.progress(reply.id, 3, "x")
    assert await store.progress(reply.id, 1, "")
    (now,) = await store.outbox(9)
    assert (now.parts, now.live) == (3, "")


async def test_progress_of_what_is_gone_is_refused(store: MessageStore) -> None:
    """What was sent or never was stays gone: False, and nothing comes back."""
    (reply,) = await say(store, NOTE)
    assert await store.sent(reply.id)
    assert not await store.progress(reply.id, 1, "x")
    assert not await store.progress(reply.id + 1000, 1, "x")
    assert await store.outbox(9) == ()


async def test_progress_with_half_a_character_changes_nothing(store: MessageStore) -> None:
    """A live id that cannot be written is refused, and the parts with it."""
    (reply,) = await say(store, NOTE)
    with pytest.raises(RuleBroken, match="half a character"):
        await store.progress(reply.id, 1, "\ud800")
    assert list(await store.outbox(9)) == [reply]


async def test_sent_tells_whether_it_was_there(store: MessageStore) -> None:
    """True once, then False: two who both sent it learn of each other."""
    (reply,) = await say(store, NOTE)
    assert await store.sent(reply.id)
    assert not await store.sent(reply.id)
    assert not await store.sent(reply.id + 1000)
    assert await waiting_replies(store) == []


async def test_a_message_is_no_reply(store: MessageStore) -> None:
    """Ids of messages and of replies are not mixed up, even where they are equal numbers."""
    ids = await accepted(store, "a")
    assert not await store.sent(ids[0])
    assert [message.id for message in await store.waiting()] == ids


async def test_replies_of_one_settle_keep_their_order(store: MessageStore) -> None:
    """Notes of one turn are said in the order in which they were written. (P2)"""
    notes = [Note(HERE, str(number)) for number in range(30)]
    await store.settle("turn", await running(store, "a"), MessageState.DONE, notes)
    assert [reply.note for reply in await store.outbox(1000)] == notes


async def test_answers_are_named_as_the_turn_named_them(store: MessageStore) -> None:
    """What a reply is about keeps the turn's order, each message once."""
    a, b, c = await running(store, "a", "b", "c")
    assert await store.settle("turn", [c, a, c, b], MessageState.DONE, [NOTE])
    assert [reply.answers for reply in await store.outbox(9)] == [(c, a, b)]


async def test_begin_answers_in_the_order_asked(store: MessageStore) -> None:
    """A turn gets its messages as it named them, each once."""
    a, b, c = await accepted(store, "a", "b", "c")
    assert [message.id for message in await store.begin("turn", [c, a, c, b])] == [c, a, b]
