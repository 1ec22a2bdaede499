"""Who is heard on Telegram and what they said: the double tells it, python-telegram-bot reads it, `read` decides."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from telegram import InlineKeyboardButton, InlineKeyboardMarkup

from gateway.channels.telegram_updates import Heard, Ignored, Me, Moved, Pressed, incoming, placed, read
from tests.unit.fakes.telegram_bot import OLD_TEAM, Here, here

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ME = Me(42, "fake_bot", frozenset({"stop", "help"}))


@asynccontextmanager
async def place(*, forum: bool = False) -> AsyncIterator[Here]:
    async with here(forum=forum) as it:
        yield it


async def heard(it: Here) -> Heard:
    said = read(await it.heard(), ME)
    assert isinstance(said, Heard), said
    return said


async def ignored(it: Here) -> str:
    said = read(await it.heard(), ME)
    assert isinstance(said, Ignored), said
    return said.why


async def test_a_private_message_is_heard_with_numeric_sender_and_chat() -> None:
    """What a person writes to the bot arrives as it is, under numbers that nobody can take over."""
    async with place() as it:
        message = await it.chat.says(it.ann, "hello")
        said = await heard(it)
        taken = incoming(said, ME, "default", admin=False)
        assert (taken.text, taken.sender, taken.group) == ("hello", "7", False)
        assert taken.key == ("telegram", "42", f"7:{message.id}")
        assert str(taken.session) == "default:main:telegram:42:7::0"


@pytest.mark.parametrize("text", ["hello all", "/stop@other_bot", "/weather", "mail@fake_bot.example", "@fake_botany"])
async def test_talk_among_people_in_a_group_is_not_heard(text: str) -> None:
    """In a group the bot hears nothing that is not meant for it: no talk, no command of another bot."""
    async with place() as it:
        await it.team.says(it.ben, text)
        await ignored(it)


@pytest.mark.parametrize(
    ("text", "arrives"),
    [
        ("@fake_bot hello", "hello"),
        ("@Fake_Bot, hello", "hello"),
        ("what do you say, @fake_bot?", "what do you say, @fake_bot?"),
        ("/stop", "/stop"),
        ("/STOP@fake_bot ", "/STOP@fake_bot"),
        ("@fake_bot /stop", "/stop"),
        ("/weather@fake_bot", "/weather@fake_bot"),
    ],
)
async def test_a_mention_or_a_command_in_a_group_is_heard(text: str, arrives: str) -> None:
    """Who calls the bot in a group is heard, without the call itself."""
    async with place() as it:
        await it.team.says(it.ben, text)
        said = await heard(it)
        assert (said.text.strip(), said.group, said.sender) == (arrives, True, 8)


async def test_a_reply_to_the_bot_in_a_group_is_heard_with_what_it_answers() -> None:
    """Who answers the bot is heard, and the agent is told what is answered."""
    async with place() as it:
        await it.bot.send_message(it.team.id, "Shall I?")
        await it.team.says(it.ben, "yes", reply_to=it.team.last)
        said = await heard(it)
        assert said.text == '[in reply to what you said: "Shall I?"]\nyes'
        await it.team.says(it.ben, "no", reply_to=await it.team.says(it.ann, "Shall we?"))
        first, second = await it.updates()
        assert isinstance(read(first, ME), Ignored)
        assert isinstance(read(second, ME), Ignored)


async def test_a_topic_is_kept_and_its_first_message_is_nobodys_quote() -> None:
    """A message in a topic names the topic; that all of them seem to answer its first message means nothing."""
    async with place(forum=True) as it:
        thread = await it.team.opens_topic("Plans", by=it.ann)
        await ignored(it)
        await it.team.says(it.ben, "@fake_bot hello", thread=thread)
        said = await heard(it)
        assert (said.thread, said.text) == (thread, "hello")
        assert incoming(said, ME, "default", admin=False).session.thread == str(thread)


async def test_a_reply_outside_of_a_forum_makes_no_topic() -> None:
    """A thread of replies in an ordinary supergroup belongs to the group's one conversation."""
    async with place() as it:
        await it.bot.send_message(it.team.id, "Shall I?")
        await it.team.says(it.ben, "yes", reply_to=it.team.last)
        assert (await heard(it)).thread is None


