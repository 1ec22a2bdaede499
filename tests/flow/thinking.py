"""A whole gateway whose agents really think: the agents of a catalog, over a model's server on loopback.

The server follows a script (`tests.fakes.script`). There are sockets in it, so there is no clock that jumps: a test
waits for what is to happen (`server.until`, `channel.until`), and holds a model back with an event.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from pydantic import SecretStr

from gateway.agents.spec import AgentSpec, Catalog
from gateway.app import Parts, open_gateway
from gateway.clock import utc_now
from gateway.hiring import open_crew
from gateway.traces import Traces
from store.memory import MemoryStore
from store.records import CHAT_LEASE
from tests.fakes.anthropic import open_anthropic
from tests.fakes.openai import open_openai
from tests.flow.edges import FakeChannel
from tests.flow.world import incoming, settings_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from gateway.app import Gateway
    from gateway.traces import Trace
    from store.protocols import MessageStore
    from tests.fakes.script import Script
    from tests.fakes.server import ModelServer

Sdk = Literal["openai", "anthropic"]
KEY = "sk-loopback"


@dataclass
class Thinking:
    """A gateway at work, what people see of it, and what its models were asked."""

    gateway: Gateway
    channel: FakeChannel
    server: ModelServer
    store: MessageStore
    traces: Traces

    async def say(self, *texts: str, chat: str = "dm", group: bool = False) -> None:
        """Send these in one batch."""
        await self.gateway.receive([incoming(text, chat, group=group) for text in texts])

    async def ask(self, text: str, chat: str = "dm") -> str:
        """Send this and give what is said next."""
        known = len(self.channel.replies(chat))
        await self.say(text, chat=chat)
        await self.channel.until(lambda: len(self.channel.replies(chat)) > known)
        return self.channel.replies(chat)[known]

    def asked(self) -> list[str]:
        """The last message of every request that came to the server."""
        return [request.asked.last.all_text for request in self.server.requests]

    def ended(self, kind: str = "") -> list[Trace]:
        """The closed traces, oldest first."""
        return [trace for trace in reversed(tuple(self.traces.recent())) if kind in ("", trace.kind)]


def thinker(name: str, sdk: Sdk, server: ModelServer, *delegates: str) -> AgentSpec:
    """An agent whose model is on that server."""
    return AgentSpec(
        name, sdk, "fake-large", base_url=server.base_url, api_key=SecretStr(KEY), delegates=delegates, workspace=name
    )


@asynccontextmanager
async def open_thinking(
    place: Path,
    script: Script,
    sdk: Sdk = "openai",
    programs: Mapping[str, tuple[str, ...]] | None = None,
    **variables: object,
) -> AsyncIterator[Thinking]:
    """The agents `main` and `research` on a server with this script; ``programs`` are agents too, or in their place.

    The ``variables`` are settings by their names in the environment; without them there is no debounce window.
    """
    settings = settings_of(**{"queue_debounce": 0, "workspace": place / "workspace", **variables})
    whole, channel = MemoryStore(utc_now), FakeChannel()
    messages = whole.messages(whole.grant(CHAT_LEASE, "thinking", timedelta(days=1)))
    traces = Traces(place / "logs", utc_now)
    commands = {
        name: AgentSpec(name, "command", command=command, workspace=name) for name, command in (programs or {}).items()
    }
    names = ("main", "research", *commands)
    async with (open_openai if sdk == "openai" else open_anthropic)(script) as server:
        models = {name: thinker(name, sdk, server, *(set(names) - {name})) for name in ("main", "research")}
        async with open_crew(settings, Catalog({**models, **commands})) as crew:
            parts = Parts(messages, whole, crew, [channel], traces=traces)
            async with open_gateway(settings, parts) as gateway:
                yield Thinking(gateway, channel, server, messages, traces)
