"""What agents and channels are to the gateway, so that neither needs to know the other or the scheduler."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from store.records import Cursor, Incoming, SessionKey


@dataclass(frozen=True, slots=True)
class Turn:
    """One or more messages of one person that are answered together, oldest first."""

    session: SessionKey
    texts: tuple[str, ...]
    environ: Mapping[str, str] = field(default_factory=dict)
    """What a program that works for the agent finds in its environment: GOCLAW_TRACE_ID and the like."""


class AgentContext(Protocol):
    """What an agent may do while it works on a turn."""

    def show(self, text: str) -> None:
        """Let the person see a piece of work in progress. Shown at most until the answer; never after a stop."""

    async def ask_helper(self, task: str) -> str:
        """Have a helper work on a task in its own run, and wait for what it says."""

    async def steering(self) -> tuple[str, ...]:
        """At a boundary between two steps: what the person has added meanwhile."""


class Agent(Protocol):
    can_steer: bool

    async def run(self, turn: Turn, context: AgentContext) -> str:
        """Answer the turn. Cancelled by cancelling the task; raises what went wrong."""

    async def help(self, task: str, context: AgentContext) -> str:
        """Work on a task as somebody's helper."""


class ChannelError(Exception):
    """The channel could not deliver. Not ``retriable`` means that it never will."""

    code = "channel"

    def __init__(self, message: str, *, retriable: bool = True) -> None:
        super().__init__(message)
        self.retriable = retriable


class Channel(Protocol):
    """One way to reach people. ``show`` and ``clear`` never wait; ``send`` returns when the reply is delivered."""

    name: str

    async def send(self, session: SessionKey, text: str) -> None: ...

    def show(self, session: SessionKey, text: str) -> None: ...

    def clear(self, session: SessionKey) -> None: ...


class Intake(Protocol):
    """What a channel hands its messages to."""

    async def receive(self, batch: Sequence[Incoming], cursor: Cursor | None = None) -> None:
        """Take messages in; when this returns they are kept, the cursor too, and may be acknowledged."""

    async def drained(self) -> None:
        """Wait until everything taken in so far has ended and was said."""
