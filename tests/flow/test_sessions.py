"""What the store knows of a conversation counts: policy, figure, transcript, and messages from elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from trio.testing import wait_all_tasks_blocked

from store.records import MessageState, Role, SessionPolicy
from tests.flow.edges import Scripted
from tests.flow.world import DEBOUNCED_S, incoming, killed, new_store, open_world

if TYPE_CHECKING:
    from trio.testing import MockClock

    from store.memory_messages import MemoryMessages

DM = incoming("").session
GROUP = incoming("", "group").session


async def lines(store: MemoryMessages) -> list[tuple[Role, str]]:
    return [(line.said.role, line.said.text) for line in await store.whole.transcript(DM)]


async def test_a_conversation_may_have_its_own_mode(autojump_clock: MockClock) -> None:
    """What is set for one chat counts there and nowhere else. (L8)"""
    store = new_store()
    await store.whole.set_policy(DM, SessionPolicy(mode="interrupt"))
    async with open_world(store) as world:
        await world.start("long one", "two")
        await world.start("long three", "four", chat="other")
        await world.gateway.drained()
        assert "re: long one" not in world.replies()
        assert world.replies("other") == ["re: long three", "re: four"]


async def test_a_conversation_may_have_its_own_window_and_cap(autojump_clock: MockClock) -> None:
    """Debounce, cap and drop policy follow what was set for the chat. (L8)"""
    store = new_store()
    await store.whole.set_policy(DM, SessionPolicy(debounce_ms=0, cap=1, drop="new"))
    async with open_world(store) as world:
        for text in ("long", "waits", "refused"):
            await world.say(text)
            await wait_all_tasks_blocked()
        assert world.agent.started == [("long",)]
        await world.gateway.drained()
        assert [text for text in world.replies() if "refused" in text and "Not taken" in text]


async def test_a_policy_set_meanwhile_counts_from_the_next_message(autojump_clock: MockClock) -> None:
    """Nobody has to restart anything."""
    async with open_world(store := new_store()) as world:
        await world.start("long one")
        await store.whole.set_policy(DM, SessionPolicy(mode="interrupt"))
        await world.start("two")
        await world.gateway.drained()
        assert "re: long one" not in world.replies()


async def test_a_policy_outlives_the_process(autojump_clock: MockClock) -> None:
    """What is taken up again is treated as its chat wants it."""
    store, agent = new_store(), Scripted()
    await store.whole.set_policy(GROUP, SessionPolicy(max_concurrent=2))
    async with killed(store, 4, agent) as world:
        for number in range(4):
            await world.start(f"long {number}", chat="group", sender=f"member {number}", group=True)
    async with open_world(store, agent, lane_main=10) as world:
        await world.gateway.drained()
    assert agent.most["group"] == 2


async def test_a_long_history_makes_a_group_wait_its_turn(autojump_clock: MockClock) -> None:
    """The figure stored with the session comes with each request. (L5)"""
    store = new_store()
    async with open_world(store, lane_main=10) as world:
        await world.start("one", chat="group", group=True)
        (message,) = await store.accept([incoming("earlier", "group", number="earlier")]) or ()
        await store.begin("earlier", [message.id])
        await store.settle("earlier", [message.id], MessageState.DONE, [], context=0.7)
        for number in range(3):
            await world.start(f"long {number}", chat="group", sender=f"member {number}", group=True)
        await world.gateway.drained()
        assert world.agent.most["group"] == 1


async def test_a_turn_is_remembered_when_it_is_done(autojump_clock: MockClock) -> None:
    """Everything that was answered together and the answer are in the transcript, in order."""
    async with open_world(store := new_store()) as world:
        await world.say("one", "two")
        await trio.sleep(DEBOUNCED_S)
        await world.start("listen", "meanwhile")
        await world.gateway.drained()
    assert await lines(store) == [
        (Role.USER, "one"),
        (Role.USER, "two"),
        (Role.ASSISTANT, "re: one | two"),
        (Role.USER, "listen"),
        (Role.ASSISTANT, "re: listen"),
        (Role.USER, "meanwhile"),
        (Role.ASSISTANT, "re: meanwhile"),
    ]


async def test_what_steered_a_turn_is_remembered_with_it(autojump_clock: MockClock) -> None:
    """What was said while the agent worked stands before its answer."""
    async with open_world(store := new_store(), queue_mode="steer") as world:
        await world.start("listen", "meanwhile")
        await world.gateway.drained()
    assert await lines(store) == [
        (Role.USER, "listen"),
        (Role.USER, "meanwhile"),
        (Role.ASSISTANT, "re: listen | meanwhile"),
    ]


async def test_nothing_of_a_stopped_turn_is_remembered(autojump_clock: MockClock) -> None:
    """A stop leaves no half of a conversation behind. (P7)"""
    async with open_world(store := new_store()) as world:
        await world.start("long")
        await world.ask("/stop")
        await world.gateway.drained()
    assert await lines(store) == []


async def test_what_others_hand_in_is_taken_up_once(autojump_clock: MockClock) -> None:
    """A message that another process put into the store is answered here, however often somebody looks. (P1)"""
    async with open_world(store := new_store()) as world:
        elsewhere = store.whole.messages(None)
        await elsewhere.accept([incoming("from elsewhere")])
        await world.start("from here")
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(world.gateway.look)
        await world.gateway.look()
        await world.gateway.drained()
        await world.gateway.look()
        await world.gateway.drained()
        assert sorted(world.replies()) == ["re: from elsewhere", "re: from here"]


async def test_a_stop_that_others_hand_in_stops(autojump_clock: MockClock) -> None:
    """The way a command came in makes no difference. (P7)"""
    async with open_world(store := new_store()) as world:
        await world.start("long")
        await store.whole.messages(None).accept([incoming("/stop")])
        await world.gateway.look()
        await wait_all_tasks_blocked()
        assert world.replies() == ["Stopped 1 run."]


async def test_half_a_character_does_not_hold_a_channel_up(autojump_clock: MockClock) -> None:
    """A text that no store can keep is kept as well as can be, and answered. (P6)"""
    async with open_world() as world:
        await world.start("half \ud83d")
        await world.gateway.drained()
        assert world.replies() == ["re: half ?"]
