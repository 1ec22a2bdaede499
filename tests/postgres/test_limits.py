"""Numbers and names past what the server can hold: a verb answers as the other stores do, or says what is too long."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from store.postgres import open_postgres
from store.protocols import RuleBroken
from store.records import (
    CHAT_LEASE,
    DeliveryKey,
    Incoming,
    MessageState,
    NewToken,
    Note,
    Reading,
    Role,
    Said,
    SessionKey,
    WorkerStatus,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from store.postgres.store import PostgresStore

HERE = SessionKey("default", "main", "fake", "bot", "here")
LONG = "".join(chr(0x4E00 + number * 7 % 20_000) for number in range(8_000))
"""Nothing in it repeats, so that it does not become short when it is compressed."""


@pytest.fixture
async def store(database: str) -> AsyncIterator[PostgresStore]:
    """One with something of everything in it."""
    async with open_postgres(database) as opened:
        messages = opened.messages(await opened.acquire(CHAT_LEASE, "me", timedelta(days=1)))
        receipts = await messages.accept([Incoming(DeliveryKey("fake", "bot", "1"), HERE, "ann", "hello")])
        assert receipts is not None
        said = [Said(Role.USER, "hello")]
        assert await messages.settle("", [receipts[0].id], MessageState.DROPPED, [Note(HERE, "hi")], said)
        await opened.beat("w", WorkerStatus.IDLE)
        await opened.record(Reading("w"))
        yield opened


async def everything(store: PostgresStore, limit: int) -> list[int]:
    """How many rows each verb with a limit answers."""
    messages = store.messages(await store.acquire(CHAT_LEASE, "me", timedelta(days=1)))
    answers = [
        await messages.outbox(limit),
        await store.sessions("default", limit=limit),
        await store.transcript(HERE, limit=limit),
        await store.newest(HERE, limit),
        await store.beats("w", limit),
        await store.readings(limit),
    ]
    return [len(answer) for answer in answers]


@pytest.mark.parametrize(("limit", "count"), [(-1, 0), (-(2**70), 0), (0, 0), (1, 1), (2**63, 1), (2**70, 1)])
async def test_any_number_is_a_limit(store: PostgresStore, limit: int, count: int) -> None:
    """Fewer than none are none, and more than the server can count are all."""
    assert await everything(store, limit) == [count] * 6


@pytest.mark.parametrize("number", [2**63, 2**70, -(2**70)])
async def test_any_number_may_be_asked_for(store: PostgresStore, number: int) -> None:
    """A row that no server can hold is not there; what no server can hold is refused in a sentence."""
    lease = await store.acquire(CHAT_LEASE, "me", timedelta(days=1))
    assert lease is not None
    messages = store.messages(lease)
    assert await messages.begin("turn", [number]) == ()
    assert not await messages.sent(number)
    assert not await messages.progress(number, 1, "x")
    assert len(await messages.stop(HERE, number)) == 0
    assert len(await store.transcript(HERE, after=number)) == (number < 0)
    strange = replace(lease, token=number)
    assert await store.renew(strange, timedelta(days=1)) is None
    assert not await store.release(strange)
    assert await store.messages(strange).waiting() == ()
    with pytest.raises(RuleBroken):
        await store.record(Reading("w", active_runs=number))


@pytest.mark.parametrize(
    "write",
    [
        lambda store: store.messages(None).accept([Incoming(DeliveryKey("fake", "bot", LONG), HERE, "ann", "hello")]),
        lambda store: store.remember(SessionKey("default", "main", "fake", "bot", LONG), []),
        lambda store: store.create_tenant(LONG),
        lambda store: store.add_token(NewToken(LONG, "default", "name", "0" * 64)),
        lambda store: store.beat(LONG, WorkerStatus.IDLE),
        lambda store: store.acquire(LONG, "me", timedelta(days=1)),
    ],
    ids=["external id", "session", "tenant", "token", "worker", "lease"],
)
async def test_a_name_that_is_too_long_is_told(
    store: PostgresStore, write: Callable[[PostgresStore], Awaitable[object]]
) -> None:
    """It is the caller's to shorten it; neither the server nor the schema has a fault."""
    with pytest.raises(RuleBroken, match=r"too long.*2,700 bytes"):
        await write(store)
