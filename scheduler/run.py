"""A `Run`: one turn on its slot, as its handler sees it.

    starting ──▶ running ◀──▶ parked (slot lent while it waits for a child)
                    │  └──────▶ sealed (its result is being written: too late to cancel)
                    └─cancel──▶ cancelling ──10 s──▶ stuck ──60 s──▶ fenced
                                    └── ended, whichever comes first ──┘

A run is cancelled by asking; it keeps its session and lane slot until it has really ended. A fenced run has lost its
session slot and its say: nothing it does counts any more, only its lane slot stays taken.
"""

from __future__ import annotations

from contextvars import ContextVar
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from scheduler.drive import as_coroutine
from scheduler.keeper import NOBODY, Keeper

if TYPE_CHECKING:
    from collections.abc import Sequence

    import trio

    from scheduler.request import Reason, Request, Ticket
    from scheduler.scheduler import Scheduler
    from scheduler.session import Session
    from scheduler.timers import Timer

current_run: ContextVar[Run | None] = ContextVar("current_run", default=None)


class Run(Keeper):
    """One turn that has been given a slot."""

    __slots__ = (
        "_coroutine",
        "_gate",
        "_inbox",
        "_lane",
        "_parked",
        "_scheduler",
        "_scope",
        "_session",
        "_slot",
        "_tickets",
        "_time_left_s",
        "_timer",
        "_waits",
        "_watched",
        "depth",
        "ended",
        "fenced",
        "id",
        "owner",
        "reason",
        "request",
        "sealed",
        "started_at",
        "stuck",
    )

    def __init__(
        self, scheduler: Scheduler, number: int, session: Session, tickets: tuple[Ticket, ...], now: float
    ) -> None:
        leader = tickets[0]
        parent = leader._parent
        self.id = number
        self.request = leader.request
        self.owner: str = leader.request.sender if parent is None else parent.owner  # who is at the root of it
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.started_at = now
        self.reason: Reason | None = None  # why it was cancelled, as soon as somebody asked
        self.sealed = self.stuck = self.fenced = self.ended = False
        self.children = NOBODY
        self._scheduler = scheduler
        self._session = session
        self._lane = leader._lane
        self._tickets = tickets
        self._slot = True
        self._parked = False
        self._waits: Sequence[Ticket] = ()  # what it waits for while its slot is lent
        self._gate: trio.Event | None = None  # opens when the run stands in line for a slot no longer
        self._inbox: Sequence[Ticket] = ()  # messages that steer it, not taken yet
        self._coroutine: Any = None
        self._scope: trio.CancelScope | None = None  # set while its handler is under way
        self._watched = False  # it has been asked to end, and is told about and fenced if it does not
        self._timer: Timer | None = None
        self._time_left_s: float | None = None  # of its time limit, while that stands still

    def __repr__(self) -> str:
        state = "ended" if self.ended else "fenced" if self.fenced else self.reason or "running"
        return f"<Run {self.id} session={self.request.session!r} lane={self._lane.name!r} {state}>"

    @property
    def requests(self) -> tuple[Request, ...]:
        """The messages of this turn in order, those taken by steering at the end."""
        return tuple(ticket.request for ticket in self._tickets)

    @property
    def lane(self) -> str:
        return self._lane.name

    @property
    def cancelled(self) -> bool:
        """Somebody wants this run to end, or it no longer counts: show nothing more of it."""
        return self.reason is not None

    def schedule(self, request: Request) -> Ticket:
        """Schedule a child: cancelled with this run, and still reached by the session's stop after this run ended."""
        return self._scheduler.schedule(request, self)

    def take_steering(self) -> tuple[Request, ...]:
        """At a boundary: the messages that came in meanwhile. Taken ones end with this run."""
        return self._scheduler._take_steering(self)

    def seal(self) -> bool:
        """From here on the run can no longer be cancelled. False if it was cancelled before: then publish nothing."""
        if self.reason is None:
            self.sealed = True
        return self.sealed


def start_in_context(run: Run) -> Any:
    """The handler's first step, inside the message's own context.

    Often that is all: returns the handler's value. Otherwise returns its first trap and leaves `_coroutine` to go on.
    """
    current_run.set(run)
    handler = run.request.handler
    coroutine: Any = handler(run)
    if type(coroutine) is not CoroutineType:
        coroutine = as_coroutine(coroutine)
    try:
        trap = coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    run._coroutine = coroutine
    return trap
