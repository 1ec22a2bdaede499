"""From a catalog to agents that run. The one place that knows all backends but the demo, which is handed in.

Agents with the same server and key share a client, and so its connections. An SDK is imported when an agent needs it,
in a thread, since that takes a second.
"""

from __future__ import annotations

import importlib
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio

from gateway.agents.command import CommandAgent
from gateway.agents.loop import ModelAgent
from gateway.agents.spec import ADDRESSES
from gateway.agents.trouble import Server
from gateway.agents.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path

    from gateway.agents.models import Model
    from gateway.agents.spec import AgentSpec, Catalog
    from gateway.protocols import Agent

CLOSE_S = 2.0
NO_KEY = "none"
"""Sent to servers that want no key; the SDKs insist on one, and would look for it in the environment."""


@asynccontextmanager
async def open_agents(
    catalog: Catalog,
    *,
    workspace: Path,
    demo: Callable[[AgentSpec], Agent],
    environ: Mapping[str, str] | None = None,
) -> AsyncIterator[Mapping[str, Agent]]:
    """Every agent of the catalog by its name; their connections are closed at the end.

    `workspace` is the directory in which each has one of its own, `environ` what programs may be given a part of.
    """
    clients = Clients()
    try:
        yield {
            name: await make_agent(spec, workspace=workspace, clients=clients, demo=demo, environ=environ)
            for name, spec in catalog.agents.items()
        }
    finally:
        await clients.aclose()


async def make_agent(
    spec: AgentSpec,
    *,
    workspace: Path,
    clients: Clients,
    demo: Callable[[AgentSpec], Agent],
    environ: Mapping[str, str] | None = None,
) -> Agent:
    if spec.backend == "demo":
        return demo(spec)
    if spec.backend == "command":
        return CommandAgent(spec, Workspace(workspace / spec.workspace), environ)
    return ModelAgent(spec, await clients.model(spec))


class Clients:
    """The SDKs' clients, one for each server and key."""

    def __init__(self) -> None:
        self._clients: dict[tuple[str, str, str], Any] = {}

    async def model(self, spec: AgentSpec) -> Model:
        """The model of an agent whose backend is a server."""
        address = spec.base_url or ADDRESSES[spec.backend]
        server = Server(spec.model, address, spec.api_key, spec.key_name)
        room = await trio.to_thread.run_sync(importlib.import_module, f"gateway.agents.{spec.backend}_model")
        key = spec.api_key.get_secret_value() if spec.api_key is not None else NO_KEY
        identity = (spec.backend, address, key)
        if identity not in self._clients:
            self._clients[identity] = room.open_client(address, key)
        model: Model
        if spec.backend == "anthropic":
            model = room.AnthropicModel(self._clients[identity], server)
        else:
            model = room.OpenAIModel(self._clients[identity], server, own=spec.base_url is None)
        return model

    def __len__(self) -> int:
        return len(self._clients)

    @property
    def addresses(self) -> list[str]:
        """Where they send their keys to."""
        return [str(client.base_url) for client in self._clients.values()]

    async def aclose(self) -> None:
        with trio.move_on_after(CLOSE_S, shield=True):
            for client in self._clients.values():
                await client.close()
        self._clients = {}
