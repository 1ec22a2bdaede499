"""Text into chats: looks, else plain text, else a file; in its topic, as an answer, within the limits.

reply ──▶ parts of at most 4,096 units ──▶ with looks ──refused──▶ plain ──refused──▶ a file
            └── more than five of them ─────────────────────────────────────────────▶ a file
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, TypeVar

import trio
from telegram import InputFile, MessageEntity, ReplyParameters

from gateway.channels.telegram_bot import TelegramTrouble, Why
from gateway.channels.telegram_pace import Budget
from gateway.channels.telegram_text import Rich, plain, render, split

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from telegram import InlineKeyboardMarkup, Message

    from gateway.channels.telegram_bot import TelegramBot
    from gateway.channels.telegram_live import Lives
    from gateway.channels.telegram_presence import Place
    from gateway.protocols import Delivery
    from store.records import SessionKey

logger = logging.getLogger("goclaw.telegram")

MOST_PARTS: Final = 5
CAPTION: Final = 200
ALL: Final = 0
EXTRA_S: Final = 0.15
"""Between two messages that are no replies, or further parts of one, over all chats."""
PATIENCE_S: Final = 8.0
"""A chat that has to wait longer comes again later, and keeps nobody else waiting."""
REMEMBERED: Final = 20_000
FILE: Final = "answer.md"
NOTHING: Final = Rich("(an answer that cannot be shown here)")
GIVES_WAY: Final = (Why.ENTITIES, Why.REFUSED)


class Writer:
    """Single messages: new ones, changed ones, files."""

    def __init__(self, bot: TelegramBot) -> None:
        self._bot = bot
        self._budget = Budget()
        self._extras = Budget(EXTRA_S)
        self.moved: dict[int, int] = {}
        """Groups that have another number now."""
        self._places: OrderedDict[int, Place] = OrderedDict()
        self._newest: OrderedDict[int, int] = OrderedDict()

    def note(self, number: int, place: Place) -> None:
        """A message of the gateway's is that one in its chat."""
        remember(self._places, number, place)
        remember(self._newest, place.chat, max(place.message, self._newest.get(place.chat, 0)))

    def busy_s(self, chat: int) -> float:
        """How long to wait with what is only nice to have."""
        now = trio.current_time()
        return max(self._budget.wait_s(chat, now, spare=1), self._extras.wait_s(ALL, now))

    async def put(
        self,
        session: SessionKey,
        rich: Rich,
        message: int = 0,
        *,
        answers: Sequence[int] = (),
        keyboard: InlineKeyboardMarkup | None = None,
        extra: bool = True,
    ) -> int:
        """A new message, or this text in place of that one's; the number of the message."""
        entities = [MessageEntity(e.kind, e.offset, e.length, e.url, language=e.language) for e in rich.entities]

        async def act(chat: int) -> int:
            if message:
                await self._bot.edit_message_text(rich.text, chat, message, entities=entities, reply_markup=keyboard)
                return message
            sent = await self._bot.send_message(
                chat,
                rich.text,
                entities=entities,
                message_thread_id=thread_of(session),
                reply_parameters=self._answered(session, answers),
                reply_markup=keyboard,
            )
            return sent.message_id

        return await self._paced(int(session.chat), act, extra=extra)

    async def put_file(self, session: SessionKey, text: str, answers: Sequence[int] = ()) -> int:
        begin = " ".join(text[: 2 * CAPTION].split())[:CAPTION]

        async def act(chat: int) -> int:
            sent: Message = await self._bot.send_document(
                chat,
                InputFile(text.encode("utf-8", errors="replace"), FILE),
                caption=f"{begin}…\n\nThe whole answer is in this file.",
                message_thread_id=thread_of(session),
                reply_parameters=self._answered(session, answers),
            )
            return sent.message_id

        return await self._paced(int(session.chat), act, extra=False)

    async def delete(self, chat: int, message: int) -> None:
        """As well as may be."""
        try:
            with self._bot.told():
                await self._bot.delete_message(self.moved.get(chat, chat), message)
        except TelegramTrouble as trouble:
            if trouble.why is not Why.NO_MESSAGE:
                logger.info("a message in chat %d could not be deleted: %s", chat, trouble)

    async def _paced(self, chat: int, act: Callable[[int], Awaitable[int]], *, extra: bool) -> int:
        now = trio.current_time()
        wait_s = max(self._budget.wait_s(chat, now), self._extras.wait_s(ALL, now) if extra else 0.0)
        if wait_s > PATIENCE_S:
            raise TelegramTrouble(Why.FLOOD, "the chat has to be left alone", retriable=True, retry_after_s=wait_s)
        self._budget.take(chat, now)
        if extra:
            self._extras.take(ALL, now)
        await trio.sleep(wait_s)
        try:
            return await self._act(chat, act)
        except TelegramTrouble as trouble:
            if trouble.why is Why.FLOOD:
                self._budget.rest(chat, trio.current_time(), trouble.retry_after_s or 1.0)
            raise

    async def _act(self, chat: int, act: Callable[[int], Awaitable[int]]) -> int:
        try:
            with self._bot.told():
                return await act(self.moved.get(chat, chat))
        except TelegramTrouble as trouble:
            if trouble.why is not Why.MOVED:
                raise
            self.follow(chat, trouble.moved_to)
        with self._bot.told():
            return await act(self.moved[chat])

    def follow(self, old: int, new: int) -> None:
        if self.moved.get(old) != new:
            self.moved[old] = new
            logger.warning(
                "the group %d is %d now; put that into GOCLAW_TELEGRAM_ALLOW, or it is a stranger after a restart",
                old,
                new,
            )

    def _answered(self, session: SessionKey, answers: Sequence[int]) -> ReplyParameters | None:
        """In a group always, alone with the bot only where something was said since."""
        place = next((self._places[number] for number in answers if number in self._places), None)
        chat = int(session.chat)
        if place is None or place.chat not in (chat, self.moved.get(chat)):
            return None
        if chat > 0 and self._newest.get(chat) == place.message:
            return None
        return ReplyParameters(place.message, allow_sending_without_reply=True)


