"""What is kept: messages and the moves they may make, replies, sessions, tenants, workers. Values only.

    accepted ──▶ running ──▶ done | stopped | failed | quarantined
       │  ▲         │
       │  └─────────┘  put back: a shutdown or a crash came in between
       └──▶ stopped | dropped | failed | quarantined

A message is one accepted row. A turn is one or more messages that run together; its id is the token that every later
write about them carries. A lease is the same for a whole process: it names who may work on messages at all.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from math import isfinite
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

HIGHEST = 2**63 - 1
"""The largest number that every store can keep."""
DEFAULT_TENANT = "default"
CHAT_LEASE = "chat"
"""Whoever holds it works on messages; everybody else may only hand them in."""

REMEMBER_KEYS = timedelta(days=7)
KEEP_BEATS = timedelta(days=7)
KEEP_READINGS = timedelta(days=30)
USED_LATELY = timedelta(minutes=1)
"""A token's last use is noted this exactly, so that not every request costs a write."""


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


class Address(NamedTuple):
    """Where a reply goes; what is said there keeps its order."""

    channel: str
    account: str
    chat: str
    thread: str


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

    def __post_init__(self) -> None:
        if type(self.epoch) is not int or not 0 <= self.epoch <= HIGHEST:
            raise ValueError(f"epoch {self.epoch!r}: expected a whole number from 0 on")

    @property
    def address(self) -> Address:
        return Address(self.channel, self.account, self.chat, self.thread)

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
    """What a channel calls a message. A tuple, so that no two can be joined alike."""

    channel: str
    account: str
    external_id: str


class OwnKey(NamedTuple):
    """What makes a second delivery of the same message recognisable: inside its tenant, and nowhere else."""

    tenant: str
    channel: str
    account: str
    external_id: str


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a channel has been read. It only moves forward."""

    channel: str
    account: str
    position: int


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

    @property
    def own_key(self) -> OwnKey:
        return OwnKey(self.session.tenant, *self.key)


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
class Seen:
    """What is left of a message that has ended, by its own key."""

    id: int
    state: MessageState
    at: datetime


@dataclass(frozen=True, slots=True)
class Receipt:
    """The answer to one delivery: the row it led to now or earlier."""

    id: int
    state: MessageState
    message: Message | None
    """The row, while it is open."""
    fresh: bool
    """This delivery made the row."""
    standing: Standing


@dataclass(frozen=True, slots=True)
class Note:
    """Something to be said in a session, not yet in the outbox."""

    session: SessionKey
    text: str
    urgent: bool = False
    """Overtakes what waits in the outbox: the answer to a command."""
    run: str = ""
    """The cron run that says it: what becomes of the note is written there."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One row of the outbox."""

    id: int
    note: Note
    answers: tuple[int, ...]
    """The messages that this is said about."""
    parts: int = 0
    """How many of its parts the channel has taken already."""
    live: str = ""
    """The channel's id of the message that shows it while it grows."""


# ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────────

QueueMode = Literal["queue", "followup", "collect", "steer", "interrupt"]
DropPolicy = Literal["old", "new"]


@dataclass(frozen=True, slots=True)
class SessionPolicy:
    """What somebody has set for one conversation; what is None follows the settings."""

    mode: QueueMode | None = None
    cap: int | None = None
    drop: DropPolicy | None = None
    debounce_ms: int | None = None
    max_concurrent: int | None = None
    zone: str | None = None
    """Where the times that people write here are meant: the name of a time zone."""

    def __post_init__(self) -> None:
        if self.zone is not None and not (isinstance(self.zone, str) and self.zone.strip()):
            raise ValueError(f"zone {self.zone!r}: expected the name of a time zone")
        for name, value, known in (("mode", self.mode, QueueMode), ("drop", self.drop, DropPolicy)):
            if value is not None and value not in get_args(known):
                raise ValueError(f"{name} {value!r}: expected one of {', '.join(get_args(known))}")
        for name, number, least in (
            ("cap", self.cap, 1),
            ("debounce_ms", self.debounce_ms, 0),
            ("max_concurrent", self.max_concurrent, 1),
        ):
            if number is not None and (type(number) is not int or not least <= number <= MOST):
                raise ValueError(f"{name} {number!r}: expected a whole number from {least} to {MOST}")

    def changed(self, policy: SessionPolicy, only: Collection[str] | None) -> SessionPolicy:
        """The other policy, or this one with some of the other's fields."""
        return policy if only is None else replace(self, **{name: getattr(policy, name) for name in only})


MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class Standing:
    """How the messages of a session are to be treated."""

    policy: SessionPolicy = SessionPolicy()
    context: float = 0.0
    """How much of the model's window its history fills, 0 to 1."""


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Said:
    """Something to be remembered of a conversation. ``data`` is what JSON can hold."""

    role: Role
    text: str
    data: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.role not in list(Role):
            raise ValueError(f"role {self.role!r}: expected one of {', '.join(Role)}")
        object.__setattr__(self, "role", Role(self.role))


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a transcript; numbers rise by one from 1, also when older lines are trimmed away."""

    number: int
    at: datetime
    said: Said


@dataclass(frozen=True, slots=True)
class Session:
    """What is kept of a conversation."""

    key: SessionKey
    standing: Standing
    lines: int
    """The number of its newest line, 0 if nothing was said."""
    trimmed: int
    """The number up to which lines are gone."""
    updated_at: datetime


# ── tenants and tokens ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Tenant:
    id: str
    name: str
    zone: str
    enabled: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token as it is handed in: the secret itself never reaches the store, only its SHA-256 in hexadecimal."""

    id: str
    tenant: str
    name: str
    digest: str
    scopes: tuple[str, ...] = ()
    expires_at: datetime | None = None

    def __post_init__(self) -> None:
        if self.expires_at is not None and self.expires_at.utcoffset() is None:
            raise ValueError(f"expires_at {self.expires_at}: expected a time with its zone")


@dataclass(frozen=True, slots=True)
class ApiToken:
    new: NewToken
    created_at: datetime
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None

    def opens_at(self, now: datetime) -> bool:
        """Whether it is still good for anything."""
        return self.revoked_at is None and (self.new.expires_at is None or now < self.new.expires_at)


@dataclass(frozen=True, slots=True)
class Noted:
    """What somebody has used a key for."""

    meaning: str
    at: datetime


# ── workers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class WorkerStatus(StrEnum):
    ALIVE = "alive"
    IDLE = "idle"
    BUSY = "busy"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Worker:
    """One process that works on this store."""

    id: str
    status: WorkerStatus
    started_at: datetime
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class Beat:
    """A sign of life of a worker, about one of its runs if that is named."""

    worker: str
    status: WorkerStatus
    run: str
    context: Mapping[str, object]
    at: datetime


@dataclass(frozen=True, slots=True)
class Reading:
    """What the machine looked like; a figure that could not be read is None."""

    worker: str
    active_workers: int = 0
    active_runs: int = 0
    cpu_percent: float | None = None
    memory_mb: float | None = None
    context: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for figure in (self.cpu_percent, self.memory_mb):
            if figure is not None and not isfinite(figure):
                raise ValueError(f"{figure!r} is no figure: leave out what could not be read")


@dataclass(frozen=True, slots=True)
class MachineSnapshot:
    reading: Reading
    at: datetime


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to do something alone, until a moment. Every grant has a higher token than the one before it."""

    name: str
    owner: str
    token: int
    until: datetime


class Tidied(NamedTuple):
    """How much a round of tidying has removed."""

    keys: int
    beats: int
    readings: int
    cron: int = 0
    """Ended jobs, triggers and runs, whole outputs, notifications."""
    pairings: int = 0
    """Who knocked and was not let in."""
