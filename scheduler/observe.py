"""What the scheduler tells about itself: events as they happen, statistics when asked. All values, none alive."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scheduler.request import Request


class Kind(StrEnum):
    QUEUED = "queued"  # a message was taken in
    JOINED = "joined"  # it became part of a turn that is still waiting or running
    STARTED = "started"  # a turn got its slot
    LENT = "lent"  # a run gave its slot away while it waits for a child
    REGAINED = "regained"
    CANCELLING = "cancelling"  # somebody asked a run to end
    STUCK = "stuck"  # it has not done so for a while
    FENCED = "fenced"  # nothing it does counts any more
    ENDED = "ended"  # a message ended; detail tells how
    RESIZED = "resized"


class Event(NamedTuple):
    """One thing that happened. ``run`` is 0 and ``ticket`` is 0 where there is none."""

    kind: Kind
    at: float
    lane: str
    session: str = ""
    tenant: str = ""
    ticket: int = 0
    run: int = 0
    detail: object = None


@dataclass(frozen=True, slots=True)
class WaitTimes:
    """Seconds between entering the queue and getting a slot, over the latest runs."""

    samples: int
    p50_s: float
    p90_s: float
    p99_s: float


@dataclass(frozen=True, slots=True)
class LaneStatistics:
    name: str
    limit: int
    active: int
    parked: int
    waiting: int
    stuck: int
    started: int
    ends: dict[str, int]
    wait: WaitTimes
    oldest_wait_s: float
    wait_counts: tuple[int, ...] = ()
    """All waits ever, by how long they were: up to each of `WAIT_BOUNDS_S`, and beyond the last."""
    waited_s: float = 0.0
    """All of them together."""


@dataclass(frozen=True, slots=True)
class SessionStatistics:
    key: str
    limit: int = 1
    throttled: bool = False
    buffered: int = 0
    waiting: int = 0
    steering: int = 0
    running: int = 0
    stopping: int = 0
    children: int = 0
    oldest_wait_s: float = 0.0


@dataclass(frozen=True, slots=True)
class SchedulerStatistics:
    lanes: tuple[LaneStatistics, ...]
    sessions: int
    running: int
    waiting: int  # turns in queues
    buffered: int  # messages in debounce windows
    callback_errors: int


@dataclass(frozen=True, slots=True)
class Stopped:
    """What a cancel reached, each counted where it was found."""

    buffered: int = 0  # messages in the debounce window
    queued: int = 0  # messages behind others of their session
    waiting: int = 0  # messages at the head, waiting for a slot only
    running: int = 0  # runs
    children: int = 0  # messages and runs below those
    stopping: int = 0  # runs that were being cancelled already
    finishing: int = 0  # runs whose result was being written: too late
    left: int = 0  # messages that still wait
    reached: tuple[Request, ...] = field(default=(), repr=False, compare=False)  # whom it was about

    @property
    def messages(self) -> int:
        return self.buffered + self.queued + self.waiting

    def __bool__(self) -> bool:
        return bool(self.messages or self.running or self.children)


@dataclass(frozen=True, slots=True)
class Closed:
    """How a shutdown went."""

    cancelled: int  # runs that had to be cancelled
    abandoned: int  # runs that ignored it
    unstarted: int  # messages that never started; their tickets end with `SchedulerClosed`


def wait_times(samples: Iterable[float]) -> WaitTimes:
    ordered = sorted(samples)
    if not ordered:
        return WaitTimes(0, 0.0, 0.0, 0.0)
    last = len(ordered) - 1
    p50, p90, p99 = (ordered[round(last * share)] for share in (0.5, 0.9, 0.99))
    return WaitTimes(len(ordered), p50, p90, p99)