async def test_who_writes_in_the_name_of_a_chat_or_is_a_bot_is_nobody() -> None:
    """Anonymous admins, channels, bots, and people who write by way of a bot are not users. (S3)"""
    async with place() as it:
        other = it.api.person(99, "Other", username="other_bot", is_bot=True)
        news = it.api.channel(-1_001_000_000_009, "News")
        await it.team.says(it.team, "/stop@fake_bot")
        await it.team.says(news, "@fake_bot hello")
        await news.says(news, "/stop@fake_bot")
        await it.team.says(other, "@fake_bot hello")
        await it.team.says(it.ben, "@fake_bot hello", via=other)
        for update in await it.updates():
            assert isinstance(read(update, ME), Ignored)


async def test_what_is_forwarded_is_read_and_never_obeyed() -> None:
    """A forwarded command is text for the agent in a private chat, and nothing at all in a group. (S3)"""
    async with place() as it:
        await it.chat.says(it.ann, "/stopall", forward_of=it.ben)
        said = await heard(it)
        assert (said.text, said.command, said.sender) == ("[forwarded] /stopall", False, 7)
        await it.team.says(it.ben, "@fake_bot hello", forward_of=it.ann)
        await ignored(it)


async def test_what_is_not_text_is_named_beside_its_caption() -> None:
    """A photo, a voice message, a file or a place arrive in words, each with its caption."""
    async with place() as it:
        await it.chat.says(it.ann, photo=b"x", caption="my cat")
        assert (await heard(it)).text == "[photo] my cat"
        await it.chat.says(it.ann, voice=b"x")
        assert (await heard(it)).text == "[voice message]"
        await it.chat.says(it.ann, document=b"x", file_name="plan.pdf")
        assert (await heard(it)).text == "[file: plan.pdf]"
        await it.chat.says(it.ann, location={"latitude": 52.5, "longitude": 13.4})
        assert (await heard(it)).text == "[location: 52.50000, 13.40000]"


async def test_an_unknown_kind_of_message_says_so_and_a_happening_is_silent() -> None:
    """What nobody can read is said to be that; somebody joining says nothing."""
    async with place() as it:
        await it.chat.says(it.ann, hologram={"size": 3})
        assert (await heard(it)).text == "[a kind of message that cannot be read here]"
        await it.team.joins(it.api.person(9, "Cem"))
        assert await ignored(it) == "nobody said anything"


async def test_an_edit_has_a_key_of_its_own_that_names_the_same_message() -> None:
    """An edited message is another delivery of the same message, and can be told from the first."""
    async with place() as it:
        message = await it.chat.says(it.ann, "hello")
        first = await heard(it)
        await it.chat.edits(message, "hello you")
        second = await heard(it)
        assert first.place == second.place == f"7:{message.id}"
        assert (second.edited is not None, second.text) == (True, "hello you")
        number = incoming(second, ME, "default", admin=False).key.external_id
        assert number == f"7:{message.id}:{second.edited}"
        assert placed(number) == (7, message.id)


async def test_a_press_and_a_move_are_told_apart() -> None:
    """A pressed button names who pressed it; a group that becomes a supergroup tells both of its numbers."""
    async with place() as it:
        await it.bot.send_message(
            7, "…", reply_markup=InlineKeyboardMarkup([[InlineKeyboardButton("Stop", callback_data="stop:1")]])
        )
        await it.chat.press(it.chat.last, "Stop", by=it.ann)
        pressed = read(await it.heard(), ME)
        assert isinstance(pressed, Pressed)
        assert (pressed.sender, pressed.data, pressed.chat) == (7, "stop:1", 7)
        old = it.api.group(OLD_TEAM, "Old", [it.ben], owner=it.ann)
        await old.becomes_supergroup(-1_001_000_000_077, by=it.ann)
        moved, came = await it.updates()
        assert read(moved, ME) == Moved(OLD_TEAM, -1_001_000_000_077)
        assert isinstance(read(came, ME), Ignored)
