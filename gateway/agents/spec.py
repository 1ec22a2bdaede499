"""What an agent is declared to be, and what it may use up. Values alone; `catalog` reads them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pydantic import SecretStr

Backend = Literal["demo", "anthropic", "openai", "command"]
BACKENDS: tuple[Backend, ...] = ("demo", "anthropic", "openai", "command")

MODELS: Mapping[Backend, str] = {"anthropic": "claude-sonnet-5-5", "openai": "gpt-5.4"}
WINDOWS: Mapping[Backend, int] = {"demo": 100_000, "anthropic": 200_000, "openai": 128_000, "command": 100_000}
ADDRESSES: Mapping[Backend, str] = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com/v1"}
"""Where the backends' own servers are. Always said to the SDKs, which would ask the environment otherwise."""

MAX_ANSWER = 8_192
TOOLS = (
    "spawn_subagent",
    "delegate",
    "schedule",
    "schedule_hint",
    "schedule_history",
    "read_file",
    "write_file",
)
INSTRUCTIONS = "You are a helpful assistant. Answer briefly and plainly. Say so when you do not know something."


@dataclass(frozen=True, slots=True)
class AgentLimits:
    depth: int = 3
    """How far helpers may have helpers of their own."""
    run_timeout: timedelta | None = None
    """None: as the settings say."""
    tokens: int = 1_000_000
    """What one turn may cost, helpers included."""
    steps: int = 50
    """Requests to the model in one run."""
    jobs: int = 50
    """Scheduled jobs that the agent may have."""
    shortest_interval: timedelta = timedelta(minutes=1)
    """Between two runs of a job that the agent schedules."""
    max_concurrent: int | None = None
    """Jobs of this agent that run at once; None: as many as the lane lets through."""


@dataclass(frozen=True, slots=True)
class AgentSpec:
    name: str
    backend: Backend = "demo"
    model: str = ""
    instructions: str = INSTRUCTIONS
    command: tuple[str, ...] = ()
    steer: bool = False
    stdin: Literal["open", "closed"] = "open"
    base_url: str | None = None
    """None: the backend's own server."""
    api_key: SecretStr | None = None
    key_name: str = ""
    """The variable that the key came from, or should come from: what a message tells people to look at."""
    window: int = 100_000
    max_answer: int = MAX_ANSWER
    tools: tuple[str, ...] = TOOLS
    delegates: tuple[str, ...] = ()
    workspace: str = ""
    limits: AgentLimits = field(default_factory=AgentLimits)


@dataclass(frozen=True, slots=True)
class Catalog:
    """Every agent by its name, in the order of the file; `main` is always among them."""

    agents: Mapping[str, AgentSpec]
    path: Path | None = None
    """The file that declares them; None if there is none."""

    def secrets(self) -> tuple[str, ...]:
        """What must never be shown."""
        return tuple(spec.api_key.get_secret_value() for spec in self.agents.values() if spec.api_key is not None)
