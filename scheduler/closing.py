"""Shutdown: refuse what is new, let what runs finish, cancel what does not, keep what never started.

A message that never started ends with `SchedulerClosed`; whoever stored it still has it and brings it again after the
restart. Children of a living run are still taken in until the deadline, because their parent could not finish without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from scheduler import cancelling, lending
from scheduler.checks import check_span
from scheduler.observe import Closed
from scheduler.request import End, Reason

if TYPE_CHECKING:
    from scheduler.scheduler import Scheduler


async def close(scheduler: Scheduler, grace_s: float) -> Closed:
    """Bounded by ``grace_s`` and then by the fence: a run that will not end is abandoned, not waited for."""
    check_span("grace_s", grace_s, endless=True)
    lending.refuse_drain(scheduler)
    scheduler.closing = True
    unstarted = end_waiting(scheduler, children_too=False)
    scheduler.news.publish()
    with trio.move_on_after(grace_s):
        await scheduler.drain()
    scheduler.closed = True
    unstarted += end_waiting(scheduler, children_too=True)
    cancelled = cancel_runs(scheduler)
    scheduler.news.publish()
    await scheduler.drain()
    abandoned = sum(lane.stuck for lane in scheduler.lanes)
    scheduler.timers.stop()
    return Closed(cancelled, abandoned, unstarted)


def shut(scheduler: Scheduler) -> None:
    """The last word, without waiting: nothing starts, everything that waits ends, every run is cancelled."""
    scheduler.closing = scheduler.closed = True
    end_waiting(scheduler, children_too=True)
    cancel_runs(scheduler)
    scheduler.news.publish()
    scheduler.timers.stop()


def cancel_runs(scheduler: Scheduler) -> int:
    cancelled = 0
    for session in list(scheduler.sessions.values()):
        for run in list(session.running):
            if run.sealed:
                cancelling.watch(scheduler, run)
            elif run.reason is None:
                cancelling.ask_to_end(scheduler, run, Reason.CLOSING)
                cancelled += 1
    return cancelled


def end_waiting(scheduler: Scheduler, *, children_too: bool) -> int:
    """End all that has not started; without ``children_too`` all but what living runs may wait for."""
    sweep = cancelling.Sweep(scheduler, Reason.CLOSING)
    # In the order of the rings: each then leaves its line from the front, where it need not be searched for.
    in_line = (session for lane in scheduler.lanes for session in lane.sessions_in_line())
    for session in list(dict.fromkeys((*in_line, *scheduler.sessions.values()))):
        sweep.take_waiting(session, lambda ticket: children_too or ticket._parent is None)
    sweep.done(End.CLOSED)
    return len(sweep.taken)
