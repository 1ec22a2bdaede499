"""What callers hand in and get back: a `Request` for one message, a `Ticket` that tells how it ended.

    Request ──schedule()──▶ Ticket ──▶ Outcome      one of the seven ends of `End`, exactly once

Values are checked where they are made: a `Policy` that exists is a policy that can be followed.
"""

from __future__ import annotations

from contextvars import copy_context
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import trio

from scheduler import errors
from scheduler.checks import check_limit, check_span, choice

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from scheduler.keeper import Keeper
    from scheduler.lane import Lane
    from scheduler.run import Run
    from scheduler.scheduler import Scheduler


class Mode(StrEnum):
    """What a message does when its session is busy."""

    QUEUE = "queue"  # waits its turn
    FOLLOWUP = "followup"  # another word for queue
    COLLECT = "collect"  # waits, and runs together with its waiting neighbours of the same sender
    STEER = "steer"  # joins the sender's running turn at its next boundary
    INTERRUPT = "interrupt"  # ends what runs, drains what waits, then runs


class Drop(StrEnum):
    """Who gives way when ``cap`` messages wait already."""

    OLD = "old"
    NEW = "new"


class End(StrEnum):
    """How a message ended. Every message ends in exactly one of these."""

    DONE = "done"
    FAILED = "failed"
    TIMED_OUT = "timed out"
    CANCELLED = "cancelled"
    DROPPED = "dropped"
    REFUSED = "refused"
    CLOSED = "closed"


class Reason(StrEnum):
    """Why a run was cancelled."""

    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    TIMEOUT = "timeout"
    CLOSING = "closing"
    PARENT = "parent"  # the run that had scheduled it took too long


@dataclass(frozen=True, slots=True)
class Policy:
    """How a session treats its messages. Comes with each request; the newest one counts."""

    mode: Mode = Mode.QUEUE
    cap: int = 10
    drop: Drop = Drop.OLD
    debounce_s: float = 0.8
    max_concurrent: int = 1
    shared: bool = False
    """Several people write in this session: an interrupt touches only the sender's own work."""
    timeout_s: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "mode", choice(Mode, "mode", self.mode))
        object.__setattr__(self, "drop", choice(Drop, "drop policy", self.drop))
        check_limit("cap", self.cap)
        check_limit("max_concurrent", self.max_concurrent)
        check_span("debounce_s", self.debounce_s)
        if self.timeout_s is not None:
            check_span("timeout_s", self.timeout_s, above=0)


DEFAULT_POLICY = Policy()


@dataclass(slots=True, eq=False)
class Request:
    """One message to run: what to call, in which session and lane, and how to treat it. Nobody changes it afterwards.

    Not frozen, because one is made for every message and freezing would triple what that costs (bench/lanes.py).
    """

    session: str
    handler: Callable[[Run], Awaitable[Any]]
    payload: Any = None
    lane: str = "main"
    tenant: str = ""
    sender: str = ""
    thread: str = ""
    policy: Policy = DEFAULT_POLICY
    context_used: float = 0.0
    """How much of the model's window the session's history fills, 0 to 1."""
    steerable: bool = False
    """The handler calls `Run.take_steering`; other runs are never steered."""
    resumed: bool = False
    """Taken up again after a restart: skips debounce and cap."""
    on_end: Callable[[Ticket], None] | None = None


def check_request(request: Request) -> None:
    """Refuse what could not be carried out. Asked whenever a session brings a policy or figure that is new to it."""
    for name in ("session", "lane", "tenant", "sender", "thread"):
        value = getattr(request, name)
        if not isinstance(value, str):
            raise errors.InvalidRequest(f"{name} is {value!r}: expected text", value=value)
    if not isinstance(request.policy, Policy):
        raise errors.InvalidRequest(f"policy is {request.policy!r}: expected a Policy", value=request.policy)
    check_span("context_used", request.context_used, what="a share of the window")


class Outcome(NamedTuple):
    """How a message ended, with the run's value or what went wrong."""

    end: End
    value: Any = None
    error: BaseException | None = None
    reason: Reason | None = None
    run: int = 0
    """The run's number, 0 for a message that never started."""


class Ticket:
    """One scheduled message. Ends exactly once; `outcome` tells how."""

    __slots__ = (
        "_after",
        "_context",
        "_event",
        "_joined",
        "_keeper",
        "_lane",
        "_parent",
        "_queued_at",
        "_run",
        "_scheduler",
        "_waiters",
        "id",
        "outcome",
        "request",
    )

    def __init__(
        self, scheduler: Scheduler, number: int, request: Request, lane: Lane, parent: Run | None, now: float
    ) -> None:
        self.id = number
        self.request = request
        self._scheduler = scheduler
        self._lane = lane
        self._parent = parent  # the run that scheduled it as its child
        self._context = copy_context()
        self._queued_at = now
        self.outcome: Outcome | None = None
        self._event: trio.Event | None = None
        self._joined: list[Ticket] | None = None  # messages that run in this one's turn
        self._run: Run | None = None  # the run it is part of, or is steering
        self._keeper: Keeper | None = None  # who answers for it as a child
        self._waiters: Sequence[Run] = ()  # runs that have lent their slot while they wait for it
        self._after: tuple[Run, ...] = ()  # an interrupt starts only after these have ended

    def __repr__(self) -> str:
        state = self.outcome.end.value if self.outcome else "open"
        return f"<Ticket {self.id} session={self.request.session!r} {state}>"

    async def wait(self) -> Outcome:
        """Wait for the end and return it as a value.

        Inside a run this lends the run's lane slot while it waits. Raises `WaitRefused` where waiting could not end.
        """
        if self.outcome is None:
            await self._scheduler._wait_for(self)
        else:
            await trio.lowlevel.checkpoint()
        assert self.outcome is not None  # noqa: S101 - the event is set only together with the outcome
        return self.outcome

    def cancel(self) -> bool:
        """Cancel this message, or the run that it is part of, with its children. False if it has ended or is ending."""
        return self._scheduler._cancel_ticket(self)

    async def result(self) -> Any:
        """Wait for the end and return the handler's value, or raise the `MessageEnded` that tells why there is none."""
        outcome = await self.wait()
        if outcome.end is End.DONE:
            return outcome.value
        raise ended_error(self, outcome)


def ended_error(ticket: Ticket, outcome: Outcome) -> errors.MessageEnded:
    """The one place where an end becomes an exception."""
    request = ticket.request
    session = request.session
    limit = request.policy.timeout_s
    kind, text = {
        End.DROPPED: (errors.QueueDropped, "was dropped: newer messages were waiting and there was no room for more"),
        End.REFUSED: (errors.QueueFull, f"was refused: {request.policy.cap} messages are already waiting"),
        End.CANCELLED: (errors.RunCancelled, f"was cancelled: {outcome.reason}"),
        End.TIMED_OUT: (errors.RunTimeout, f"was stopped after its time limit of {limit} s"),
        End.FAILED: (errors.RunFailed, f"failed: {outcome.error!r}"),
        End.CLOSED: (errors.SchedulerClosed, "was not started: the scheduler is closing and takes no new work"),
    }[outcome.end]
    error = kind(f"message {ticket.id} in session {session!r} {text}", ticket=ticket.id, session=session)
    error.__cause__ = outcome.error
    return error
