"""What a Telegram update is to the gateway: something that a person said, a pressed button, or why it is neither. Pure.

In a group only what is meant for the bot counts: a mention of it, a reply to it, one of its commands. Who writes in the
name of a chat (anonymous admins, channels), bots, and the authors of what is forwarded are not users: nobody knows who
they are, or that they meant it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from store.records import DeliveryKey, Incoming, SessionKey

if TYPE_CHECKING:
    from collections.abc import Iterable

    from telegram import Message, MessageEntity, Update, User

CHANNEL: Final = "telegram"
AGENT: Final = "main"
GROUPS: Final = ("group", "supergroup")
EXCERPT: Final = 200
STOP_DATA: Final = "stop:"

MEDIA: Final = {
    "animation": "GIF",
    "photo": "photo",
    "voice": "voice message",
    "video_note": "video message",
    "video": "video",
    "audio": "audio",
    "document": "file",
    "sticker": "sticker",
    "venue": "place",
    "location": "location",
    "contact": "contact",
    "poll": "poll",
    "dice": "dice",
    "story": "story",
    "game": "game",
    "invoice": "invoice",
    "paid_media": "paid media",
    "checklist": "checklist",
}
"""What is not text, and what it is called. The first one that a message has counts: a GIF is a file too."""
_HAPPENINGS: Final = (
    "new_chat_members left_chat_member new_chat_title new_chat_photo delete_chat_photo group_chat_created"
    " supergroup_chat_created channel_chat_created message_auto_delete_timer_changed migrate_to_chat_id"
    " migrate_from_chat_id pinned_message forum_topic_created forum_topic_edited forum_topic_closed"
    " forum_topic_reopened general_forum_topic_hidden general_forum_topic_unhidden video_chat_scheduled"
    " video_chat_started video_chat_ended video_chat_participants_invited write_access_allowed boost_added"
    " users_shared chat_shared connected_website proximity_alert_triggered chat_background_set giveaway_created"
    " giveaway_completed successful_payment refunded_payment web_app_data passport_data checklist_tasks_done"
    " checklist_tasks_added paid_message_price_changed direct_message_price_changed gift unique_gift"
)
HAPPENINGS: Final = frozenset(_HAPPENINGS.split())
"""Members of messages in which nobody says anything."""

_COMMAND = re.compile(r"\s*/(?P<name>[A-Za-z][A-Za-z0-9_]*)(?:@(?P<bot>\w+))?(?=[.,;:!?…]*(?:\s|$))")


@dataclass(frozen=True, slots=True)
class Me:
    """The bot itself, and the commands that it knows."""

    id: int
    username: str
    commands: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Heard:
    """Somebody said something to the bot."""

    chat: int
    message: int
    sender: int
    name: str
    text: str
    group: bool = False
    thread: int | None = None
    edited: int | None = None
    """When it was changed, if it was."""
    command: bool = False

    @property
    def place(self) -> str:
        """The message, whatever its form."""
        return f"{self.chat}:{self.message}"


@dataclass(frozen=True, slots=True)
class Pressed:
    """Somebody pressed a button under a message of the bot."""

    query: str
    sender: int
    data: str
    chat: int
    message: int


@dataclass(frozen=True, slots=True)
class Moved:
    """A group has another number from now on."""

    old: int
    new: int


@dataclass(frozen=True, slots=True)
class Ignored:
    why: str


def read(update: Update, me: Me) -> Heard | Pressed | Moved | Ignored:
    if (query := update.callback_query) is not None:
        if query.message is None or query.data is None:
            return Ignored("a button without a message")
        return Pressed(query.id, query.from_user.id, query.data, query.message.chat.id, query.message.message_id)
    message = update.message or update.edited_message
    if message is None:
        return Ignored("nothing that a person said to the bot")
    if message.migrate_to_chat_id is not None:
        return Moved(message.chat.id, message.migrate_to_chat_id)
    return _read_message(message, me, edited=update.edited_message is not None)


def _read_message(message: Message, me: Me, *, edited: bool) -> Heard | Ignored:
    user = message.from_user
    if user is None or message.sender_chat is not None:
        return Ignored("written in the name of a chat")
    if user.is_bot or message.via_bot is not None:
        return Ignored("written by a bot")
    group = message.chat.type in GROUPS
    if not group and message.chat.type != "private":
        return Ignored("neither a private chat nor a group")
    if group and message.forward_origin is not None:
        return Ignored("forwarded in a group")
    said = content(message)
    if said is None:
        return Ignored("nobody said anything")
    text = without_mention(said, me)
    command = _COMMAND.match(text) if message.forward_origin is None else None
    if command is not None and command["bot"] and command["bot"].lower() != me.username.lower():
        return Ignored("a command for another bot")
    if group and not (_is_ours(command, me) or is_meant(message, me)):
        return Ignored("not meant for the bot")
    return Heard(
        chat=message.chat.id,
        message=message.message_id,
        sender=user.id,
        name=name_of(user),
        text=text if command is not None else in_context(message, text, me),
        group=group,
        thread=message.message_thread_id if message.is_topic_message else None,
        edited=int(message.edit_date.timestamp()) if edited and message.edit_date is not None else None,
        command=command is not None,
    )


def _is_ours(command: re.Match[str] | None, me: Me) -> bool:
    """Other bots in the group have commands too: without a name behind it only a known one is meant for this bot."""
    return command is not None and bool(command["bot"] or command["name"].lower() in me.commands)


# ── what was said ────────────────────────────────────────────────────────────────────────────────────────────────────


def content(message: Message) -> str | None:
    """The text, with words for what is not text; None if nobody said anything."""
    words = next((_described(kind, message) for kind in MEDIA if getattr(message, kind, None)), "")
    text = message.text or message.caption or ""
    if words or text:
        return f"{words} {text}".strip()
    if any(getattr(message, name, None) for name in HAPPENINGS):
        return None
    return "[a kind of message that cannot be read here]"


def _described(kind: str, message: Message) -> str:
    word = MEDIA[kind]
    if kind == "document" and message.document is not None and message.document.file_name:
        return f"[{word}: {message.document.file_name}]"
    if kind == "sticker" and message.sticker is not None and message.sticker.emoji:
        return f"[{word} {message.sticker.emoji}]"
    if kind == "location" and message.location is not None:
        return f"[{word}: {message.location.latitude:.5f}, {message.location.longitude:.5f}]"
    if kind == "poll" and message.poll is not None:
        return f"[{word}: {message.poll.question}]"
    return f"[{word}]"


def in_context(message: Message, text: str, me: Me) -> str:
    """With what it is about: where it was forwarded from, or the beginning of what it answers."""
    if message.forward_origin is not None:
        return f"[forwarded] {text}"
    answered = message.reply_to_message
    quote = message.quote.text if message.quote is not None else None
    if quote is None and answered is not None and answered.forum_topic_created is None:
        quote = content(answered)
    if not quote:
        return text
    whose = "you" if answered is not None and answered.from_user is not None and answered.from_user.id == me.id else ""
    begin = " ".join(quote.split())
    begin = begin if len(begin) <= EXCERPT else f"{begin[:EXCERPT]}…"
    return f'[in reply to {"what you said" if whose else "this"}: "{begin}"]\n{text}'


def without_mention(text: str, me: Me) -> str:
    """Who is called at the beginning need not be told so."""
    return re.sub(rf"\A\s*@{re.escape(me.username)}\b[\s,:]*", "", text, flags=re.IGNORECASE) or text


def is_meant(message: Message, me: Me) -> bool:
    answered = message.reply_to_message
    if answered is not None and answered.from_user is not None and answered.from_user.id == me.id:
        return answered.forum_topic_created is None
    return any(_mentions(entity, text, me) for entity, text in _entities(message))


def _entities(message: Message) -> Iterable[tuple[MessageEntity, str]]:
    return [*message.parse_entities().items(), *message.parse_caption_entities().items()]


def _mentions(entity: MessageEntity, text: str, me: Me) -> bool:
    if entity.type == "mention":
        return text.lower() == f"@{me.username.lower()}"
    return entity.type == "text_mention" and entity.user is not None and entity.user.id == me.id


def name_of(user: User) -> str:
    return f"{user.full_name} (@{user.username})" if user.username else user.full_name


# ── as the gateway takes it ──────────────────────────────────────────────────────────────────────────────────────────


def session_of(account: int, tenant: str, chat: int, thread: int | None) -> SessionKey:
    return SessionKey(tenant, AGENT, CHANNEL, str(account), str(chat), "" if thread is None else str(thread))


def incoming(heard: Heard, me: Me, tenant: str, *, admin: bool) -> Incoming:
    number = heard.place if heard.edited is None else f"{heard.place}:{heard.edited}"
    return Incoming(
        key=DeliveryKey(CHANNEL, str(me.id), number),
        session=session_of(me.id, tenant, heard.chat, heard.thread),
        sender=str(heard.sender),
        text=heard.text,
        group=heard.group,
        admin=admin,
    )


def placed(external_id: str) -> tuple[int, int] | None:
    """The chat and the number of the message that was delivered under this id; None for what is none."""
    chat, _, rest = external_id.partition(":")
    message = rest.partition(":")[0]
    try:
        return int(chat), int(message)
    except ValueError:
        return None
