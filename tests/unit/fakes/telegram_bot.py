"""The real python-telegram-bot on trio, and a Telegram with two people and a group for it to work in."""

from __future__ import annotations

import os
import ssl
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import trio
from telegram import Bot, Update
from telegram.request import HTTPXRequest

from tests.fakes.botapi import UNLIMITED, BotApi, Chat, Person, open_botapi

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

os.environ.setdefault("PTB_TIMEDELTA", "1")

HERE_ONLY: dict[str, Any] = {"trust_env": False, "verify": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)}
"""There is no proxy on the way, and nobody to be trusted: to read all certificates takes longer than a test."""

TEAM = -1_001_000_000_001
OLD_TEAM = -500
DEADLINE_S = 30


class TrioBot(Bot):
    """Without the two places where the library counts on asyncio."""

    async def initialize(self) -> None:
        for request in self._request:
            await request.initialize()
        self._requests_initialized = True
        await self.get_me()
        self._bot_initialized = True

    async def shutdown(self) -> None:
        with trio.CancelScope(shield=True):
            for request in self._request:
                await request.shutdown()
        self._requests_initialized = self._bot_initialized = False


@asynccontextmanager
async def open_bot(api: BotApi, *, token: str | None = None, read_timeout: float = 20.0) -> AsyncIterator[TrioBot]:
    requests = [
        HTTPXRequest(read_timeout=read_timeout, connection_pool_size=50, httpx_kwargs=HERE_ONLY) for _ in range(2)
    ]
    bot = TrioBot(
        token or api.token,
        base_url=api.base_url,
        base_file_url=api.base_file_url,
        get_updates_request=requests[0],
        request=requests[1],
    )
    try:
        yield bot
    finally:
        await bot.shutdown()


@dataclass(frozen=True, slots=True)
class Here:
    """Ann has written to the bot, Ben has not; both are in the team, which is a supergroup and owned by Ann."""

    api: BotApi
    bot: TrioBot
    ann: Person
    ben: Person
    chat: Chat
    team: Chat

    async def updates(self, offset: int | None = None, **options: Any) -> tuple[Update, ...]:
        return await self.bot.get_updates(offset=offset, timeout=options.pop("timeout", 0), **options)

    async def heard(self) -> Update:
        """The one update that waits, which is confirmed by that."""
        (update,) = await self.updates(allowed_updates=Update.ALL_TYPES)
        self.api.updates.confirm(update.update_id + 1)
        return update


@asynccontextmanager
async def here(*, forum: bool = False, **options: Any) -> AsyncIterator[Here]:
    with trio.fail_after(DEADLINE_S):
        async with open_botapi(**{"limits": UNLIMITED, **options}) as api, open_bot(api) as bot:
            ann = api.person(7, "Ann", username="ann_fake")
            ben = api.person(8, "Ben")
            chat = api.private(ann, started=True)
            api.private(ben)
            yield Here(api, bot, ann, ben, chat, api.group(TEAM, "Team", [ben], owner=ann, forum=forum))
