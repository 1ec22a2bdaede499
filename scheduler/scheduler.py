"""The scheduler: takes messages in, gives them slots, carries them to an end.

    schedule() ─▶ debounce window ─▶ session queue ─▶ lane ring ─▶ worker task ─▶ handler ─▶ Outcome
                  (session.py)        (session.py)     (slots.py)    (working.py)     │
                                                          ▲                           │
                                                          └── who ends starts the next ┘

Every change of state happens between two awaits: `schedule` and `cancel_*` act at once, and the worker that ends a run
takes the next one from the ring itself. A worker task exists only while its lane has something for it, a session only
while it holds something. What happened is told at the end of each verb, when the state is whole again (`news.py`).
"""

from __future__ import annotations

import itertools
from collections import deque
from contextlib import asynccontextmanager
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING

import trio

from scheduler import cancelling, closing, lending, slots, statistics, working
from scheduler.checks import check_span
from scheduler.errors import InvalidRequest
from scheduler.lane import DEFAULT_LIMITS, Lane, LaneManager
from scheduler.news import News
from scheduler.observe import Event, Kind
from scheduler.request import Drop, End, Mode, Outcome, Reason, Request, Ticket, check_request
from scheduler.session import Session, Window, flattened
from scheduler.timers import Timers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from scheduler.observe import Closed, SchedulerStatistics, SessionStatistics, Stopped
    from scheduler.run import Run

TOLD_AFTER_S = 10.0
FENCED_AFTER_S = 60.0
INTERRUPT, STEER, QUEUED = Mode.INTERRUPT, Mode.STEER, Kind.QUEUED  # to look up a member of an enum takes its time


@asynccontextmanager
async def open_scheduler(
    limits: Mapping[str, int] = DEFAULT_LIMITS,
    *,
    told_after_s: float = TOLD_AFTER_S,
    fenced_after_s: float = FENCED_AFTER_S,
) -> AsyncIterator[Scheduler]:
    """A scheduler that lives as long as the block. Call `close` first for a gentle end; leaving the block is not."""
    check_span("told_after_s", told_after_s)
    check_span("fenced_after_s", fenced_after_s)
    if fenced_after_s < told_after_s:
        raise InvalidRequest(f"fenced_after_s is {fenced_after_s!r}: expected at least told_after_s, {told_after_s!r}")
    async with trio.open_nursery() as nursery:
        scheduler = Scheduler(nursery, limits, told_after_s=told_after_s, fenced_after_s=fenced_after_s)
        nursery.start_soon(scheduler.timers.run)
        try:
            yield scheduler
        finally:
            closing.shut(scheduler)


