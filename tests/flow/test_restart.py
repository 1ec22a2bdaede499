"""Ends and new starts: what was accepted is answered by whoever runs next, in order, and nothing twice."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from gateway.protocols import ChannelError
from tests.flow.edges import FakeChannel, Scripted, TroubledStore
from tests.flow.world import DEBOUNCED_S, incoming, killed, new_store, open_world


async def test_what_is_queued_at_a_shutdown_is_answered_after_the_next_start(autojump_clock: MockClock) -> None:
    """Twenty messages in the queue, the window and a run: all kept, all answered in order, each once. (Q9, P1, P2)"""
    store, agent, texts = new_store(), Scripted(), [f"text {number}" for number in range(19)]
    async with open_world(store, agent, queue_cap=100, shutdown_grace=0) as world:
        await world.start("long", *texts[:15])
        await world.say(*texts[15:])
        await trio.sleep(0.1)
    assert world.replies() == []
    async with open_world(store, agent, queue_cap=100) as world:
        await world.gateway.drained()
        assert world.replies() == ["re: long", *(f"re: {text}" for text in texts)]
    assert len(agent.finished) == 20
    assert await store.resume() == ()


async def test_what_is_taken_up_again_skips_window_and_cap(autojump_clock: MockClock) -> None:
    """More than may wait were kept; none of them is dropped for that, and none waits for a window."""
    store = new_store()
    async with open_world(store, queue_cap=100, shutdown_grace=0) as world:
        await world.start("long", *(f"text {number}" for number in range(15)))
    async with open_world(store, queue_cap=3) as world:
        start = trio.current_time()
        await wait_all_tasks_blocked()
        assert world.agent.started == [("long",)]
        assert trio.current_time() == start
        await world.gateway.drained()
        assert len(world.replies()) == 16


async def test_everybody_who_gives_way_to_a_newcomer_is_told(autojump_clock: MockClock) -> None:
    """After a start more wait than may; whatever a new message pushes out, each of it is told. (P6, lesson 16)"""
    store = new_store()
    async with open_world(store, queue_cap=100, shutdown_grace=0) as world:
        await world.start("long", *(f"text {number}." for number in range(6)))
    async with open_world(store, queue_cap=3) as world:
        await world.start("newcomer")
        await world.gateway.drained()
        said = "\n".join(world.replies())
        assert not [number for number in range(6) if f"text {number}." not in said]


async def test_a_run_may_finish_in_the_grace(autojump_clock: MockClock) -> None:
    """What can end in time ends well, its answer goes out, and what waits is left for the next start. (Q9)"""
    store = new_store()
    async with open_world(store, shutdown_grace=100) as world:
        await world.start("long", "next")
    assert world.replies() == ["re: long"]
    async with open_world(store) as world:
        await world.gateway.drained()
        assert world.replies() == ["re: next"]


async def test_a_shutdown_costs_no_attempt(autojump_clock: MockClock) -> None:
    """However often it is shut down in the middle of a run, the message is answered in the end. (Q9)"""
    store = new_store()
    async with open_world(store, shutdown_grace=0) as world:
        await world.start("long")
    for _ in range(6):
        async with open_world(store, shutdown_grace=0) as world:
            await trio.sleep(10)
            assert world.agent.started == [("long",)]
        assert world.channel.live() == ""
    async with open_world(store) as world:
        await world.gateway.drained()
        assert world.replies() == ["re: long"]


async def test_a_message_that_kills_the_process_is_set_aside(autojump_clock: MockClock) -> None:
    """After three attempts it is not tried again, its sender is told, and its neighbours are answered. (P1, P6)"""
    store, agent = new_store(), Scripted()
    async with killed(store, 20, agent) as world:
        await world.start("long poison", "neighbour")
    for _ in range(2):
        async with killed(store, 20, agent):
            pass
    assert agent.started == [("long poison",)] * 3
    async with open_world(store, agent) as world:
        await world.gateway.drained()
        assert world.replies() == [
            'Set aside after 3 attempts that never finished: "long poison".',
            "re: neighbour",
        ]
    assert len(agent.started) == 4
    assert await store.resume() == ()


@pytest.mark.parametrize("mode", ["queue", "collect", "interrupt", "steer"])
async def test_a_second_attempt_is_made_alone(autojump_clock: MockClock, mode: str) -> None:
    """What ran when the process died is not joined with anything, so that only the guilty one is set aside. (P1)"""
    store, agent = new_store(), Scripted()
    async with killed(store, 5, agent) as world:
        await world.say("listen one", "two")
        await trio.sleep(DEBOUNCED_S)
        await world.start("three")
    assert agent.started == [("listen one", "two")]
    async with open_world(store, agent, queue_mode=mode) as world:
        await world.gateway.drained()
        assert world.replies() == ["re: listen one", "re: two", "re: three"]


async def test_a_second_attempt_is_not_steered(autojump_clock: MockClock) -> None:
    """Neither what waited nor what is said meanwhile becomes part of a turn that may kill the process again. (P1)"""
    store, agent = new_store(), Scripted()
    async with killed(store, 5, agent) as world:
        await world.start("listen", "waited")
    async with open_world(store, agent, queue_mode="steer") as world:
        await world.start("meanwhile")
        await world.gateway.drained()
        assert world.replies() == ["re: listen", "re: waited", "re: meanwhile"]


@pytest.mark.parametrize("mode", ["queue", "collect", "interrupt", "steer"])
async def test_quick_texts_survive_a_restart_in_every_mode(autojump_clock: MockClock, mode: str) -> None:
    """What waited in the window is answered after the start, none of it pushed out by the rest. (P1)"""
    store = new_store()
    async with open_world(store, queue_mode=mode) as world:
        await world.say("one", "two", "three")
    async with open_world(store, queue_mode=mode) as world:
        await world.gateway.drained()
        said = "\n".join(world.replies())
        assert "Stopped" not in said
        assert [said.count(text) for text in ("one", "two", "three")] == [1, 1, 1]


@pytest.mark.parametrize("answered", [True, False])
async def test_a_second_delivery_after_a_restart_is_recognised(autojump_clock: MockClock, answered: bool) -> None:
    """Answered before or only after the restart: once is enough. (lesson 15)"""
    store, once = new_store(), incoming("long", number="1")
    async with open_world(store, shutdown_grace=100 if answered else 0) as first:
        await first.gateway.receive([once])
        await trio.sleep(DEBOUNCED_S)
    async with open_world(store) as second:
        await second.gateway.receive([once])
        await second.gateway.drained()
        await second.gateway.receive([once])
        await second.gateway.drained()
    assert [*first.replies(), *second.replies()] == ["re: long"]


@pytest.mark.parametrize("stop", ["/stop", "/stopall"])
async def test_a_stopped_message_does_not_come_back_after_a_restart(autojump_clock: MockClock, stop: str) -> None:
    """Stopped in the run, killed right after the answer: it is over. (P7)"""
    store = new_store()
    async with killed(store, 10) as world:
        await world.start("long one", "two")
        await world.ask(stop)
    async with open_world(store) as world:
        await world.gateway.drained()
        assert ("long one",) not in world.agent.started


@pytest.mark.parametrize("stop", ["/stop", "/stopall"])
async def test_a_stop_that_was_accepted_holds_even_if_the_process_died_over_it(
    autojump_clock: MockClock, stop: str
) -> None:
    """Killed between taking the stop in and writing it: the next start carries it out before anything runs. (P7)"""
    inner = new_store()
    store = TroubledStore(inner, held={"stop": trio.Event(), "settle": trio.Event()})
    async with killed(store, 10) as world:
        await world.start("long one")
        await world.say(stop)
    async with open_world(inner) as world:
        await world.gateway.drained()
        assert world.agent.started == []
        assert world.replies() == ["Stopped 1 waiting message."]


async def test_commands_left_open_are_answered_after_the_start(autojump_clock: MockClock) -> None:
    """A command whose answer a crash cut off is answered by the next process, once. (P6)"""
    inner = new_store()
    async with killed(TroubledStore(inner, held={"begin": trio.Event()}), 1) as world:
        await world.say("/help")
    assert world.replies() == []
    async with open_world(inner) as world:
        await world.gateway.drained()
        assert [text.splitlines()[0] for text in world.replies()] == ["Commands:"]


async def test_replies_that_were_not_sent_are_sent_after_the_start(autojump_clock: MockClock) -> None:
    """The channel was down until the end: the answer waits in the outbox, and the end does not wait for ever. (P6)"""
    store, channel = new_store(), FakeChannel()
    channel.refuse["dm"] = [ChannelError("no network") for _ in range(10_000)]
    start = trio.current_time()
    async with open_world(store, channel=channel) as world:
        await world.start("one")
        await world.start("two")
    assert channel.replies() == []
    assert trio.current_time() - start < 20
    async with open_world(store) as world:
        await world.gateway.drained()
        assert world.replies() == ["re: one", "re: two"]


async def test_new_messages_during_a_shutdown_are_kept(autojump_clock: MockClock) -> None:
    """What comes in while runs finish is accepted and left for the next start, not started and killed. (lesson 7)"""
    store = new_store()
    async with trio.open_nursery() as nursery, open_world(store, shutdown_grace=100) as world:
        await world.start("long")

        async def late() -> None:
            await trio.sleep(10)
            await world.say("late")

        nursery.start_soon(late)
    assert world.replies() == ["re: long"]
    async with open_world(store) as world:
        await world.gateway.drained()
        assert world.replies() == ["re: late"]


@pytest.mark.parametrize("tenth", range(1, 80, 3))
async def test_killed_at_any_point_everything_is_answered(autojump_clock: MockClock, tenth: int) -> None:
    """Killed at any time of a busy minute: in each chat everything is answered, in order, at least once. (P1, P2)"""
    store, agent = new_store(), Scripted()
    chats = {f"chat {number}": [f"text {number}.{place}" for place in range(4)] for number in range(3)}
    said: dict[str, list[str]] = {chat: [] for chat in chats}
    accepted: set[str] = set()
    async with killed(store, tenth / 10, agent, queue_debounce=300) as world:
        for place in range(4):
            for chat, texts in chats.items():
                await world.say(texts[place], chat=chat)
                accepted.add(texts[place])
                await trio.sleep(0.35)
    for chat in chats:
        said[chat] += world.replies(chat)
    async with open_world(store, agent) as world:
        await world.gateway.drained()
    for chat, texts in chats.items():
        joined = " | ".join([*said[chat], *world.replies(chat)]).replace("re: ", "").split(" | ")
        kept = [text for text in texts if text in accepted]
        assert sorted(set(joined) - {""}) == kept
        assert [text for place, text in enumerate(joined) if text and text not in joined[:place]] == kept
    assert await store.resume() == ()