async def deliver(writer: Writer, lives: Lives, delivery: Delivery) -> str:
    """The whole of a reply; what earlier attempts have delivered is left out."""
    live = int(delivery.live or 0) or await lives.claimed(delivery.turn)
    if live and not delivery.live:
        await delivery.progress(delivery.parts, str(live))  # whoever goes on with it knows which message it is
    parts = split(render(delivery.text)) or (NOTHING,)
    if len(parts) > MOST_PARTS:
        return await deliver_file(writer, delivery, live)
    message = live
    for number in range(delivery.parts, len(parts)):
        first = number == 0
        try:
            at, answers = (live, delivery.answers) if first else (0, ())
            message = await put_part(writer, delivery.session, parts[number], at, answers, first=first)
        except TelegramTrouble as trouble:
            if trouble.why is not Why.REFUSED:
                raise
            return await deliver_file(writer, delivery, live if first else 0)
        await delivery.progress(number + 1, str(live or ""))
    return str(message)


async def deliver_file(writer: Writer, delivery: Delivery, live: int) -> str:
    message = await writer.put_file(delivery.session, delivery.text, delivery.answers)
    if live:
        await writer.delete(int(delivery.session.chat), live)
    return str(message)


async def put_part(
    writer: Writer, session: SessionKey, rich: Rich, live: int, answers: Sequence[int], *, first: bool
) -> int:
    try:
        return await put_or_send(writer, session, rich, live, answers, first=first)
    except TelegramTrouble as trouble:
        if trouble.why not in GIVES_WAY:
            raise
        logger.info("chat %s: %s; sent without looks", session.chat, trouble)
    message = 0
    for text in plain(rich):
        message = await put_or_send(writer, session, Rich(text), live, answers, first=first)
        live, answers, first = 0, (), False
    return message


async def put_or_send(
    writer: Writer, session: SessionKey, rich: Rich, live: int, answers: Sequence[int], *, first: bool
) -> int:
    """In place of the message that grew, or as a new one if that is gone."""
    if live:
        try:
            return await writer.put(session, rich, live, extra=not first)
        except TelegramTrouble as trouble:
            if trouble.why is Why.UNCHANGED:
                return live
            if trouble.why is not Why.NO_MESSAGE:
                raise
    return await writer.put(session, rich, answers=answers, extra=not first)


def thread_of(session: SessionKey) -> int | None:
    return int(session.thread) if session.thread else None


Kept = TypeVar("Kept")


def remember(known: OrderedDict[int, Kept], key: int, value: Kept) -> None:
    known[key] = value
    known.move_to_end(key)
    if len(known) > REMEMBERED:
        known.popitem(last=False)
