"""What people do reaches the bot as python-telegram-bot reads it, with all that Telegram adds of its own accord."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from telegram import Message, Update
from telegram.constants import ChatMemberStatus, ChatType, MessageEntityType, MessageOriginType

from tests.unit.fakes.telegram_bot import OLD_TEAM, TEAM, Here, here

if TYPE_CHECKING:
    from tests.fakes.botapi import Chat

STOP: Any = {"inline_keyboard": [[{"text": "Stop", "callback_data": "s"}]]}
CHANNEL = -1_001_000_000_009


async def next_message(place: Here) -> Message:
    message = (await place.heard()).effective_message
    assert isinstance(message, Message)
    return message


async def test_a_text_arrives_whole() -> None:
    """Who, where, when and what, with the commands, links and mentions that the server finds, in UTF-16 units."""
    async with here() as place:
        said = await place.chat.says(place.ann, "😀 /stop@fake_bot https://goclaw.dev/x. @ben_fake")
        message = await next_message(place)
        assert message.from_user is not None
        assert (message.from_user.id, message.from_user.username) == (7, "ann_fake")
        assert (message.chat.type, message.chat.id, message.message_id) == (ChatType.PRIVATE, 7, said.id)
        assert message.text == said.text
        assert [(entity.type, message.parse_entity(entity)) for entity in message.entities] == [
            (MessageEntityType.BOT_COMMAND, "/stop@fake_bot"),
            (MessageEntityType.URL, "https://goclaw.dev/x"),
            (MessageEntityType.MENTION, "@ben_fake"),
        ]
        assert message.entities[0].offset == 3


@pytest.mark.parametrize(
    ("content", "attribute"),
    [
        ({"photo": b"jpeg", "caption": "look"}, "photo"),
        ({"document": b"%PDF", "file_name": "a.pdf", "caption": "read"}, "document"),
        ({"voice": b"ogg"}, "voice"),
        ({"audio": b"mp3"}, "audio"),
        ({"video": b"mp4", "caption": "watch"}, "video"),
        ({"animation": b"gif"}, "animation"),
        ({"video_note": b"mp4"}, "video_note"),
        ({"sticker": b"webp"}, "sticker"),
        ({"location": {"latitude": 1.5, "longitude": 2.5}}, "location"),
        ({"contact": {"phone_number": "+1", "first_name": "X"}}, "contact"),
        ({"dice": {"emoji": "🎲", "value": 3}}, "dice"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_whatever_is_sent_is_read(content: dict[str, Any], attribute: str) -> None:
    """Each kind as its own, with its caption; files can be downloaded with the bytes that were sent."""
    async with here() as place:
        await place.chat.says(place.ann, **content)
        message = await next_message(place)
        got = getattr(message, attribute)
        assert got
        assert message.caption == content.get("caption")
        if isinstance(content[attribute], bytes):
            file = await (got[-1] if attribute == "photo" else got).get_file()
            assert bytes(await file.download_as_bytearray()) == content[attribute]
            assert getattr(got, "file_name", None) in (
                None,
                content.get("file_name"),
                file.file_path.rpartition("/")[2],
            )


async def test_an_album_is_several_messages_with_one_name() -> None:
    async with here() as place:
        for number in range(2):
            await place.chat.says(place.ann, photo=b"jpeg", album="A", caption="both" if not number else None)
        got = [update.message for update in await place.updates()]
        assert [(message.media_group_id, message.caption) for message in got if message] == [("A", "both"), ("A", None)]


async def test_an_edit_is_told_as_one() -> None:
    """With the number of the message that it changes and the time of the change; the history keeps both forms."""
    async with here() as place:
        said = await place.chat.says(place.ann, "tow")
        await place.heard()
        await place.chat.edits(said, "two")
        update = await place.heard()
        assert update.edited_message is not None
        assert (update.edited_message.message_id, update.edited_message.text) == (said.id, "two")
        assert update.edited_message.edit_date is not None
        assert [version.text for version in said.versions] == ["tow", "two"]


async def test_a_reply_shows_what_it_answers() -> None:
    """In a supergroup it also carries a thread, though there are no topics."""
    async with here() as place:
        asked = await place.bot.send_message(TEAM, "yes?")
        await place.team.says(place.ben, "no", reply_to=asked.message_id)
        message = await next_message(place)
        assert message.reply_to_message is not None
        assert message.reply_to_message.from_user is not None
        assert message.reply_to_message.from_user.id == place.api.bot.id
        assert message.message_thread_id == asked.message_id
        assert not message.is_topic_message


async def test_a_topic_is_told_with_its_first_message() -> None:
    """Every message of a topic seems to answer the one that opened it; those in General carry no thread."""
    async with here(forum=True) as place:
        plans = await place.team.opens_topic("Plans", by=place.ann)
        opened = await next_message(place)
        assert opened.forum_topic_created is not None
        assert opened.forum_topic_created.name == "Plans"
        said = await place.team.says(place.ben, "in it", thread=plans)
        message = await next_message(place)
        assert (message.message_thread_id, message.is_topic_message) == (plans, True)
        assert message.reply_to_message is not None
        assert message.reply_to_message.forum_topic_created is not None
        assert said.reply_to is None
        await place.team.says(place.ben, "outside")
        assert (await next_message(place)).message_thread_id is None


async def test_those_who_are_no_persons_are_told_apart() -> None:
    """An anonymous admin, a channel in a group, a channel's post, another bot, and what came by way of a bot."""
    async with here() as place:
        channel, helper = (
            place.api.channel(CHANNEL, "News"),
            place.api.person(99, "Helper", username="h_bot", is_bot=True),
        )
        await place.team.says(place.team, "as the group")
        message = await next_message(place)
        assert message.from_user is not None
        assert (message.from_user.id, message.sender_chat) == (1087968824, message.chat)
        await place.team.says(channel, "as the channel")
        message = await next_message(place)
        assert message.sender_chat is not None
        assert message.sender_chat.id == CHANNEL
        await channel.says(channel, "post")
        update = await place.heard()
        assert update.channel_post is not None
        assert update.effective_user is None
        await channel.edits(channel.seen[-1], "post 2")
        assert (await place.heard()).edited_channel_post is not None
        await place.team.says(helper, "beep")
        message = await next_message(place)
        assert message.from_user is not None
        assert message.from_user.is_bot
        await place.chat.says(place.ann, "inline", via=helper)
        assert (await next_message(place)).via_bot is not None