class Scheduler:
    """Made by `open_scheduler`. The methods are for everybody, on trio's thread; the rest is for this room."""

    def __init__(
        self, nursery: trio.Nursery, limits: Mapping[str, int], *, told_after_s: float, fenced_after_s: float
    ) -> None:
        self.nursery = nursery
        self.lanes = LaneManager(limits, self._on_resize)
        self._lane_by_name = self.lanes.by_name
        self.told_after_s = told_after_s
        self.fenced_after_s = fenced_after_s
        self.clock = trio.lowlevel.current_clock()
        self.context = copy_context()  # of nobody's message: workers start in it
        self.timers = Timers()
        self.news = News()
        self.sessions: dict[str, Session] = {}
        self.to_fill: deque[Lane] = deque()
        self.run_ids = itertools.count(1)
        self.ticket_ids = itertools.count(1)
        self.idle: trio.Event | None = None
        self.closing = False  # only children of what still runs are taken in
        self.closed = False  # nothing is

    def cancel_oldest(self, session: str, sender: str | None = None) -> Stopped:
        """Cancel the oldest run (of that sender); with nothing running, all that waits."""
        stopped = cancelling.cancel_oldest(self, session, sender)
        self.news.publish()
        return stopped

    def cancel_all(self, session: str, sender: str | None = None) -> Stopped:
        """Cancel everything of the session (of that sender): window, queue, runs and their children."""
        stopped = cancelling.cancel_all(self, session, sender)
        self.news.publish()
        return stopped

    def flush(self, session: str) -> None:
        """Close the session's debounce window now, so that what follows cannot overtake it."""
        found = self.sessions.get(session)
        if found is not None and found.window is not None:
            self._close_window(found, found.window)
            self.news.publish()

    def observe(self, observer: Callable[[Event], None]) -> Callable[[], None]:
        """Have every event told to ``observer``, at once and on trio's thread. Returns how to end that."""
        return self.news.observe(observer)

    def statistics(self) -> SchedulerStatistics:
        return statistics.of_scheduler(self, self.clock.current_time())

    def session_statistics(self, session: str) -> SessionStatistics:
        return statistics.of_session(self.sessions.get(session), session, self.clock.current_time())

    def ahead(self, ticket: Ticket) -> int | None:
        """How many turns of its session a waiting message waits for; 0 if only for a slot. None if it does not wait.

        Messages that joined another one's turn do not wait themselves, and neither does one in its debounce window.
        """
        return statistics.ahead(self.sessions.get(ticket.request.session), ticket)

    async def drain(self) -> None:
        """Wait until nothing waits or runs. New work is still taken in. A run cannot: it would wait for itself."""
        lending.refuse_drain(self)
        while self.sessions:
            if self.idle is None:
                self.idle = trio.Event()
            await self.idle.wait()

    async def close(self, grace_s: float) -> Closed:
        """Refuse new work, let runs finish for ``grace_s``, cancel the rest, tell what happened."""
        return await closing.close(self, grace_s)

    # ── from arrival to the queue ────────────────────────────────────────────────────────────────────────────────

    def schedule(self, request: Request, parent: Run | None = None) -> Ticket:
        """Take a message in. Never waits; what becomes of it is told by the ticket.

        With a ``parent`` it is that run's child (`Run.schedule`).
        """
        policy = request.policy
        session = self.sessions.get(request.session)
        heeded = session is not None and policy is session.policy and request.context_used == session.context_used
        if not heeded:
            check_request(request)  # before anything changes
        now = self.clock.current_time()
        lane = self._lane_by_name.get(request.lane) or self.lanes[request.lane]
        ticket = Ticket(self, next(self.ticket_ids), request, lane, parent, now)
        if (self.closing or parent is not None) and (refusal := self._refusal(parent)) is not None:
            working.end(self, [ticket], refusal, now)
            self.news.publish()
            return ticket
        self.news.of_ticket(QUEUED, now, ticket)
        if parent is not None:
            parent.adopt((ticket,))
        changed = not heeded and session is not None and session.heed(request)
        if policy.mode is INTERRUPT:
            ticket._after = cancelling.interrupt(self, request)
            session = self.sessions.get(request.session)
        if session is None:
            session = self.sessions[request.session] = Session(request)
            session.heed(request)
        elif changed:
            slots.offer(self, session)
        if policy.debounce_s > 0 and not request.resumed:
            self._buffer(session, ticket, now)
        else:
            if session.window is not None:
                self._close_window(session, session.window)
            self._admit(session, ticket, now)
        self.news.publish()
        return ticket

    def _refusal(self, parent: Run | None) -> Outcome | None:
        if parent is not None and (parent.reason is not None or parent.ended):
            return Outcome(End.CANCELLED, reason=parent.reason or Reason.STOPPED)
        if self.closed or (self.closing and parent is None):
            return Outcome(End.CLOSED)
        return None

    def _buffer(self, session: Session, ticket: Ticket, now: float) -> None:
        window = session.window
        if window is not None and not window.takes(ticket):
            self._close_window(session, window)
            window = None
        if window is not None:
            self._join(session, window, ticket, now)
        elif ticket.request.policy.drop is Drop.NEW and session.full(ticket.request):
            self._admit(session, ticket, now)  # refused now rather than when the window closes
        else:
            window = session.window = Window(ticket, now)
            self._arm(session, window)

    def _join(self, session: Session, window: Window, ticket: Ticket, now: float) -> None:
        window.join(ticket, now)
        self.news.of_ticket(Kind.JOINED, now, ticket)
        if window.full:
            self._close_window(session, window)
        elif window.timer is not None and window.closes_at < window.timer.when:
            self.timers.call_off(window.timer)
            self._arm(session, window)

    def _arm(self, session: Session, window: Window) -> None:
        window.timer = self.timers.at(window.closes_at, partial(self._window_due, session, window))

    def _window_due(self, session: Session, window: Window) -> None:
        if window.closes_at > self.clock.current_time():  # a later message has moved it
            self._arm(session, window)
        else:
            self._close_window(session, window)
            self.news.publish()

    def _close_window(self, session: Session, window: Window) -> None:
        self.timers.call_off(window.timer)
        session.window = None
        leader, *others = window.tickets
        if others:
            leader._joined = others
            leader._after = tuple({run for ticket in window.tickets for run in ticket._after})
        self._admit(session, leader, self.clock.current_time())

    def _admit(self, session: Session, ticket: Ticket, now: float) -> None:
        """Into the queue, or to the run it steers, or out again if the queue is full."""
        policy = ticket.request.policy
        if policy.mode is STEER and (run := session.steered_by(ticket)) is not None:
            ticket._run = run
            run._inbox = [*run._inbox, ticket]
            self.news.of_ticket(Kind.JOINED, now, ticket)
            return
        ticket._queued_at = now
        queue = session.queue
        if len(queue) >= policy.cap and session.full(ticket.request):
            if policy.drop is Drop.NEW:
                working.end(self, flattened([ticket]), Outcome(End.REFUSED), now)
                return
            queue.append(ticket)
            ticket._lane.waiting += 1
            self._drop_oldest(session, policy.cap, now)
            return
        queue.append(ticket)
        ticket._lane.waiting += 1
        if len(queue) == 1 or session.ring is None:  # else it is offered already, and its head is the same
            slots.offer(self, session)

    def _drop_oldest(self, session: Session, cap: int, now: float) -> None:
        droppable = session.droppable()
        gone = droppable[: len(droppable) - cap]
        for ticket in gone:
            session.queue.remove(ticket)
            ticket._lane.waiting -= 1
        working.end(self, flattened(gone), Outcome(End.DROPPED), now)
        slots.offer(self, session)

    # ── for runs, tickets and lanes ──────────────────────────────────────────────────────────────────────────────

    def _take_steering(self, run: Run) -> tuple[Request, ...]:
        if run.reason is not None or run.sealed:
            return ()
        taken, run._inbox = flattened(run._inbox), ()
        run._tickets = (*run._tickets, *taken)
        for ticket in taken:
            ticket._run = run
        return tuple(ticket.request for ticket in taken)

    def _cancel_ticket(self, ticket: Ticket) -> bool:
        cancelled = cancelling.cancel_ticket(self, ticket)
        self.news.publish()
        return cancelled

    async def _wait_for(self, ticket: Ticket) -> None:
        await lending.wait_for(self, ticket)

    def _on_resize(self, lane: Lane) -> None:
        self.news.of_lane(Kind.RESIZED, self.clock.current_time(), lane, lane.limit)
        slots.fill(self, lane)
        self.news.publish()
