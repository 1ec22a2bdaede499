"""What is kept: messages, the moves they may make, and the replies they lead to. Values only.

    accepted ──▶ running ──▶ done | stopped | failed | quarantined
       │  ▲         │
       │  └─────────┘  put back: a shutdown or a crash came in between
       └──▶ stopped | dropped | failed | quarantined

A message is one accepted row. A turn is one or more messages that run together; its id is the token that every later
write about them carries.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from datetime import datetime


class MessageState(StrEnum):
    ACCEPTED = "accepted"
    RUNNING = "running"
    DONE = "done"
    STOPPED = "stopped"
    DROPPED = "dropped"
    FAILED = "failed"
    QUARANTINED = "quarantined"

    @property
    def terminal(self) -> bool:
        return not MOVES[self]


MOVES: dict[MessageState, frozenset[MessageState]] = {
    MessageState.ACCEPTED: frozenset(
        {
            MessageState.RUNNING,
            MessageState.STOPPED,
            MessageState.DROPPED,
            MessageState.FAILED,
            MessageState.QUARANTINED,
        }
    ),
    MessageState.RUNNING: frozenset(
        {
            MessageState.ACCEPTED,
            MessageState.DONE,
            MessageState.STOPPED,
            MessageState.FAILED,
            MessageState.QUARANTINED,
        }
    ),
    MessageState.DONE: frozenset(),
    MessageState.STOPPED: frozenset(),
    MessageState.DROPPED: frozenset(),
    MessageState.FAILED: frozenset(),
    MessageState.QUARANTINED: frozenset(),
}


@dataclass(frozen=True, slots=True)
class SessionKey:
    """Which conversation: its text form joins the seven parts with colons, each part made safe for that."""

    tenant: str
    agent: str
    channel: str
    account: str
    chat: str
    thread: str = ""
    epoch: int = 0

    def __str__(self) -> str:
        parts = (self.tenant, self.agent, self.channel, self.account, self.chat, self.thread)
        return ":".join([*(quote(part, safe="@+ ") for part in parts), str(self.epoch)])

    @classmethod
    def parse(cls, text: str) -> SessionKey:
        parts = text.split(":")
        if len(parts) != 7 or not (parts[6].isascii() and parts[6].isdigit()):
            raise ValueError(
                f"{text!r} is not a session: expected tenant:agent:channel:account:chat:thread:epoch, "
                "for instance default:main:terminal::local::0"
            )
        tenant, agent, channel, account, chat, thread = (unquote(part) for part in parts[:6])
        return cls(tenant, agent, channel, account, chat, thread, int(parts[6]))


class DeliveryKey(NamedTuple):
    """What makes a second delivery of the same message recognisable. A tuple, so that no two can be joined alike."""

    channel: str
    account: str
    external_id: str


@dataclass(frozen=True, slots=True)
class Incoming:
    """What a channel hands in: one message as somebody sent it."""

    key: DeliveryKey
    session: SessionKey
    sender: str
    text: str
    group: bool = False
    """Several people write in this session."""
    admin: bool = False
    """The sender may stop what others started."""
    control: bool = False
    """A command: it is answered whatever else is stopped."""


@dataclass(frozen=True, slots=True)
class Message:
    """One accepted row. ``id`` numbers all messages in the order in which they were accepted."""

    id: int
    incoming: Incoming
    accepted_at: datetime
    state: MessageState = MessageState.ACCEPTED
    attempts: int = 0
    turn: str = ""

    @property
    def session(self) -> SessionKey:
        return self.incoming.session

    @property
    def text(self) -> str:
        return self.incoming.text

    def moved(self, state: MessageState, *, turn: str = "", attempts: int | None = None) -> Message:
        """The row after a legal move; an illegal one is a mistake of the caller."""
        if state not in MOVES[self.state]:
            raise ValueError(f"message {self.id} cannot go from {self.state} to {state}")
        return replace(self, state=state, turn=turn, attempts=self.attempts if attempts is None else attempts)


def turn_id(process: str, run: int) -> str:
    """The token of a run's writes: no other run, of this or any other process, has the same."""
    return f"{process}-{run}"


@dataclass(frozen=True, slots=True)
class Receipt:
    """The answer to one delivery: the row it led to now or earlier."""

    id: int
    state: MessageState
    message: Message | None
    """The row, while it is open."""
    fresh: bool
    """This delivery made the row."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something to be said in a session, not yet in the outbox."""

    session: SessionKey
    text: str
    urgent: bool = False
    """Overtakes what waits in the outbox: the answer to a command."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One row of the outbox."""

    id: int
    note: Note
    answers: tuple[int, ...]
    """The messages that this is said about."""
