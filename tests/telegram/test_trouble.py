"""Telegram in every kind of trouble: nothing is lost or stormed, and the token is never shown. (R14, R15, S15)"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from gateway.channels import telegram_bot
from gateway.clock import utc_now
from store.memory import MemoryStore
from tests.fakes.botapi import Drop, Refuse, flooded
from tests.flow.edges import TroubledStore
from tests.telegram.world import CANARY, becomes, health, open_town

OTHER = "42:AAanother-canary_CANARYcanarycanary012"

if TYPE_CHECKING:
    from collections.abc import Iterator

    from store.protocols import MessageStore
    from store.records import Lease


class Stubborn(MemoryStore):
    """Takes no messages in for as long as it is to ``refuse``."""

    refuse = False
    refused = 0

    def messages(self, lease: Lease | None) -> MessageStore:  # type: ignore[override]
        return TroubledStore(super().messages(lease), self._trouble)

    def _trouble(self, verb: str) -> str:
        refused = self.refuse and verb == "accept"
        self.refused += refused
        return "before" if refused else ""


@pytest.fixture(autouse=True)
def canary(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing that is logged in any of these tests names the token. (S15)"""
    caplog.set_level(logging.INFO, logger="goclaw")
    yield
    for record in caplog.records:
        if record.name.startswith("goclaw"):
            assert "canary" not in f"{record.getMessage()} {record.exc_text} {record.exc_info}".lower()


@pytest.mark.parametrize(
    "trouble",
    [
        "bad_gateway",
        "html_500",
        "internal",
        "bad_json",
        "drop_before",
        "drop_mid",
        Drop("before", reset=True),
        flooded(1),
    ],
)
async def test_polling_goes_on_after_every_kind_of_trouble(trouble: Any) -> None:
    """Errors, cut connections, broken answers and floods are waited out; what was said meanwhile is answered."""
    async with open_town() as town:
        town.api.trouble(trouble, "getUpdates", times=2)
        async with town.gateway():
            await town.chat.says(town.ann, "hello")
            await town.until(lambda: town.chat.texts)
            assert len(town.chat.answers) == 1


async def test_a_conflict_is_told_and_waited_out() -> None:
    """Somebody else reads with the same token: health shows it, and it is waited out. (lesson 52)"""
    async with open_town() as town:
        conflict = town.api.trouble("conflict", "getUpdates", times=None)
        async with town.gateway() as served:
            await town.until(lambda: len(conflict.hit) >= 3)
            assert health(served).state == "resting"
            assert "same token" in health(served).error
            first, second, third = (request.at for request in conflict.hit[:3])
            assert third - second > second - first
            conflict.release()
            await town.chat.says(town.ann, "hello")
            await town.until(lambda: town.chat.texts)
            assert health(served).state == "running"


async def test_a_refused_token_ends_polling_and_says_so() -> None:
    """A token that Telegram does not know is told once, and not tried again and again. (R14)"""
    async with open_town() as town, town.gateway(telegram_token=OTHER) as served:
        await becomes(served, "given up")
        assert "GOCLAW_TELEGRAM_TOKEN" in health(served).error
        async with served.client() as client:
            assert "telegram has given up" in (await client.get("/readyz")).text
        asked = len(town.api.requests)
        await trio.sleep(1.5)
        assert len(town.api.asked("getMe")) == asked == 1


async def test_a_strange_update_is_skipped_alone() -> None:
    """An update that nobody can read takes none of the others with it."""
    async with open_town() as town, town.gateway():
        with town.api.updates.held():
            town.api.updates.push_raw({"message": {"nonsense": True}})
            await town.chat.says(town.ann, "hello")
        await town.until(lambda: town.chat.texts)


async def test_the_same_update_again_and_out_of_order_is_one_message() -> None:
    """A message told five times is answered once, two in the wrong order in the right one. (R15, lesson 53)"""
    async with open_town() as town, town.gateway():
        town.api.updates.doubled = 2
        with town.api.updates.held(lambda held: held[::-1]):
            await town.chat.says(town.ann, "first")
            await town.chat.says(town.ann, "second")
        await town.until(lambda: len(town.chat.texts) == 2)
        for update in town.api.updates.all[:2]:
            for _ in range(3):
                town.api.updates.again(update)
        town.api.again(next(message for message in town.chat.seen if message.text == "first"))
        await town.chat.says(town.ann, "third")
        await town.until(lambda: len(town.chat.texts) == 3)
        said = [text.split("\n")[0] for text in town.chat.texts]
        assert said == ["You said: first", "You said: second", "You said: third"]


async def test_an_update_is_acknowledged_only_once_it_is_kept() -> None:
    """While the store takes nothing in, no offset passes what waits; once it does, it is answered. (lesson 50)"""
    async with open_town() as town:
        store = Stubborn(utc_now)
        store.refuse = True
        await town.chat.says(town.ann, "tell me")
        async with town.gateway(store):
            await town.until(lambda: town.api.updates.given)
            while store.refused < 3:
                await wait_all_tasks_blocked(0.01)
            assert not town.api.updates.confirmed
            assert not any(request.parameters.get("offset") for request in town.api.asked("getUpdates"))
            store.refuse = False
            await town.until(lambda: town.chat.texts and town.api.updates.confirmed)
            assert store.cursors["telegram", "42"] == town.api.updates.all[-1].id


