"""A chat as it is: who is in it, what is written there, what the bot shows in it.

`tests.fakes.telegram.chat.Chat` adds what people do there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tests.fakes.telegram.message import Message, texts
from tests.fakes.telegram.people import ANONYMOUS_ADMIN, CHANNEL_BOT, Person, Status, member_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.fakes.telegram.text import Entity
    from tests.fakes.telegram.world import World

Kind: TypeAlias = Literal["private", "group", "supergroup", "channel"]

ACTION_LASTS_S = 5.0
GENERAL = 1
"""The topic that every forum has; messages in it carry no thread."""
LINK_COLOUR = 7322096


@dataclass(frozen=True, slots=True)
class Action:
    at: float
    action: str
    thread: int | None


@dataclass(frozen=True, slots=True)
class Draft:
    at: float
    draft_id: int
    text: str
    entities: tuple[Entity, ...]
    thread: int | None


@dataclass(slots=True)
class Topic:
    id: int
    name: str
    closed: bool = False
    deleted: bool = False


@dataclass(eq=False)
class Room:
    world: World
    id: int
    kind: Kind
    title: str
    username: str | None = None
    forum: bool = False
    members: dict[int, Status] = field(default_factory=dict)
    messages: dict[int, Message] = field(default_factory=dict)
    """All there ever were, by number, also those that were deleted."""
    actions: list[Action] = field(default_factory=list)
    drafts: list[Draft] = field(default_factory=list)
    topics: dict[int, Topic] = field(default_factory=dict)
    bot_is: Status = "member"
    started: bool = True
    """Whether the bot may write here; in a private chat the person has to write first."""
    may_write: bool = True
    """Whether the members, and so the bot, have the right to send messages."""
    upgraded_to: int | None = None
    upgraded_from: int | None = None
    _last_id: int = 1
    """Of a supergroup or channel; its first message says that it was made."""

    def __repr__(self) -> str:
        return f"<{self.kind} {self.id} {self.title!r}>"

    # What is seen.

    @property
    def seen(self) -> list[Message]:
        """What a person sees when they look at the chat: all that is not deleted, in order."""
        return [message for message in self.messages.values() if not message.deleted]

    @property
    def answers(self) -> list[Message]:
        """Those of `seen` that the bot wrote."""
        return [message for message in self.seen if message.by_bot]

    @property
    def texts(self) -> list[str]:
        """What the bot's messages say now."""
        return texts(self.answers)

    @property
    def last(self) -> Message:
        """The bot's last message."""
        if not self.answers:
            raise LookupError(f"the bot has written nothing in {self!r}")
        return self.answers[-1]

    @property
    def deleted(self) -> list[Message]:
        return [message for message in self.messages.values() if message.deleted]

    @property
    def typing(self) -> bool:
        """Whether an action of the bot is shown now: it lasts for five seconds, and a message ends it."""
        if not self.actions:
            return False
        began = self.actions[-1].at
        written = any(message.at >= began for message in self.messages.values() if message.by_bot)
        return not written and self.world.now() < began + ACTION_LASTS_S

    @property
    def private(self) -> bool:
        return self.kind == "private"

    @property
    def grouped(self) -> bool:
        return self.kind in ("group", "supergroup")

    # What is told.

    @property
    def json(self) -> dict[str, Any]:
        if self.kind == "private":
            person = self.world.people[self.id]
            told = {
                name: value
                for name, value in person.json.items()
                if name in ("id", "first_name", "last_name", "username")
            }
            return {**told, "type": "private"}
        told = {"id": self.id, "type": self.kind, "title": self.title}
        if self.username:
            told["username"] = self.username
        return {**told, "is_forum": True} if self.forum else told

    def member(self, person: Person) -> dict[str, Any]:
        if person.id == self.world.bot.id:
            return member_json(person, self.bot_is)
        return member_json(person, self.members.get(person.id, "left"))

    def stands(self, status: Status) -> list[Person]:
        return [self.world.people[number] for number, stands in self.members.items() if stands == status]

    def next_id(self) -> int:
        """Supergroups and channels count for themselves, all other chats together."""
        if self.kind in ("supergroup", "channel"):
            self._last_id += 1
            return self._last_id
        return self.world.next_id()

    def sender(self, by: Person | Room) -> dict[str, Any]:
        """Who wrote it. A chat that writes does so in the name of a bot of Telegram's own."""
        if isinstance(by, Person):
            return {"from": by.json}
        if self.kind == "channel":
            return {"sender_chat": by.json}
        return {"from": (ANONYMOUS_ADMIN if by is self else CHANNEL_BOT).json, "sender_chat": by.json}

    def placed(self, reply_to: Message | None, thread: int | None) -> dict[str, Any]:
        """Which message it answers and in which thread it stands, with all that the server adds of its own accord."""
        told: dict[str, Any] = {}
        if reply_to is not None:
            told["reply_to_message"] = {key: value for key, value in reply_to.json.items() if key != "reply_to_message"}
            thread = thread or reply_to.thread
        if self.forum and thread not in (None, GENERAL):
            told |= {"message_thread_id": thread, "is_topic_message": True}
            if reply_to is None:  # the first message of a topic seems to be answered by all others
                told["reply_to_message"] = self.messages[thread or 0].json
        elif reply_to is not None and self.kind == "supergroup" and not self.forum:
            told["message_thread_id"] = reply_to.thread or reply_to.id
        return told

    def add(self, content: Mapping[str, Any], *, by_bot: bool, request: int | None = None) -> Message:
        """A new message, seen from now on."""
        told = {"message_id": self.next_id(), "date": self.world.date(), "chat": self.json, **content}
        message = Message(self.id, told, self.world.now(), by_bot)
        message.note(message.at, request)
        self.messages[message.id] = message
        self.world.note()
        return message

    def change(
        self, message: Message, content: Mapping[str, Any], *, request: int | None = None, dated: bool = True
    ) -> None:
        """What is None goes."""
        message.json = {key: value for key, value in {**message.json, **content}.items() if value is not None}
        if dated:
            message.json["edit_date"] = self.world.date()
        message.note(self.world.now(), request)
        self.world.note()

    def remove(self, message: Message) -> None:
        message.deleted_at = self.world.now()
        self.world.note()

    def find(self, message_id: int | None) -> Message | None:
        message = self.messages.get(message_id or 0)
        return None if message is None or message.deleted else message

    def tell(self, kind: str, content: dict[str, Any], *, about_bot: bool = False) -> None:
        """An update for the bot, unless it is not there any more."""
        if about_bot or self.bot_is not in ("left", "kicked"):
            self.world.updates.push(kind, content, self.id)

    def tell_message(self, message: Message, *, edited: bool = False) -> None:
        kind = "channel_post" if self.kind == "channel" else "message"
        if self.hears(message):
            self.tell(f"edited_{kind}" if edited else kind, message.json)

    def hears(self, message: Message) -> bool:
        """In privacy mode a bot that is no administrator hears only what is meant for it, and service messages."""
        if not self.world.privacy or not self.grouped or self.bot_is == "administrator":
            return True
        answered = self.messages.get(message.reply_to or 0)
        name = f"@{self.world.bot.username}".lower()
        if message.kind == "service" or (answered is not None and answered.by_bot):
            return True
        last = next((other for other in reversed(self.messages.values()) if other is not message), None)
        for kind, covered in message.marked:
            if kind == "mention" and covered.lower() == name:
                return True
            if kind == "bot_command" and (
                covered.lower().endswith(name) or (last and last.by_bot and "@" not in covered)
            ):
                return True
        return False
