"""Trouble arrives as trouble: each as python-telegram-bot raises it, and it is known whether anything happened."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from telegram.error import (
    BadRequest,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
    TimedOut,
)

from tests.fakes.botapi import Drop, Hang, Slow, flooded, open_botapi
from tests.unit.fakes.telegram_bot import DEADLINE_S, TEAM, here, open_bot


@pytest.mark.parametrize(
    ("kind", "error", "happened"),
    [
        ("cannot_parse", BadRequest, False),
        ("unauthorized", InvalidToken, False),
        ("blocked", Forbidden, False),
        ("conflict", Conflict, False),
        ("internal", NetworkError, False),
        ("html_500", NetworkError, False),
        ("bad_gateway", NetworkError, False),
        ("bad_json", TelegramError, True),
        ("drop_before", NetworkError, False),
        ("drop_mid", NetworkError, True),
        ("drop_after", NetworkError, True),
        (Drop("before", reset=True), NetworkError, False),
        (Drop("after", reset=True), NetworkError, True),
    ],
    ids=str,
)
async def test_trouble_is_raised_and_passes(kind: Any, error: type[TelegramError], happened: bool) -> None:
    """Once, then all is well; where the answer was lost the message is there nevertheless."""
    async with here() as place:
        trouble = place.api.trouble(kind, "sendMessage")
        with pytest.raises(error) as raised:
            await place.bot.send_message(7, "x")
        assert isinstance(raised.value, error)
        assert place.chat.texts == (["x"] if happened else [])
        assert [request.done for request in trouble.hit] == [happened]
        await place.bot.send_message(7, "y")
        assert place.chat.last.text == "y"


@pytest.mark.parametrize("wait", [1, 30, 137])
async def test_a_flood_says_how_long_to_wait(wait: int) -> None:
    async with here() as place:
        place.api.trouble(flooded(wait), "getUpdates")
        with pytest.raises(RetryAfter) as raised:
            await place.updates()
        assert raised.value._retry_after.total_seconds() == wait


async def test_trouble_keeps_to_its_method_its_chat_and_its_number() -> None:
    """After so many that go well, and for ever if that is wanted."""
    async with here() as place:
        once = place.api.trouble("bad_gateway", "editMessageText", chat=TEAM)
        third = place.api.trouble("blocked", "sendMessage", chat=place.chat, times=2, skip=2)
        always = place.api.trouble("internal", "getFile", times=None)
        await place.bot.send_message(TEAM, "elsewhere")
        for number in range(5):
            refused = number in (2, 3)
            try:
                await place.bot.send_message(7, str(number))
            except Forbidden:
                assert refused
            else:
                assert not refused
        assert place.chat.texts == ["0", "1", "4"]
        for _ in range(3):
            with pytest.raises(NetworkError):
                await place.bot.get_file("x")
        assert (len(once.hit), len(third.hit), len(always.hit)) == (0, 2, 3)
        always.release()
        with pytest.raises(BadRequest, match="rong file_id"):
            await place.bot.get_file("x")


@pytest.mark.parametrize("happens", ["before", "after"])
async def test_what_hangs_goes_on_when_it_is_released(happens: Any) -> None:
    """What was asked for has happened by then, or happens then."""
    async with here() as place, trio.open_nursery() as nursery:
        trouble = place.api.trouble(Hang(happens), "sendMessage")
        nursery.start_soon(place.bot.send_message, 7, "x")
        await place.api.until(lambda: trouble.hit and (trouble.hit[0].done or happens == "after"))
        assert place.chat.texts == (["x"] if happens == "before" else [])
        await place.bot.send_chat_action(7, "typing")
        place.api.release()
        await place.api.until(lambda: trouble.hit[0].ended)
        assert place.chat.texts == ["x"]


async def test_who_does_not_wait_for_what_hangs_is_noticed() -> None:
    """The library raises TimedOut, and a hanging request that was left never happens."""
    async with here() as place, open_bot(place.api, read_timeout=0.05) as hasty:
        trouble = place.api.trouble(Hang(), "sendMessage")
        with pytest.raises(TimedOut):
            await hasty.send_message(7, "x")
        await place.api.until(lambda: trouble.hit[0].ended)
        assert trouble.hit[0].cut
        place.api.release()
        await place.bot.send_message(7, "y")
        assert place.chat.texts == ["y"]


async def test_a_slow_answer_is_an_answer() -> None:
    async with here() as place:
        place.api.trouble(Slow(chunk=50, pause_s=0.001), "sendMessage")
        assert (await place.bot.send_message(7, "x")).text == "x"


async def test_a_download_can_fail() -> None:
    """As any method can; afterwards the file is there."""
    async with here() as place:
        said = await place.chat.says(place.ann, document=b"x" * 1000)
        file = await place.bot.get_file(said.json["document"]["file_id"])
        for kind in ("bad_gateway", "drop_mid"):
            place.api.trouble(kind, "(download)")
            with pytest.raises(NetworkError):
                await file.download_as_bytearray()
        assert len(await file.download_as_bytearray()) == 1000


async def test_updates_whose_answer_is_lost_are_told_again() -> None:
    """The offset counted, the batch is still there."""
    async with here() as place:
        await place.chat.says(place.ann, "a")
        (first,) = await place.updates()
        await place.chat.says(place.ann, "b")
        place.api.trouble("drop_mid", "getUpdates")
        with pytest.raises(NetworkError):
            await place.updates(offset=first.update_id + 1)
        (second,) = await place.updates()
        assert second.message is not None
        assert second.message.text == "b"


async def test_the_end_waits_for_nobody() -> None:
    """Neither for a poll nor for what hangs; and what the block raises comes out as it is."""
    with trio.fail_after(DEADLINE_S):
        async with trio.open_nursery() as nursery:
            with pytest.raises(LookupError, match="as it is"):
                await leave(nursery)


async def leave(nursery: trio.Nursery) -> None:
    async with open_botapi() as api, open_bot(api) as bot:
        api.trouble(Hang(), "getMe", times=None)
        nursery.start_soon(raised, bot.get_updates, {"timeout": 50})
        nursery.start_soon(raised, bot.get_me, {})
        await api.until(lambda: len(api.requests) == 2)
        raise LookupError("as it is")


async def raised(method: Any, options: dict[str, Any]) -> None:
    with pytest.raises(NetworkError):
        await method(**options)
