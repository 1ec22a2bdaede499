"""From a message to its answer: joined, in order, once, and never without a word at the end."""

from __future__ import annotations

import re

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from gateway.commands import help_text
from tests.flow.edges import LONG_S, FakeChannel
from tests.flow.world import DEBOUNCED_S, incoming, open_world


async def test_three_quick_texts_are_one_turn(autojump_clock: MockClock) -> None:
    """The agent sees all three in order and answers once. (L9, lesson 13)"""
    async with open_world() as world:
        for text in ("one", "two", "three"):
            await world.say(text)
            await trio.sleep(0.5)
        await world.gateway.drained()
        assert world.agent.started == [("one", "two", "three")]
        assert world.replies() == ["re: one | two | three"]


async def test_a_pasted_text_is_one_turn(autojump_clock: MockClock) -> None:
    """Lines that come in one batch are answered together. (L9)"""
    async with open_world() as world:
        await world.say("one", "two", "three")
        await world.gateway.drained()
        assert world.replies() == ["re: one | two | three"]


async def test_slow_texts_are_answered_one_by_one_in_order(autojump_clock: MockClock) -> None:
    """Each waits for the one before it; two never run at once in a private chat. (P2, P3, L4)"""
    async with open_world() as world:
        await world.start("long one", "long two", "three")
        await world.gateway.drained()
        assert world.replies() == ["re: long one", "re: long two", "re: three"]
        assert world.agent.most["dm"] == 1


async def test_a_window_of_zero_keeps_texts_apart(autojump_clock: MockClock) -> None:
    """The debounce is a setting. (L8)"""
    async with open_world(queue_debounce=0) as world:
        await world.say("one", "two")
        await world.gateway.drained()
        assert world.replies() == ["re: one", "re: two"]


async def test_two_people_in_a_group_are_answered_apart(autojump_clock: MockClock) -> None:
    """What different people write is never one turn, and three runs go at once. (L4, lesson 17)"""
    async with open_world(lane_main=10) as world:
        for sender in ("ann", "bob", "cid", "dan"):
            await world.say(f"long {sender}", chat="group", sender=sender, group=True)
        await world.gateway.drained()
        assert sorted(world.agent.started) == [(f"long {name}",) for name in ("ann", "bob", "cid", "dan")]
        assert world.agent.most["group"] == 3


async def test_each_chat_gets_its_own_answers(autojump_clock: MockClock) -> None:
    """Thirty chats at once over two slots: everybody is answered, in the right place, in order. (P2, P8, Q1)"""
    async with open_world() as world:
        chats = [f"chat {number}" for number in range(30)]
        for text in ("a", "b"):
            for chat in chats:
                await world.start(text, chat=chat)
        await world.gateway.drained()
        assert all(world.replies(chat) == ["re: a", "re: b"] for chat in chats)


@pytest.mark.parametrize("text", ["/etc/hosts", "/usr/bin/env", "1/2", "/1", "//", "/стоп"])
async def test_a_slash_alone_makes_no_command(autojump_clock: MockClock, text: str) -> None:
    """Paths and fractions go to the agent."""
    async with open_world() as world:
        await world.say(text)
        await world.gateway.drained()
        assert world.replies() == [f"re: {text}"]


async def test_an_unknown_command_gets_the_list_and_never_the_agent(autojump_clock: MockClock) -> None:
    """A misspelt command is answered at once with what there is."""
    async with open_world() as world:
        assert await world.ask("/stpo") == f"There is no command /stpo.\n{help_text()}"
        assert await world.ask("/HELP@bot") == help_text()
        assert world.agent.started == []


async def test_the_status_tells_what_runs_and_waits(autojump_clock: MockClock) -> None:
    """Answered at once, also while every lane is full. (L1, P7)"""
    async with open_world(lane_main=1) as world:
        await world.start("long other", chat="other")
        await world.start("long", "next")
        await trio.sleep(5)
        lines = (await world.ask("/status")).splitlines()
        assert lines[0] == "Here: 0 running, 2 waiting."
        assert re.fullmatch(r"  main       1 of 1 running, 2 waiting, the oldest for \d+ s", lines[2])


