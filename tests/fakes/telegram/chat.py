"""What people do in a chat. Each act happens at once, and the bot is told of it as Telegram would."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import trio

from tests.fakes.telegram.files import KINDS
from tests.fakes.telegram.people import Person, Status, member_json
from tests.fakes.telegram.room import LINK_COLOUR, Room, Topic
from tests.fakes.telegram.text import settle

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.fakes.telegram.message import Message
    from tests.fakes.telegram.text import Entity

SUPERGROUPS = -1_000_000_000_000
DAY_S = 86_400


@dataclass(slots=True)
class Press:
    """A button that was pressed, and what the bot answered to that."""

    id: str
    by: Person
    data: str
    answers: list[Mapping[str, Any]] = field(default_factory=list)
    expired: bool = False
    """Set it, and an answer comes too late."""

    @property
    def answered(self) -> bool:
        return bool(self.answers)

    @property
    def text(self) -> str:
        """What was shown to the person."""
        return "".join(str(answer.get("text", "")) for answer in self.answers)

    @property
    def alert(self) -> bool:
        return any(answer.get("show_alert") for answer in self.answers)


class Chat(Room):
    async def says(
        self,
        by: Person | Chat,
        text: str | None = None,
        *,
        caption: str | None = None,
        entities: Sequence[Entity] = (),
        reply_to: Message | int | None = None,
        thread: int | None = None,
        edit_of: Message | int | None = None,
        album: str | None = None,
        forward_of: Person | Chat | str | None = None,
        via: Person | None = None,
        file_name: str | None = None,
        **content: Any,
    ) -> Message:
        """A message, or with ``edit_of`` another form of one. ``by`` a chat: an anonymous admin, or a channel.

        ``content`` is a kind of file with its bytes (``photo=b"…"``, ``voice=…``, ``document=…``) or any other member
        of a message with its value (``location={…}``). ``forward_of`` a text: a person who does not want to be named.
        """
        await trio.lowlevel.checkpoint()
        told = self._content(text, caption, entities, content, file_name)
        if edit_of is not None:
            message = self._at(edit_of)
            self.change(message, told)
            self.tell_message(message, edited=True)
            return message
        self._begin()
        if album is not None:
            told["media_group_id"] = album
        if via is not None:
            told["via_bot"] = via.json
        if forward_of is not None:
            told["forward_origin"] = self._origin(forward_of)
        answered = None if reply_to is None else self._at(reply_to)
        told = {key: value for key, value in told.items() if value is not None}
        message = self.add({**self.sender(by), **self.placed(answered, thread), **told}, by_bot=False)
        self.tell_message(message)
        return message

    async def edits(self, message: Message | int, text: str | None = None, **content: Any) -> Message:
        """Another form of a message that somebody wrote."""
        message = self._at(message)
        return await self.says(self, text, edit_of=message, **content)

    def _content(
        self,
        text: str | None,
        caption: str | None,
        entities: Sequence[Entity],
        content: Mapping[str, Any],
        name: str | None,
    ) -> dict[str, Any]:
        told: dict[str, Any] = {}
        for kind, value in content.items():
            made = kind in KINDS and isinstance(value, bytes)
            told[kind] = self.world.files.keep(kind, value, name).told if made else value
            if kind == "animation":
                told["document"] = told[kind]
        if text is not None:
            told["text"], marked = settle(text, entities)
            told["entities"] = marked or None
        if caption is not None:
            told["caption"], marked = settle(caption, entities)
            told["caption_entities"] = marked or None
        return {key: value for key, value in told.items() if value is not None or key.endswith("entities")}

    def _origin(self, source: Person | Chat | str) -> dict[str, Any]:
        dated = {"date": self.world.date() - DAY_S}
        if isinstance(source, str):
            return {"type": "hidden_user", "sender_user_name": source, **dated}
        if isinstance(source, Person):
            return {"type": "user", "sender_user": source.json, **dated}
        if source.kind == "channel":
            return {"type": "channel", "chat": source.json, "message_id": 1, **dated}
        return {"type": "chat", "sender_chat": source.json, **dated}

    def _at(self, message: Message | int) -> Message:
        number = message if isinstance(message, int) else message.id
        if number not in self.messages:
            raise LookupError(f"there is no message {number} in {self!r}")
        return self.messages[number]

    def _begin(self) -> None:
        if self.private and self.bot_is == "kicked":
            raise ValueError(f"{self.title} has blocked the bot and cannot write to it")
        self.started = True

    async def press(self, message: Message | int, button: str, *, by: Person) -> Press:
        """By the button's text or data; it may be one that an earlier form of the message had."""
        await trio.lowlevel.checkpoint()
        message = self._at(message)
        data = message.button(button).data
        if data is None:
            raise ValueError(f"the button {button!r} opens an address, it tells the bot nothing")
        press = self.world.pressed(by, data)
        shown = {"message_id": message.id, "chat": self.json, "date": 0} if message.deleted else message.json
        told = {"id": press.id, "from": by.json, "chat_instance": str(abs(self.id)), "data": data, "message": shown}
        self.tell("callback_query", told)
        return press

    async def reacts(self, message: Message | int, *emojis: str, by: Person) -> None:
        """The bot is told if it is an administrator, or in a private chat, and asked for `message_reaction`."""
        await trio.lowlevel.checkpoint()
        told = {"chat": self.json, "message_id": self._at(message).id, "user": by.json, "date": self.world.date()}
        new = [{"type": "emoji", "emoji": emoji} for emoji in emojis]
        if self.private or self.bot_is == "administrator":
            self.tell("message_reaction", {**told, "old_reaction": [], "new_reaction": new})

    async def deletes(self, message: Message | int) -> None:
        """The bot is not told."""
        await trio.lowlevel.checkpoint()
        self.remove(self._at(message))

    # Who is here.

    async def joins(self, person: Person) -> Message:
        return await self._moves(person, "member", {"new_chat_members": [person.json]})

    async def leaves(self, person: Person) -> Message:
        return await self._moves(person, "left", {"left_chat_member": person.json})

    async def _moves(self, person: Person, status: Status, told: Mapping[str, Any]) -> Message:
        await trio.lowlevel.checkpoint()
        before = self.member(person)
        self.members[person.id] = status
        message = self.add({"from": person.json, **told}, by_bot=False)
        self.tell_message(message)
        if self.bot_is == "administrator":
            self.tell("chat_member", self._changed(person, before, self.member(person)))
        return message

    async def blocks(self) -> None:
        """The person of a private chat does not want to hear of the bot any more."""
        await self.bot_becomes("kicked", by=self.world.people[self.id])

    async def unblocks(self) -> None:
        await self.bot_becomes("member", by=self.world.people[self.id])

    async def bot_becomes(self, status: Status, *, by: Person) -> None:
        """Somebody adds, removes, promotes or demotes the bot, or blocks it."""
        await trio.lowlevel.checkpoint()
        bot = self.world.bot
        before, was = member_json(bot, self.bot_is), self.bot_is
        self.bot_is = status
        self.tell("my_chat_member", self._changed(by, before, member_json(bot, status)), about_bot=True)
        if self.grouped and was in ("left", "kicked"):
            self.tell_message(self.add({"from": by.json, "new_chat_members": [bot.json]}, by_bot=False))
        elif self.grouped and status in ("left", "kicked"):
            told = self.add({"from": by.json, "left_chat_member": bot.json}, by_bot=False)
            self.tell("message", told.json, about_bot=True)

    def _changed(self, by: Person, before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
        told = {"chat": self.json, "from": by.json, "date": self.world.date()}
        return {**told, "old_chat_member": before, "new_chat_member": after}

    # What becomes of it.

    async def becomes_supergroup(self, new_id: int, *, by: Person) -> Chat:
        """A group gets another number; the old one answers only that."""
        await trio.lowlevel.checkpoint()
        if self.kind != "group" or new_id > SUPERGROUPS:
            raise ValueError("only a basic group becomes a supergroup, with a number below -1000000000000")
        made = self.world.add_chat(
            Chat(self.world, new_id, "supergroup", self.title, members=dict(self.members), bot_is=self.bot_is)
        )
        made.upgraded_from = self.id
        self.tell_message(self.add({"from": by.json, "migrate_to_chat_id": new_id}, by_bot=False))
        self.upgraded_to = new_id
        first = made.add({"from": by.json, "sender_chat": made.json, "migrate_from_chat_id": self.id}, by_bot=False)
        made.tell_message(first)
        return made

    async def opens_topic(self, name: str, *, by: Person) -> int:
        """The number of its thread."""
        await trio.lowlevel.checkpoint()
        if not self.forum:
            raise ValueError(f"{self!r} is no forum")
        told = {"name": name, "icon_color": LINK_COLOUR}
        message = self.add({"from": by.json, "forum_topic_created": told, "is_topic_message": True}, by_bot=False)
        message.json["message_thread_id"] = message.id
        self.topics[message.id] = Topic(message.id, name)
        self.tell_message(message)
        return message.id

    async def closes_topic(self, thread: int, *, by: Person) -> None:
        await self._turns(thread, by, "forum_topic_closed", closed=True)

    async def reopens_topic(self, thread: int, *, by: Person) -> None:
        await self._turns(thread, by, "forum_topic_reopened", closed=False)

    async def _turns(self, thread: int, by: Person, told: str, *, closed: bool) -> None:
        await trio.lowlevel.checkpoint()
        self.topics[thread].closed = closed
        self.tell_message(self.add({"from": by.json, told: {}, **self.placed(None, thread)}, by_bot=False))

    async def deletes_topic(self, thread: int) -> None:
        """With all its messages; the bot is not told."""
        await trio.lowlevel.checkpoint()
        self.topics[thread].deleted = True
        for message in self.seen:
            if message.thread == thread:
                self.remove(message)
