"""The promises of building agents: each what its spec says, clients shared, nothing imported or left open in vain."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest
import trio
from pydantic import SecretStr

from gateway.agents.build import Clients, open_agents
from gateway.agents.command import CommandAgent
from gateway.agents.loop import ModelAgent
from gateway.agents.spec import AgentSpec, Catalog
from gateway.protocols import AgentContext, AgentReply, Turn
from tests.fakes.anthropic import open_anthropic
from tests.fakes.openai import open_openai
from tests.fakes.script import Say, always
from tests.unit.gateway.agents.acting import ActingContext, a_turn

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Demo:
    spec: AgentSpec
    can_steer: bool = False

    async def run(self, turn: Turn, context: AgentContext) -> AgentReply:
        return AgentReply(self.spec.name)


async def test_every_agent_is_what_its_spec_says(tmp_path: Path) -> None:
    async with open_anthropic(always(Say("A"))) as one, open_openai(always(Say("O"))) as other:
        specs = [
            AgentSpec("main"),
            AgentSpec("a", "anthropic", "m", base_url=one.base_url, api_key=SecretStr("k")),
            AgentSpec("o", "openai", "m", base_url=other.base_url),
            AgentSpec("c", "command", command=("echo", "C"), workspace="desk"),
        ]
        catalog = Catalog({spec.name: spec for spec in specs})
        async with open_agents(catalog, workspace=tmp_path / "workspace", demo=Demo) as agents:
            with trio.fail_after(20):
                replies = {name: (await agent.run(a_turn(), ActingContext())).text for name, agent in agents.items()}
        assert replies == {"main": "main", "a": "A", "o": "O", "c": "C"}
        assert isinstance(agents["a"], ModelAgent)
        assert isinstance(agents["c"], CommandAgent)
        assert agents["a"].can_steer
        assert not agents["c"].can_steer
        assert await trio.Path(tmp_path / "workspace" / "desk").is_dir()
        assert one.requests[0].key == "k"
        assert other.requests[0].key == "none"
        with trio.fail_after(20):
            await one.until(lambda: one.connections == 0)
            await other.until(lambda: other.connections == 0)


async def test_clients_are_shared_by_server_and_key() -> None:
    clients = Clients()
    spec = AgentSpec("a", "openai", "m", base_url="http://127.0.0.1:9/v1", api_key=SecretStr("k"))
    await clients.model(spec)
    await clients.model(replace(spec, name="b", model="n"))
    assert len(clients) == 1
    await clients.model(replace(spec, api_key=SecretStr("other")))
    await clients.model(replace(spec, base_url="http://127.0.0.1:10/v1"))
    assert len(clients) == 3
    await clients.aclose()
    assert len(clients) == 0


@pytest.mark.parametrize("name", ["ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"])
async def test_a_foreign_variable_does_not_send_the_key_elsewhere(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDKs ask the environment where their server is; goclaw has told them."""
    monkeypatch.setenv(name, "http://evil.example")
    clients = Clients()
    backend = "anthropic" if name.startswith("ANTHROPIC") else "openai"
    await clients.model(AgentSpec("a", backend, "m", api_key=SecretStr("k")))  # type: ignore[arg-type]
    assert clients.addresses == [
        "https://api.anthropic.com" if backend == "anthropic" else "https://api.openai.com/v1/"
    ]
    await clients.aclose()


def test_no_sdk_is_imported_before_an_agent_needs_it() -> None:
    check = (
        "import sys, gateway.agents.build, gateway.agents.catalog; print({'anthropic', 'openai'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "set()\n"
