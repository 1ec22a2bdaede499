"""What agents keep in files is kept for one tenant, and goes with it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from gateway.agents.workspace import Workspace, WorkspaceError, forget_tenant
from gateway.clock import utc_now
from store.memory import MemoryStore
from tests.http.world import open_served

if TYPE_CHECKING:
    from pathlib import Path

REMEMBERS = """
import json, pathlib, sys
text = json.loads(sys.stdin.readline())["texts"][-1]
notes = pathlib.Path("notes.txt")
if text.startswith("remember "):
    notes.write_text(text)
print(notes.read_text() if notes.exists() else "nothing is known")
"""


def found(place: Path, name: str) -> list[str]:
    return [str(path.relative_to(place)) for path in place.rglob(name)]


async def test_a_tenants_agents_know_nothing_of_another_tenants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program writes where it works, and another tenant's turn works elsewhere; removed, nothing is left. (P11)"""
    (tmp_path / "remembers.py").write_text(REMEMBERS)
    (tmp_path / "agents.toml").write_text(
        f'[agent.main]\nbackend = "command"\ncommand = ["{sys.executable}", "{tmp_path}/remembers.py"]\n'
    )
    monkeypatch.chdir(tmp_path)

    async def ask(secret: str, text: str) -> str:
        async with served.client(secret) as client:
            answer = await client.post("/v1/messages", json={"text": text, "wait": 30})
            return str(answer.json()["answer"])

    async with open_served(MemoryStore(utc_now), tmp_path / "data") as served:
        acme, bob = await served.tenant("acme"), await served.tenant("bob")
        ours = await served.secret()
        assert await ask(acme, "remember 4711") == "remember 4711"
        assert await ask(bob, "what do you know?") == "nothing is known"
        assert await ask(ours, "what do you know?") == "nothing is known"
        assert await ask(acme, "what do you know?") == "remember 4711"
        async with served.client(ours) as operator:
            assert (await operator.delete("/v1/tenants/acme")).status_code == 200
        assert await ask(await served.tenant("acme"), "what do you know?") == "nothing is known"
    assert found(tmp_path / "data", "notes.txt") == []


async def test_a_tenants_name_leads_nowhere_else(tmp_path: Path) -> None:
    """Its files are below the agents' directory, whatever the tenant is called; the default one has them as ever."""
    own = Workspace(tmp_path / "main")
    assert own.of("default") is own
    await own.of("acme").write_file("a.txt", "x")
    assert found(tmp_path, "a.txt") == ["@tenants/acme/main/a.txt"]
    for name in ("..", ".", "a/b", "", "@tenants"):
        with pytest.raises(WorkspaceError):
            own.of(name)
        await forget_tenant(tmp_path, name)
    await forget_tenant(tmp_path, "default")
    assert (tmp_path / "@tenants" / "acme").exists()
    await forget_tenant(tmp_path, "acme")
    assert not (tmp_path / "@tenants" / "acme").exists()
