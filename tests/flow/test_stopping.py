"""Stop and stopall: seen at once wherever the work is, answered with true counts, and final."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.flow.edges import TroubledStore
from tests.flow.models import DM
from tests.flow.world import DEBOUNCED_S, World, incoming, new_store, open_world, whole_of

both = pytest.mark.parametrize("stop", ["/stop", "/stopall"])


async def nothing_more_and_the_next_works(world: World, chat: str = "dm") -> None:
    """An hour later nothing was shown, sent or finished, and a new message is answered. (lesson 21)"""
    seen = [one for one in world.channel.seen if one.kind != "clear"]
    finished = [*world.agent.finished]
    await trio.sleep(3600)
    assert [one for one in world.channel.seen if one.kind != "clear"] == seen
    assert world.agent.finished == finished
    assert world.channel.live(chat) == ""
    await world.start("next", chat=chat)
    assert world.replies(chat)[-1] == "re: next"
    assert await world.store.resume() == ()


@both
async def test_a_stop_in_the_debounce_window(autojump_clock: MockClock, stop: str) -> None:
    """What was only just typed never starts. (L11, Q8, lesson 18)"""
    async with open_world() as world:
        await world.say("long one", "two")
        await trio.sleep(0.5)
        assert await world.ask(stop) == "Stopped 2 waiting messages."
        await nothing_more_and_the_next_works(world)
        assert world.agent.started == [("next",)]


async def test_stop_reaches_the_run_and_leaves_the_queue(autojump_clock: MockClock) -> None:
    """The run ends, what waits goes on. (L10)"""
    async with open_world() as world:
        await world.start("long one", "two")
        assert await world.ask("/stop") == "Stopped 1 run; 1 message still waiting."
        await world.gateway.drained()
        assert world.replies().count("re: two") == 1
        await nothing_more_and_the_next_works(world)


async def test_stopall_reaches_the_run_and_the_queue(autojump_clock: MockClock) -> None:
    """Run, queue and window: all gone, all counted. (L10, Q8)"""
    async with open_world() as world:
        await world.start("long one", "two")
        await world.say("three")
        assert await world.ask("/stopall") == "Stopped 1 run and 2 waiting messages."
        await nothing_more_and_the_next_works(world)
        assert world.agent.started == [("long one",), ("next",)]


@both
async def test_a_stop_while_every_lane_is_full(autojump_clock: MockClock, stop: str) -> None:
    """A message that waits for a slot is stopped at once, and never starts. (Q2, P7, lessons 12, 18)"""
    async with open_world(lane_main=1, lane_subagent=1) as world:
        await world.start("deep", chat="other")
        await world.start("long other", chat="another")
        await world.start("one", "two")
        assert await world.ask(stop) == "Stopped 2 waiting messages."
        await world.gateway.drained()
        assert world.replies("other") == ["the bottom"]
        assert world.replies("another") == ["re: long other"]
        await nothing_more_and_the_next_works(world)


@both
async def test_a_stop_during_a_run(autojump_clock: MockClock, stop: str) -> None:
    """Answered in the same instant; nothing of the run is shown or sent afterwards. (P7, lesson 18)"""
    async with open_world() as world:
        await world.start("long")
        await trio.sleep(10)
        assert world.channel.live().startswith("tick ")
        assert await world.ask(stop) == "Stopped 1 run."
        assert world.channel.live() == ""
        await nothing_more_and_the_next_works(world)
        assert ("long",) not in world.agent.finished


@both
@pytest.mark.parametrize("lane", [1, 4])
async def test_a_stop_reaches_a_helper_three_deep(autojump_clock: MockClock, stop: str, lane: int) -> None:
    """The run and all that work for it end together. (lessons 18, 22, P8)"""
    async with open_world(lane_subagent=lane) as world:
        await world.start("deep")
        await trio.sleep(10)
        assert world.agent.helpers == 3
        assert world.channel.live().startswith("tick ")
        assert await world.ask(stop) == "Stopped 1 run and 3 helpers."
        assert world.agent.helpers == 0
        await nothing_more_and_the_next_works(world)


@both
async def test_a_stop_reaches_a_helper_that_waits_for_a_slot(autojump_clock: MockClock, stop: str) -> None:
    """The helper never starts. (lessons 18, 22)"""
    async with open_world(lane_main=5, lane_subagent=1) as world:
        await world.start("deep", chat="other")
        await world.start("deep")
        await trio.sleep(1)
        assert await world.ask(stop) == "Stopped 1 run and 1 helper."
        await world.gateway.drained()
        assert world.replies("other") == ["the bottom"]
        await nothing_more_and_the_next_works(world)


async def test_a_run_that_lets_go_slowly_shows_nothing_more(autojump_clock: MockClock) -> None:
    """The answer does not wait for the run; what it still tries to show is not shown; the next one waits. (P7, Q4)"""
    async with open_world() as world:
        await world.start("slow", "two")
        assert await world.ask("/stop") == "Stopped 1 run; 1 message still waiting."
        assert world.agent.started == [("slow",)]
        await world.gateway.drained()
        assert "tock " not in [seen.text for seen in world.channel.seen]
        assert world.replies()[1:] == ["re: two"]
        assert world.agent.most["dm"] == 1


@both
async def test_a_run_that_answers_although_it_was_stopped_is_not_heard(autojump_clock: MockClock, stop: str) -> None:
    """Not even if the store has not written the stop yet when the answer comes. (P7)"""
    written = trio.Event()
    store = TroubledStore(new_store(), held={"stop": written})
    async with open_world(store) as world:
        await world.start("stubborn")
        await world.say(stop)
        await trio.sleep(10)
        assert world.agent.finished == [("stubborn",)]
        written.set()
        await world.gateway.drained()
        assert world.replies() == ["Stopped 1 run."]
        await nothing_more_and_the_next_works(world)
    assert len(await whole_of(store).transcript(DM)) == 2  # the next message and its answer


async def test_a_deaf_run_holds_nobody_up_for_ever(autojump_clock: MockClock) -> None:
    """A run that does not hear the stop shows and sends nothing more; after a minute the chat goes on without it."""
    async with open_world(lane_main=2) as world:
        await world.start("deaf", "two")
        assert world.channel.live()
        assert await world.ask("/stop") == "Stopped 1 run; 1 message still waiting."
        assert world.channel.live() == ""
        assert await world.ask("/stop") == "Already stopping; 1 message still waiting."
        await world.gateway.drained()
        assert world.replies()[2:] == ["re: two"]
        await nothing_more_and_the_next_works(world)


@both
async def test_a_stop_of_nothing_says_so_and_arms_nothing(autojump_clock: MockClock, stop: str) -> None:
    """The next message is not eaten by an earlier stop. (lesson 21)"""
    async with open_world() as world:
        assert await world.ask(stop) == "Nothing to stop: nothing runs or waits here."
        await nothing_more_and_the_next_works(world)


@pytest.mark.parametrize("stop", ["/stop@goclaw_bot", "/STOP ", " /Stop!\r\n", "/stopAll@bot.", "/STOPALL\t…"])
async def test_a_stop_is_understood_as_people_type_it(autojump_clock: MockClock, stop: str) -> None:
    """The bot's name, upper case, blanks and punctuation do not matter. (lesson 20)"""
    async with open_world() as world:
        await world.start("long")
        assert await world.ask(stop) == "Stopped 1 run."


