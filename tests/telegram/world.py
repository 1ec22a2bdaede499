"""A whole gateway that is served, its demo agents, and a Telegram with two people and a group around it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import trio

from tests.fakes.botapi import UNLIMITED, BotApi, Chat, Limits, Person, open_botapi
from tests.http.world import open_served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from gateway.supervisor import Health
    from store.protocols import Store
    from tests.http.world import Served

CANARY = "42:AAcanary-Canary_canaryCANARYcanary0123"
TEAM = -1_001_000_000_001
DEADLINE_S = 60.0


@dataclass(frozen=True, slots=True)
class Town:
    """Ann is on the list, Ben is not; both are in the team, which is on the list too and owned by Ann."""

    api: BotApi
    ann: Person
    ben: Person
    chat: Chat
    team: Chat

    @asynccontextmanager
    async def gateway(
        self, store: Store | None = None, place: Path | None = None, **variables: object
    ) -> AsyncIterator[Served]:
        usual: dict[str, Any] = {
            "telegram_token": CANARY,
            "telegram_api_url": self.api.address,
            "telegram_allow": f"7,{TEAM}",
            "shutdown_grace": 0,
        }
        async with open_served(store, place, **{**usual, **variables}) as served:
            yield served

    async def until(self, true: Any) -> None:
        await self.api.until(true)


@asynccontextmanager
async def open_town(
    *, forum: bool = False, limits: Limits = UNLIMITED, deadline_s: float = DEADLINE_S
) -> AsyncIterator[Town]:
    """Telegram alone; `Town.gateway` is what reads it, as often as a test wants."""
    with trio.fail_after(deadline_s):
        async with open_botapi(token=CANARY, limits=limits) as api:
            ann, ben = api.person(7, "Ann", username="ann_fake"), api.person(8, "Ben")
            chat = api.private(ann, started=True)
            api.private(ben, started=True)
            yield Town(api, ann, ben, chat, api.group(TEAM, "Team", [ben], owner=ann, forum=forum))


def health(served: Served) -> Health:
    """How the poller is."""
    assert served.office.gateway is not None
    (one,) = [one for one in served.office.gateway.health() if one.name == "telegram"]
    return one


async def becomes(served: Served, state: str) -> None:
    """Wait until the poller is that way."""
    assert served.office.gateway is not None
    changed = trio.Event()
    served.office.gateway.bus.watch(lambda event: changed.set())
    while health(served).state != state:
        await changed.wait()
        changed = trio.Event()
