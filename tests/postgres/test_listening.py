"""Listening: what others hand in is heard, in short, and an error of the listener stays its own."""

from __future__ import annotations

from datetime import timedelta

import pytest
import trio

from store.postgres import open_postgres
from store.protocols import INBOX, POLL
from store.records import CHAT_LEASE, DeliveryKey, Incoming, SessionKey
from tests.postgres.databases import ask

HERE = SessionKey("default", "main", "fake", "bot", "here")


def delivery(name: str) -> Incoming:
    return Incoming(DeliveryKey("fake", "bot", name), HERE, "ann", name)


async def test_what_others_hand_in_is_heard(database: str) -> None:
    """`POLL` first, then one word for what came from somebody without the lease, however much it was."""
    async with open_postgres(database) as holder, open_postgres(database) as other, holder.listen() as words:
        with trio.fail_after(20):
            assert await anext(words) == POLL
            for name in "abc":
                await other.messages(None).accept([delivery(name)])
            await ask(database, "NOTIFY goclaw, 'end'")
            heard = [await anext(words)]
            while heard[-1] != "end":
                heard.append(await anext(words))
        assert set(heard) == {INBOX, "end"}


async def test_what_the_holder_accepts_itself_is_no_news(database: str) -> None:
    """Nor is a second delivery."""
    async with open_postgres(database) as store, store.listen() as words:
        with trio.fail_after(20):
            assert await anext(words) == POLL
            lease = await store.acquire(CHAT_LEASE, "me", timedelta(days=1))
            await store.messages(lease).accept([delivery("a")])
            await store.messages(None).accept([delivery("a")])
            await ask(database, "NOTIFY goclaw, 'end'")
            assert await anext(words) == "end"


async def test_equal_words_wait_as_one(database: str) -> None:
    """Whoever is slow to listen finds each word once."""
    async with open_postgres(database) as store, store.listen() as words:
        with trio.fail_after(20):
            await ask(database, "SELECT pg_notify('goclaw', 'word ' || n % 2) FROM generate_series(1, 100) AS n")
            await ask(database, "NOTIFY goclaw, 'end'")
            heard = []
            while "end" not in heard:
                heard.append(await anext(words))
        assert set(heard) == {POLL, "word 0", "word 1", "end"}


async def test_an_error_in_the_block_comes_out_as_it_is(database: str) -> None:
    """Not in a group, though a task runs behind it."""
    with pytest.raises(LookupError, match="mine"):
        async with open_postgres(database) as store, store.listen():
            raise LookupError("mine")
