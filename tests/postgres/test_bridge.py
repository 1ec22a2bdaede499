"""The bridge: what is called over there has ended when the call has, and a cancel leaves every connection sane."""

from __future__ import annotations

import random
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest
import trio
import trio.testing

from store.postgres import bridge as bridge_module
from store.postgres import open_postgres
from store.postgres.bridge import open_bridge
from store.protocols import StoreUnavailable
from store.records import CHAT_LEASE, DeliveryKey, Incoming, MessageState, Note, SessionKey

if TYPE_CHECKING:
    from collections.abc import Generator

    from store.postgres.bridge import Bridge

HERE = SessionKey("default", "main", "fake", "bot", "here")


async def answered(value: object) -> object:
    return value


async def failed() -> None:
    raise LookupError("over there")


class NextRound:
    """To an event loop: go on with me after the others."""

    def __await__(self) -> Generator[None, None, None]:
        yield


async def never_done() -> None:
    while True:
        await NextRound()


async def connected(bridge: Bridge, dsn: str) -> Any:
    return await bridge.run(asyncpg.connect, dsn)


async def test_what_it_returns_and_raises_comes_back() -> None:
    """A call is like a call of trio's own."""
    async with open_bridge() as bridge:
        assert await bridge.run(answered, 5) == 5
        with pytest.raises(LookupError, match="over there"):
            await bridge.run(failed)


async def test_many_calls_at_once_keep_their_answers_apart() -> None:
    """A burst is handed over together and comes back to each."""
    answers: dict[int, object] = {}

    async def one(number: int) -> None:
        answers[number] = await bridge.run(answered, number)

    async with open_bridge() as bridge, trio.open_nursery() as nursery:
        for number in range(500):
            nursery.start_soon(one, number)
    assert answers == {number: number for number in range(500)}


async def test_the_thread_ends_with_the_block() -> None:
    """Nothing is left running, also after an error in the block."""
    before = threading.active_count()
    with pytest.raises(LookupError):
        async with open_bridge() as bridge:
            await bridge.run(failed)
    assert not [thread for thread in threading.enumerate() if thread.name == "store-bridge"]
    assert threading.active_count() <= before + 1


async def test_a_cancelled_statement_has_ended_on_the_server(database: str) -> None:
    """The server is told, and the connection can be used again at once."""
    async with open_bridge() as bridge:
        connection = await connected(bridge, database)
        with trio.move_on_after(0.05) as scope:
            await bridge.run(connection.execute, "SELECT pg_sleep(60)")
        assert scope.cancelled_caught
        with trio.fail_after(10):
            assert await bridge.run(connection.fetchval, "SELECT 1") == 1
        await bridge.run(connection.close)


async def test_a_cancel_that_comes_too_late_loses_nothing() -> None:
    """What had its value in spite of the cancel is returned."""
    with trio.CancelScope() as scope:
        async with open_bridge() as bridge:

            async def stubborn() -> str:
                bridge.tell(scope.cancel)
                return "done"

            assert await bridge.run(stubborn) == "done"
            await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught


async def test_what_is_cancelled_beforehand_never_starts() -> None:
    """A cancelled caller does not begin anything over there."""
    begun: list[bool] = []

    async def work() -> None:
        begun.append(True)

    async with open_bridge() as bridge:
        with trio.CancelScope() as scope:
            scope.cancel()
            await bridge.run(work)
        await bridge.run(answered, None)
    assert begun == []


async def test_whoever_waits_when_it_closes_is_told() -> None:
    """An error of the store, not one of another world."""
    errors: list[str] = []

    async def wait(bridge: Bridge) -> None:
        try:
            await bridge.run(never_done)
        except StoreUnavailable as error:
            errors.append(str(error))

    async with trio.open_nursery() as nursery, open_bridge() as bridge:
        nursery.start_soon(wait, bridge)
        await trio.testing.wait_all_tasks_blocked()
    assert errors == ["the store was closed before this was done: open it and try again"]


async def test_a_step_that_raises_holds_up_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """Those behind it are called in their order, in the same burst and later; what it raised is in the log."""
    called: list[int] = []

    def fails() -> None:
        raise LookupError("over there")

    async with open_bridge() as bridge:
        for number in range(3):
            bridge.post(fails)
            bridge.post(lambda number=number: called.append(number))  # type: ignore[misc]
        with trio.fail_after(10):
            assert await bridge.run(answered, 1) == 1
            bridge.post(fails)
            assert await bridge.run(answered, 2) == 2
    assert called == [0, 1, 2]
    assert caplog.text.count("LookupError: over there") == 4
    caplog.clear()


async def test_a_thread_that_does_not_end_holds_up_no_shutdown(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is given up after a while, and the log says so."""
    monkeypatch.setattr(bridge_module, "GOODBYE_S", 0.05)
    held = threading.Event()

    def wait() -> None:
        held.wait()

    try:
        with trio.fail_after(30):
            async with open_bridge() as bridge:
                bridge.post(wait)
        assert "has not ended" in caplog.text
    finally:
        held.set()
        for thread in threading.enumerate():
            if thread.name == "store-bridge":
                await trio.to_thread.run_sync(thread.join)
    caplog.clear()


async def test_a_closed_bridge_says_so() -> None:
    """Whoever comes too late is told at once, every time; nobody waits for a thread that is gone."""
    async with open_bridge() as bridge:
        assert await bridge.run(answered, 1) == 1
    for _ in range(3):
        with trio.fail_after(10), pytest.raises(StoreUnavailable, match="closed") as caught:
            await bridge.run(answered, 2)
        assert not caught.value.retriable
    bridge.post(lambda: None)


@pytest.mark.parametrize("seed", range(3))
async def test_hundreds_of_random_cancels_leave_every_connection_sane(database: str, seed: int) -> None:
    """Whatever a cancel hits, the next verb on that connection works, and a settled message has its reply. (R12)"""
    dice = random.Random(seed)
    cancelled = 0
    async with open_postgres(database, connections=4) as store:
        lease = await store.acquire(CHAT_LEASE, "me", timedelta(days=1))
        messages = store.messages(lease)

        async def cycle(number: int) -> None:
            nonlocal cancelled
            with trio.move_on_after(dice.random() * 0.02) as scope:
                incoming = Incoming(DeliveryKey("fake", "bot", str(number)), HERE, "ann", str(number))
                receipts = await messages.accept([incoming])
                assert receipts
                await messages.begin(str(number), [receipts[0].id])
                await messages.settle(str(number), [receipts[0].id], MessageState.DONE, [Note(HERE, str(number))])
            cancelled += scope.cancelled_caught

        for _ in range(10):
            async with trio.open_nursery() as nursery:
                for number in range(20):
                    nursery.start_soon(cycle, number)
        for _ in range(8):
            assert await messages.accept([]) == ()
            assert await store.lease(CHAT_LEASE) == lease
        said = {reply.note.text for reply in await messages.outbox(1000)}
        open_ones = {message.text for message in await messages.resume()}
        assert not said & open_ones
    assert cancelled > 20
