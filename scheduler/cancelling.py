"""Stop, interrupt, timeout: everything that ends a message before its handler does.

Waiting messages are taken out at once. A run is asked to end and keeps its slots until it has; if it does not, it is
told about after a while and fenced after a longer while.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from scheduler import lending, slots, working
from scheduler.observe import Kind, Stopped
from scheduler.request import End, Outcome, Reason
from scheduler.session import flattened

if TYPE_CHECKING:
    from collections.abc import Callable

    from scheduler.request import Request, Ticket
    from scheduler.run import Run
    from scheduler.scheduler import Scheduler
    from scheduler.session import Session


@dataclass(slots=True)
class Sweep:
    """One cancel while it is under way: what was found where, and which tickets have to be told."""

    scheduler: Scheduler
    reason: Reason
    buffered: int = 0
    queued: int = 0
    waiting: int = 0
    running: int = 0
    children: int = 0
    stopping: int = 0
    finishing: int = 0
    taken: list[Ticket] = field(default_factory=list)
    ending: list[Ticket] = field(default_factory=list)
    touched: list[Session] = field(default_factory=list)
    asked: set[Run] = field(default_factory=set)

    def take_waiting(self, session: Session, mine: Callable[[Ticket], bool]) -> None:
        """Take out what has not started: from the window, from the inboxes of runs, from the queue."""
        self.touched.append(session)
        window = session.window
        if window is not None and mine(window.tickets[0]):
            self.scheduler.timers.call_off(window.timer)
            session.window = None
            self.buffered += self.take(window.tickets)
        for run in session.running:
            if run._inbox:
                self.queued += self.take([ticket for ticket in run._inbox if mine(ticket)])
                run._inbox = [ticket for ticket in run._inbox if not mine(ticket)]
        if session.queue:
            self.take_queue(session, mine)

    def take_queue(self, session: Session, mine: Callable[[Ticket], bool]) -> None:
        head = session.queue[0] if session.ring is not None else None
        taken = [ticket for ticket in session.queue if mine(ticket)]
        kept = [ticket for ticket in session.queue if not mine(ticket)]
        session.queue.clear()
        session.queue.extend(kept)
        for ticket in taken:
            ticket._lane.waiting -= 1
        if taken and taken[0] is head:
            self.waiting += self.take(taken[:1])
            taken = taken[1:]
        self.queued += self.take(taken)

    def take(self, leaders: list[Ticket]) -> int:
        tickets = flattened(leaders)
        self.taken += tickets
        return len(tickets)

    def cancel_runs(self, session: Session, sender: str | None) -> None:
        """All of the sender's runs, and what earlier ones left behind."""
        for run in list(session.running):
            if sender is None or run.owner == sender:
                self.cancel_run(run)
        self.cancel_children({child for child in session.children if owned(sender, child)})

    def cancel_run(self, run: Run) -> None:
        self.running += self.ask(run)
        self.cancel_children(run.children)

    def ask(self, run: Run) -> int:
        """Ask one run to end; 1 if that was news to it. A run may be met twice: in its session and as a child."""
        if run in self.asked:
            return 0
        self.asked.add(run)
        if run.sealed:
            self.finishing += 1
        elif run.reason is not None:
            self.stopping += 1
        else:
            self.ending += run._tickets
            ask_to_end(self.scheduler, run, self.reason)
            return 1
        return 0

    def cancel_children(self, children: set[Ticket]) -> None:
        """Down the whole tree, without recursion: nesting has no fixed bound."""
        pending = list(children)
        while pending:
            child = pending.pop()
            run = child._run
            if run is None or child not in run._tickets:
                self.children += self.take_child(child)
                continue
            if run not in self.asked:
                self.children += self.ask(run)
                pending += run.children

    def take_child(self, child: Ticket) -> int:
        """A child that waits: alone in its session's window, inbox or queue, or joined to another's turn there."""
        session = self.scheduler.sessions[child.request.session]
        self.touched.append(session)
        return self.take(take_out(self.scheduler, session, child))

    def done(self, end: End = End.CANCELLED) -> None:
        """Give those that were taken their end, then let the sessions stand where they now belong."""
        working.end(self.scheduler, self.taken, Outcome(end, reason=self.reason), self.scheduler.clock.current_time())
        for session in self.touched:
            slots.offer(self.scheduler, session)
            working.forget_if_idle(self.scheduler, session)

    def counts(self, session: Session) -> Stopped:
        left = len(session.window.tickets) if session.window is not None else 0
        left += sum(len(flattened([ticket])) for ticket in session.queue)
        left += sum(len(flattened(run._inbox)) for run in session.running)
        return Stopped(
            self.buffered,
            self.queued,
            self.waiting,
            self.running,
            self.children,
            self.stopping,
            self.finishing,
            left,
            tuple(ticket.request for ticket in (*self.taken, *self.ending)),
        )


def cancel_oldest(scheduler: Scheduler, key: str, sender: str | None) -> Stopped:
    session = scheduler.sessions.get(key)
    if session is None:
        return Stopped()
    sweep = Sweep(scheduler, Reason.STOPPED)
    runs = [run for run in session.running if sender is None or run.owner == sender]
    orphans = sorted((child for child in session.children if owned(sender, child)), key=lambda child: child.id)
    alive = [run for run in runs if run.reason is None and not run.sealed]
    if alive:
        sweep.cancel_run(alive[0])
    elif reachable := [child for child in orphans if not past_cancel(child)]:
        sweep.cancel_children({reachable[0]})
    elif runs or orphans:
        for run in (*runs, *(child._run for child in orphans if child._run is not None)):
            sweep.ask(run)  # none of them is news to it: they are only counted
    else:
        sweep.take_waiting(session, partial(owned, sender))
    counts = sweep.counts(session)
    sweep.done()
    return counts


