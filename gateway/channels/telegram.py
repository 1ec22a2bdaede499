"""Telegram: what people say there comes in, what is to be said goes out, and they see that something is done.

    updates ─▶ telegram_polling ─▶ here: who may, what is it ─▶ the gateway
    replies ─▶ telegram_out · growing messages ─▶ telegram_live · eyes and typing ─▶ telegram_presence

A stranger sees nothing at all, but for a code to be let in with where there is one. In a group only members of a group
that is let in by its own number are heard; who may stop what others started is asked of Telegram.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import trio
from telegram import BotCommand, BotCommandScopeAllChatAdministrators, BotCommandScopeAllGroupChats
from telegram import BotCommandScopeAllPrivateChats as AllPrivateChats

from gateway.channels.telegram_bot import TelegramBot, TelegramTrouble, Why
from gateway.channels.telegram_live import Lives, stop_button
from gateway.channels.telegram_out import Writer, deliver, remember
from gateway.channels.telegram_polling import Poller
from gateway.channels.telegram_presence import Place, Presence, Spot
from gateway.channels.telegram_text import Rich
from gateway.channels.telegram_updates import CHANNEL, Heard, Moved, Pressed, incoming, placed
from gateway.protocols import ChannelError, Pace
from store.records import DeliveryKey, Incoming

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from gateway.access.doorman import Doorman
    from gateway.channels.telegram_live import Live
    from gateway.channels.telegram_updates import Me
    from gateway.protocols import Delivery, Reception
    from store.records import Cursor, Message, SessionKey

logger = logging.getLogger("goclaw.telegram")

OVERALL_S: Final = 1 / 22
ADMINS_S: Final = 60.0
ASKING_S: Final = 3.0
MOST_ERRANDS: Final = 100
STRANGER: Final = (
    "This bot works only for people it knows. Your code is {code}\n"
    "Whoever runs it lets you in with it: goclaw pair approve {code}"
)


@dataclass(frozen=True, slots=True)
class Menu:
    """The commands with what they do, and those that in a group are for admins."""

    commands: Mapping[str, str]
    for_admins: frozenset[str]


class Telegram:
    """``doorman`` knows who may talk to the bot."""

    name = CHANNEL
    pace = Pace(overall_s=OVERALL_S)

    def __init__(self, bot: TelegramBot, doorman: Doorman, menu: Menu) -> None:
        self._bot = bot
        self._account = int(bot.token.partition(":")[0])
        self._doorman = doorman
        self._menu = menu
        self._writer = Writer(bot)
        self._lives = Lives(self._writer)
        self._presence = Presence(bot)
        self._open: dict[str, str] = {}
        self._hints: dict[SessionKey, int] = {}
        self._admins: OrderedDict[int, tuple[float, frozenset[int]]] = OrderedDict()
        self._strange: set[int] = set()
        self._reading = trio.CancelScope()
        self._errands: trio.Nursery | None = None

    # ── what the gateway asks of a channel ───────────────────────────────────────────────────────────────────────────

    async def send(self, delivery: Delivery) -> str:
        return await deliver(self._writer, self._lives, delivery)

    def show(self, session: SessionKey, turn: str, text: str) -> None:
        self._lives.show(turn, text)

    def clear(self, session: SessionKey, turn: str) -> None:
        """What is seen of a turn goes with its last message; see `ended`, which knows whether a reply follows."""

    def hint(self, session: SessionKey, text: str) -> None:
        if self._writer.busy_s(int(session.chat)) == 0.0:
            self._run(self._write_hint, session, text)

    def took(self, message: Message) -> None:
        spot, place = where(message)
        self._open[external(message)] = message.text
        if place is not None:
            self._writer.note(message.id, place)
        self._presence.began(spot, place, message.id)

    def began(self, turn: str, messages: Sequence[Message]) -> None:
        session = messages[0].session
        senders = frozenset(message.incoming.sender for message in messages)
        self._lives.began(session, turn, senders, tuple(message.id for message in messages))
        self._take_hint_back(session)

    def ended(self, message: Message, turn: str, *, answered: bool) -> None:
        spot, place = where(message)
        self._open.pop(external(message), None)
        self._presence.ended(spot, place, message.id)
        self._lives.ended(turn, answered=answered)
        self._take_hint_back(message.session)

    # ── services ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def look_alive(self) -> None:
        """For ever: eyes, typing, growing messages, and small errands. Without it only replies are sent."""
        async with trio.open_nursery() as self._errands:
            try:
                self._errands.start_soon(self._presence.run)
                await self._lives.run()
            finally:
                self._errands = None

    async def poll(
        self,
        reception: Reception,
        position: Callable[[str, str], Awaitable[int | None]],
        troubled: Callable[[str], None],
        well: Callable[[], None],
    ) -> None:
        """Read what people say, until the end or until Telegram does not know the token."""
        commands = frozenset(self._menu.commands)
        poller = Poller(
            self._bot, self._account, commands, partial(self._take, reception), troubled=troubled, well=well
        )
        with self._reading:
            await poller.run(await position(CHANNEL, str(self._account)), self._show_menu)

    def leave(self) -> None:
        """Read nothing more."""
        self._reading.cancel()

    # ── what comes in ────────────────────────────────────────────────────────────────────────────────────────────────

    async def _take(
        self, reception: Reception, events: Sequence[Heard | Pressed | Moved], me: Me, cursor: Cursor
    ) -> None:
        batch: list[Incoming] = []
        for event in newest_forms(events):
            match event:
                case Moved():
                    self._writer.follow(event.old, event.new)
                    self._presence.moved(event.old, event.new)
                case Pressed():
                    batch += await self._pressed(event, me)
                case Heard():
                    batch += await self._heard(event, me)
        receipts = await reception.take_in(batch, cursor)
        for receipt, one in zip(receipts, batch, strict=True):
            if (place := placed(one.key.external_id)) is not None:
                self._writer.note(receipt.id, Place(*place))

    async def _heard(self, heard: Heard, me: Me) -> list[Incoming]:
        tenant = await self._tenant(heard.chat if heard.group else heard.sender)
        if tenant is None:
            await self._turn_away(heard)
            return []
        if heard.edited is not None:
            known = self._open.get(heard.place)
            if known is None or known == heard.text:
                return []  # answered long ago, or nothing that a person sees has changed
        admin = heard.group and heard.command and await self._is_admin(heard.chat, heard.sender)
        return [incoming(heard, me, tenant, admin=admin)]

    async def _tenant(self, number: int) -> str | None:
        """Of the person, or of the group, which may have had another number."""
        before = [old for old, new in self._writer.moved.items() if new == number]
        for one in (number, *before):
            tenant = await self._doorman.allowed(CHANNEL, str(self._account), str(one))
            if tenant is not None:
                return tenant
        return None

    async def _turn_away(self, heard: Heard) -> None:
        if heard.group:
            if len(self._strange) < MOST_ERRANDS and heard.chat not in self._strange:
                self._strange.add(heard.chat)
                logger.warning("the group %d is not in GOCLAW_TELEGRAM_ALLOW; nobody is answered there", heard.chat)
            return
        if heard.edited is not None:
            return
        code = await self._doorman.knock(CHANNEL, str(self._account), str(heard.sender), heard.name)
        if code is not None:
            self._run(self._say, heard.chat, STRANGER.format(code=code))

    async def _pressed(self, pressed: Pressed, me: Me) -> list[Incoming]:
        if await self._tenant(pressed.chat) is None:
            return []
        button = stop_button(pressed.data)
        live = None if button is None else self._lives.behind(button)
        if live is None or self._writer.moved.get(live.chat, live.chat) != pressed.chat:
            self._run(self._answer_press, pressed.query, "This has ended already.")
            self._run(self._take_button_away, pressed.chat, pressed.message)
            return []
        group = pressed.chat < 0
        admin = group and await self._is_admin(pressed.chat, pressed.sender)
        if str(pressed.sender) not in live.senders and not admin:
            self._run(self._answer_press, pressed.query, "Only who asked for this, or an admin, may stop it.")
            return []
        self._run(self._answer_press, pressed.query, "Stopping.")
        return [press(pressed, live, me, group=group, admin=admin)]

    async def _is_admin(self, chat: int, sender: int) -> bool:
        """Who may stop what others started. If Telegram does not say so in time: not this one."""
        until, admins = self._admins.get(chat, (0.0, frozenset()))
        if until < trio.current_time():
            try:
                with trio.fail_after(ASKING_S), self._bot.told():
                    members = await self._bot.get_chat_administrators(chat)
            except (ChannelError, trio.TooSlowError) as error:
                logger.warning("who is an admin in %d is not known: %s", chat, error)
                return False
            admins = frozenset(member.user.id for member in members)
            remember(self._admins, chat, (trio.current_time() + ADMINS_S, admins))
        return sender in admins

    # ── small errands: nobody waits for them ─────────────────────────────────────────────────────────────────────────

    def _run(self, errand: Callable[..., Awaitable[None]], *given: object) -> None:
        if self._errands is not None and len(self._errands.child_tasks) < MOST_ERRANDS:
            self._errands.start_soon(self._well_meant, partial(errand, *given))

    async def _well_meant(self, errand: Callable[[], Awaitable[None]]) -> None:
        try:
            with self._bot.told():
                await errand()
        except ChannelError as error:
            logger.info("an errand on Telegram came to nothing: %s", error)

    async def _say(self, chat: int, text: str) -> None:
        await self._bot.send_message(chat, text)

    async def _answer_press(self, query: str, text: str) -> None:
        await self._bot.answer_callback_query(query, text)

    async def _take_button_away(self, chat: int, message: int) -> None:
        """It was left behind by a process that ended in the middle."""
        await self._bot.edit_message_reply_markup(chat, message)

    async def _write_hint(self, session: SessionKey, text: str) -> None:
        if self._hints.get(session) == 0:
            return
        known = self._hints.get(session, 0)
        self._hints[session] = 0  # under way
        try:
            message = await self._writer.put(session, Rich(text), known)
        except TelegramTrouble as trouble:
            message = known if trouble.why is Why.UNCHANGED else 0
        if session not in self._hints:  # taken back meanwhile
            if message:
                await self._writer.delete(int(session.chat), message)
        elif message:
            self._hints[session] = message
        else:
            del self._hints[session]

    def _take_hint_back(self, session: SessionKey) -> None:
        message = self._hints.pop(session, 0)
        if message:
            self._run(self._writer.delete, int(session.chat), message)

    async def _show_menu(self, me: Me) -> None:
        """Which commands people are offered: in a group only admins those that change it for everybody."""
        every = [BotCommand(name, about[:256]) for name, about in self._menu.commands.items()]
        members = [command for command in every if command.command not in self._menu.for_admins]
        scopes = (AllPrivateChats(), every), (BotCommandScopeAllGroupChats(), members)
        for scope, commands in (*scopes, (BotCommandScopeAllChatAdministrators(), every)):
            self._run(self._set_menu, commands, scope)

    async def _set_menu(self, commands: list[BotCommand], scope: AllPrivateChats) -> None:
        await self._bot.set_my_commands(commands, scope=scope)


def newest_forms(events: Sequence[Heard | Pressed | Moved]) -> list[Heard | Pressed | Moved]:
    """Who changes a message before it was read has said only the newest form of it."""
    kept: list[Heard | Pressed | Moved] = []
    places: dict[str, int] = {}
    for event in events:
        if isinstance(event, Heard) and event.edited is not None and event.place in places:
            at = places[event.place]
            kept[at] = replace(event, edited=None)
            continue
        if isinstance(event, Heard):
            places[event.place] = len(kept)
        kept.append(event)
    return kept


def press(pressed: Pressed, live: Live, me: Me, *, group: bool, admin: bool) -> Incoming:
    """A press on Stop is a stop by who pressed it."""
    key = DeliveryKey(CHANNEL, str(me.id), f"press:{pressed.query}")
    return Incoming(key, live.session, str(pressed.sender), "/stop", group=group, admin=admin)


def external(message: Message) -> str:
    """The message in its chat, whatever its form."""
    place = placed(message.incoming.key.external_id)
    return "" if place is None else f"{place[0]}:{place[1]}"


def where(message: Message) -> tuple[Spot, Place | None]:
    session = message.session
    place = placed(message.incoming.key.external_id)
    spot = Spot(int(session.chat), int(session.thread) if session.thread else None)
    return spot, None if place is None else Place(*place)


@asynccontextmanager
async def open_telegram(token: str, api_url: str | None, doorman: Doorman, menu: Menu) -> AsyncIterator[Telegram]:
    bot = TelegramBot(token, api_url)
    await bot.initialize()
    try:
        yield Telegram(bot, doorman, menu)
    finally:
        await bot.shutdown()