async def test_a_failure_is_told_in_one_line(autojump_clock: MockClock) -> None:
    """The sender learns which message failed and why, without a traceback; the next message works. (P6, lesson 8)"""
    async with open_world() as world:
        await world.start("fail at this")
        await world.start("next")
        assert world.replies() == ['"fail at this" did not work: it went wrong', "re: next"]


async def test_a_run_that_takes_too_long_is_told(autojump_clock: MockClock) -> None:
    """After its time the run is given up, said so, and the next message works. (P6)"""
    async with open_world(session_run_timeout=5) as world:
        await world.start("long", "next")
        await world.gateway.drained()
        assert sorted(world.replies()) == ['Gave up on "long" after 5 s, the longest a run may take.', "re: next"]
        assert world.channel.live() == ""


@pytest.mark.parametrize("first", ["long", "fail"])
async def test_how_a_message_ended_is_told_before_the_next_answer(autojump_clock: MockClock, first: str) -> None:
    """People read what became of their messages in the order in which they sent them. (P2)"""
    for _ in range(20):  # the order in which tasks run is drawn anew each time
        async with open_world(lane_main=1, session_run_timeout=5) as world:
            await world.say("deaf", chat="other")
            await world.start(first, "next")
            await world.gateway.drained()
            assert [first in world.replies()[0], world.replies()[1]] == [True, "re: next"]


async def test_waiting_does_not_use_up_the_time_of_a_run(autojump_clock: MockClock) -> None:
    """A message that waited longer than a run may take still gets all of its time. (lesson 3)"""
    async with open_world(lane_main=1, session_run_timeout=LONG_S + 1) as world:
        for number in range(4):
            await world.say(f"long {number}", chat=f"chat {number}")
        await world.gateway.drained()
        assert [world.replies(f"chat {number}") for number in range(4)] == [[f"re: long {n}"] for n in range(4)]


async def test_an_interrupted_run_is_told_and_the_newer_message_starts(autojump_clock: MockClock) -> None:
    """The older message is named; the newer one starts only when the older run has ended. (L6, Q4, lesson 11)"""
    async with open_world(queue_mode="interrupt") as world:
        await world.start("slow old", "new")
        await world.gateway.drained()
        assert world.replies() == ['Stopped "slow old": your newer message took its place.', "re: new"]
        assert world.agent.most["dm"] == 1
        assert world.agent.finished == [("new",)]


async def test_a_steered_message_reaches_the_run(autojump_clock: MockClock) -> None:
    """What is said meanwhile is answered by the run it was said to, once."""
    async with open_world(queue_mode="steer") as world:
        await world.start("listen", "to this")
        await world.gateway.drained()
        assert world.replies() == ["re: listen | to this"]
        assert await world.store.resume() == ()


async def test_the_dropped_message_is_named(autojump_clock: MockClock) -> None:
    """When ten wait, the oldest gives way and its sender is told which it was. (L7, L8, lesson 16)"""
    async with open_world(queue_cap=2) as world:
        await world.start("long", "one", "two", "three")
        await wait_all_tasks_blocked()
        assert world.replies() == ['Dropped "one": 2 newer messages were waiting. Send it again later.']
        await world.gateway.drained()
        assert world.replies()[1:] == ["re: long", "re: two", "re: three"]


async def test_the_refused_message_is_named(autojump_clock: MockClock) -> None:
    """With `new` the newcomer is not taken and its sender is told at once. (L7, lesson 16)"""
    async with open_world(queue_cap=2, queue_drop="new") as world:
        await world.start("long", "one", "two", "three")
        await world.gateway.drained()
        told = [text for text in world.replies() if "three" in text]
        assert told == ['Not taken: "three". 2 messages wait already; send it again later.']
        assert world.replies()[1:] == ["re: long", "re: one", "re: two"]


