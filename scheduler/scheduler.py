"""The scheduler: takes messages in, gives them slots, carries them to an end. The thin async shell of this room.

    schedule() ─▶ debounce window ─▶ session queue ─▶ lane ring ─▶ worker task ─▶ handler ─▶ Outcome
                                                          ▲                          │
                                                          └── who ends starts the next

There is no dispatcher and no lock. Every change of state happens between two awaits: `schedule` and `cancel_*` act at
once, and the worker that ends a run takes the next one from the ring itself. A worker task exists only while its lane
has something for it, a session only while it holds something. Callbacks run last, when the state is whole again, so
they may call back in.

The invariant that makes this safe: a lane with a free slot has nobody in its ring.
"""

from __future__ import annotations

import itertools
import logging
from collections import deque
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import trio

from scheduler import cancelling, closing, lending, statistics
from scheduler.drive import drive
from scheduler.lane import DEFAULT_LIMITS, Lane, LaneManager
from scheduler.observe import Event, Kind
from scheduler.request import End, Mode, Outcome, Reason, Request, Ticket
from scheduler.run import Run, start_in_context
from scheduler.session import Session, Window, flattened
from scheduler.timers import Timers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from scheduler.observe import Closed, SchedulerStatistics, SessionStatistics, Stopped

logger = logging.getLogger("goclaw.scheduler")

TOLD_AFTER_S = 10.0
FENCED_AFTER_S = 60.0
RUNS_BETWEEN_CHECKPOINTS = 32


@asynccontextmanager
async def open_scheduler(
    limits: Mapping[str, int] = DEFAULT_LIMITS,
    *,
    told_after_s: float = TOLD_AFTER_S,
    fenced_after_s: float = FENCED_AFTER_S,
) -> AsyncIterator[Scheduler]:
    """A scheduler that lives as long as the block. Call `close` first for a gentle end; leaving the block is not."""
    async with trio.open_nursery() as nursery:
        scheduler = Scheduler(nursery, limits, told_after_s=told_after_s, fenced_after_s=fenced_after_s)
        nursery.start_soon(scheduler.timers.run)
        try:
            yield scheduler
        finally:
            closing.shut(scheduler)


