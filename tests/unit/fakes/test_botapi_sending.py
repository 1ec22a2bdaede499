"""What the bot writes is seen as people would see it, and refused where the real server would refuse it."""

from __future__ import annotations

from typing import Any

import pytest
from telegram import BotCommandScopeAllGroupChats, BotCommandScopeChat, InputMediaPhoto, MessageEntity, ReplyParameters
from telegram.error import BadRequest, ChatMigrated, Forbidden, InvalidToken

from tests.fakes.botapi import Button
from tests.unit.fakes.telegram_bot import OLD_TEAM, TEAM, here, open_bot

NOBODY = 12345
STOP: Any = {"inline_keyboard": [[{"text": "Stop", "callback_data": "s"}], [{"text": "Docs", "url": "https://x.org"}]]}


async def test_a_message_is_seen_with_all_that_was_sent() -> None:
    """Text, entities, buttons, reply and topic; and it comes back to the bot as it is seen."""
    async with here(forum=True) as place:
        plans = await place.team.opens_topic("Plans", by=place.ann)
        asked = await place.team.says(place.ben, "how?", thread=plans)
        sent = await place.bot.send_message(
            TEAM,
            "so 😀 x",
            entities=[MessageEntity("bold", 3, 2)],
            message_thread_id=plans,
            reply_parameters=ReplyParameters(asked.id),
            reply_markup=STOP,
        )
        seen = place.team.last
        assert (seen.id, seen.text, seen.thread, seen.reply_to) == (sent.message_id, "so 😀 x", plans, asked.id)
        assert seen.marked == [("bold", "😀")]
        assert seen.buttons == ((Button("Stop", "s"),), (Button("Docs", url="https://x.org"),))
        assert sent.from_user is not None
        assert sent.from_user.id == place.api.bot.id
        assert sent.to_dict()["reply_markup"] == STOP


async def test_an_edit_replaces_and_is_remembered() -> None:
    """Buttons that are not given again are gone, as on the real server; each form is kept with its time."""
    async with here() as place:
        sent = await place.bot.send_message(7, "1", reply_markup=STOP)
        await place.bot.edit_message_text("1, 2", 7, sent.message_id, reply_markup=STOP)
        await place.bot.edit_message_reply_markup(7, sent.message_id)
        await place.bot.edit_message_text("1, 2, 3", 7, sent.message_id)
        versions = place.chat.last.versions
        assert [(version.text, len(version.buttons)) for version in versions] == [
            ("1", 2),
            ("1, 2", 2),
            ("1, 2", 0),
            ("1, 2, 3", 0),
        ]
        assert sorted(version.at for version in versions) == [version.at for version in versions]
        assert place.chat.texts == ["1, 2, 3"]


@pytest.mark.parametrize(
    ("text", "options", "why"),
    [
        ("", {}, "message text is empty"),
        (" \n ", {}, "message text is empty"),
        ("\u202e", {}, "message text is empty"),
        ("\u200b \u2060", {}, "message text is empty"),
        ("x" * 4097, {}, "message is too long"),
        ("😀" * 2049, {}, "message is too long"),
        (
            "x",
            {"reply_markup": {"inline_keyboard": [[{"text": "a", "callback_data": "x" * 65}]]}},
            "BUTTON_DATA_INVALID",
        ),
        ("x", {"reply_markup": {"inline_keyboard": [[{"text": "a", "callback_data": ""}]]}}, "BUTTON_DATA_INVALID"),
        ("x", {"reply_markup": {"inline_keyboard": [[{"text": "a"}]]}}, "Text buttons are unallowed"),
        ("x", {"reply_parameters": ReplyParameters(999)}, "message to be replied not found"),
        ("x", {"message_thread_id": 5}, "message thread not found"),
        ("x", {"entities": [MessageEntity("bold", 0, 2)]}, "ends after the end of the text at UTF-16 offset 2"),
        ("x", {"entities": [MessageEntity("bold", 1, 1)]}, "begins after the end of the text at UTF-16 offset 1"),
        ("😀😀", {"entities": [MessageEntity("bold", 0, 3)]}, "in a middle of a UTF-16 symbol"),
        ("abcd", {"entities": [MessageEntity("bold", 0, 2), MessageEntity("italic", 1, 2)]}, "ends after the end"),
        ("x", {"entities": [MessageEntity("shiny", 0, 1)]}, "can't parse MessageEntity: Unsupported type"),
        ("a.b", {"parse_mode": "MarkdownV2"}, "can't parse entities: Character '.' is reserved"),
        ("a *b", {"parse_mode": "MarkdownV2"}, "can't parse entities: Can't find end of Bold entity at byte offset 2"),
        ("a `b", {"parse_mode": "MarkdownV2"}, "can't parse entities: Can't find end of Code entity"),
        ("*a _b* c_", {"parse_mode": "MarkdownV2"}, "can't parse entities: Can't find end of Italic entity"),
        ("[a](b", {"parse_mode": "MarkdownV2"}, "can't parse entities"),
        ("a <div>", {"parse_mode": "HTML"}, 'can\'t parse entities: Unsupported start tag "div" at byte offset 2'),
        ("a < b", {"parse_mode": "HTML"}, "can't parse entities: Unsupported start tag"),
        ("<b>a", {"parse_mode": "HTML"}, "can't parse entities: Can't find end tag corresponding to start tag \"b\""),
        ("<b><i>a</b></i>", {"parse_mode": "HTML"}, 'expected "</i>", found "</b>"'),
        (
            "a _b",
            {"parse_mode": "Markdown"},
            "can't parse entities: Can't find end of the entity starting at byte offset 2",
        ),
        ("x", {"parse_mode": "TeX"}, "unsupported parse_mode"),
    ],
)
async def test_what_cannot_be_sent_is_refused(text: str, options: dict[str, Any], why: str) -> None:
    """In the real server's words, and nothing is seen of it."""
    async with here() as place:
        with pytest.raises(BadRequest) as raised:
            await place.bot.send_message(7, text, **options)
        assert why.lower() in str(raised.value).lower()
        assert place.chat.seen == []
        assert place.api.requests[-1].status == 400


