"""The double beside a test: in a process that is started by hand and asked over HTTP, and in a thread."""

from __future__ import annotations

import base64
import signal
from typing import Any

import httpx
import pytest
import trio
from telegram.error import Forbidden, RetryAfter
from telegram.request import HTTPXRequest

from tests.fakes.telegram.beside import Remote, botapi_beside, botapi_process
from tests.unit.fakes.telegram_bot import DEADLINE_S, HERE_ONLY, TrioBot

TEAM = -1_001_000_000_001


def bot_of(remote: Remote) -> TrioBot:
    polls, request = HTTPXRequest(httpx_kwargs=HERE_ONLY), HTTPXRequest(httpx_kwargs=HERE_ONLY)
    return TrioBot(remote.token, base_url=f"{remote.address}/bot", request=request, get_updates_request=polls)


async def test_a_chat_with_the_bot_in_a_process_of_its_own() -> None:
    """It prints what goclaw is to be started with; people act over HTTP, and what they see is told; it ends well."""
    with trio.fail_after(DEADLINE_S):
        async with botapi_process("--token", "77:by-hand", "--unlimited") as remote:
            assert remote.token == "77:by-hand"  # noqa: S105
            bot = bot_of(remote)
            try:
                await remote.do("says", chat=7, by=7, text="hello", files={"document": base64.b64encode(b"x").decode()})
                (update,) = await bot.get_updates(allowed_updates=["message", "callback_query"])
                assert update.message is not None
                assert update.message.document is not None
                keys = {"inline_keyboard": [[{"text": "Stop", "callback_data": "s"}]]}
                await bot.send_message(7, "*hi*", parse_mode="MarkdownV2", reply_markup=keys)  # type: ignore[arg-type]
                told = await remote.until(lambda state: len(state["chats"][0]["messages"]) == 2)
                seen = told["chats"][0]["messages"][1]
                assert (seen["text"], seen["by_bot"]) == ("hi", True)
                assert seen["entities"] == [{"type": "bold", "offset": 0, "length": 2}]
                press = await remote.do("press", chat=7, by=7, message=seen["message_id"], button="Stop")
                (update,) = await bot.get_updates(offset=update.update_id + 1)
                assert update.callback_query is not None
                await bot.answer_callback_query(update.callback_query.id, "stopped")
                assert await remote.do("press_answer", **press) == {"answered": True, "text": "stopped", "alert": False}
                await remote.do("trouble", kind={"flood": 3}, method="sendMessage", chat=7)
                with pytest.raises(RetryAfter):
                    await bot.send_message(7, "x")
                await remote.do("bot_becomes", chat=7, by=7, status="kicked")
                with pytest.raises(Forbidden):
                    await bot.send_message(7, "x")
                asked = await remote.requests()
                assert [request["status"] for request in asked][-2:] == [429, 403]
                assert remote.token not in str(asked)
            finally:
                await bot.shutdown()
            remote.process.send_signal(signal.SIGTERM)
            assert await remote.process.wait() == 0


async def test_every_act_can_be_done_from_outside() -> None:
    """People, groups, topics, coming and going; what is wrong is said, and nothing breaks."""
    async with botapi_process("--empty") as remote:
        await remote.do("person", id=1, first_name="Ida")
        await remote.do("person", id=2, first_name="Jo", username="jo_fake")
        await remote.do("private", person=1, started=True)
        await remote.do("group", id=-5, title="Old", members=[1], owner=2)
        await remote.do("joins", chat=-5, by=2)
        await remote.do("leaves", chat=-5, by=2)
        await remote.do("becomes_supergroup", chat=-5, id=TEAM, by=1)
        await remote.do("group", id=TEAM - 1, title="Forum", admins=[1], forum=True)
        topic = await remote.do("opens_topic", chat=TEAM - 1, name="T", by=1)
        said = await remote.do("says", chat=TEAM - 1, by=1, text="x", thread=topic["thread"])
        await remote.do("reacts", chat=TEAM - 1, message=said["message_id"], emojis=["👍"], by=1)
        await remote.do("deletes", chat=TEAM - 1, message=said["message_id"])
        await remote.do("closes_topic", chat=TEAM - 1, thread=topic["thread"], by=1)
        await remote.do("deletes_topic", chat=TEAM - 1, thread=topic["thread"])
        raw = await remote.do("raw", new_thing={})
        await remote.do("again", update=raw["update_id"])
        await remote.do("trouble", kind="hang", times=None)
        await remote.do("release")
        told = await remote.state()
        assert [chat["title"] for chat in told["chats"]] == ["Ida", "Old", "Old", "Forum"]
        assert told["pending"] == 8
        wrong: list[tuple[str, dict[str, Any]]] = [
            ("says", {"chat": 99, "by": 1}),
            ("says", {"chat": 1}),
            ("dances", {}),
            ("trouble", {"kind": "?"}),
        ]
        for verb, body in wrong:
            with pytest.raises(ValueError, match=r"Error|there is no POST"):
                await remote.do(verb, **body)


async def test_the_page_is_served_and_only_here() -> None:
    """Whole, without an asset from elsewhere. Other pages cannot act: they can send neither JSON nor this host."""
    async with botapi_process() as remote, httpx.AsyncClient(**HERE_ONLY) as client:
        page = await client.get(remote.address)
        assert page.headers["content-type"].startswith("text/html")
        assert "//" not in page.text.replace('"://"', "").replace('"http://"', "").replace("\\/\\/", "")
        assert (await client.post(f"{remote.address}/control/release", content="{}")).status_code == 415
        assert (await client.get(remote.address, headers={"host": "evil.example:80"})).status_code == 421
        assert (await client.get(f"{remote.address}/nothing")).status_code == 404


def test_it_can_be_used_without_trio() -> None:
    """In a thread of its own, with the same Python API."""
    with botapi_beside() as beside:
        ann = beside.call(beside.api.person, 7, "Ann")
        chat = beside.call(beside.api.private, ann, started=True)
        beside.run(chat.says, ann, "hello")
        url = f"{beside.api.base_url}{beside.api.token}"
        with httpx.Client(**HERE_ONLY) as client:
            (update,) = client.get(f"{url}/getUpdates").json()["result"]
            assert update["message"]["text"] == "hello"
            client.post(f"{url}/sendMessage", json={"chat_id": 7, "text": "hi"})
        beside.until(lambda: chat.texts == ["hi"])
