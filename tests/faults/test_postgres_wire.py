"""The wire to the server goes dead without a word: nothing waits for ever, and everything comes back with the wire."""

from __future__ import annotations

from datetime import timedelta

import pytest
import trio

from store.postgres import open_postgres
from store.postgres.listen import listening
from store.protocols import INBOX, POLL, StoreUnavailable
from store.records import DeliveryKey, Incoming, SessionKey
from tests.postgres.proxy import proxied

HERE = SessionKey("default", "main", "fake", "bot", "here")
SHORT = timedelta(seconds=0.3)


async def test_a_dead_wire_costs_a_retriable_error(database: str) -> None:
    """A verb gives up, and when bytes flow again the next one works on another connection. (R12)"""
    async with proxied(database) as proxy, open_postgres(proxy.dsn, statement_timeout=SHORT, connections=2) as store:
        assert await store.tenant("default")
        proxy.go_dead()
        with trio.fail_after(30), pytest.raises(StoreUnavailable) as caught:
            await store.tenant("default")
        assert caught.value.retriable
        assert "did not answer in time" in str(caught.value)
        proxy.come_back()
        with trio.fail_after(10):
            assert await store.tenant("default")


async def test_a_verb_on_a_dead_wire_can_be_cancelled(database: str) -> None:
    """Whoever does not want to wait need not, beyond the time in which a statement is given up."""
    async with proxied(database) as proxy, open_postgres(proxy.dsn, statement_timeout=SHORT, connections=2) as store:
        assert await store.tenant("default")
        proxy.go_dead()
        with trio.fail_after(30):
            with trio.move_on_after(0.05) as scope:
                await store.tenant("default")
            assert scope.cancelled_caught
        proxy.come_back()
        with trio.fail_after(10):
            assert await store.tenant("default")


async def test_a_listener_notices_a_dead_wire(database: str) -> None:
    """It asks now and then, listens anew, says `POLL`, and hears words again. (R12)"""
    async with (
        proxied(database) as proxy,
        open_postgres(proxy.dsn, statement_timeout=SHORT) as near,
        open_postgres(database) as far,
        listening(near.db, SHORT) as words,
    ):
        with trio.fail_after(30):
            assert await anext(words) == POLL
            proxy.go_dead()
            assert await anext(words) == POLL
            proxy.come_back()
            assert await anext(words) == POLL
            await far.messages(None).accept([Incoming(DeliveryKey("fake", "bot", "1"), HERE, "ann", "hello")])
            # A failed attempt may have said POLL once more before the wire was back.
            while await anext(words) != INBOX:
                pass