@pytest.mark.parametrize(
    ("text", "mode", "seen", "marked"),
    [
        ("*b* _i_ __u__ ~s~ ||h||", "MarkdownV2", "b i u s h", "bold italic underline strikethrough spoiler"),
        (r"1\. `a\`b` [x\-y](http://z.org/\))", "MarkdownV2", "1. a`b x-y", "code text_link"),
        ("```py\nx = 1\n```", "MarkdownV2", "x = 1", "pre"),
        (">q1\n>q2\nout", "MarkdownV2", "q1\nq2\nout", "blockquote"),
        ("*a _b_*", "MarkdownV2", "a b", "bold italic"),
        (
            "<b>b</b> <i>i</i> <u>u</u> <s>s</s> &lt;&amp;&#33;",
            "HTML",
            "b i u s <&!",
            "bold italic underline strikethrough",
        ),
        ('<pre><code class="language-py">x</code></pre>', "HTML", "x", "pre"),
        ('<a href="http://x.org/?a=1&amp;b=2">x</a> <tg-spoiler>h</tg-spoiler>', "HTML", "x h", "text_link spoiler"),
        ("<blockquote expandable>q</blockquote>", "HTML", "q", "expandable_blockquote"),
        ("*b* `c` [x](http://y.org)", "Markdown", "b c x", "bold code text_link"),
    ],
)
async def test_markup_is_read(text: str, mode: str, seen: str, marked: str) -> None:
    """The text without it, and its kinds as entities."""
    async with here() as place:
        sent = await place.bot.send_message(7, text, parse_mode=mode)
        assert sent.text == seen
        assert [str(entity.type) for entity in sent.entities] == marked.split()


async def test_the_longest_text_and_what_the_server_makes_of_a_text() -> None:
    """It counts UTF-16 units after trimming; control and direction marks go, and entities move along."""
    async with here() as place:
        await place.bot.send_message(7, "  " + "😀" * 2048 + "\n")
        assert place.chat.last.text == "😀" * 2048
        await place.bot.send_message(7, "a\u202eb\r\nc", entities=[MessageEntity("bold", 2, 1)])
        assert (place.chat.last.text, place.chat.last.marked) == ("ab\nc", [("bold", "b")])
        await place.bot.send_message(7, "x" * 200, entities=[MessageEntity("bold", n, 1) for n in range(150)])
        assert len(place.chat.last.entities) == 100


async def test_what_cannot_be_edited() -> None:
    """The same again, what is gone, and what somebody else wrote."""
    async with here() as place:
        sent = await place.bot.send_message(7, "one", reply_markup=STOP)
        said = await place.chat.says(place.ann, "mine")
        edit = place.bot.edit_message_text
        with pytest.raises(BadRequest, match="essage is not modified: specified new message content"):
            await edit("one", 7, sent.message_id, reply_markup=STOP)
        with pytest.raises(BadRequest, match="essage can't be edited"):
            await edit("x", 7, said.id)
        await place.chat.deletes(sent.message_id)
        with pytest.raises(BadRequest, match="essage to edit not found"):
            await edit("x", 7, sent.message_id)
        with pytest.raises(BadRequest, match="essage to delete not found"):
            await place.bot.delete_message(7, sent.message_id)
        with pytest.raises(BadRequest, match="essage to be replied not found"):
            await place.bot.send_message(7, "x", reply_parameters=ReplyParameters(sent.message_id))
        parameters = ReplyParameters(sent.message_id, allow_sending_without_reply=True)
        assert (await place.bot.send_message(7, "x", reply_parameters=parameters)).reply_to_message is None


