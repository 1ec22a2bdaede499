"""What most flow tests start from: a gateway whose edges are fakes, and short ways to talk to it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import trio
from trio.testing import wait_all_tasks_blocked

from gateway.app import Gateway, Parts, open_gateway
from gateway.crew import Crew
from gateway.loading import load_settings
from gateway.timetable import CronParts, cron_options
from store.memory import MemoryStore
from store.memory_messages import MemoryMessages
from store.records import CHAT_LEASE, DeliveryKey, Incoming, SessionKey
from tests.flow.edges import FakeChannel, Scripted, TroubledStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cron.telling import Level
    from gateway.settings import Settings
    from store.jobs import Claim
    from store.protocols import MessageStore

DEBOUNCED_S = 0.9


def incoming(
    text: str,
    chat: str = "dm",
    sender: str = "ann",
    *,
    group: bool = False,
    admin: bool = False,
    number: str | None = None,
    channel: str = "fake",
) -> Incoming:
    """One delivery. Without a number it is like no other; the same number again is the same delivery."""
    key = DeliveryKey(channel, "bot", number or uuid4().hex)
    session = SessionKey("default", "main", channel, "bot", chat)
    return Incoming(key, session, sender, text, group=group, admin=admin)


def new_store() -> MemoryMessages:
    """A store whose week passes with the test's clock."""
    whole = MemoryStore(lambda: datetime(2026, 3, 1, tzinfo=UTC) + timedelta(seconds=trio.current_time()))
    return whole.messages(whole.grant(CHAT_LEASE, "flow", timedelta(days=36_500)))


def whole_of(store: MessageStore) -> MemoryStore:
    """The whole store that these messages are a view of."""
    inner = store.inner if isinstance(store, TroubledStore) else store
    return inner.whole if isinstance(inner, MemoryMessages) else MemoryStore(lambda: datetime(2026, 3, 1, tzinfo=UTC))


@dataclass
class Told:
    """What cron says about itself."""

    events: list[tuple[str, dict[str, object]]] = field(default_factory=list)

    def __call__(self, event: str, *, level: Level = "info", claim: Claim | None = None, **facts: object) -> None:
        self.events.append((event, {"level": level, **facts}))

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.events]


def cron_parts(whole: MemoryStore, told: Told | None = None, settings: Settings | None = None) -> CronParts:
    """Cron on this store, with the store's own clock and no chance in it."""
    options = cron_options(settings or settings_of())
    return CronParts(whole, "flow", whole.now, told or Told(), options, random=lambda: 0.5)


def settings_of(**variables: object) -> Settings:
    """Settings by the variables of the environment that they are known by."""
    return load_settings({f"GOCLAW_{name.upper()}": str(value) for name, value in variables.items()}, None).settings


class World:
    """A gateway at work, and what people see of it."""

    def __init__(self, gateway: Gateway, store: MessageStore, agent: Scripted, channel: FakeChannel) -> None:
        self.gateway = gateway
        self.store = store
        self.agent = agent
        self.channel = channel

    async def say(self, *texts: str, chat: str = "dm", sender: str = "ann", group: bool = False) -> None:
        """Send these in one batch."""
        await self.gateway.receive([incoming(text, chat, sender, group=group) for text in texts])

    async def start(self, *texts: str, chat: str = "dm", sender: str = "ann", group: bool = False) -> None:
        """Send each of these and wait until it is past the debounce window."""
        for text in texts:
            await self.say(text, chat=chat, sender=sender, group=group)
            await trio.sleep(DEBOUNCED_S)

    async def ask(self, text: str, chat: str = "dm", sender: str = "ann", *, group: bool = False) -> str:
        """Send a command and give its answer, which must be there in no time at all, whatever else is said. (P7)"""
        before, known = trio.current_time(), len(self.channel.replies(chat))
        await self.say(text, chat=chat, sender=sender, group=group)
        await wait_all_tasks_blocked()
        assert trio.current_time() == before
        (answer,) = [text for text in self.channel.replies(chat)[known:] if not text.startswith("re:")]
        return answer

    def replies(self, chat: str = "dm") -> list[str]:
        return self.channel.replies(chat)


@asynccontextmanager
async def open_world(
    store: MessageStore | None = None,
    agent: Scripted | None = None,
    channel: FakeChannel | None = None,
    cron: CronParts | None = None,
    **variables: object,
) -> AsyncIterator[World]:
    """A gateway with these settings, given by the variables of the environment they are known by."""
    settings = settings_of(**variables)
    store, agent, channel = store or new_store(), agent or Scripted(), channel or FakeChannel()
    crew = Crew.of({"main": agent, "research": agent})
    sessions = whole_of(store) if cron is None else cron.store
    async with open_gateway(settings, Parts(store, sessions, crew, [channel], cron)) as gateway:
        yield World(gateway, store, agent, channel)


@asynccontextmanager
async def killed(
    store: MessageStore, after_s: float, agent: Scripted | None = None, **variables: object
) -> AsyncIterator[World]:
    """A gateway that ends without a word when the block has run for that long: what is not in the store is gone."""
    with trio.move_on_after(after_s):
        async with open_world(store, agent, FakeChannel(), None, **variables) as world:
            yield world
            await trio.sleep_forever()