async def test_every_message_of_a_dropped_turn_is_accounted_for(autojump_clock: MockClock) -> None:
    """Several texts that were joined and then dropped are all told, not only the first of them. (P6, lesson 16)"""
    async with open_world(queue_cap=1) as world:
        await world.start("long")
        await world.say("apples", "pears", "plums")
        await trio.sleep(DEBOUNCED_S)
        await world.start("newer")
        told = " ".join(text for text in world.replies() if text.startswith("Dropped"))
        assert all(word in told for word in ("apples", "pears", "plums")) or "3 messages" in told or "2 more" in told


async def test_a_dropped_message_may_be_sent_again(autojump_clock: MockClock) -> None:
    """As the notice says: sent again later it is answered. (P6)"""
    async with open_world(queue_cap=1) as world:
        await world.start("long", "one", "two")
        await world.gateway.drained()
        await world.start("one")
        assert world.replies()[-1] == "re: one"


@pytest.mark.parametrize("first", ["long", "fail", "slow", "deep", "deaf"])
@pytest.mark.parametrize("most_s", [5, 600])
async def test_work_in_progress_goes_however_a_run_ends(autojump_clock: MockClock, first: str, most_s: int) -> None:
    """Done, failed, timed out, deaf to its end: nothing is left on the screen afterwards. (L13, lesson 24)"""
    async with open_world(session_run_timeout=most_s) as world:
        await world.start(first)
        await world.gateway.drained()
        assert world.channel.live() == ""
        shown = [seen.kind for seen in world.channel.seen]
        assert "clear" in shown
        assert "live" not in shown[len(shown) - shown[::-1].index("clear") :]


async def test_work_in_progress_is_cleared_before_the_answer_comes(autojump_clock: MockClock) -> None:
    """Nothing of the work stands behind its answer. (L13)"""
    async with open_world() as world:
        await world.start("long")
        await world.gateway.drained()
        assert [seen.kind for seen in world.channel.seen[-3:]] == ["live", "clear", "reply"]


async def test_a_second_delivery_is_answered_once(autojump_clock: MockClock) -> None:
    """Whenever it comes, in the batch, in the window, during the run or after the answer. (lesson 15)"""
    async with open_world() as world:
        once = incoming("long", number="1")
        await world.gateway.receive([once, once])
        await world.gateway.receive([once])
        await trio.sleep(DEBOUNCED_S)
        await world.gateway.receive([once])
        await world.gateway.drained()
        await world.gateway.receive([once])
        await world.gateway.drained()
        assert world.agent.started == [("long",)]
        assert world.replies() == ["re: long"]


async def test_deliveries_at_the_same_time_are_answered_once(autojump_clock: MockClock) -> None:
    """Twenty tasks deliver the same three messages: one turn, one answer. (lesson 15)"""
    async with open_world() as world:
        batch = [incoming(text, number=text) for text in ("one", "two", "three")]
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(world.gateway.receive, batch)
        await world.gateway.drained()
        assert world.replies() == ["re: one | two | three"]


async def test_a_command_delivered_twice_is_answered_once(autojump_clock: MockClock) -> None:
    """Commands are recognised like messages: a repeated stop does not stop the next run. (lessons 15, 21)"""
    async with open_world() as world:
        stop = incoming("/stop", number="1")
        await world.start("long one")
        await world.gateway.receive([stop])
        await world.start("long two")
        await world.gateway.receive([stop])
        await world.gateway.drained()
        assert world.replies() == ["Stopped 1 run.", "re: long two"]


async def test_channels_do_not_answer_for_each_other(autojump_clock: MockClock) -> None:
    """A message that came in by one channel is never answered on another."""
    channel = FakeChannel()
    async with open_world(channel=channel) as world:
        await world.gateway.receive([incoming("hello", channel="elsewhere")])
        await world.start("hello")
        await world.gateway.drained()
        assert channel.replies() == ["re: hello"]