async def test_only_what_one_may_is_deleted() -> None:
    """In a private chat anything, in a group one's own, as an administrator anything again."""
    async with here() as place:
        mine, yours = await place.bot.send_message(TEAM, "x"), await place.team.says(place.ben, "y")
        assert await place.bot.delete_message(TEAM, mine.message_id)
        with pytest.raises(BadRequest, match="essage can't be deleted"):
            await place.bot.delete_message(TEAM, yours.id)
        await place.team.bot_becomes("administrator", by=place.ann)
        assert await place.bot.delete_message(TEAM, yours.id)
        assert [message.text for message in place.team.deleted] == ["x", "y"]


async def test_chats_that_cannot_be_written_to() -> None:
    """Each says why: nobody knows it, never wrote, blocked, thrown out, silenced, has another number now."""
    async with here() as place:
        old = place.api.group(OLD_TEAM, "Old", [place.ben])
        send = place.bot.send_message
        with pytest.raises(BadRequest, match="Chat not found"):
            await send(NOBODY, "x")
        with pytest.raises(Forbidden, match="bot can't initiate conversation with a user"):
            await send(8, "x")
        await place.chat.blocks()
        with pytest.raises(Forbidden, match="bot was blocked by the user"):
            await send(7, "x")
        await place.chat.unblocks()
        await send(7, "x")
        place.team.may_write = False
        with pytest.raises(BadRequest, match="ot enough rights to send text messages to the chat"):
            await send(TEAM, "x")
        await place.team.bot_becomes("kicked", by=place.ann)
        with pytest.raises(Forbidden, match="bot was kicked from the supergroup chat"):
            await send(TEAM, "x")
        new = await old.becomes_supergroup(-1_001_000_000_077, by=place.ann)
        with pytest.raises(ChatMigrated) as raised:
            await send(OLD_TEAM, "x")
        assert raised.value.new_chat_id == new.id
        await send(new.id, "x")


async def test_topics_that_cannot_be_written_to() -> None:
    """General has no thread of its own but for actions; closed and deleted topics say so."""
    async with here(forum=True) as place:
        plans = await place.team.opens_topic("Plans", by=place.ann)
        with pytest.raises(BadRequest, match="essage thread not found"):
            await place.bot.send_message(TEAM, "x", message_thread_id=1)
        await place.bot.send_chat_action(TEAM, "typing", message_thread_id=1)
        await place.team.closes_topic(plans, by=place.ann)
        with pytest.raises(BadRequest, match="Topic_closed"):
            await place.bot.send_message(TEAM, "x", message_thread_id=plans)
        await place.team.reopens_topic(plans, by=place.ann)
        await place.bot.send_message(TEAM, "x", message_thread_id=plans)
        await place.team.deletes_topic(plans)
        with pytest.raises(BadRequest, match="essage thread not found"):
            await place.bot.send_message(TEAM, "x", message_thread_id=plans)
        assert place.team.answers == []


async def test_files_arrive_with_their_content() -> None:
    """Sent as multipart with names and captions, alone and as an album, and once more by their id."""
    async with here() as place:
        content = bytes(range(256)) * 4 + b"\r\n--\r\n"
        sent = await place.bot.send_document(7, content, filename="ü.bin", caption="*c*", parse_mode="MarkdownV2")
        seen = place.chat.last
        assert seen.file is not None
        assert (seen.file.content, seen.text, seen.marked, seen.kind) == (content, "c", [("bold", "c")], "document")
        assert sent.document is not None
        assert sent.document.file_size == len(content)
        again = await place.bot.send_document(7, sent.document.file_id)
        assert again.document == sent.document
        album = await place.bot.send_media_group(7, [InputMediaPhoto(b"1", caption="one"), InputMediaPhoto(b"2")])
        assert len({message.media_group_id for message in album}) == 1
        assert [message.file.content for message in place.chat.answers[-2:] if message.file] == [b"1", b"2"]
        await place.bot.send_voice(7, b"ogg")
        with pytest.raises(BadRequest, match="essage caption is too long"):
            await place.bot.send_photo(7, b"x", caption="x" * 1025)
        with pytest.raises(BadRequest, match="ile must be non-empty"):
            await place.bot.send_document(7, b"", filename="none")
        await place.bot.edit_message_caption(7, sent.message_id, caption="d")
        assert seen.text == "d"
        with pytest.raises(BadRequest, match="here is no text in the message to edit"):
            await place.bot.edit_message_text("d", 7, sent.message_id)
        place.api.files.too_big.add(sent.document.file_id)
        with pytest.raises(BadRequest, match="ile is too big"):
            await place.bot.get_file(sent.document.file_id)


