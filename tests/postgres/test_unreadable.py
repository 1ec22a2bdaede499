"""Rows that another program, or an older one, has written and this one cannot read: they are in nobody's way."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import trio

from store.postgres import open_postgres, rows
from store.records import CHAT_LEASE, DeliveryKey, Incoming, MessageState, Note, SessionKey, SessionPolicy, Standing
from tests.postgres.databases import ask

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from store.postgres.store import PostgresStore
    from store.protocols import MessageStore

HERE = SessionKey("default", "main", "fake", "bot", "here")
STRANGE = "default:main:t:a:c::-1"
MESSAGE = """
INSERT INTO inbox (id, tenant_id, session, channel, account, external_id, sender, body, is_group, is_admin, is_control,
    accepted_at, state, turn)
VALUES (900, 'default', $1, 'fake', 'bot', 'strange', 'ann', 'x', false, false, false, now(), 'accepted', ''),
    (901, 'default', $1, 'fake', 'bot', 'running', 'ann', 'x', false, false, false, now(), 'running', 'old')
"""
REPLIES = """
INSERT INTO outbox (id, tenant_id, session, address, body, urgent, answers)
VALUES (900, 'default', $1, 't:a:c:', 'hi', true, '{1}'), (901, 'default', 'odd', 'odd', 'hi', true, '{1}')
"""


def delivered(name: str) -> Incoming:
    return Incoming(DeliveryKey("fake", "bot", name), HERE, "ann", name)


@pytest.fixture
async def store(database: str) -> AsyncIterator[PostgresStore]:
    async with open_postgres(database) as opened:
        yield opened


@pytest.fixture
async def messages(store: PostgresStore) -> MessageStore:
    return store.messages(await store.acquire(CHAT_LEASE, "me", timedelta(days=1)))


async def test_a_message_that_cannot_be_read_stops_no_other(
    database: str, messages: MessageStore, caplog: pytest.LogCaptureFixture
) -> None:
    """The others are resumed, wait and begin; the log names the row."""
    await ask(database, MESSAGE, STRANGE)
    await messages.accept([delivered("good")])
    for verb in (messages.waiting, messages.resume):
        caplog.clear()
        assert [message.text for message in await verb()] == ["good"]
        assert "id 900" in caplog.text
        assert STRANGE in caplog.text
    good = (await messages.waiting())[0].id
    assert [message.id for message in await messages.begin("turn", [900, good])] == [good]
    caplog.clear()


async def test_a_second_delivery_of_what_cannot_be_read_is_answered(
    database: str, messages: MessageStore, caplog: pytest.LogCaptureFixture
) -> None:
    """The channel is told that we have it and what came with it is taken: it can go on."""
    await ask(database, MESSAGE, STRANGE)
    receipts = await messages.accept([delivered("strange"), delivered("good")])
    assert receipts is not None
    assert [(one.id == 900, one.message is None, one.fresh) for one in receipts] == [
        (True, True, False),
        (False, False, True),
    ]
    assert "id 900" in caplog.text
    caplog.clear()


async def test_a_reply_that_cannot_be_read_takes_nobodys_place(
    database: str, messages: MessageStore, caplog: pytest.LogCaptureFixture
) -> None:
    """Also if no more are asked for than there are such rows ahead."""
    await ask(database, REPLIES, STRANGE)
    receipts = await messages.accept([delivered("one"), delivered("two")])
    assert receipts is not None
    notes = [Note(HERE, "first"), Note(HERE, "second")]
    assert await messages.settle("", [one.id for one in receipts], MessageState.DROPPED, notes)
    assert [reply.note.text for reply in await messages.outbox(1)] == ["first"]
    assert [reply.note.text for reply in await messages.outbox(5)] == ["first", "second"]
    assert "id 900" in caplog.text
    assert "id 901" in caplog.text
    caplog.clear()


async def test_a_policy_that_cannot_be_read_is_as_good_as_none(
    database: str, store: PostgresStore, messages: MessageStore, caplog: pytest.LogCaptureFixture
) -> None:
    """The conversation follows the settings until somebody sets another one."""
    await ask(
        database,
        "INSERT INTO sessions (tenant_id, session, mode, updated_at) VALUES ('default', $1, 'odd', now())",
        str(HERE),
    )
    assert await messages.standings([HERE]) == {HERE: Standing()}
    receipts = await messages.accept([delivered("good")])
    assert receipts is not None
    assert receipts[0].standing == Standing()
    session = await store.session(HERE)
    assert session is not None
    assert session.standing == Standing()
    assert await store.sessions("default") == (session,)
    assert str(HERE) in caplog.text
    assert (await store.set_policy(HERE, SessionPolicy(cap=5))).standing.policy == SessionPolicy(cap=5)
    caplog.clear()


async def test_a_session_that_cannot_be_read_hides_no_other(
    database: str, store: PostgresStore, caplog: pytest.LogCaptureFixture
) -> None:
    """The tenant's other sessions are listed."""
    await store.remember(HERE, [])
    await ask(database, "INSERT INTO sessions (tenant_id, session, updated_at) VALUES ('default', $1, now())", STRANGE)
    assert [session.key for session in await store.sessions("default")] == [HERE]
    assert STRANGE in caplog.text
    caplog.clear()


async def test_many_rows_leave_others_their_turn() -> None:
    """However many rows are made into records, no more than a few are made in one go."""
    turn = 0
    made: list[int] = []

    async def count_turns() -> None:
        nonlocal turn
        while True:
            await trio.lowlevel.checkpoint()
            turn += 1

    def note(row: dict[str, int]) -> int:
        made.append(turn)
        return row["id"]

    def found() -> Iterator[dict[str, int]]:
        yield from ({"id": number} for number in range(1, 2001))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count_turns)
        assert await rows.records(found(), note) == tuple(range(1, 2001))
        nursery.cancel_scope.cancel()
    # trio shuffles whoever is ready, so the other one may be last in one round, and has yet to begin in the first.
    assert max(made.count(one) for one in set(made)) <= 3 * rows.AT_ONCE


async def test_a_cancel_takes_nothing_away_that_was_answered() -> None:
    """Whatever the server has done is told to the caller, also if it takes a while to read."""
    with trio.CancelScope() as scope:
        scope.cancel()
        kept = await rows.records(({"id": number} for number in range(1000)), lambda row: row["id"])
    assert len(kept) == 1000
