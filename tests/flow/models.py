"""A whole gateway whose agents think: real backends from an `agents.toml`, a fake model's server, the real JSON store.

Sockets and processes know nothing of a test's clock: all waiting here is for events, with a deadline against hanging.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from gateway.app import Gateway, Parts, open_gateway
from gateway.clock import utc_now
from gateway.hiring import open_crew, read_catalog, with_limits
from gateway.stores import open_store
from gateway.tenure import tenure
from gateway.timetable import CronParts, cron_options
from store.records import SessionKey
from tests.fakes.anthropic import open_anthropic
from tests.fakes.openai import open_openai
from tests.flow.edges import FakeChannel
from tests.flow.world import Told, incoming, settings_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from store.protocols import Store
    from tests.fakes.script import Asked, Script
    from tests.fakes.server import ModelServer

KINDS = ("openai", "anthropic")
OPEN = {"openai": open_openai, "anthropic": open_anthropic}
DEADLINE_S = 30
WEATHER = Path(__file__).parents[2] / "docs" / "examples" / "weather.sh"
DM = SessionKey("default", "main", "fake", "bot", "dm")


@dataclass
class Talk:
    gateway: Gateway
    channel: FakeChannel
    store: Store

    async def say(self, text: str, **about: object) -> None:
        await self.gateway.receive([incoming(text, **about)])  # type: ignore[arg-type]

    async def ask(self, text: str, **about: object) -> str:
        """Say it and give the one reply that comes of it."""
        known = len(self.replies())
        await self.say(text, **about)
        await self.gateway.drained()
        (reply,) = self.replies()[known:]
        return reply

    def replies(self) -> list[str]:
        return self.channel.replies()


@asynccontextmanager
async def open_talk(place: Path, agents: str, **variables: object) -> AsyncIterator[Talk]:
    """A gateway in this directory, with the agents that this text of an `agents.toml` declares."""
    file = place / "agents.toml"
    file.write_text(agents)
    settings = settings_of(**{"agents": file, "data_dir": place / "data", "queue_debounce": 0, **variables})
    catalog, channel = read_catalog(settings), FakeChannel()
    with trio.fail_after(DEADLINE_S):
        async with (
            open_store(settings) as opened,
            open_crew(settings, catalog) as crew,
            tenure(opened.store, opened.owner, opened.lease_span, lambda holder: None) as lease,
        ):
            options = with_limits(cron_options(settings), catalog)
            cron = CronParts(opened.store, opened.owner, utc_now, Told(), options)
            parts = Parts(opened.store.messages(lease), opened.store, crew, [channel], cron)
            async with open_gateway(settings, parts) as gateway:
                yield Talk(gateway, channel, opened.store)


def thinking(kind: str, server: ModelServer, *lines: str, name: str = "main") -> str:
    """An agent whose model is on this server, as it stands in the file."""
    head = (f"[agent.{name}]", f'backend = "{kind}"', f'base_url = "{server.base_url}"', 'model = "fake-large"')
    return "\n".join([*head, *lines, ""])


def program(*command: str, name: str = "main") -> str:
    """An agent that is a program, as it stands in the file."""
    return "\n".join([f"[agent.{name}]", 'backend = "command"', f"command = {json.dumps(command)}", ""])


def limits(name: str = "main", **values: object) -> str:
    """The limits of an agent, as they stand in the file."""
    shown = (f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value}" for key, value in values.items())
    return "\n".join([f"[agent.{name}.limits]", *shown, ""])


@asynccontextmanager
async def talking(
    kind: str, script: Script, place: Path, *lines: str, **variables: object
) -> AsyncIterator[tuple[Talk, ModelServer]]:
    """A gateway whose agent `main`, with these lines besides, asks a server that follows the script."""
    async with OPEN[kind](script) as server, open_talk(place, thinking(kind, server, *lines), **variables) as talk:
        yield talk, server


def asked_in(server: ModelServer) -> list[Asked]:
    """What the model was asked, request by request; none of it was refused."""
    assert [request.body for request in server.requests if request.status == 400] == []
    return [request.asked for request in server.requests]


def told(asked: Asked) -> list[tuple[str, str]]:
    """Who said what in a request: the past, and what is said now."""
    return [(message.role, message.all_text) for message in asked.messages if message.role != "system"]


def is_helper(asked: Asked) -> bool:
    return "working as a helper" in asked.system
