"""The agents of a gateway, by name, each with what it may do. What is allowed is decided here, not by the agents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gateway.protocols import AgentError, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.agents.workspace import Workspace
    from gateway.protocols import Agent

DEEPEST = 3
STEPS = 50


@dataclass(frozen=True, slots=True)
class Member:
    """One agent, and its limits."""

    name: str
    agent: Agent
    tools: frozenset[str] | None = None
    """The tools that it may call; None for all."""
    delegates: frozenset[str] | None = None
    """The agents that it may hand work to; None for all others."""
    workspace: Workspace | None = None
    window: int = 0
    """How many tokens its model looks back on; 0 for one that remembers nothing."""
    depth: int = DEEPEST
    """How deep its helpers may have helpers."""
    steps: int = STEPS
    """How many requests to its model one run may make."""
    tokens: int = 0
    """What a turn may cost, helpers included; 0 for no limit."""
    run_timeout_s: float | None = None
    """How long one run may take; None for what the settings say."""


class Crew:
    def __init__(self, members: Mapping[str, Member]) -> None:
        self._members = dict(members)

    @classmethod
    def of(cls, agents: Mapping[str, Agent]) -> Crew:
        """Agents with the usual limits."""
        return cls({name: Member(name, agent) for name, agent in agents.items()})

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._members)

    def find(self, name: str) -> Member | None:
        return self._members.get(name)

    def member(self, name: str) -> Member:
        found = self.find(name)
        if found is None:
            known = ", ".join(self._members)
            raise AgentError(f"there is no agent {name!r} any more; these are there: {known}", agent=name)
        return found


@dataclass(slots=True, eq=False)
class Purse:
    """What a turn and its helpers may spend, in tokens."""

    most: int = 0
    spent: Usage = field(default_factory=Usage)

    def pay(self, usage: Usage) -> None:
        self.spent += usage
        self.check()

    def check(self) -> None:
        """Raises `AgentError` once more was spent than one turn may cost."""
        if self.most and self.spent.total > self.most:
            raise AgentError(
                f"this took {self.spent.total:,} tokens, more than the {self.most:,} that one turn may cost",
                spent=self.spent.total,
            )
