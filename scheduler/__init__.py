"""Lanes and session queues: how many runs go at once, in which order, and how each of them ends.

What the room promises: order inside a session, limits never exceeded, no deadlock at any lane size, an end for every
message, nothing kept for an idle session. What it must not touch: any other room, any library but trio. It knows
nothing of chats or agents; a message is a callable with a session, a lane and a policy.
"""

from scheduler.errors import (
    InvalidRequest,
    MessageEnded,
    QueueDropped,
    QueueFull,
    RunCancelled,
    RunFailed,
    RunTimeout,
    SchedulerClosed,
    SchedulerError,
    WaitRefused,
)
from scheduler.lane import DEFAULT_LIMITS, WAIT_BOUNDS_S, Lane, LaneManager
from scheduler.observe import (
    Closed,
    Event,
    Kind,
    LaneStatistics,
    SchedulerStatistics,
    SessionStatistics,
    Stopped,
    WaitTimes,
)
from scheduler.request import Drop, End, Mode, Outcome, Policy, Reason, Request, Ticket
from scheduler.run import Run
from scheduler.scheduler import Scheduler, open_scheduler

__all__ = [
    "DEFAULT_LIMITS",
    "WAIT_BOUNDS_S",
    "Closed",
    "Drop",
    "End",
    "Event",
    "InvalidRequest",
    "Kind",
    "Lane",
    "LaneManager",
    "LaneStatistics",
    "MessageEnded",
    "Mode",
    "Outcome",
    "Policy",
    "QueueDropped",
    "QueueFull",
    "Reason",
    "Request",
    "Run",
    "RunCancelled",
    "RunFailed",
    "RunTimeout",
    "Scheduler",
    "SchedulerClosed",
    "SchedulerError",
    "SchedulerStatistics",
    "SessionStatistics",
    "Stopped",
    "Ticket",
    "WaitRefused",
    "WaitTimes",
    "open_scheduler",
]
