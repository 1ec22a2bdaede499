"""A worker task: carries out one run after another for as long as its lane hands over.

A task per message would cost more than everything else here together, so a worker is reused, and with it one cancel
scope, until a cancellation has used that up. Each message still runs in its own context (`drive`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import trio

from scheduler import cancelling, lending, slots
from scheduler.drive import drive
from scheduler.keeper import NOBODY
from scheduler.request import End, Outcome, Reason
from scheduler.run import start_in_context
from scheduler.session import Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scheduler.request import Ticket
    from scheduler.run import Run
    from scheduler.scheduler import Scheduler

RUNS_BETWEEN_CHECKPOINTS = 50
DONE = End.DONE
new_outcome = partial(tuple.__new__, Outcome)  # what Outcome(...) does, without its detour through Python


async def work(scheduler: Scheduler, first: Run) -> None:
    run: Run | None = first
    since_checkpoint = 0
    while run is not None:
        error: BaseException | None = None
        try:
            with trio.CancelScope() as scope:
                used_up = False
                while run is not None and not used_up:
                    if since_checkpoint >= RUNS_BETWEEN_CHECKPOINTS:
                        since_checkpoint = 0
                        await trio.lowlevel.cancel_shielded_checkpoint()
                    since_checkpoint += 1
                    value = None
                    if run.reason is None:  # it may have been cancelled before its first step
                        run._scope = scope
                        if run.request.policy.timeout_s is not None:
                            limit_time(scheduler, run, run.request.policy.timeout_s)
                        context = run._tickets[0]._context
                        value = context.run(start_in_context, run)
                        if run._coroutine is not None:  # that was only its first trap
                            value = await drive(context, run._coroutine, value)
                    used_up = run.reason is not None  # asking the scope itself would ask the clock too
                    run = finish(scheduler, run, value, None)
                continue
        except BaseException as caught:
            if ends_everything(caught):  # nothing may start any more
                scheduler.closing = scheduler.closed = True
                if run is not None:
                    run.reason = run.reason or Reason.CLOSING
                    finish(scheduler, run, None, None)
                raise
            error = caught  # whatever else a handler raises is its own message's end
        # Reached when the handler raised, or when its cancellation came through.
        if run is not None:
            run = finish(scheduler, run, None, error)


def ends_everything(caught: BaseException) -> bool:
    """Whether the nursery itself is ending, or the program."""
    if isinstance(caught, BaseExceptionGroup):
        return any(ends_everything(one) for one in caught.exceptions)
    return isinstance(caught, trio.Cancelled | KeyboardInterrupt | SystemExit | GeneratorExit)


def limit_time(scheduler: Scheduler, run: Run, timeout_s: float) -> None:
    """The limit counts from the slot: time in the queue is not the run's."""
    run._timer = scheduler.timers.at(run.started_at + timeout_s, partial(cancelling.time_out, scheduler, run))


def finish(scheduler: Scheduler, run: Run, value: Any, error: BaseException | None) -> Run | None:
    """The run is over: free its slots, note its end, hand over. Returns what this worker runs next."""
    now = scheduler.clock.current_time()
    lane = run._lane
    run.ended = True
    if run._timer is not None:
        scheduler.timers.call_off(run._timer)
        run._timer = None
    if run.stuck:
        lane.stuck -= 1
    if run._slot:
        run._slot = False
        lane.active -= 1
    else:
        lending.give_up(run)
    if not run.fenced:
        session = run._session
        session.running.remove(run)
        if run._inbox or run.children:
            leave_behind(run, session)
        if run.reason is None and error is None:
            outcome = new_outcome((DONE, value, None, None, run.id))
        else:
            outcome = outcome_of(run, error)
        end(scheduler, run._tickets, outcome, now)  # before the queue moves on: who waited for it comes first
        queue = session.queue
        if not queue:
            forget_if_idle(scheduler, session)
        elif session.ring is None and queue[0]._lane is lane and session.ready():
            lane.enter(session)  # what `offer` would do, for nearly all runs
        else:
            slots.offer(scheduler, session, lane)
    run._tickets = ()  # ticket and run would keep each other alive
    following = slots.next_run(scheduler, lane, now)
    if lane.active < lane.limit and lane.lines:  # its end may have let more than one turn go
        slots.fill(scheduler, lane)
    scheduler.news.publish()
    return following


def leave_behind(run: Run, session: Session) -> None:
    """What steered the run and was not taken waits again in its place; children go to whoever answers for it."""
    if run._inbox:
        for ticket in run._inbox:
            ticket._run = None
            ticket._lane.waiting += 1
        back = sorted((*run._inbox, *session.queue), key=lambda ticket: ticket.id)  # each to its old place
        session.queue.clear()
        session.queue.extend(back)
        run._inbox = ()
    if run.children:
        (run._tickets[0]._keeper or session).adopt(run.children)
        run.children = NOBODY


def outcome_of(run: Run, error: BaseException | None) -> Outcome:
    """How a run ended that did not come to a good end."""
    if run.reason is None:
        return Outcome(End.FAILED, None, error, None, run.id)
    ended = End.TIMED_OUT if run.reason is Reason.TIMEOUT else End.CANCELLED
    return Outcome(ended, None, error, run.reason, run.id)


def end(scheduler: Scheduler, tickets: Sequence[Ticket], outcome: Outcome, now: float) -> None:
    """Give each of these messages its end, and those who wait for them their slots back."""
    kind = outcome.end
    for ticket in tickets:
        ticket.outcome = outcome
        ticket._lane.ends[kind] += 1
        keeper = ticket._keeper
        if keeper is not None:
            keeper.disown(ticket)
            if isinstance(keeper, Session):
                forget_if_idle(scheduler, keeper)
        scheduler.news.of_end(now, ticket, outcome)
        if ticket._event is not None:
            ticket._event.set()
            for waiter in ticket._waiters:
                lending.stop_waiting(scheduler, waiter, ticket)


def forget_if_idle(scheduler: Scheduler, session: Session) -> None:
    """A session that holds nothing is gone; with the last one gone the scheduler is idle and never wakes up."""
    if session.queue or session.running or session.window or session.children:
        return
    if scheduler.sessions.get(session.key) is session:
        del scheduler.sessions[session.key]
        if not scheduler.sessions:
            scheduler.sessions.clear()  # a dict keeps the size of its largest crowd until it is cleared
            scheduler.timers.rest()
            if scheduler.idle is not None:
                scheduler.idle.set()
                scheduler.idle = None