@pytest.mark.parametrize("source", ["person", "hidden", "group", "channel"])
async def test_a_forward_says_where_it_comes_from(source: str) -> None:
    async with here() as place:
        channel = place.api.channel(CHANNEL, "News")
        origins: dict[str, Any] = {"person": place.ben, "hidden": "Somebody", "group": place.team, "channel": channel}
        kinds = {"person": MessageOriginType.USER, "hidden": MessageOriginType.HIDDEN_USER}
        kinds |= {"group": MessageOriginType.CHAT, "channel": MessageOriginType.CHANNEL}
        await place.chat.says(place.ann, "see", forward_of=origins[source])
        message = await next_message(place)
        assert message.forward_origin is not None
        assert message.forward_origin.type == kinds[source]


async def test_coming_and_going_is_told() -> None:
    """Of people as messages, of the bot itself as its membership."""
    async with here() as place:
        eve = place.api.person(9, "Eve")
        await place.team.joins(eve)
        assert [user.id for user in (await next_message(place)).new_chat_members] == [9]
        await place.team.leaves(eve)
        left = (await next_message(place)).left_chat_member
        assert left is not None
        assert left.id == 9
        await place.team.bot_becomes("kicked", by=place.ann)
        updates = await place.updates()
        member = updates[0].my_chat_member
        assert member is not None
        assert (member.old_chat_member.status, member.new_chat_member.status) == (
            ChatMemberStatus.MEMBER,
            ChatMemberStatus.BANNED,
        )
        await place.team.says(place.ben, "now it is gone")
        assert [update.update_id for update in await place.updates()] == [update.update_id for update in updates]


async def test_a_group_becomes_a_supergroup() -> None:
    """Both chats are told, each with the number of the other."""
    async with here() as place:
        old = place.api.group(OLD_TEAM, "Old", [place.ben])
        new: Chat = await old.becomes_supergroup(-1_001_000_000_077, by=place.ann)
        from_old, from_new = [update.message for update in await place.updates()]
        assert from_old is not None
        assert from_new is not None
        assert (from_old.chat.id, from_old.migrate_to_chat_id) == (OLD_TEAM, new.id)
        assert (from_new.chat.id, from_new.migrate_from_chat_id) == (new.id, OLD_TEAM)
        assert from_new.chat.type == ChatType.SUPERGROUP


