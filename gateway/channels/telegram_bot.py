"""python-telegram-bot on trio, and its errors in the gateway's words: translated here, once, and without the token.

asyncio is met in two places of `telegram.Bot` only, both overridden here (22.8; pinned below 23). The token is a part
of every URL: whatever an error says goes through `without`.
"""

from __future__ import annotations

import os
import re
import ssl
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import trio
from telegram import Bot
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    RetryAfter,
    TelegramError,
    TimedOut,
)
from telegram.request import HTTPXRequest

from gateway.protocols import ChannelError

if TYPE_CHECKING:
    from collections.abc import Iterator

os.environ.setdefault("PTB_TIMEDELTA", "1")  # asked for at each use: spans are timedelta

HOME: Final = "https://api.telegram.org"
CONNECTIONS: Final = 96
READ_S: Final = 20.0
LONG_POLL_S: Final = 25
LATE_S: Final = 10.0
"""How much longer than Telegram itself a long poll is waited for."""
TOKEN_REST_S: Final = 60.0


class Why(StrEnum):
    """What kind of trouble it is, for those who can do something about it."""

    UNCHANGED = "unchanged"
    ENTITIES = "entities"
    REFUSED = "refused"
    NO_MESSAGE = "no message"
    NO_ANSWERED = "no answered message"
    GONE = "gone"
    MOVED = "moved"
    TOKEN = "token"  # noqa: S105 a kind of trouble
    CONFLICT = "conflict"
    FLOOD = "flood"
    UNREACHABLE = "unreachable"


class TelegramTrouble(ChannelError):
    def __init__(
        self, why: Why, text: str, *, retriable: bool = False, retry_after_s: float | None = None, moved_to: int = 0
    ) -> None:
        super().__init__(text, retriable=retriable, retry_after_s=retry_after_s)
        self.why = why
        self.moved_to = moved_to
        """The number that the chat has now."""


# What Telegram says when it refuses something, by a part of it in small letters; the first that fits counts.
REFUSALS: Final = (
    ("message is not modified", Why.UNCHANGED, "nothing has changed"),
    ("query is too old", Why.UNCHANGED, "the button was pressed too long ago"),
    ("parse entities", Why.ENTITIES, "Telegram does not take the looks of the text"),
    ("entit", Why.ENTITIES, "Telegram does not take the looks of the text"),
    ("message to be replied not found", Why.NO_ANSWERED, "the message that is answered is gone"),
    ("message to edit not found", Why.NO_MESSAGE, "the message is gone"),
    ("message can't be edited", Why.NO_MESSAGE, "the message cannot be changed any more"),
    ("message to delete not found", Why.NO_MESSAGE, "the message is gone"),
    ("message can't be deleted", Why.NO_MESSAGE, "the message cannot be deleted"),
    ("message_id_invalid", Why.NO_MESSAGE, "the message is gone"),
    ("message to react not found", Why.NO_MESSAGE, "the message is gone"),
    ("chat not found", Why.GONE, "Telegram knows no such chat, or the person has never written to the bot"),
    ("topic_closed", Why.GONE, "the topic is closed; reopen it, and write again there"),
    ("thread not found", Why.GONE, "the topic does not exist any more"),
    ("topic_deleted", Why.GONE, "the topic does not exist any more"),
    ("not enough rights", Why.GONE, "the bot may not write in this group; give it the right to"),
    ("have no rights", Why.GONE, "the bot may not write in this group; give it the right to"),
    ("chat_write_forbidden", Why.GONE, "the bot may not write in this group; give it the right to"),
    ("deactivated", Why.GONE, "the chat does not exist any more"),
)
FORBIDDEN: Final = (
    ("blocked by the user", "the person has blocked the bot"),
    ("kicked", "the bot was removed from the group"),
    ("not a member", "the bot is not a member of the group"),
    ("deactivated", "the person's account does not exist any more"),
    ("initiate", "the person has never written to the bot"),
)


