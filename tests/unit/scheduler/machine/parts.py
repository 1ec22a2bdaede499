"""Messages, turns, sessions and runs as the model sees them. Bookkeeping only; the rules are in `model` and `stops`.

Message ─▶ Turn ─▶ Window ─▶ queue of a Talk ─▶ Running          Talk is a session, Running is a run
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from scheduler import Mode

if TYPE_CHECKING:
    from collections.abc import Callable

    import trio

    from scheduler import End, Reason, Ticket
    from tests.unit.scheduler.machine.plans import Plan

TOLD_AFTER_S = 10.0
FENCED_AFTER_S = 60.0
HAIR_S = 1e-6  # sums of seconds are not exact


class Place(Enum):
    NEW = "new"
    WINDOW = "window"
    QUEUE = "queue"
    INBOX = "inbox"
    RUN = "run"
    OVER = "over"


@dataclass(eq=False, slots=True)
class Message:
    number: int
    plan: Plan
    key: str
    lane: str
    parent: Running | None
    keeper: Running | Talk | None = None  # who has it among their open children
    place: Place = Place.NEW
    run: Running | None = None  # the run it is part of, or steers
    due: tuple[End, Reason | None] | None = None  # how it has to end, once that is decided
    told: int = 0
    ticket: Ticket | None = None

    @property
    def owner(self) -> str:
        return self.plan.sender if self.parent is None else self.parent.owner

    @property
    def ended(self) -> bool:
        return self.ticket is not None and self.ticket.outcome is not None

    def owned_by(self, sender: str | None) -> bool:
        return sender is None or self.owner == sender

    def __repr__(self) -> str:
        return f"#{self.number}"


@dataclass(eq=False, slots=True)
class Turn:
    """Messages that will run together."""

    messages: list[Message]
    after: set[Running] = field(default_factory=set)  # what an interrupt has to outlast

    @property
    def leader(self) -> Message:
        return self.messages[0]

    @property
    def plan(self) -> Plan:
        return self.leader.plan


@dataclass(eq=False, slots=True)
class Window:
    turn: Turn
    closes_at: float
    last_call: float


@dataclass(eq=False, slots=True)
class Wait:
    """One task of a run inside `Ticket.wait`, perhaps with a time limit of its own."""

    message: Message
    patience: trio.CancelScope | None = None

    @property
    def broken_off(self) -> bool:
        return self.patience is not None and self.patience.cancel_called


@dataclass(eq=False, slots=True)
class Running:
    """A run, from its slot to the last step of its handler."""

    number: int
    talk: Talk
    messages: list[Message]
    started_at: float
    size: int  # how many messages started together
    inbox: list[Turn] = field(default_factory=list)
    children: dict[Message, None] = field(default_factory=dict)  # open ones
    waits: list[Wait] = field(default_factory=list)
    begun: bool = False
    over: bool = False
    raised: bool = False
    reason: Reason | None = None
    watched_at: float | None = None  # since when it is expected to end
    sealed: bool = False
    stuck_at: float | None = None  # when it was told of
    fenced: bool = False
    slot: bool = True
    parked: bool = False
    slot_unsure: bool = False  # cancelled while it had lent its slot: it may clean up without one

    @property
    def leader(self) -> Message:
        return self.messages[0]

    @property
    def owner(self) -> str:
        return self.leader.owner

    @property
    def lane(self) -> str:
        return self.leader.lane

    @property
    def key(self) -> str:
        return self.talk.key

    @property
    def ghost(self) -> bool:
        """Cancelled before its first step: it will end without one, at a moment that nobody sees."""
        return self.reason is not None and not self.begun and not self.over

    @property
    def executing(self) -> bool:
        return self.begun and not self.over and not self.waits and not self.slot_unsure

    def overdue(self, now: float) -> bool:
        """It should have ended, been told of or been fenced by now."""
        if self.over or self.fenced or self.reason is None or self.watched_at is None:
            return False
        if self.stuck_at is None:
            return self.watched_at + TOLD_AFTER_S < now - HAIR_S
        return self.stuck_at + FENCED_AFTER_S - TOLD_AFTER_S < now - HAIR_S

    @property
    def cancellable(self) -> bool:
        return self.reason is None and not self.sealed

    @property
    def returning(self) -> bool:
        """What it waited for has ended, and it wants its slot back."""
        return self.parked and self.reason is None and all(wait.message.due is not None for wait in self.waits)

    @property
    def in_line(self) -> bool:
        """With all tasks blocked: it wants its slot back, because its waits have ended or were broken off."""
        return self.parked and all(wait.message.ended or wait.broken_off for wait in self.waits)

    def __repr__(self) -> str:
        return f"run {self.number} of {self.messages} in {self.key!r} on {self.lane!r}"


@dataclass(eq=False, slots=True)
class Talk:
    """A session."""

    key: str
    window: Window | None = None
    queue: list[Turn] = field(default_factory=list)
    runs: list[Running] = field(default_factory=list)
    children: dict[Message, None] = field(default_factory=dict)  # open ones, of runs that are over
    limit: int = 1
    throttled: bool = False
    steps: list[Callable[[], None]] = field(default_factory=list)  # what is left of an arrival

    @property
    def busy(self) -> bool:
        return bool(self.window or self.queue or self.runs or self.children)

    @property
    def ready(self) -> bool:
        """Its head needs nothing but a slot."""
        if not self.queue or len(self.runs) >= self.limit:
            return False
        return all(run.over or run.fenced for run in self.queue[0].after)

    def heed(self, plan: Plan) -> None:
        if plan.context_used >= 0.6:
            self.throttled = True
        elif plan.context_used < 0.5:
            self.throttled = False
        self.limit = 1 if self.throttled else plan.policy.max_concurrent

    def full(self, plan: Plan) -> bool:
        """Whether the cap turns somebody away. It does not count after a restart, nor for who has just made room."""
        counted = sum(not turn.plan.resumed for turn in self.queue)
        return counted >= plan.policy.cap and not plan.resumed and plan.policy.mode is not Mode.INTERRUPT

    @property
    def buffered(self) -> int:
        return len(self.window.turn.messages) if self.window else 0

    @property
    def waiting(self) -> int:
        return sum(len(turn.messages) for turn in self.queue)

    @property
    def steering(self) -> int:
        return sum(len(turn.messages) for run in self.runs for turn in run.inbox)


@dataclass(slots=True)
class Counts:
    """What a cancel must say it found."""

    buffered: int = 0
    queued: int = 0
    waiting: int = 0
    cancelled: int = 0  # runs, and messages and runs below them
    stopping: int = 0  # runs that were beyond reach, each once, above or below
    finishing: int = 0
    left: int = 0
    met: set[Running] = field(default_factory=set, repr=False)
    taken: list[Message] = field(default_factory=list)
    ending: list[Message] = field(default_factory=list)  # those of the runs that were asked to end


def together(one: Message, other: Message) -> bool:
    return (
        one.plan.sender == other.plan.sender
        and one.lane == other.lane
        and one.plan.thread == other.plan.thread
        and one.parent is other.parent
    )
