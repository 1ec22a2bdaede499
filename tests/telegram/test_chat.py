"""What people see of the gateway on Telegram: a whole gateway, real HTTP, the double's people."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from gateway.clock import utc_now
from store.memory import MemoryStore
from tests.telegram.world import TEAM, open_town


async def test_a_message_is_answered() -> None:
    """Who is on the list writes, and gets an answer."""
    async with open_town() as town, town.gateway():
        await town.chat.says(town.ann, "tell me")
        await town.until(lambda: town.chat.texts)
        assert town.chat.texts[0].startswith("You said: tell me")


async def test_eyes_and_typing_from_the_moment_a_message_is_taken_until_its_end() -> None:
    """A message that is being worked on has eyes on it and somebody types; both are gone when it has ended."""
    async with open_town() as town, town.gateway():
        message = await town.chat.says(town.ann, "count to 3")
        await town.until(lambda: message.reactions == ["👀"] and town.chat.typing)
        await town.until(lambda: "I counted to 3." in town.chat.texts)
        await town.until(lambda: not message.reactions and not town.chat.typing)


async def test_a_stranger_sees_a_code_once_and_nothing_else() -> None:
    """No typing, no reaction, no agent, and no greeting to /start: a code, and then silence. (lesson 55, S1)"""
    async with open_town() as town, town.gateway():
        stranger = town.api.private(town.ben)
        strange = await stranger.says(town.ben, "/start")
        await town.until(lambda: stranger.texts)
        await stranger.says(town.ben, "hello?")
        await town.chat.says(town.ann, "hello")
        await town.until(lambda: town.chat.texts and not town.api.updates.pending)
        (told,) = stranger.texts
        assert told.startswith("This bot works only for people it knows. Your code is ")
        assert not stranger.actions
        assert not strange.reactions
        assert len(town.api.asked("sendMessage", stranger)) == 1


async def test_who_has_shown_their_code_is_let_in() -> None:
    """The code of a stranger, approved by whoever may, makes them somebody who is answered. (S1)"""
    async with open_town() as town, town.gateway() as served, served.client(await served.secret()) as operator:
        stranger = town.api.private(town.ben)
        await stranger.says(town.ben, "let me in")
        await town.until(lambda: stranger.texts)
        found = re.search(r"Your code is (\w+)", stranger.texts[0])
        assert found is not None
        answer = await operator.post("/v1/pairings/approve", json={"code": found[1]})
        assert (answer.status_code, answer.json()["sender"], answer.json()["name"]) == (200, "8", "Ben")
        await stranger.says(town.ben, "tell me")
        await town.until(lambda: len(stranger.texts) == 2)
        assert stranger.texts[1].startswith("You said: tell me")
        await town.team.says(town.ben, "@fake_bot hello")
        await town.until(lambda: town.team.texts)


async def test_who_is_let_in_by_a_code_is_nobody_in_a_group_that_is_not() -> None:
    """A code gives nothing in a group, and nobody is shown one there. (S3)"""
    async with open_town() as town, town.gateway(telegram_allow="1") as served:
        pairings = served.office.pairings
        code = await pairings.knock("telegram", "42", "8", "Ben")
        assert code is not None
        assert await pairings.approve(code, "default", "test", asker="default")
        await town.team.says(town.ben, "@fake_bot hello")
        await town.api.private(town.ben).says(town.ben, "hello")
        await town.until(lambda: town.api.private(town.ben).texts)
        assert not town.api.asked("sendMessage", town.team)


async def test_an_empty_list_lets_nobody_in() -> None:
    """Without a list nobody reaches the agent, in a group neither. (S2)"""
    async with open_town() as town, town.gateway(telegram_allow="1"):
        await town.chat.says(town.ann, "hello")
        await town.team.says(town.ann, "@fake_bot hello")
        await town.until(lambda: town.chat.texts and not town.api.updates.pending)
        assert "code" in town.chat.texts[0]
        assert len(town.api.asked("sendMessage")) == 1


async def test_who_is_let_in_alone_is_nobody_in_a_group_that_is_not(caplog: pytest.LogCaptureFixture) -> None:
    """A place on the list gives nothing in a group: that needs its own number there, which the log tells. (S3)"""
    async with open_town() as town, town.gateway(telegram_allow="7"):
        await town.team.says(town.ann, "@fake_bot hello")
        await town.chat.says(town.ann, "hello")
        await town.until(lambda: town.chat.texts)
        assert not town.team.texts
    assert f"the group {TEAM} is not in GOCLAW_TELEGRAM_ALLOW" in caplog.text


async def test_in_a_group_the_answer_is_a_reply_in_its_topic() -> None:
    """In a group of topics everything stays in its topic: answer, typing, and what the answer is about. (lesson 55)"""
    async with open_town(forum=True) as town, town.gateway():
        thread = await town.team.opens_topic("Plans", by=town.ann)
        await town.team.says(town.ben, "just talk", thread=thread)
        asked = await town.team.says(town.ben, "@fake_bot count to 4", thread=thread)
        await town.until(lambda: "I counted to 4." in town.team.texts)
        assert {(message.thread, message.reply_to) for message in town.team.answers} == {(thread, asked.id)}
        assert {action.thread for action in town.team.actions} == {thread}


async def test_a_growing_answer_becomes_the_answer() -> None:
    """What the agent does is shown in one message with a Stop button, which the final text takes over. (lesson 54)"""
    async with open_town() as town, town.gateway():
        await town.chat.says(town.ann, "count to 8")
        await town.until(lambda: town.chat.answers and town.chat.last.buttons)
        assert town.chat.last.text.startswith("1 2")
        await town.until(lambda: town.chat.texts == ["I counted to 8."])
        assert len(town.chat.answers) == 1
        assert len(town.chat.last.versions) >= 3
        assert not town.chat.last.buttons
        times = [version.at for version in town.chat.last.versions[:-1]]
        assert all(later - earlier >= 1.4 for earlier, later in pairwise(times))


async def test_a_command_answers_at_once_and_whoami_tells_the_numbers() -> None:
    """A person finds out which numbers to put on the list."""
    async with open_town() as town, town.gateway():
        await town.team.says(town.ben, "/whoami@fake_bot")
        await town.until(lambda: town.team.texts)
        assert town.team.texts[0].startswith(f"You are 8 (member) in telegram chat {TEAM}.")


async def test_looks_arrive_as_entities_and_what_is_not_text_is_named() -> None:
    """A photo's caption reaches the agent, and what it says is shown with looks."""
    async with open_town() as town, town.gateway():
        await town.chat.says(town.ann, photo=b"x", caption="**my** cat")
        await town.until(lambda: town.chat.texts)
        assert town.chat.texts[0].startswith("You said: [photo] my cat")
        assert ("bold", "my") in town.chat.last.marked