async def test_what_an_earlier_gateway_took_in_is_not_taken_again() -> None:
    """An update that Telegram tells again to the next gateway was answered, and is not answered twice. (R15)"""
    async with open_town() as town:
        store = MemoryStore(utc_now)
        await town.chat.says(town.ann, "tell me")
        async with town.gateway(store):
            await town.until(lambda: town.chat.texts and town.api.updates.confirmed)
        town.api.updates.again(town.api.updates.all[0])
        async with town.gateway(store):
            await town.chat.says(town.ann, "tell me more")
            await town.until(lambda: len(town.chat.texts) >= 2)
        assert [text.split("\n")[0] for text in town.chat.texts] == ["You said: tell me", "You said: tell me more"]


async def test_numbers_that_begin_anew_lose_nothing() -> None:
    """After a quiet week Telegram counts from somewhere else: what waits is read although its number is lower."""
    async with open_town() as town:
        store = MemoryStore(utc_now)
        store.cursors["telegram", "42"] = 900_000_000
        await town.chat.says(town.ann, "tell me")
        async with town.gateway(store):
            await town.until(lambda: town.chat.texts)


@pytest.mark.parametrize("wait_s", [1, 3])
async def test_a_flooded_chat_waits_as_long_as_it_is_told_and_gets_its_text(wait_s: int) -> None:
    """The wait that Telegram asks for is kept, and the final text arrives. (R14, lesson 54)"""
    async with open_town() as town, town.gateway():
        flood = town.api.trouble(flooded(wait_s), "sendMessage", chat=town.chat)
        await town.chat.says(town.ann, "hello")
        await town.until(lambda: town.chat.texts)
        assert town.chat.last.at - flood.hit[0].at >= wait_s
        assert len(town.chat.answers) == 1


async def test_another_chat_does_not_wait_with_a_flooded_one() -> None:
    """A chat that has to rest for minutes keeps nobody else waiting."""
    async with open_town() as town, town.gateway():
        town.api.trouble(flooded(137), "sendMessage", chat=town.chat, times=None)
        await town.chat.says(town.ann, "hello")
        await town.team.says(town.ben, "@fake_bot hello")
        await town.until(lambda: town.team.texts)
        assert not town.chat.texts


@pytest.mark.parametrize("trouble", ["bad_gateway", "internal", "drop_before", "drop_mid"])
async def test_a_reply_is_sent_again_until_telegram_has_it(trouble: str) -> None:
    """A reply that met an error goes again by itself."""
    async with open_town() as town, town.gateway():
        town.api.trouble(trouble, "sendMessage", chat=town.chat)
        await town.chat.says(town.ann, "hello")
        await town.until(lambda: town.chat.texts)


async def test_refused_looks_are_sent_without_them() -> None:
    """Where Telegram does not take the entities, the same words arrive plain. (R14)"""
    async with open_town() as town, town.gateway():
        town.api.trouble("cannot_parse", "sendMessage", chat=town.chat)
        await town.chat.says(town.ann, "**bold** words")
        await town.until(lambda: town.chat.texts)
        assert town.chat.texts[0].startswith("You said: bold words")
        assert ("bold", "bold") not in town.chat.last.marked


async def test_what_is_refused_again_arrives_as_a_file() -> None:
    """A text that Telegram refuses plain too comes as a file, whole."""
    async with open_town() as town, town.gateway():
        town.api.trouble(Refuse(400, "Bad Request: strange"), "sendMessage", chat=town.chat, times=2)
        await town.chat.says(town.ann, "tell me")
        await town.until(lambda: town.chat.answers)
        assert town.chat.last.kind == "document"
        assert town.chat.last.file is not None
        assert town.chat.last.file.content.startswith(b"You said: tell me")


async def test_long_answers_come_in_parts_and_very_long_ones_as_a_file() -> None:
    """Two and a half messages are three in order; thirty-five thousand characters are one file. (S14)"""
    async with open_town() as town, town.gateway(queue_debounce=500):
        words = [f"w{number:05d}" for number in range(1200)]
        text = " ".join(words)
        for start in range(0, len(text), 3500):
            await town.chat.says(town.ann, text[start : start + 3500])
        await town.until(lambda: len(town.chat.texts) >= 3)
        said = " ".join(town.chat.texts)
        assert all(word[:4] in said for word in words)
    async with open_town() as town, town.gateway(queue_debounce=500):
        for _ in range(10):
            await town.chat.says(town.ann, "x" * 3500)
        await town.until(lambda: town.chat.answers)
        assert town.chat.last.file is not None
        assert town.chat.last.file.content.count(b"x") >= 35_000