async def test_two_stops_stop_two_runs(autojump_clock: MockClock) -> None:
    """Each takes the oldest run that is left. (L10, lesson 11b)"""
    async with open_world(lane_main=5) as world:
        await world.start("long one", "long two", chat="group", group=True)
        assert world.agent.alive["group"] == 2
        for left in (1, 0):
            assert await world.ask("/stop", "group", group=True) == "Stopped 1 run."
            assert world.agent.alive["group"] == left
        assert (await world.ask("/stop", "group", group=True)).startswith("Nothing")


@both
async def test_a_stop_inside_a_batch_comes_first(autojump_clock: MockClock, stop: str) -> None:
    """What stood before it in its session never runs, what stood after it does, other sessions do not notice. (L11)"""
    async with open_world(queue_debounce=0) as world:
        await world.gateway.receive(
            [
                incoming("here 1"),
                incoming("there 1", "there"),
                incoming("here 2"),
                incoming(stop),
                incoming("here 3"),
                incoming("there 2", "there"),
            ]
        )
        await world.gateway.drained()
        assert world.replies() == ["Stopped 2 waiting messages.", "re: here 3"]
        assert world.replies("there") == ["re: there 1", "re: there 2"]
        assert await world.store.resume() == ()


async def test_a_stop_inside_a_batch_reaches_the_run_too(autojump_clock: MockClock) -> None:
    """The run that goes on and what came in together with the stop both end. (lesson 22)"""
    async with open_world() as world:
        await world.start("long")
        await world.say("two", "/stop", "three")
        await world.gateway.drained()
        assert world.replies() == ["Stopped 1 run and 1 waiting message.", "re: three"]


