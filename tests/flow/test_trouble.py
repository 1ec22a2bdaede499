"""Broken edges: a store or a channel that fails for a while costs time, never a message."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from gateway.protocols import ChannelError
from store.protocols import RuleBroken
from tests.flow.edges import FakeChannel, TroubledStore
from tests.flow.world import DEBOUNCED_S, incoming, new_store, open_world

if TYPE_CHECKING:
    from collections.abc import Callable

VERBS = ["accept", "begin", "settle", "stop", "outbox", "sent"]


def at_first(verb: str, when: str, times: int = 1) -> Callable[[str], str]:
    """Trouble the first calls of one verb."""
    calls = Counter[str]()

    def trouble(called: str) -> str:
        calls[called] += 1
        return when if called == verb and calls[verb] <= times else ""

    return trouble


def until(time_s: float, *verbs: str) -> Callable[[str], str]:
    """Refuse these verbs until so long after now."""
    end = trio.current_time() + time_s
    return lambda called: "before" if called in verbs and trio.current_time() < end else ""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["one"], ["re: one"]),
        (["fail"], ['"fail" did not work: it went wrong']),
        (["long", "/stop"], ["Stopped 1 run."]),
        (["/help"], ["Commands:"]),
    ],
    ids=["answer", "failure", "stop", "help"],
)
async def test_a_verb_that_fails_once_changes_nothing(
    autojump_clock: MockClock, verb: str, when: str, texts: list[str], expected: list[str]
) -> None:
    """Failed before or after it took effect: the same is said, once, and nothing is left open. (P1, P6)"""
    store = TroubledStore(new_store())
    async with open_world(store) as world:
        for text in texts:
            store.trouble = at_first(verb, when, times=2)
            await world.start(text)
        await trio.sleep(30)
        assert [text.splitlines()[0] for text in world.replies()] == expected
        assert await store.inner.resume() == ()
        assert await store.inner.outbox(10) == ()


@pytest.mark.parametrize("seed", range(25))
async def test_a_store_that_stumbles_all_the_time_loses_and_doubles_nothing(
    autojump_clock: MockClock, seed: int
) -> None:
    """Half of all calls fail, before or after: every message of every chat is answered once and in order. (P1, P2)"""
    dice = random.Random(seed)
    store = TroubledStore(new_store(), lambda verb: dice.choice(["before", "after", "", ""]))
    async with open_world(store, lane_main=4, queue_cap=100) as world:
        texts = [f"text {number}" for number in range(6)]
        async with trio.open_nursery() as nursery:

            async def talk(chat: str) -> None:
                for text in texts:
                    await world.say(text, chat=chat)
                    await trio.sleep(dice.choice([0.1, 2]))

            for number in range(3):
                nursery.start_soon(talk, f"chat {number}")
        await world.gateway.drained()
        for number in range(3):
            said = " | ".join(world.replies(f"chat {number}")).replace("re: ", "")
            assert said == " | ".join(texts)
        assert await store.inner.resume() == ()
    assert sum(store.failed.values()) > 20


@pytest.mark.parametrize("seed", range(10))
async def test_a_stop_counts_truly_although_the_store_stumbles(autojump_clock: MockClock, seed: int) -> None:
    """The stopped messages never run, and the count is that of the first, effective try. (P7, Q8)"""
    dice = random.Random(seed)
    store = TroubledStore(new_store(), lambda verb: dice.choice(["before", "after", ""]))
    async with open_world(store) as world:
        await world.start("long")
        await trio.sleep(30)
        await world.say("two")
        await world.say("/stopall")
        await world.gateway.drained()
        assert world.replies() == ["Stopped 1 run and 1 waiting message."]
        assert world.agent.finished == []
        assert await store.inner.resume() == ()


async def test_a_stop_reaches_what_was_accepted_but_is_not_queued_yet(autojump_clock: MockClock) -> None:
    """The store took the message and stumbled; the stop came meanwhile: the message does not start later. (P7)"""
    store = TroubledStore(new_store(), at_first("accept", "after"))
    async with open_world(store) as world, trio.open_nursery() as nursery:
        nursery.start_soon(world.say, "one")
        await wait_all_tasks_blocked()
        assert await world.ask("/stop") == "Stopped 1 waiting message."
        await trio.sleep(60)
        assert world.agent.started == []


@pytest.mark.parametrize("batch", [True, False])
async def test_a_second_delivery_does_not_undo_a_stop_that_is_not_written_yet(
    autojump_clock: MockClock, batch: bool
) -> None:
    """The store is slow to write the stop; what was stopped and is delivered again stays stopped. (lesson 15, P7)"""
    store = TroubledStore(new_store())
    once, stop = incoming("one", number="1"), incoming("/stop")
    async with open_world(store) as world:
        store.held["stop"] = trio.Event()
        for part in ([once, stop],) if batch else ([once], [stop]):
            await world.gateway.receive(part)
        await trio.sleep(0.1)
        await world.gateway.receive([once])
        await trio.sleep(60)
        store.held.pop("stop").set()
        await world.gateway.drained()
        assert world.agent.started == []
        assert world.replies() == ["Stopped 1 waiting message."]


async def test_a_second_delivery_does_not_undo_a_drop_that_is_not_written_yet(autojump_clock: MockClock) -> None:
    """A message is dropped or answered, never both. (lessons 15, 16)"""
    store = TroubledStore(new_store())
    once = incoming("one", number="1")
    async with open_world(store, queue_cap=1) as world:
        await world.start("long")
        await world.gateway.receive([once])
        await trio.sleep(DEBOUNCED_S)
        store.held["settle"] = trio.Event()
        await world.start("two")
        await world.gateway.receive([once])
        await trio.sleep(5)
        store.held.pop("settle").set()
        await world.gateway.drained()
        assert sum("one" in text for text in world.replies()) == 1


async def test_a_message_taken_while_the_store_is_down_ends_with_its_run(autojump_clock: MockClock) -> None:
    """Steered into a run that then times out before the store could begin it: it ends too, nothing stays open. (P6)"""
    store = TroubledStore(new_store())
    async with open_world(store, queue_mode="steer", session_run_timeout=10) as world:
        await world.start("listen")
        store.trouble = until(60, "begin")
        await world.start("to this")
        await trio.sleep(120)
        assert len(world.replies()) == 1
        assert await store.inner.resume() == ()


@pytest.mark.parametrize("verb", ["settle", "begin", "outbox", "put_back"])
async def test_an_end_does_not_wait_for_ever_for_a_store_that_is_down(autojump_clock: MockClock, verb: str) -> None:
    """However long the store stays away, the gateway ends within the grace and the minute for what will not let go."""
    store, start = TroubledStore(new_store()), trio.current_time()
    async with open_world(store, shutdown_grace=1) as world:
        store.trouble = until(10_000, verb)
        await world.start("one", "long")
    assert trio.current_time() - start < 100


async def test_a_channel_that_fails_for_a_while_is_tried_again(autojump_clock: MockClock) -> None:
    """The reply is sent until it is taken, once, and the next ones keep their order. (P2, P6)"""
    channel = FakeChannel()
    channel.refuse["dm"] = [ChannelError("busy") for _ in range(5)]
    async with open_world(channel=channel) as world:
        await world.start("one")
        await world.start("two")
        await world.gateway.drained()
        assert world.replies() == ["re: one", "re: two"]
        assert channel.attempts["dm"] == 7


async def test_a_command_that_the_store_refuses_is_nobody_elses_trouble(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Refused for good it stays open for the next start, and is in the log; others are answered."""
    store = TroubledStore(new_store())

    def refuse(verb: str) -> str:
        if verb == "settle":
            store.trouble = lambda verb: ""
            raise RuleBroken("this cannot be kept")
        return ""

    async with open_world(store) as world:
        store.trouble = refuse
        await world.start("/help")
        await world.start("hello")
        await world.gateway.drained()
        assert world.replies() == ["re: hello"]
    assert "a command could not be carried out: this cannot be kept" in caplog.text


async def test_a_reply_that_can_never_be_delivered_is_given_up(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Tried once, told in the log, and the next reply goes out."""
    channel = FakeChannel()
    channel.refuse["dm"] = [ChannelError("the person has blocked us", retriable=False)]
    async with open_world(channel=channel) as world:
        await world.start("one")
        await world.start("two")
        assert world.replies() == ["re: two"]
        assert channel.attempts["dm"] == 2
    assert "the person has blocked us" in caplog.text


async def test_a_chat_that_cannot_be_reached_holds_nobody_else_up(autojump_clock: MockClock) -> None:
    """While one chat refuses everything, another is answered and its stop works at once. (P7)"""
    channel = FakeChannel()
    channel.refuse["away"] = [ChannelError("busy") for _ in range(1000)]
    async with open_world(channel=channel) as world:
        await world.start("hello", chat="away")
        await world.start("long")
        assert await world.ask("/stop") == "Stopped 1 run."
        await world.start("next")
        assert world.replies()[-1] == "re: next"
        channel.refuse["away"].clear()
        await trio.sleep(10)
        assert world.replies("away") == ["re: hello"]
