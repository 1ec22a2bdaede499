"""What agents and channels are to the gateway, so that neither needs to know the other or the scheduler.

An agent answers turns. Whatever it does beyond computing goes through its context: showing work in progress, calling
tools, hearing what was said meanwhile, spending tokens. So what an agent may do is decided outside of it.

A channel reaches people. What it is to deliver comes from the outbox; what it shows before that may be lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from store.records import Cursor, Incoming, Message, Receipt, Said, SessionKey

# ── agents ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Turn:
    """One or more messages of one person that are answered together, oldest first."""

    session: SessionKey
    texts: tuple[str, ...]
    history: tuple[Said, ...] = ()
    """What was said before, oldest first, as much as the agent's window holds. It begins with a person's words."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """What a program that works for the agent finds in its environment: GOCLAW_TRACE_ID and the like."""
    depth: int = 0
    """0 for a person's turn or a job's, 1 for a helper of that, 2 for a helper's helper."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the model counted them."""

    tokens_in: int = 0
    tokens_out: int = 0

    @property
    def total(self) -> int:
        return self.tokens_in + self.tokens_out

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.tokens_in + other.tokens_in, self.tokens_out + other.tokens_out)


@dataclass(frozen=True, slots=True)
class AgentReply:
    """The answer to a turn."""

    text: str
    said: tuple[Said, ...] = ()
    """What is to be remembered before the answer, in order: the person's words, calls of tools, what came of them.
    Empty stands for the turn's texts alone."""
    context: float | None = None
    """How much of the model's window the conversation fills now, 0 to 1; None if nobody has counted."""


@dataclass(frozen=True, slots=True)
class Tool:
    """Something that an agent may ask the gateway to do."""

    name: str
    about: str
    parameters: Mapping[str, object]
    """A JSON schema of an object."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came of it, in words for the model. Not ``ok``: it was refused or failed, and the words say why."""

    text: str
    ok: bool = True


class AgentContext(Protocol):
    """What an agent may do while it works on a turn."""

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What it may call."""

    def show(self, text: str) -> None:
        """Let the person see a piece of work in progress. Shown at most until the answer; never after a stop."""

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolResult:
        """Call a tool. Whatever is wrong with the call is a result; several may be under way at once."""

    async def steering(self) -> tuple[str, ...]:
        """At a boundary between two steps: what the person has added meanwhile."""

    def asking(self, model: str) -> AbstractContextManager[None]:
        """Around one request to a model: it counts as a step, and its time shows in the trace."""

    def spend(self, usage: Usage) -> None:
        """Tokens were used. Raises `AgentError` when that was more than the turn may cost, helpers included."""


class AgentError(Exception):
    """The agent cannot go on; the text is one line for the person. ``retriable``: trying again later may help."""

    code = "agent"

    def __init__(self, message: str, *, retriable: bool = False, **fields: object) -> None:
        super().__init__(message)
        self.retriable = retriable
        self.fields = fields


class Agent(Protocol):
    can_steer: bool

    async def run(self, turn: Turn, context: AgentContext) -> AgentReply:
        """Answer the turn. Cancelled by cancelling the task; raises what went wrong."""


# ── channels ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Pace:
    """How quickly a channel may be written to, in seconds between two sends."""

    address_s: float = 0.0
    group_s: float = 0.0
    overall_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Delivery:
    """A reply on its way to people."""

    session: SessionKey
    text: str
    turn: str
    """The turn that it answers, whose work in progress it takes the place of; empty if there is none."""
    parts: int
    """So many of its parts were delivered by an earlier attempt."""
    live: str
    """The channel's id of the message that showed it while it grew."""
    progress: Callable[[int, str], Awaitable[None]]
    """Called with the number of parts delivered and the live message's id: a restart goes on from there."""
    answers: tuple[int, ...] = ()
    """The messages that it is said about."""


class ChannelError(Exception):
    """The channel could not deliver. Not ``retriable`` means that it never will."""

    code = "channel"

    def __init__(self, message: str, *, retriable: bool = True, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retriable = retriable
        self.retry_after_s = retry_after_s
        """How long the other side wants to be left alone, if it says so."""


class Channel(Protocol):
    """One way to reach people. Only ``send`` may wait; it returns when the reply is delivered."""

    name: str
    pace: Pace

    async def send(self, delivery: Delivery) -> str:
        """Deliver it; what the channel calls what was delivered is the receipt."""

    def show(self, session: SessionKey, turn: str, text: str) -> None:
        """More of a turn's work in progress."""

    def clear(self, session: SessionKey, turn: str) -> None:
        """Nothing of the turn's work in progress is left to be seen, and nobody is typing."""

    def hint(self, session: SessionKey, text: str) -> None:
        """A passing word that need not be kept: a message waits behind others."""


@runtime_checkable
class Attentive(Protocol):
    """A channel that lets people see that a message of theirs was noticed and is being worked on. Nothing waits."""

    def took(self, message: Message) -> None:
        """It waits or runs from now on; after a restart this is told again."""

    def began(self, turn: str, messages: Sequence[Message]) -> None:
        """These are being worked on, in this turn."""

    def ended(self, message: Message, turn: str, *, answered: bool) -> None:
        """It does not wait or run any more. ``answered``: what its turn has said is on its way."""


class Intake(Protocol):
    """What a channel hands its messages to."""

    async def receive(self, batch: Sequence[Incoming], cursor: Cursor | None = None) -> None:
        """Take messages in; when this returns they are kept, the cursor too, and may be acknowledged."""

    async def drained(self) -> None:
        """Wait until everything taken in so far has ended and was said."""


class Reception(Protocol):
    """The same for a channel that wants to know what became of each message."""

    async def take_in(self, batch: Sequence[Incoming], cursor: Cursor | None = None) -> tuple[Receipt, ...]:
        """When this returns they are kept, and the cursor too."""