async def test_people_are_offered_the_commands_that_they_may_use() -> None:
    """The menu is complete in private, and in a group leaves to admins what changes it for everybody."""
    async with open_town() as town, town.gateway():
        await town.until(lambda: sum(request.done for request in town.api.asked("setMyCommands")) == 3)
        in_private, for_members, for_admins = (
            {name for name, _ in town.api.menu(chat, person)}
            for chat, person in ((town.chat, town.ann), (town.team, town.ben), (town.team, town.ann))
        )
        assert {"stop", "new", "queue"} <= in_private == for_admins
        assert for_members == in_private - {"new", "queue", "tz"}


async def test_who_waits_is_told_and_the_word_goes_when_it_is_their_turn() -> None:
    """ "Queued, 0 before you" is a passing word: it is gone once the message is worked on."""
    async with open_town() as town, town.gateway():
        await town.chat.says(town.ann, "count to 8")
        await town.until(lambda: town.chat.actions)
        await town.chat.says(town.ann, "count to 1")
        await town.until(lambda: any("Queued" in text for text in town.chat.texts))
        await town.until(lambda: "I counted to 1." in town.chat.texts)
        await town.until(lambda: not any("Queued" in text for text in town.chat.texts))


async def test_a_change_before_anything_was_read_is_all_that_was_said() -> None:
    """A message that was edited while nobody read is one message, in its newest form; a late edit changes nothing."""
    async with open_town() as town:
        message = await town.chat.says(town.ann, "helo")
        await town.chat.edits(message, "hello there")
        async with town.gateway():
            await town.until(lambda: town.chat.texts)
            assert town.chat.texts[0].startswith("You said: hello there")
            await town.until(lambda: not message.reactions)
            await town.chat.edits(message, "hello again")
            await town.chat.says(town.ann, "next")
            await town.until(lambda: len(town.chat.texts) == 2)
            assert town.chat.texts[1].startswith("You said: next")


@pytest.mark.parametrize("thread", [True, False])
async def test_albums_are_one_turn(thread: bool) -> None:
    """Pictures that are sent together are answered together. (the debounce joins them)"""
    async with open_town(forum=thread) as town, town.gateway(queue_debounce=800):
        await town.chat.says(town.ann, photo=b"1", caption="look", album="a")
        await town.chat.says(town.ann, photo=b"2", album="a")
        await town.until(lambda: town.chat.texts)
        assert town.chat.texts[0].startswith("You said: [photo] look\nYou said: [photo]")


async def test_an_answer_says_what_it_answers_once_something_else_was_said() -> None:
    """Alone with the bot, an answer is a reply only where people would have to guess what it is about."""
    async with open_town() as town, town.gateway():
        first = await town.chat.says(town.ann, "count to 1")
        second = await town.chat.says(town.ann, "tell me")
        await town.until(lambda: len(town.chat.answers) == 2)
        assert [message.reply_to for message in town.chat.answers] == [first.id, None]
        assert second.id > first.id


async def test_a_gateway_that_ends_leaves_no_growing_message_behind() -> None:
    """What was growing when the gateway was told to end is gone; the next one answers the message anew. (lesson 24)"""
    store = MemoryStore(utc_now)
    async with open_town() as town:
        async with town.gateway(store):
            await town.chat.says(town.ann, "count to 6")
            await town.until(lambda: town.chat.answers and town.chat.last.buttons)
        assert not town.chat.answers
        async with town.gateway(store):
            await town.until(lambda: town.chat.texts == ["I counted to 6."])


async def test_a_change_while_it_waits_reaches_the_agent_too() -> None:
    """A message that is edited while it waits is answered in both forms."""
    async with open_town() as town, town.gateway():
        await town.chat.says(town.ann, "count to 6")
        await town.until(lambda: town.chat.actions)
        waiting = await town.chat.says(town.ann, "tell me")
        await town.until(lambda: not town.api.updates.pending)
        await town.chat.edits(waiting, "tell me more")
        await town.until(lambda: not town.api.updates.pending)
        await town.until(lambda: len([text for text in town.chat.texts if text.startswith("You said")]) == 2)
        said = [text.split("\n")[0] for text in town.chat.texts if text.startswith("You said")]
        assert said == ["You said: tell me", "You said: tell me more"]
