"""Waiting inside a run: the slot is lent meanwhile, so that nested work can never lock a lane.

    running ──wait()──▶ parked ──child ended──▶ returning ──slot free──▶ running
      slot                no slot                 first in line            slot

Which lane the child uses does not matter: a chain may come back to this lane later. The session's place is never lent.
With several tasks of one run waiting, the slot comes back when the last of them does: taking it earlier could keep a
sibling's child from ever starting.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio

from scheduler import cancelling, errors
from scheduler.observe import Kind
from scheduler.run import current_run

if TYPE_CHECKING:
    from scheduler.lane import Lane
    from scheduler.request import Ticket
    from scheduler.run import Run
    from scheduler.scheduler import Scheduler


async def wait_for(scheduler: Scheduler, ticket: Ticket) -> None:
    """Wait for the end of ``ticket``, as the run that this code belongs to or as nobody in particular."""
    if ticket._event is None:
        ticket._event = trio.Event()
    run = current_run.get()
    if run is None or run.ended or run._scheduler is not scheduler:
        await ticket._event.wait()
        return
    refuse_deadlock(scheduler, run, ticket)
    lend(scheduler, run)
    run._waits.append(ticket)
    try:
        await ticket._event.wait()
    finally:
        run._waits.remove(ticket)
        if not run._waits:
            await regain(scheduler, run)


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


def lend(scheduler: Scheduler, run: Run) -> None:
    lane = run._lane
    if not run._slot or run.reason is not None:
        return
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
    scheduler._tell_run(Kind.LENT, trio.current_time(), run)
    scheduler._fill(lane)


async def regain(scheduler: Scheduler, run: Run) -> None:
    """Get a slot back before going on. A cancelled run goes on without one: it is only here to clean up.

    The wait is shielded because the task may be cancelled by a scope of the handler's own, after which the handler
    works on and must not do so without a slot. A stop of the run itself ends the wait.
    """
    lane = run._lane
    if not run._parked:
        return
    unpark(run)
    if run.reason is not None:
        return
    if lane.free and not lane.returning:
        take_slot(lane, run)
    else:
        await wait_in_line(scheduler, lane, run)
    if run._slot:
        scheduler._tell_run(Kind.REGAINED, trio.current_time(), run)


async def wait_in_line(scheduler: Scheduler, lane: Lane, run: Run) -> None:
    """First come, first served. The run's time limit stands still: waiting for a slot is not running."""
    gate = lane.returning[run] = trio.Event()
    asked_at = trio.current_time()
    time_limit, run._timer = run._timer, None
    scheduler.timers.call_off(time_limit)
    with trio.CancelScope(shield=True) as run._regaining:
        await gate.wait()
    run._regaining = None
    lane.returning.pop(run, None)
    if time_limit is not None and run.reason is None and not run.ended:
        due = time_limit.when + trio.current_time() - asked_at
        run._timer = scheduler.timers.at(due, partial(cancelling.time_out, scheduler, run))


def unpark(run: Run) -> None:
    run._parked = False
    run._lane.parked -= 1


def give_up(run: Run) -> None:
    """The run has ended while a task that it left behind still waits in its name."""
    if run._parked:
        unpark(run)
    if run._regaining is not None:
        run._regaining.cancel()
        run._lane.returning.pop(run, None)


def give_back(lane: Lane) -> None:
    run, gate = lane.returning.popitem(last=False)
    take_slot(lane, run)
    gate.set()


def take_slot(lane: Lane, run: Run) -> None:
    run._slot = True
    lane.active += 1
