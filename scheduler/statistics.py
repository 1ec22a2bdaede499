"""Counts a living scheduler into frozen values. Reads everything, changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler.observe import LaneStatistics, SchedulerStatistics, SessionStatistics, wait_times
from scheduler.session import flattened

if TYPE_CHECKING:
    from scheduler.lane import Lane
    from scheduler.request import Ticket
    from scheduler.scheduler import Scheduler
    from scheduler.session import Session


def of_scheduler(scheduler: Scheduler, now: float) -> SchedulerStatistics:
    oldest: dict[Lane, float] = {}
    buffered = 0
    for session in scheduler.sessions.values():
        before: Lane | None = None
        for ticket in session.queue:
            if ticket._lane is not before:  # those of one lane stand in the order in which they came
                before = ticket._lane
                oldest[before] = min(ticket._queued_at, oldest.get(before, now))
        if session.window is not None:
            buffered += len(session.window.tickets)
    lanes = tuple(of_lane(lane, now, oldest.get(lane, now)) for lane in scheduler.lanes)
    return SchedulerStatistics(
        lanes=lanes,
        sessions=len(scheduler.sessions),
        running=sum(lane.active + lane.parked for lane in lanes),
        waiting=sum(lane.waiting for lane in lanes),
        buffered=buffered,
        callback_errors=scheduler.news.errors,
    )


def of_lane(lane: Lane, now: float, oldest: float) -> LaneStatistics:
    return LaneStatistics(
        name=lane.name,
        limit=lane.limit,
        active=lane.active,
        parked=lane.parked,
        waiting=lane.waiting,
        stuck=lane.stuck,
        started=lane.started,
        ends={str(end): count for end, count in lane.ends.items()},
        wait=wait_times(lane.waits),
        oldest_wait_s=now - oldest,
        wait_counts=tuple(lane.wait_counts),
        waited_s=lane.waited_s,
    )


def of_session(session: Session | None, key: str, now: float) -> SessionStatistics:
    if session is None:
        return SessionStatistics(key)
    return SessionStatistics(
        key=key,
        limit=session.limit,
        throttled=session.throttled,
        buffered=len(session.window.tickets) if session.window is not None else 0,
        waiting=len(flattened(list(session.queue))),
        steering=sum(len(flattened(run._inbox)) for run in session.running),
        running=len(session.running),
        stopping=sum(run.reason is not None for run in session.running),
        children=len(session.children) + sum(len(run.children) for run in session.running),
        oldest_wait_s=now - min((ticket._queued_at for ticket in session.queue), default=now),
    )


def ahead(session: Session | None, ticket: Ticket) -> int | None:
    if session is None or ticket.outcome is not None or ticket not in session.queue:
        return None
    return list(session.queue).index(ticket) + len(session.running)
