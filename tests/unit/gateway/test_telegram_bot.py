"""The bot on trio against the double: every trouble in plain words, none with the token. (R14, S15)"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio

from gateway.channels import telegram_bot
from gateway.channels.telegram_bot import TelegramBot, TelegramTrouble, Why, without
from tests.fakes.botapi import UNLIMITED, BotApi, Drop, Refuse, flooded, open_botapi

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CANARY = "42:AAcanary-Canary_canaryCANARYcanary0123"


@asynccontextmanager
async def place(**options: Any) -> AsyncIterator[tuple[BotApi, TelegramBot]]:
    with trio.fail_after(30):
        async with open_botapi(token=CANARY, limits=UNLIMITED, **options) as api:
            api.private(api.person(7, "Ann"), started=True)
            bot = TelegramBot(CANARY, api.address)
            await bot.initialize()
            try:
                yield api, bot
            finally:
                await bot.shutdown()


@pytest.mark.parametrize(
    ("trouble", "why", "retriable"),
    [
        ("cannot_parse", Why.ENTITIES, False),
        ("blocked", Why.GONE, False),
        ("unauthorized", Why.TOKEN, True),
        ("bad_gateway", Why.UNREACHABLE, True),
        ("html_500", Why.UNREACHABLE, True),
        ("bad_json", Why.UNREACHABLE, True),
        ("drop_before", Why.UNREACHABLE, True),
        ("drop_mid", Why.UNREACHABLE, True),
        ("drop_after", Why.UNREACHABLE, True),
        (Drop("before", reset=True), Why.UNREACHABLE, True),
        (flooded(137), Why.FLOOD, True),
        (Refuse(400, f"Bad Request: strange {CANARY}"), Why.REFUSED, False),
        (Refuse(400, "Bad Request: message is not modified"), Why.UNCHANGED, False),
        (Refuse(400, "Bad Request: message to be replied not found"), Why.NO_ANSWERED, False),
        (Refuse(400, "Bad Request: TOPIC_CLOSED"), Why.GONE, False),
        (Refuse(400, "Bad Request: chat not found"), Why.GONE, False),
        (Refuse(403, f"Forbidden: {CANARY}"), Why.GONE, False),
    ],
)
async def test_every_trouble_is_told_in_words_and_never_with_the_token(trouble: Any, why: Why, retriable: bool) -> None:
    """What goes wrong says what it is and whether to try again; the token is in none of it. (R14, S15)"""
    async with place() as (api, bot):
        api.trouble(trouble, "sendMessage")
        with pytest.raises(TelegramTrouble) as caught, bot.told():
            await bot.send_message(7, "hello")
        error = caught.value
        assert (error.why, error.retriable) == (why, retriable)
        assert error.retry_after_s == {Why.FLOOD: 137.0, Why.TOKEN: 60.0}.get(why)
        assert "canary" not in f"{error!r} {error} {error.__cause__!r}".lower()
        assert error.__suppress_context__


async def test_a_conflict_and_a_wrong_token_are_told_apart_when_polling() -> None:
    """A second reader is waited out, a wrong token is not."""
    async with place() as (api, bot):
        api.trouble("conflict", "getUpdates")
        with pytest.raises(TelegramTrouble, match="another gateway with the same token") as conflict:
            await bot.updates(None, ["message"], 0)
        assert conflict.value.why is Why.CONFLICT
        other = TelegramBot("42:wrong", api.address)
        await other.initialize()
        with pytest.raises(TelegramTrouble, match="GOCLAW_TELEGRAM_TOKEN") as wrong:
            await other.updates(None, ["message"], 0)
        assert wrong.value.why is Why.TOKEN
        await other.shutdown()


async def test_updates_come_as_they_are() -> None:
    """What cannot be understood is handed over too, so that it can be skipped alone."""
    async with place() as (api, bot):
        api.updates.push_raw({"message": {"nonsense": True}})
        await api.chats[7].says(api.people[7], "hello")
        strange, hello = await bot.updates(None, ["message"], 0)
        assert strange["message"] == {"nonsense": True}
        assert hello["message"]["text"] == "hello"


async def test_a_silent_telegram_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A poll that gets no answer at all ends some time after Telegram should have answered, and not before. (R21)"""
    monkeypatch.setattr(telegram_bot, "LATE_S", 0.3)
    async with place() as (api, bot):
        api.trouble("hang", "getUpdates", times=None)
        began = trio.current_time()
        with pytest.raises(TelegramTrouble) as silent:
            await bot.updates(None, ["message"], 1)
        assert silent.value.why is Why.UNREACHABLE
        assert trio.current_time() - began >= 1.3
        api.release()


def test_the_secret_half_of_the_token_goes_too() -> None:
    """Wherever a text names the token or the half that nobody may know, stars stand there. (S15)"""
    assert without(CANARY, f"https://x/bot{CANARY}/getMe {CANARY.partition(':')[2]}") == "https://x/bot***/getMe ***"