def cancel_ticket(scheduler: Scheduler, ticket: Ticket) -> bool:
    if ticket.outcome is not None:
        return False
    sweep = Sweep(scheduler, Reason.STOPPED)
    sweep.cancel_children({ticket})
    sweep.done()
    return bool(sweep.children)


def cancel_all(scheduler: Scheduler, key: str, sender: str | None) -> Stopped:
    session = scheduler.sessions.get(key)
    if session is None:
        return Stopped()
    sweep = Sweep(scheduler, Reason.STOPPED)
    sweep.take_waiting(session, partial(owned, sender))
    sweep.cancel_runs(session, sender)
    counts = sweep.counts(session)
    sweep.done()
    return counts


def interrupt(scheduler: Scheduler, request: Request) -> tuple[Run, ...]:
    """Make way for ``request``; returns the runs that must have ended before it starts.

    The sender's own open window stays: those quick messages are part of what is being said now.
    """
    session = scheduler.sessions.get(request.session)
    if session is None:
        return ()
    sender = request.sender if request.policy.shared else None
    said_now = session.window.tickets if session.window is not None else []
    if said_now and said_now[0].request.sender != request.sender:
        said_now = []
    dying = tuple(run for run in session.running if sender is None or run.owner == sender)
    sweep = Sweep(scheduler, Reason.INTERRUPTED)
    sweep.take_waiting(session, lambda ticket: ticket not in said_now and owned(sender, ticket))
    sweep.cancel_runs(session, sender)
    sweep.done()
    return dying


def ask_to_end(scheduler: Scheduler, run: Run, reason: Reason) -> None:
    """Cancel one run and begin to watch whether it heeds."""
    run.reason = reason
    watch(scheduler, run)
    if run._scope is not None:
        run._scope.cancel()
    lending.leave_line(scheduler, run)
    scheduler.news.of_run(Kind.CANCELLING, scheduler.clock.current_time(), run, reason)


def watch(scheduler: Scheduler, run: Run) -> None:
    """From now on the run has until the fence to end."""
    if run._watched:
        return
    run._watched = True
    scheduler.timers.call_off(run._timer)
    told_at = scheduler.clock.current_time() + scheduler.told_after_s
    run._timer = scheduler.timers.at(told_at, partial(tell_stuck, scheduler, run))


def time_out(scheduler: Scheduler, run: Run) -> None:
    """The run's time is up. One whose result is being written is not cancelled, only watched."""
    if run.sealed:
        watch(scheduler, run)
        return
    sweep = Sweep(scheduler, Reason.PARENT)
    ask_to_end(scheduler, run, Reason.TIMEOUT)
    sweep.cancel_children(run.children)
    sweep.done()
    scheduler.news.publish()


def tell_stuck(scheduler: Scheduler, run: Run) -> None:
    run.stuck = True
    run._lane.stuck += 1
    rest_s = scheduler.fenced_after_s - scheduler.told_after_s
    run._timer = scheduler.timers.at(scheduler.clock.current_time() + rest_s, partial(fence, scheduler, run))
    scheduler.news.of_run(Kind.STUCK, scheduler.clock.current_time(), run, run.reason)
    scheduler.news.publish()


def fence(scheduler: Scheduler, run: Run) -> None:
    """Stop waiting for it: the session goes on without it. Its lane slot stays taken for as long as it lives."""
    now = scheduler.clock.current_time()
    run._timer = None
    run.fenced = True
    run.reason = run.reason or Reason.TIMEOUT
    scheduler.news.of_run(Kind.FENCED, now, run, run.reason)
    session = run._session
    session.running.remove(run)
    working.leave_behind(run, session)
    working.end(scheduler, run._tickets, working.outcome_of(run, None), now)
    slots.offer(scheduler, session)
    working.forget_if_idle(scheduler, session)
    scheduler.news.publish()


def take_out(scheduler: Scheduler, session: Session, ticket: Ticket) -> list[Ticket]:
    """Take one waiting message, and only that one, out of wherever its session keeps it."""
    window = session.window
    if window is not None and ticket in window.tickets:
        window.tickets.remove(ticket)
        if not window.tickets:
            scheduler.timers.call_off(window.timer)
            session.window = None
        return [ticket]
    for run in session.running:
        if any(ticket in flattened([leader]) for leader in run._inbox):
            run._inbox = [left for leader in run._inbox if (left := turn_without(leader, ticket)) is not None]
            return [ticket]
    for place, leader in enumerate(session.queue):
        if ticket in flattened([leader]):
            left = turn_without(leader, ticket)
            if left is None:
                del session.queue[place]
                ticket._lane.waiting -= 1
            else:
                session.queue[place] = left
            return [ticket]
    return []


def turn_without(leader: Ticket, ticket: Ticket) -> Ticket | None:
    """The leader of what is left of a waiting turn once ``ticket`` is out of it."""
    left = [other for other in flattened([leader]) if other is not ticket]
    if not left:
        return None
    first = left[0]
    first._queued_at, first._after, first._run = leader._queued_at, leader._after, leader._run
    leader._joined = None
    first._joined = left[1:] or None
    return first


def owned(sender: str | None, ticket: Ticket) -> bool:
    """Whether ``sender`` (None: anybody) may take this message back: their own, or what their run scheduled."""
    parent = ticket._parent
    return sender is None or (ticket.request.sender if parent is None else parent.owner) == sender


def past_cancel(child: Ticket) -> bool:
    """Too late to stop it: it is being stopped already, or its result is being written."""
    run = child._run
    return run is not None and (run.reason is not None or run.sealed)
