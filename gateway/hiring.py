"""From `agents.toml` to a crew: every declared agent, with its backend at hand and its limits in force."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.agents.build import open_agents
from gateway.agents.catalog import load_catalog
from gateway.agents.demo import DemoAgent
from gateway.agents.workspace import Workspace
from gateway.crew import Crew, Member
from gateway.stores import data_directory
from gateway.tools import CALLS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cron.options import Options
    from gateway.agents.spec import AgentSpec, Catalog
    from gateway.protocols import Agent
    from gateway.settings import Settings


def read_catalog(settings: Settings) -> Catalog:
    """The declared agents; raises `CatalogError` with everything that is wrong with them."""
    return load_catalog(None, settings, os.environ, tools=tuple(CALLS))


@asynccontextmanager
async def open_crew(settings: Settings, catalog: Catalog) -> AsyncIterator[Crew]:
    """The agents, ready to answer, for as long as the block."""
    root = workspaces(settings)
    async with open_agents(catalog, workspace=root, demo=lambda spec: DemoAgent(), environ=os.environ) as agents:
        yield Crew({name: member(spec, agents[name], root) for name, spec in catalog.agents.items()})


def member(spec: AgentSpec, agent: Agent, root: Path) -> Member:
    limits = spec.limits
    return Member(
        name=spec.name,
        agent=agent,
        tools=frozenset(spec.tools),
        delegates=frozenset(spec.delegates),
        workspace=Workspace(root / (spec.workspace or spec.name)),
        window=0 if spec.backend == "demo" else spec.window,  # it looks back on nothing
        depth=limits.depth,
        steps=limits.steps,
        tokens=limits.tokens,
        run_timeout_s=None if limits.run_timeout is None else limits.run_timeout.total_seconds(),
    )


def workspaces(settings: Settings) -> Path:
    if settings.workspace is not None:
        return Path(settings.workspace).expanduser()
    return data_directory(settings) / "workspace"


def with_limits(options: Options, catalog: Catalog) -> Options:
    """How cron treats the jobs of each agent."""
    limits = {name: spec.limits for name, spec in catalog.agents.items()}
    return replace(
        options,
        agent_jobs={name: one.jobs for name, one in limits.items()},
        agent_intervals={name: one.shortest_interval for name, one in limits.items()},
        agents={name: one.max_concurrent for name, one in limits.items() if one.max_concurrent is not None},
    )