async def test_every_command_of_a_batch_is_answered(autojump_clock: MockClock) -> None:
    """A stop takes back messages, never the answer to another command. (P6)"""
    for _ in range(20):  # the order in which tasks run is drawn anew each time
        async with open_world() as world:
            await world.say("/status", "one", "/stop", "/help", "two", "/stopall")
            await world.gateway.drained()
            assert len(world.replies()) == 4
            assert sorted(text.split()[0] for text in world.replies()) == ["Commands:", "Here:", "Stopped", "Stopped"]
            assert [text for text in world.replies() if "Stopped" in text] == ["Stopped 1 waiting message."] * 2


async def test_stops_in_a_row_are_each_answered(autojump_clock: MockClock) -> None:
    """An impatient person presses ten times: one stops, nine say that there is nothing, and nobody is left out. (P6)"""
    async with open_world() as world:
        await world.start("long")
        for _ in range(5):
            await world.say("/stop", "/stopall")
        await world.gateway.drained()
        assert sorted(world.replies())[-1] == "Stopped 1 run."
        assert len(world.replies()) == 10
        await nothing_more_and_the_next_works(world)


async def test_a_stop_at_the_very_end_of_a_run_is_true(autojump_clock: MockClock) -> None:
    """Whatever the instant, either the stop says that it stopped and there is no answer, or there is one. (P7)"""
    for tenth in range(590, 612):
        async with open_world() as world:
            await world.say("long")
            await trio.sleep(tenth / 10)
            said = await world.ask("/stop")
            await world.gateway.drained()
            assert ("re: long" in world.replies()) == (said != "Stopped 1 run.")


async def test_a_stop_overtakes_what_waits_to_be_sent(autojump_clock: MockClock) -> None:
    """With a slow channel and a full outbox the answer to a stop comes next. (P7)"""
    async with open_world(queue_debounce=0, queue_cap=100) as world:
        world.channel.takes_s = 1.0
        await world.say(*(f"text {number}" for number in range(30)), "long")
        await trio.sleep(5.5)
        sent = len(world.replies())
        await world.say("/stop")
        await world.gateway.drained()
        assert world.replies()[sent + 1] == "Stopped 1 run."
        assert len(world.replies()) == 31


async def test_a_second_delivery_does_not_bring_a_stopped_message_back(autojump_clock: MockClock) -> None:
    """Delivered again right after the stop, also in the same batch as it, it stays stopped. (lesson 15, P7)"""
    once = incoming("long", number="1")
    for _ in range(20):
        async with open_world(queue_debounce=0) as world:
            await world.gateway.receive([once, incoming("/stop")])
            await world.gateway.receive([once])
            await wait_all_tasks_blocked()
            await world.gateway.receive([once])
            await world.gateway.drained()
            assert world.agent.started == []
            assert world.replies() == ["Stopped 1 waiting message."]


async def test_nothing_of_a_stopped_run_comes_after_the_answer(autojump_clock: MockClock) -> None:
    """Stopped at any moment, no tick is shown after the stop was answered. (P7)"""
    async with open_world(queue_debounce=0) as world:
        for number in range(30):
            chat = f"chat {number}"
            await world.say("long", chat=chat)
            await trio.sleep(number * 0.37)
            await world.ask("/stop", chat)
            answered = max(place for place, seen in enumerate(world.channel.seen) if seen.kind == "reply")
            await trio.sleep(DEBOUNCED_S)
            late = [seen for seen in world.channel.seen[answered:] if seen.chat == chat and seen.kind == "live"]
            assert not late