async def test_a_press_is_answered() -> None:
    """The bot is told who pressed what; the person sees what it says; an answer that comes too late is refused."""
    async with here() as place:
        await place.bot.send_message(7, "?", reply_markup=STOP)
        press = await place.chat.press(place.chat.last, "Stop", by=place.ann)
        query = (await place.heard()).callback_query
        assert query is not None
        assert (query.id, query.from_user.id, query.data) == (press.id, 7, "s")
        assert query.message is not None
        assert query.message.message_id == place.chat.last.id
        await query.answer("Stopped", show_alert=True)
        assert (press.text, press.alert) == ("Stopped", True)


async def test_a_press_on_what_is_gone_is_told_without_the_message() -> None:
    """Buttons that an edit took away can still be pressed by who had not seen that yet."""
    async with here() as place:
        sent = await place.bot.send_message(7, "?", reply_markup=STOP)
        await place.bot.edit_message_text("done", 7, sent.message_id)
        assert place.chat.last.buttons == ()
        await place.chat.deletes(sent.message_id)
        await place.chat.press(sent.message_id, "s", by=place.ann)
        query = (await place.heard()).callback_query
        assert query is not None
        assert query.message is not None
        assert not query.message.is_accessible


async def test_a_reaction_is_told_to_who_asks_for_it() -> None:
    async with here() as place:
        said = await place.chat.says(place.ann, "hm")
        await place.heard()
        await place.chat.reacts(said, "👍", by=place.ann)
        reaction = (await place.heard()).message_reaction
        assert reaction is not None
        assert len(reaction.new_reaction) == 1


async def test_privacy_keeps_from_the_bot_what_is_not_meant_for_it() -> None:
    """It hears commands and mentions with its name and answers to it; as an administrator it hears everything."""
    async with here(privacy=True) as place:
        assert not (await place.bot.get_me()).can_read_all_group_messages
        asked = await place.bot.send_message(TEAM, "yes?")
        await place.team.says(place.ben, "between us")
        await place.team.says(place.ben, "/stop@other_bot")
        await place.team.says(place.ben, "/stop@fake_bot")
        await place.team.says(place.ben, "hey @fake_bot")
        await place.team.says(place.ben, "no", reply_to=asked.message_id)
        texts = [update.message.text for update in await place.updates() if update.message]
        assert texts == ["/stop@fake_bot", "hey @fake_bot", "no"]
        await place.team.bot_becomes("administrator", by=place.ann)
        await place.team.says(place.ben, "aloud")
        assert place.api.updates.pending[-1].body["message"]["text"] == "aloud"


async def test_every_update_survives_the_library_as_it_was_sent() -> None:
    """Read and written again by python-telegram-bot it holds all that the double had put in."""
    async with here(forum=True) as place:
        await place.bot.get_updates(allowed_updates=Update.ALL_TYPES)
        channel = place.api.channel(CHANNEL, "News")
        plans = await place.team.opens_topic("Plans", by=place.ann)
        first = await place.team.says(place.ben, "/go @fake_bot", thread=plans)
        await place.team.says(place.team, "I", reply_to=first, thread=plans)
        await place.team.closes_topic(plans, by=place.ann)
        await place.team.edits(first, "went", entities=[{"type": "bold", "offset": 0, "length": 2}])
        await place.chat.says(place.ann, photo=b"x", caption="#p", forward_of=channel)
        await channel.says(channel, "post")
        await place.chat.blocks()
        await place.chat.unblocks()
        assert len(place.api.updates.pending) == 9
        for update in place.api.updates.pending:
            read = Update.de_json(update.body, place.bot)
            written = read.to_dict()
            assert read.update_id == update.id
            assert lost(update.body, written) == []


def lost(sent: Any, got: Any, where: str = "") -> list[str]:
    """The members that were sent and that are not there, or not the same."""
    if isinstance(sent, dict):
        return [line for key, value in sent.items() for line in lost(value, got.get(key), f"{where}.{key}")]
    if isinstance(sent, list) and isinstance(got, list | tuple) and len(sent) == len(got):
        return [line for number, value in enumerate(sent) for line in lost(value, got[number], f"{where}[{number}]")]
    same = sent == got or (not sent and not got)
    return [] if same else [f"{where}: {sent!r} became {got!r}"]
