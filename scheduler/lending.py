"""Waiting inside a run: the slot is lent meanwhile, so that nested work can never lock a lane.

    holds a slot ──wait()──▶ parked ──the last awaited message ended──▶ returning ──slot free──▶ holds a slot
                               ▲                                            │
                               └────────── another task of it waits ────────┘

Which lane the awaited message uses does not matter: a chain may come back to this lane later. The session's place is
never lent. With several tasks of one run waiting, the slot comes back when the last of them does: taking it earlier
could keep a sibling's child from ever starting. Whoever returns stands before every newcomer, from the very moment in
which the awaited message ends.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

import trio

from scheduler import cancelling, errors, slots
from scheduler.observe import Kind
from scheduler.run import current_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scheduler.lane import Lane
    from scheduler.request import Ticket
    from scheduler.run import Run
    from scheduler.scheduler import Scheduler

Listed = TypeVar("Listed")


async def wait_for(scheduler: Scheduler, ticket: Ticket) -> None:
    """Wait for the end of ``ticket``, as the run that this code belongs to or as nobody in particular."""
    if ticket._event is None:
        ticket._event = trio.Event()
    run = current_run.get()
    if run is None or run.ended or run._scheduler is not scheduler:
        await ticket._event.wait()
        return
    await trio.lowlevel.checkpoint_if_cancelled()  # a cancelled run does not lose its slot by trying to wait
    if ticket.outcome is not None:
        return
    start_waiting(scheduler, run, ticket)
    try:
        await ticket._event.wait()
    finally:
        # Still listed if the wait was cancelled. Then the handler may work on (only a scope of its own ended) and
        # must not do so without a slot; a stop of the run itself lets it go without.
        stop_waiting(scheduler, run, ticket)
        scheduler.news.publish()
        await stand_in_line(run)


def start_waiting(scheduler: Scheduler, run: Run, ticket: Ticket) -> None:
    refuse_deadlock(scheduler, run, ticket)
    lane = run._lane
    if run._slot:
        if not lane.room_to_park:
            raise errors.WaitRefused(
                f"lane {lane.name!r} already has {lane.parked} runs waiting for nested work: "
                "finish some of them or raise the lane's limit",
                lane=lane.name,
                run=run.id,
            )
        run._slot = False
        run._parked = True
        lane.active -= 1
        lane.parked += 1
        scheduler.news.of_run(Kind.LENT, scheduler.clock.current_time(), run)
    elif run._gate is not None:  # it stood in line, and is waiting for a child again instead
        leave_line(scheduler, run)
    run._waits = [*run._waits, ticket]
    ticket._waiters = [*ticket._waiters, run]
    slots.fill(scheduler, lane)
    scheduler.news.publish()


def stop_waiting(scheduler: Scheduler, run: Run, ticket: Ticket) -> None:
    """One wait less. After the last one the run takes a slot, or its place in line for one."""
    if ticket not in run._waits:
        return
    run._waits = without(ticket, run._waits)
    ticket._waiters = without(run, ticket._waiters)
    if run._waits or not run._parked:
        return
    lane = run._lane
    if run.reason is not None:  # it is only here to clean up
        unpark(run)
    elif lane.active < lane.limit and not lane.returning:
        take_slot(scheduler, run, scheduler.clock.current_time())
    else:
        run._gate = lane.returning[run] = trio.Event()
        if run._timer is not None and not run._watched:  # waiting for a slot is not running: its time stands still
            scheduler.timers.call_off(run._timer)
            run._time_left_s = run._timer.when - scheduler.clock.current_time()
            run._timer = None


async def stand_in_line(run: Run) -> None:
    gate = run._gate
    if gate is not None:
        with trio.CancelScope(shield=True):
            await gate.wait()


def give_back(scheduler: Scheduler, lane: Lane, now: float) -> None:
    """The first in line gets a slot."""
    run = next(iter(lane.returning))
    leave_line(scheduler, run)
    take_slot(scheduler, run, now)


def take_slot(scheduler: Scheduler, run: Run, now: float) -> None:
    unpark(run)
    run._slot = True
    run._lane.active += 1
    scheduler.news.of_run(Kind.REGAINED, now, run)


def leave_line(scheduler: Scheduler, run: Run) -> None:
    """Let go who stands in line for this run, and let its time limit run on."""
    gate, run._gate = run._gate, None
    if gate is None:
        return
    del run._lane.returning[run]
    gate.set()
    left_s, run._time_left_s = run._time_left_s, None
    if left_s is not None and not run._watched:
        due = scheduler.clock.current_time() + left_s
        run._timer = scheduler.timers.at(due, partial(cancelling.time_out, scheduler, run))


def unpark(run: Run) -> None:
    run._parked = False
    run._lane.parked -= 1


def give_up(run: Run) -> None:
    """The run has ended while a task that it left behind still waits in its name."""
    if run._parked:
        unpark(run)
    if run._gate is not None:
        run._lane.returning.pop(run, None)
        run._gate.set()
        run._gate = None
    for ticket in run._waits:
        ticket._waiters = without(run, ticket._waiters)
    run._waits = ()


def without(one: Listed, all_of_them: Sequence[Listed]) -> list[Listed]:
    """The same without the first ``one``: two tasks of a run may wait for the same message."""
    rest = list(all_of_them)
    rest.remove(one)
    return rest


def refuse_drain(scheduler: Scheduler) -> None:
    run = current_run.get()
    if run is not None and not run.ended and run._scheduler is scheduler:
        raise errors.WaitRefused(
            f"run {run.id} would wait for everything to end, itself included: wait for tickets instead", run=run.id
        )


def refuse_deadlock(scheduler: Scheduler, run: Run, ticket: Ticket) -> None:
    """Refuse to wait for one's own session, directly or through the runs that one would wait for."""
    seen: set[int] = set()
    pending = [ticket]
    while pending:
        awaited = pending.pop()
        if awaited.id in seen:
            continue
        seen.add(awaited.id)
        key = awaited.request.session
        if key == run.request.session:
            raise errors.WaitRefused(
                f"run {run.id} would wait for its own session {key!r} and never end: "
                "return first, or use another session for the nested work",
                session=key,
                run=run.id,
            )
        session = scheduler.sessions.get(key)
        if awaited._run is not None:
            pending += awaited._run._waits
        elif session is not None:
            for other in session.running:
                pending += other._waits