@pytest.mark.parametrize(
    "trouble", ["blocked", Refuse(400, "Bad Request: chat not found"), Refuse(400, "Bad Request: TOPIC_CLOSED")]
)
async def test_what_can_never_be_delivered_is_not_tried_again(trouble: Any) -> None:
    """A block, a chat that is gone or a closed topic end the reply at once; the next one is tried. (R14)"""
    async with open_town() as town, town.gateway():
        met = town.api.trouble(trouble, "sendMessage", chat=town.chat)
        await town.chat.says(town.ann, "hello")
        await town.until(lambda: met.hit)
        await town.chat.says(town.ann, "again")
        await town.until(lambda: town.chat.texts)
        assert town.chat.texts[0].startswith("You said: again")
        assert len(town.api.asked("sendMessage", town.chat)) == 2


async def test_a_group_that_becomes_a_supergroup_is_followed() -> None:
    """An answer finds the group under its new number, and people are heard there too. (lesson 55)"""
    async with open_town() as town:
        old = town.api.group(-500, "Old", [town.ben], owner=town.ann)
        async with town.gateway(telegram_allow="-500"):
            await old.says(town.ben, "@fake_bot count to 4")
            await town.until(lambda: old.actions)
            new = await old.becomes_supergroup(-1_001_000_000_077, by=town.ann)
            await town.until(lambda: "I counted to 4." in new.texts)
            await new.says(town.ben, "@fake_bot tell me")
            await town.until(lambda: any(text.startswith("You said: tell me") for text in new.texts))


async def test_a_growing_message_that_somebody_deletes_is_no_loss() -> None:
    """If what grew is gone, the answer comes as a message of its own."""
    async with open_town() as town, town.gateway():
        await town.chat.says(town.ann, "count to 6")
        await town.until(lambda: town.chat.answers)
        await town.chat.deletes(town.chat.last)
        await town.until(lambda: town.chat.texts == ["I counted to 6."])


async def test_a_flood_on_edits_slows_them_down_and_the_final_text_arrives() -> None:
    """Edits that are refused become fewer; the answer takes the message's place once the wait is over. (lesson 54)"""
    async with open_town() as town, town.gateway():
        flood = town.api.trouble(flooded(2), "editMessageText", chat=town.chat)
        await town.chat.says(town.ann, "count to 8")
        await town.until(lambda: town.chat.texts == ["I counted to 8."])
        after = next(request for request in town.api.asked("editMessageText") if request.at > flood.hit[0].at)
        assert after.at - flood.hit[0].at >= 2


async def test_an_edit_whose_answer_was_lost_has_landed_and_is_not_sent_twice() -> None:
    """If the final edit came through but its answer did not, "not modified" is success: one message. (lesson 54)"""
    async with open_town() as town, town.gateway():
        await town.chat.says(town.ann, "count to 5")
        await town.until(lambda: town.chat.answers and town.chat.last.text.startswith("1 2 3"))
        town.api.trouble("drop_after", "editMessageText", chat=town.chat, times=2)
        await town.until(lambda: any(request.status == 400 for request in town.api.asked("editMessageText")))
        await town.until(lambda: town.chat.texts == ["I counted to 5."])


async def test_the_token_is_in_nothing_that_the_api_tells() -> None:
    """Status, health and metrics name neither the token nor its secret half, in trouble neither. (S15)"""
    async with open_town() as town:
        town.api.trouble(Refuse(409, f"Conflict: {CANARY}"), "getUpdates", times=None)
        async with town.gateway() as served, served.client(await served.secret()) as client:
            await becomes(served, "resting")
            for path in ("/v1/status", "/readyz", "/metrics"):
                answer = await client.get(path)
                assert answer.status_code in (200, 503), path
                assert "canary" not in answer.text.lower()
            assert "telegram" in (await client.get("/readyz")).text


async def test_a_send_that_hangs_is_given_up_and_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that gets no answer ends after a while, and the reply is delivered nevertheless. (R14)"""
    monkeypatch.setattr(telegram_bot, "READ_S", 0.5)
    async with open_town() as town, town.gateway():
        hanging = town.api.trouble("hang", "sendMessage", chat=town.chat)
        await town.chat.says(town.ann, "tell me")
        await town.until(lambda: town.chat.texts)
        assert hanging.hit[0].cut
        assert len(town.chat.answers) == 1
        town.api.release()


async def test_a_stop_is_answered_while_another_chats_sends_hang() -> None:
    """A Telegram that is silent in one chat keeps nobody else waiting. (P7)"""
    async with open_town() as town, town.gateway():
        town.api.trouble("hang", "sendMessage", chat=town.team, times=None)
        await town.team.says(town.ben, "@fake_bot tell me")
        await town.until(lambda: town.api.asked("sendMessage", town.team))
        await town.chat.says(town.ann, "/stop")
        await town.until(lambda: town.chat.texts == ["Nothing to stop: nothing runs or waits here."])
        town.api.release()
