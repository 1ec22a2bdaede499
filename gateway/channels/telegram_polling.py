"""Telegram's updates, read for as long as the gateway works on messages, whatever happens on the way.

    getUpdates ──▶ who is it, is it meant for us ──▶ taken in with the position, in one write ──▶ the next offset

An update is acknowledged by the offset of the poll that follows, so never before it is kept. What comes twice is known
by its key. A position that is far from what comes counts for nothing: after a quiet week Telegram begins to count
anew, and an offset from before would throw away what waits; therefore the first poll, and one after a long silence,
names none.

Trouble is waited out, longer each time and never for good; only a token that Telegram does not know ends it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import trio
from telegram import Update

from gateway.channels.telegram_bot import TelegramTrouble, Why
from gateway.channels.telegram_updates import CHANNEL, Heard, Ignored, Me, Moved, Pressed, read
from store.records import Cursor

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from gateway.channels.telegram_bot import TelegramBot

    Event = Heard | Pressed | Moved
    Take = Callable[[Sequence[Event], Me, Cursor], Awaitable[None]]

logger = logging.getLogger("goclaw.telegram")

KINDS: Final = ["message", "edited_message", "callback_query", "my_chat_member"]
FIRST_REST_S: Final = 0.5
LONGEST_REST_S: Final = 30.0
TOLERATED: Final = 2
"""So many failures in a row are a hiccup, and nobody is told."""
SAME_COUNT: Final = 100_000
FORGOTTEN_S: Final = 5 * 86_400.0


class Poller:
    """``troubled`` hears why nothing can be read, ``well`` that it can again."""

    def __init__(
        self,
        bot: TelegramBot,
        account: int,
        commands: frozenset[str],
        take: Take,
        *,
        troubled: Callable[[str], None],
        well: Callable[[], None],
    ) -> None:
        self._bot = bot
        self._account = account
        self._commands = commands
        self._take = take
        self._troubled = troubled
        self._well = well
        self._failures = 0
        self._told = ""
        self._rest_s = FIRST_REST_S

    async def run(self, position: int | None, ready: Callable[[Me], Awaitable[None]]) -> None:
        """Until the token is refused. ``ready`` is told once who the bot is."""
        me = await self._introduce()
        if me is None:
            return
        logger.info("reading what people write to @%s on Telegram", me.username)
        await ready(me)
        offset: int | None = None
        heard_at = trio.current_time()
        while True:
            try:
                batch = await self._bot.updates(offset, KINDS)
            except TelegramTrouble as trouble:
                if not await self._wait_out(trouble):
                    return
                continue
            self._works()
            now = trio.current_time()
            if batch:
                offset, heard_at = await self._hand_in(me, batch, position), now
            elif now - heard_at > FORGOTTEN_S:
                offset = None

    async def _introduce(self) -> Me | None:
        while True:
            try:
                with self._bot.told():
                    user = await self._bot.get_me()
                return Me(user.id, user.username or "", self._commands)
            except TelegramTrouble as trouble:
                if not await self._wait_out(trouble):
                    return None

    async def _hand_in(self, me: Me, batch: Sequence[dict[str, Any]], position: int | None) -> int:
        """All of it, in the order in which it happened. The answer is the offset that acknowledges it."""
        numbered = sorted({int(raw["update_id"]): raw for raw in batch}.items())
        events = [event for number, raw in numbered if not before(number, position) and (event := self._read(raw, me))]
        last = numbered[-1][0]
        if events:
            await self._take(events, me, Cursor(CHANNEL, str(self._account), last))
        return last + 1

    def _read(self, raw: dict[str, Any], me: Me) -> Event | None:
        try:
            update = Update.de_json(raw, self._bot)
            event = read(update, me)
        except (TypeError, KeyError, ValueError, AttributeError, LookupError) as error:
            logger.warning("update %s cannot be understood and is skipped: %r", raw.get("update_id"), error)
            return None
        if isinstance(event, Ignored):
            logger.debug("update %s is left alone: %s", raw.get("update_id"), event.why)
            return None
        return event

    async def _wait_out(self, trouble: TelegramTrouble) -> bool:
        """Rest after a failure; False if another attempt cannot help."""
        self._failures += 1
        final = trouble.why is Why.TOKEN
        if final or trouble.why is Why.CONFLICT or self._failures > TOLERATED:
            self._tell(str(trouble))
        if final:
            return False
        rest_s, self._rest_s = self._rest_s, min(self._rest_s * 2, LONGEST_REST_S)
        await trio.sleep(max(rest_s, trouble.retry_after_s or 0.0))
        return True

    def _tell(self, text: str) -> None:
        if text != self._told:
            logger.error("nothing can be read from Telegram: %s", text)
            self._told = text
            self._troubled(text)

    def _works(self) -> None:
        if self._told:
            logger.warning("Telegram can be read again")
            self._well()
        self._failures, self._told, self._rest_s = 0, "", FIRST_REST_S


def before(number: int, position: int | None) -> bool:
    """Whether an earlier process has taken this update in already."""
    return position is not None and position - SAME_COUNT < number <= position
