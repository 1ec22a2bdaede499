"""Many chats at once: none starves, Telegram's limits are kept, and a stop is answered at once throughout. (R17, P7)"""

from __future__ import annotations

import pytest
import trio

from tests.fakes.botapi import Limits
from tests.telegram.world import open_town

CHATS, EACH = 60, 3
MANY_CHATS, MANY_EACH = 1_000, 10
LIMITS = Limits()
"""Telegram's own."""


async def flood(chats: int, each: int) -> None:
    async with open_town(limits=LIMITS, deadline_s=60 + chats * each / 10) as town:
        people = [town.api.person(1_000 + number, f"P{number}") for number in range(chats)]
        rooms = [town.api.private(person, started=True) for person in people]
        allow = ",".join(["7", *(str(person.id) for person in people)])
        async with town.gateway(telegram_allow=allow, lane_main=20, queue_cap=100, deadline_s=60 + chats * each / 10):
            for at in range(each):
                for person, room in zip(people, rooms, strict=True):
                    await room.says(person, f"item {at}.")
            waits = [0.0]
            while not all(len(room.texts) >= each for room in rooms):
                before, began = len(town.chat.texts), trio.current_time()
                await town.chat.says(town.ann, "/stop")
                await town.until(lambda before=before: len(town.chat.texts) > before)
                waits.append(trio.current_time() - began)
                await trio.sleep(1.5)
            assert max(waits) < 1.0, waits
        for room in rooms:
            assert [text.split("\n")[0] for text in room.texts] == [f"You said: item {at}." for at in range(each)]
        assert not town.api.pace.hits, "Telegram has never asked for a pause"
        assert town.api.pace.most_within(None, 1.0) <= LIMITS.overall


async def test_sixty_chats_write_at_once() -> None:
    """Everybody is answered in order within Telegram's limits, and a stop never waits a second. (P7)"""
    await flood(CHATS, EACH)


@pytest.mark.faults
async def test_a_thousand_chats_write_at_once() -> None:
    """The same with ten thousand messages, for as long as Telegram's limits make that take. (R17, P7)"""
    await flood(MANY_CHATS, MANY_EACH)