class Scheduler:
    """Made by `open_scheduler`. The methods without underscore are for everybody, on trio's thread."""

    def __init__(
        self,
        nursery: trio.Nursery,
        limits: Mapping[str, int] = DEFAULT_LIMITS,
        *,
        told_after_s: float = TOLD_AFTER_S,
        fenced_after_s: float = FENCED_AFTER_S,
    ) -> None:
        self.lanes = LaneManager(limits, self._on_resize)
        self.told_after_s = told_after_s
        self.fenced_after_s = fenced_after_s
        self.timers = Timers()
        self.sessions: dict[str, Session] = {}
        self.closing = False  # only children of what still runs are taken in
        self.closed = False  # nothing is
        self.callback_errors = 0
        self._nursery = nursery
        self._observers: tuple[Callable[[Event], None], ...] = ()
        self._ticket_ids = itertools.count(1)
        self._run_ids = itertools.count(1)
        self._to_fill: deque[Lane] = deque()
        self._idle: trio.Event | None = None

    # ── for everybody ────────────────────────────────────────────────────────────────────────────────────────────

    def schedule(self, request: Request) -> Ticket:
        """Take a message in. Never waits; what becomes of it is told by the ticket."""
        return self._accept(request, None)

    def cancel_oldest(self, session: str, sender: str | None = None) -> Stopped:
        """Cancel the oldest run (of that sender); with nothing running, all that waits."""
        return cancelling.cancel_oldest(self, session, sender)

    def cancel_all(self, session: str, sender: str | None = None) -> Stopped:
        """Cancel everything of the session (of that sender): window, queue, runs and their children."""
        return cancelling.cancel_all(self, session, sender)

    def flush(self, session: str) -> None:
        """Close the session's debounce window now, so that what follows cannot overtake it."""
        found = self.sessions.get(session)
        if found is not None and found.window is not None:
            self._close_window(found, found.window)

    def observe(self, observer: Callable[[Event], None]) -> Callable[[], None]:
        """Have every event told to ``observer``, at once and on trio's thread. Returns how to end that."""
        self._observers = (*self._observers, observer)

        def forget() -> None:
            self._observers = tuple(other for other in self._observers if other is not observer)

        return forget

    def statistics(self) -> SchedulerStatistics:
        return statistics.of_scheduler(self, trio.current_time())

    def session_statistics(self, session: str) -> SessionStatistics:
        return statistics.of_session(self.sessions.get(session), session, trio.current_time())

    async def drain(self) -> None:
        """Wait until nothing waits or runs. New work is still taken in."""
        while self.sessions:
            if self._idle is None:
                self._idle = trio.Event()
            await self._idle.wait()

    async def close(self, grace_s: float) -> Closed:
        """Refuse new work, let runs finish for ``grace_s``, cancel the rest, tell what happened."""
        return await closing.close(self, grace_s)

    # ── from arrival to the queue ────────────────────────────────────────────────────────────────────────────────

    def _accept(self, request: Request, parent: Run | None) -> Ticket:
        now = trio.current_time()
        ticket = Ticket(self, next(self._ticket_ids), request, self.lanes[request.lane], parent, now)
        refusal = self._refusal(parent)
        if refusal is not None:
            self._end([ticket], refusal, now)
            return ticket
        if parent is not None:
            parent.children.add(ticket)
        if self._observers:
            self._tell_ticket(Kind.QUEUED, now, ticket)
        if request.policy.mode is Mode.INTERRUPT:
            ticket._after = cancelling.interrupt(self, request)
        session = self.sessions.get(request.session)
        if session is None:
            session = self.sessions[request.session] = Session(request)
        if session.heed(request):
            self._offer(session)
        if request.policy.debounce_s > 0 and not request.resumed:
            self._buffer(session, ticket, now)
        else:
            if session.window is not None:
                self._close_window(session, session.window)
            self._admit(session, ticket, now)
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
        if window is None:
            if session.full(ticket.request) and ticket.request.policy.drop == "new":
                self._admit(session, ticket, now)  # refused now rather than when the window closes
                return
            window = session.window = Window(ticket, now)
            window.timer = self.timers.at(window.closes_at, partial(self._window_due, session, window))
            return
        window.join(ticket, now)
        self._tell_ticket(Kind.JOINED, now, ticket)
        if window.full:
            self._close_window(session, window)
        elif window.timer is not None and window.closes_at < window.timer.when:
            self.timers.call_off(window.timer)
            window.timer = self.timers.at(window.closes_at, partial(self._window_due, session, window))

    def _window_due(self, session: Session, window: Window) -> None:
        if window.closes_at > trio.current_time():  # a later message has moved it
            window.timer = self.timers.at(window.closes_at, partial(self._window_due, session, window))
        else:
            self._close_window(session, window)

    def _close_window(self, session: Session, window: Window) -> None:
        self.timers.call_off(window.timer)
        session.window = None
        leader, *others = window.tickets
        if others:
            leader._joined = others
            leader._after = tuple({run for ticket in window.tickets for run in ticket._after})
        self._admit(session, leader, trio.current_time())

    def _admit(self, session: Session, ticket: Ticket, now: float) -> None:
        """Into the queue, or to the run it steers, or out again if the queue is full."""
        run = session.steered_by(ticket)
        if run is not None:
            ticket._run = run
            run._inbox.append(ticket)
            self._tell_ticket(Kind.JOINED, now, ticket)
            return
        ticket._queued_at = now
        gone = session.make_room(ticket)
        for dropped in gone:
            if dropped is not ticket:
                dropped._lane.waiting -= 1
        if ticket not in gone:
            session.queue.append(ticket)
            ticket._lane.waiting += 1
        self._offer(session)
        if gone:
            end = End.REFUSED if gone[0] is ticket else End.DROPPED
            self._end(flattened(gone), Outcome(end), now)
            self._forget_if_idle(session)

    # ── slots ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _offer(self, session: Session, holder: Lane | None = None) -> None:
        """Let the session stand where its head needs it to; a worker of ``holder`` will look there by itself."""
        lane = session.queue[0]._lane if session.ready() else None
        if lane is not session.ring:
            if session.ring is not None:
                session.ring.leave(session)
            if lane is not None:
                lane.enter(session)
        if lane is not None and lane is not holder:
            self._fill(lane)

    def _fill(self, lane: Lane) -> None:
        """Give free slots to returning parents, then to newcomers, each in a worker of its own."""
        self._to_fill.append(lane)
        if len(self._to_fill) > 1:  # whoever fills already will come to this one: no recursion however many lanes
            return
        while self._to_fill:
            while (run := self._next_run(self._to_fill[0])) is not None:
                self._nursery.start_soon(self._work, run, name=lane.name)
            self._to_fill.popleft()

    def _next_run(self, lane: Lane) -> Run | None:
        while lane.returning and lane.free:
            lending.give_back(lane)
        if not lane.free or self.closed:
            return None
        session = lane.next_session()
        return None if session is None else self._start(lane, session)

    def _start(self, lane: Lane, session: Session) -> Run:
        now = trio.current_time()
        waiting = len(session.queue)
        tickets = session.next_turn()
        leader = tickets[0]
        lane.waiting -= waiting - len(session.queue)
        lane.active += 1
        lane.started += 1
        lane.waits.append(now - leader._queued_at)
        run = Run(self, next(self._run_ids), session, tickets, now)
        for ticket in tickets:
            ticket._run = run
        session.running.append(run)
        if session.queue:
            self._offer(session, lane)
        if self._observers:
            self._tell_run(Kind.STARTED, now, run, len(tickets))
        return run

    # ── a run ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _work(self, run: Run | None) -> None:
        """Carry out one run after another for as long as the lane hands over. One cancel scope serves until used."""
        since_checkpoint = 0
        while run is not None:
            error: Exception | None = None
            try:
                with trio.CancelScope() as scope:
                    while run is not None and not scope.cancel_called:
                        if since_checkpoint >= RUNS_BETWEEN_CHECKPOINTS:
                            since_checkpoint = 0
                            await trio.lowlevel.cancel_shielded_checkpoint()
                        since_checkpoint += 1
                        value = None
                        if run.reason is None:  # it may have been cancelled before its first step
                            value = await self._carry_out(run, scope)
                        run = self._finish(run, value, None)
                    continue
            except Exception as caught:  # noqa: BLE001 - whatever a handler raises is its own message's end
                error = caught
            except BaseException:
                # The nursery itself is ending (or the program is): nothing may start any more.
                self.closing = self.closed = True
                if run is not None:
                    run.reason = run.reason or Reason.CLOSING
                    self._finish(run, None, None)
                raise
            # Reached when the handler raised, or when its cancellation came through.
            if run is not None:
                run = self._finish(run, None, error)

    async def _carry_out(self, run: Run, scope: trio.CancelScope) -> Any:
        run._scope = scope
        timeout_s = run.request.policy.timeout_s
        if timeout_s is not None:
            run._timer = self.timers.at(run.started_at + timeout_s, partial(cancelling.time_out, self, run))
        context = run._tickets[0]._context
        try:
            trap = context.run(start_in_context, run)
        except StopIteration as stop:
            return stop.value
        return await drive(context, run._coroutine, trap)

    def _finish(self, run: Run, value: Any, error: Exception | None) -> Run | None:
        """The run is over: free its slots, tell its end, hand over. Returns what this worker runs next."""
        now = trio.current_time()
        lane, session = run._lane, run._session
        run.ended = True
        run._scope = run._coroutine = None
        if run._timer is not None:
            self.timers.call_off(run._timer)
            run._timer = None
        if run.stuck:
            lane.stuck -= 1
        if run._slot:
            run._slot = False
            lane.active -= 1
        else:
            lending.give_up(run)
        if not run.fenced:
            self._release(run, lane)
            self._end(run._tickets, self._outcome(run, value, error), now)
            self._forget_if_idle(session)
        run._tickets = ()  # ticket and run would keep each other alive
        return self._next_run(lane)

    def _release(self, run: Run, lane: Lane | None) -> None:
        """Free the run's place in its session; what it leaves behind goes to the session."""
        session = run._session
        session.running.remove(run)
        if run._inbox:
            for ticket in run._inbox:
                ticket._run = None
                ticket._lane.waiting += 1
            session.queue.extendleft(reversed(run._inbox))
            run._inbox = []
        if run.children:
            keeper = run._tickets[0]._keeper or session
            for child in run.children:
                child._keeper = keeper
            keeper.children |= run.children
            run.children = set()
        if session.queue:
            self._offer(session, lane)

    @staticmethod
    def _outcome(run: Run, value: Any, error: Exception | None) -> Outcome:
        if run.reason is Reason.TIMEOUT:
            return Outcome(End.TIMED_OUT, error=error, reason=run.reason, run=run.id)
        if run.reason is not None:
            return Outcome(End.CANCELLED, error=error, reason=run.reason, run=run.id)
        if error is not None:
            return Outcome(End.FAILED, error=error, run=run.id)
        return Outcome(End.DONE, value, run=run.id)

    # ── ends and events ──────────────────────────────────────────────────────────────────────────────────────────

    def _end(self, tickets: list[Ticket] | tuple[Ticket, ...], outcome: Outcome, now: float) -> None:
        """Tell each of these messages its end. Comes last: the callbacks may schedule and cancel."""
        for ticket in tickets:
            ticket.outcome = outcome
            ticket._lane.ends[outcome.end] += 1
            if ticket._keeper is not None:
                self._disown(ticket, ticket._keeper)
            if ticket._event is not None:
                ticket._event.set()
        for ticket in tickets:
            if self._observers:
                self._tell_ticket(Kind.ENDED, now, ticket)
            if ticket.request.on_end is not None:
                self._guarded(ticket.request.on_end, ticket)

    def _disown(self, ticket: Ticket, keeper: Run | Session) -> None:
        keeper.children.discard(ticket)
        ticket._keeper = None
        if isinstance(keeper, Session):
            self._forget_if_idle(keeper)

    def _forget_if_idle(self, session: Session) -> None:
        if session.idle and self.sessions.get(session.key) is session:
            del self.sessions[session.key]
            if self._idle is not None and not self.sessions:
                self._idle.set()
                self._idle = None

    def _take_steering(self, run: Run) -> tuple[Request, ...]:
        if run.reason is not None or run.sealed:
            return ()
        taken, run._inbox = flattened(run._inbox), []
        run._tickets = (*run._tickets, *taken)
        for ticket in taken:
            ticket._run = run
        return tuple(ticket.request for ticket in taken)

    async def _wait_for(self, ticket: Ticket) -> None:
        await lending.wait_for(self, ticket)

    def _on_resize(self, lane: Lane) -> None:
        self._tell(Event(Kind.RESIZED, trio.current_time(), lane.name, detail=lane.limit))
        self._fill(lane)

    def _tell_ticket(self, kind: Kind, now: float, ticket: Ticket) -> None:
        request, outcome = ticket.request, ticket.outcome
        self._tell(
            Event(
                kind,
                now,
                ticket._lane.name,
                request.session,
                request.tenant,
                ticket.id,
                outcome.run if outcome is not None else 0,
                outcome.end if outcome is not None else None,
            )
        )

    def _tell_run(self, kind: Kind, now: float, run: Run, detail: object = None) -> None:
        request = run.request
        self._tell(
            Event(kind, now, run._lane.name, request.session, request.tenant, run._tickets[0].id, run.id, detail)
        )

    def _tell(self, event: Event) -> None:
        for observer in self._observers:
            self._guarded(observer, event)

    def _guarded(self, call: Callable[[Any], None], argument: Any) -> None:
        """Callers' code must not harm the lanes: what it raises is logged and counted, and that is all."""
        try:
            call(argument)
        except Exception:
            self.callback_errors += 1
            logger.exception("a callback of the scheduler raised; the lanes go on")
