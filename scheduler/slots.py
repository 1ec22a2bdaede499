"""Who gets a slot next. Slots are handed over directly: there is no dispatcher to wake and no lock to hold.

The invariant that makes this safe: between two verbs, a lane with a free slot has nobody in its ring.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from scheduler import lending, working
from scheduler.observe import Kind
from scheduler.request import Mode
from scheduler.run import Run

if TYPE_CHECKING:
    from scheduler.lane import Lane
    from scheduler.request import Ticket
    from scheduler.scheduler import Scheduler
    from scheduler.session import Session

COLLECT = Mode.COLLECT
STARTED = Kind.STARTED


def offer(scheduler: Scheduler, session: Session, holder: Lane | None = None) -> None:
    """Let the session stand where its head needs it to; a worker of ``holder`` will look there by itself."""
    lane = session.queue[0]._lane if session.ready() else None
    if lane is not session.ring:
        if session.ring is not None:
            session.ring.leave(session)
        if lane is not None:
            lane.enter(session)
    if lane is not None and lane is not holder:
        fill(scheduler, lane)


def fill(scheduler: Scheduler, lane: Lane) -> None:
    """Give free slots to returning parents, then to newcomers, each in a worker of its own."""
    if lane.active >= lane.limit:
        return
    scheduler.to_fill.append(lane)
    if len(scheduler.to_fill) > 1:  # whoever fills already will come to this one: no recursion however many lanes
        return
    while scheduler.to_fill:
        lane = scheduler.to_fill[0]
        while (run := next_run(scheduler, lane, scheduler.clock.current_time())) is not None:
            # A worker serves many messages, so it must not start in the context of the one that happens to need it.
            scheduler.context.run(partial(scheduler.nursery.start_soon, working.work, scheduler, run, name=lane.name))
        scheduler.to_fill.popleft()


def next_run(scheduler: Scheduler, lane: Lane, now: float) -> Run | None:
    """Hand a free slot over: to a returning parent, or to the next turn in the ring, which is returned."""
    while lane.returning and lane.active < lane.limit:
        lending.give_back(scheduler, lane, now)
    if lane.active >= lane.limit or not lane.lines or scheduler.closed:
        return None
    session = lane.next_session()
    leader = session.queue.popleft()
    if leader._joined is None and leader.request.policy.mode is not COLLECT:
        tickets: tuple[Ticket, ...] = (leader,)
        lane.waiting -= 1
    else:
        waiting = len(session.queue) + 1
        tickets = session.turn_of(leader)
        lane.waiting -= waiting - len(session.queue)
    lane.active += 1
    lane.started += 1
    lane.note_wait(now - leader._queued_at)
    run = Run(scheduler, next(scheduler.run_ids), session, tickets, now)
    for ticket in tickets:
        ticket._run = run
    session.running.append(run)
    if session.queue and len(session.running) < session.limit:
        offer(scheduler, session, lane)
    scheduler.news.of_run(STARTED, now, run, len(tickets))
    return run
