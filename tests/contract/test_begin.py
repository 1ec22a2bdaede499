"""Beginning and putting back: a message runs in one turn at a time, and only real attempts count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from store.records import MessageState
from tests.contract.rows import HERE, NOTE, THERE, accepted, row, running, state, waiting_replies

if TYPE_CHECKING:
    from store.protocols import MessageStore


async def test_a_turn_begins_with_its_messages_in_order(store: MessageStore) -> None:
    """All of them run now, in this turn, and this is their first attempt."""
    ids = await accepted(store, "a", "b", "c")
    begun = await store.begin("turn", ids)
    assert [message.text for message in begun] == ["a", "b", "c"]
    assert {(message.state, message.turn, message.attempts) for message in begun} == {(MessageState.RUNNING, "turn", 1)}


async def test_beginning_again_changes_nothing(store: MessageStore) -> None:
    """After a failure nobody knows whether the turn began: asking again gives the same answer and counts once."""
    ids = await accepted(store, "a", "b")
    assert await store.begin("turn", ids) == await store.begin("turn", ids)
    assert (await row(store, "a")).attempts == 1


async def test_a_turn_may_grow(store: MessageStore) -> None:
    """What the agent takes while it works begins in the same turn and ends with it."""
    (a,) = await running(store, "a")
    (b,) = await accepted(store, "b")
    assert [message.text for message in await store.begin("turn", [b])] == ["b"]
    assert await store.settle("turn", [a, b], MessageState.DONE, [NOTE])
    assert await state(store, "b") is MessageState.DONE


async def test_a_message_of_another_turn_does_not_begin(store: MessageStore) -> None:
    """Two turns never work on the same message; the first one keeps it. (P2)"""
    a, b = await accepted(store, "a", "b")
    await store.begin("first", [a])
    assert [message.text for message in await store.begin("second", [a, b])] == ["b"]
    assert (await row(store, "a")).turn == "first"
    assert not await store.settle("second", [a], MessageState.DONE, [NOTE])


async def test_turns_that_begin_at_once_share_nothing(store: MessageStore) -> None:
    """Whoever comes first has the message, the others do not; nobody has half of it."""
    ids = await accepted(store, "a", "b", "c")
    got: list[list[str]] = []

    async def begin(turn: str) -> None:
        got.append([message.text for message in await store.begin(turn, ids)])

    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(begin, f"turn {number}")
    assert sorted(got) == [[], [], [], [], ["a", "b", "c"]]


async def test_what_was_stopped_does_not_begin(store: MessageStore) -> None:
    """A stop that came first wins; the rest of the turn goes on without it. (P7)"""
    a, b, c = await accepted(store, "a", "b", "c")
    await store.stop(HERE, c, only=[b])
    assert [message.text for message in await store.begin("turn", [a, b, c])] == ["a", "c"]
    assert await state(store, "b") is MessageState.STOPPED


async def test_what_has_ended_or_never_was_does_not_begin(store: MessageStore) -> None:
    """Ended messages and unknown ids are left out without a word."""
    ids = await running(store, "a")
    await store.settle("turn", ids, MessageState.DONE, [])
    assert await store.begin("turn", [*ids, 10_000]) == ()
    assert await store.begin("other", []) == ()


async def test_putting_back_costs_no_attempt(store: MessageStore) -> None:
    """After a shutdown the message waits as if it had not begun. (Q9)"""
    ids = await running(store, "a", "b")
    await store.put_back("turn", ids)
    for text in ("a", "b"):
        waits = await row(store, text)
        assert (waits.state, waits.turn, waits.attempts) == (MessageState.ACCEPTED, "", 0)
    assert [message.attempts for message in await store.begin("next", ids)] == [1, 1]


async def test_putting_back_again_changes_nothing(store: MessageStore) -> None:
    """A repeated put_back neither lowers the count twice nor takes the message from its next turn."""
    ids = await running(store, "a")
    await store.put_back("turn", ids)
    await store.put_back("turn", ids)
    assert (await row(store, "a")).attempts == 0
    await store.begin("next", ids)
    await store.put_back("turn", ids)
    assert ((await row(store, "a")).turn, (await row(store, "a")).attempts) == ("next", 1)


async def test_only_what_runs_in_the_turn_is_put_back(store: MessageStore) -> None:
    """Ended, stopped, waiting and foreign messages stay what they are."""
    done, stopped, foreign, waits = await accepted(store, "done", "stopped", "foreign", "waits")
    await store.begin("turn", [done, stopped])
    await store.begin("other", [foreign])
    await store.settle("turn", [done], MessageState.DONE, [NOTE])
    await store.stop(HERE, stopped, only=[stopped])
    await store.put_back("turn", [done, stopped, foreign, waits])
    assert await state(store, "done") is MessageState.DONE
    assert await state(store, "stopped") is MessageState.STOPPED
    assert (await row(store, "foreign")).turn == "other"
    assert (await row(store, "waits")).attempts == 0
    assert await waiting_replies(store) == [NOTE.text]


async def test_everything_open_is_taken_up_again_in_order(store: MessageStore) -> None:
    """After a start all open messages of all sessions come back, oldest first, and nothing that has ended. (P1, P2)"""
    await accepted(store, "a", "b")
    await running(store, "c", session=THERE)
    ended = await running(store, "d", turn="other")
    await accepted(store, "e", session=THERE)
    await store.settle("other", ended, MessageState.DONE, [])
    assert [message.text for message in await store.resume()] == ["a", "b", "c", "e"]


async def test_a_run_that_a_crash_ended_counts_as_an_attempt(store: MessageStore) -> None:
    """What was running waits again with its attempt counted; what waited has none. (P1)"""
    await running(store, "ran")
    await accepted(store, "waited")
    ran, waited = await store.resume()
    assert (ran.state, ran.turn, ran.attempts) == (MessageState.ACCEPTED, "", 1)
    assert (waited.state, waited.turn, waited.attempts) == (MessageState.ACCEPTED, "", 0)
    assert [message.attempts for message in await store.begin("next", [ran.id])] == [2]


async def test_resuming_again_counts_nothing_twice(store: MessageStore) -> None:
    """A start that fails and is repeated finds what the first one found."""
    await running(store, "a")
    assert await store.resume() == await store.resume()


async def test_a_turn_of_an_earlier_process_has_no_say(store: MessageStore) -> None:
    """After a resume the old turn can neither settle nor put back. (P2)"""
    ids = await running(store, "a")
    await store.resume()
    assert not await store.settle("turn", ids, MessageState.DONE, [NOTE])
    await store.put_back("turn", ids)
    assert (await row(store, "a")).attempts == 1
    assert await waiting_replies(store) == []