class TelegramBot(Bot):
    """``initialize`` asks nothing of Telegram: whether that can be reached is the poller's to find out."""

    def __init__(self, token: str, api_url: str | None = None) -> None:
        home = (api_url or HOME).rstrip("/")
        options: dict[str, Any] = {} if api_url is None else {"trust_env": False}  # no proxy on the way to one's own
        if home.startswith("http://"):
            options["verify"] = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # reads no certificates, none are needed
        polling, others = (
            HTTPXRequest(
                connection_pool_size=size,
                connect_timeout=10.0,
                read_timeout=READ_S,
                write_timeout=READ_S,
                pool_timeout=10.0,
                httpx_kwargs=options,
            )
            for size in (2, CONNECTIONS)
        )
        super().__init__(
            token,
            base_url=f"{home}/bot",
            base_file_url=f"{home}/file/bot",
            get_updates_request=polling,
            request=others,
        )

    async def initialize(self) -> None:
        for request in self._request:
            await request.initialize()
        self._requests_initialized = True

    async def shutdown(self) -> None:
        with trio.CancelScope(shield=True):
            for request in self._request:
                await request.shutdown()
        self._requests_initialized = self._bot_initialized = False

    async def updates(self, offset: int | None, kinds: list[str], timeout_s: int = LONG_POLL_S) -> list[dict[str, Any]]:
        """The updates as they came. One that cannot be understood is then nobody else's trouble."""
        asked = {"timeout": timeout_s, "allowed_updates": kinds, **({} if offset is None else {"offset": offset})}
        with trio.move_on_after(timeout_s + 2 * LATE_S) as watchdog, self.told():
            answer = await self._post("getUpdates", asked, read_timeout=timeout_s + LATE_S)
            if isinstance(answer, list):
                return answer
            raise TelegramTrouble(Why.UNREACHABLE, "Telegram answers something else than updates", retriable=True)
        assert watchdog.cancelled_caught  # noqa: S101 the only other way out of the block
        raise TelegramTrouble(Why.UNREACHABLE, "Telegram was silent for too long", retriable=True)

    @contextmanager
    def told(self) -> Iterator[None]:
        """Around a request: what goes wrong is told in the gateway's words."""
        try:
            yield
        except TelegramError as error:
            raise translated(error, self.token) from None


def translated(error: TelegramError, token: str) -> TelegramTrouble:
    said = " ".join(without(token, error.message).split())[:300]
    match error:
        case ChatMigrated():
            return TelegramTrouble(Why.MOVED, "the group has another number now", moved_to=error.new_chat_id)
        case RetryAfter():
            wait_s = error._retry_after.total_seconds()
            return TelegramTrouble(
                Why.FLOOD, f"Telegram wants a pause of {wait_s:g} s", retriable=True, retry_after_s=wait_s
            )
        case Forbidden():
            words = next((ours for part, ours in FORBIDDEN if part in said.lower()), f"Telegram forbids it: {said}")
            return TelegramTrouble(Why.GONE, words)
        case InvalidToken():
            text = "Telegram does not know the bot's token; set GOCLAW_TELEGRAM_TOKEN to the one of @BotFather"
            return TelegramTrouble(Why.TOKEN, text, retriable=True, retry_after_s=TOKEN_REST_S)
        case Conflict():
            text = "something else reads this bot's messages: another gateway with the same token, or a webhook"
            return TelegramTrouble(Why.CONFLICT, text, retriable=True)
        case TimedOut():
            return TelegramTrouble(Why.UNREACHABLE, "Telegram did not answer in time", retriable=True)
        case BadRequest():
            found = ((why, ours) for part, why, ours in REFUSALS if part in said.lower())
            return TelegramTrouble(*next(found, (Why.REFUSED, f"Telegram refuses it: {said}")))
    return TelegramTrouble(Why.UNREACHABLE, f"Telegram cannot be reached: {said}", retriable=True)


def without(token: str, text: str) -> str:
    """The text without the token, nor its secret half. The library changes capital letters."""
    for secret in filter(None, (token, token.partition(":")[2])):
        text = re.sub(re.escape(secret), "***", text, flags=re.IGNORECASE)
    return text