async def test_actions_reactions_and_drafts_are_seen() -> None:
    """Typing ends with a message; a reaction must be one that Telegram knows, a draft must be in a private chat."""
    async with here() as place:
        said = await place.chat.says(place.ann, "hm")
        await place.bot.send_chat_action(7, "typing")
        assert place.chat.typing
        assert [(action.action, action.thread) for action in place.chat.actions] == [("typing", None)]
        await place.bot.send_message_draft(7, 1, "Let me")
        assert [draft.text for draft in place.chat.drafts] == ["Let me"]
        await place.bot.send_message(7, "Let me see")
        assert not place.chat.typing
        with pytest.raises(BadRequest, match="only to private chats"):
            await place.bot.send_message_draft(TEAM, 1, "x")
        await place.bot.set_message_reaction(7, said.id, "👀")
        assert said.reactions == ["👀"]
        with pytest.raises(BadRequest, match="Reaction_invalid"):
            await place.bot.set_message_reaction(7, said.id, "✅")
        await place.bot.set_message_reaction(7, said.id, [])
        assert said.reactions == []
        with pytest.raises(BadRequest, match="rong parameter action"):
            await place.bot.send_chat_action(7, "yawning")


async def test_typing_lasts_five_seconds() -> None:
    """By the clock that was handed in."""
    now = [100.0]
    async with here(now=lambda: now[0]) as place:
        await place.bot.send_chat_action(7, "typing")
        now[0] += 4.9
        assert place.chat.typing
        now[0] += 0.2
        assert not place.chat.typing


async def test_menus_are_seen_by_scope_and_language() -> None:
    """The narrowest scope wins, and in it the person's own language."""
    async with here() as place:
        await place.bot.set_my_commands([("help", "Help")])
        await place.bot.set_my_commands([("stop", "Stop")], scope=BotCommandScopeAllGroupChats())
        await place.bot.set_my_commands([("stop", "Halt")], scope=BotCommandScopeAllGroupChats(), language_code="de")
        carl = place.api.person(11, "Carl", language="de")
        assert place.api.menu(place.chat, place.ann) == [("help", "Help")]
        assert place.api.menu(place.team, place.ben) == [("stop", "Stop")]
        assert place.api.menu(place.team, carl) == [("stop", "Halt")]
        await place.bot.set_my_commands([("me", "Mine")], scope=BotCommandScopeChat(7))
        assert place.api.menu(place.chat, place.ann) == [("me", "Mine")]
        assert [command.command for command in await place.bot.get_my_commands()] == ["help"]
        await place.bot.delete_my_commands(scope=BotCommandScopeChat(7))
        assert place.api.menu(place.chat, place.ann) == [("help", "Help")]
        with pytest.raises(BadRequest, match="Bot_command_invalid"):
            await place.bot.set_my_commands([("Help!", "x")])


async def test_who_is_who() -> None:
    """Chats, members and administrators as the library reads them."""
    async with here() as place:
        assert (await place.bot.get_chat(TEAM)).title == "Team"
        assert (await place.bot.get_chat_member(TEAM, 8)).status == "member"
        assert (await place.bot.get_chat_member(TEAM, 42)).status == "member"
        assert (await place.bot.get_chat_member(TEAM, 7)).status == "creator"
        await place.team.bot_becomes("administrator", by=place.ann)
        admins = await place.bot.get_chat_administrators(TEAM)
        assert [(member.user.id, member.status) for member in admins] == [(7, "creator"), (42, "administrator")]
        assert await place.bot.get_chat_member_count(TEAM) == 3
        assert await place.bot.leave_chat(TEAM)
        with pytest.raises(Forbidden, match="bot is not a member of the supergroup chat"):
            await place.bot.get_chat(TEAM)


async def test_a_wrong_token_and_an_unknown_method() -> None:
    """401 and 404, which the library takes for the same."""
    async with here() as place:
        async with open_bot(place.api, token="42:other") as stranger:  # noqa: S106
            with pytest.raises(InvalidToken):
                await stranger.get_me()
        assert place.api.requests[-1].description == "Unauthorized"
        with pytest.raises(InvalidToken, match="'makeCoffee' does not exist"):
            await place.bot.do_api_request("makeCoffee")
        assert place.api.requests[-1].status == 404
