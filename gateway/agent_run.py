"""One run of an agent, as the agent sees it: the context of a person's turn, of a helper and of a job alike.

    Errand            a person's turn or a job: who asked, where the answer goes, what it may cost
    └── AgentRun      the agent that works on it, depth 0
        ├── AgentRun  a helper on lane `subagent`, depth 1: same errand, same purse
        └── AgentRun  another agent on lane `delegate`

Whatever a run shows or spends goes through here, so nothing of a stopped run is seen, and no helper is for free.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import trio

from gateway.protocols import AgentError, Usage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from gateway.crew import Member, Purse
    from gateway.protocols import Tool, ToolResult
    from gateway.toolbox import Toolbox
    from gateway.traces import Trace
    from scheduler import Run
    from store.jobs import Job
    from store.records import SessionKey


@dataclass(slots=True, eq=False)
class Errand:
    """What a run and all of its helpers work for."""

    session: SessionKey
    """The conversation that it is about."""
    owner: str
    uid: str
    """Unlike any other errand's, and the same when it is taken up again after a crash."""
    purse: Purse
    environ: Mapping[str, str]
    show: Callable[[str], None] = lambda text: None
    """Let people see work in progress."""
    answers_in: SessionKey | None = None
    """Where people read what comes of it; None for nowhere."""
    job: Job | None = None
    """The job that it is a run of."""
    helpers: int = 0
    made: int = 0
    """How many jobs it has made."""


class AgentRun:
    def __init__(
        self,
        toolbox: Toolbox,
        run: Run,
        member: Member,
        errand: Errand,
        trace: Trace,
        steer: Callable[[], Awaitable[tuple[str, ...]]] | None = None,
    ) -> None:
        self.run = run
        self.member = member
        self.errand = errand
        self.trace = trace
        self.tools: tuple[Tool, ...] = toolbox.offered(member, run.depth, errand)
        self._toolbox = toolbox
        self._steer = steer
        self._steps = 0
        self._spent = Usage()

    def show(self, text: str) -> None:
        if not self.run.cancelled and not self.run.ended:
            self.errand.show(text)

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolResult:
        with self.trace.span("tool", tool):
            return await self._toolbox.call(self, tool, arguments)

    async def steering(self) -> tuple[str, ...]:
        if self._steer is not None:
            return await self._steer()
        await trio.lowlevel.checkpoint()  # people steer the run that a helper works for
        return ()

    @contextmanager
    def asking(self, model: str) -> Iterator[None]:
        self.errand.purse.check()  # a helper may have spent the rest
        self._steps += 1
        if self._steps > self.member.steps:
            raise AgentError(f"the model was asked {self.member.steps} times and had not finished; it was ended there")
        with self.trace.span("model", model):
            yield

    def spend(self, usage: Usage) -> None:
        self._spent += usage
        self.trace.facts.update(tokens_in=self._spent.tokens_in, tokens_out=self._spent.tokens_out)
        self.errand.purse.pay(usage)
