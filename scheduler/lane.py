"""Lanes: how many runs of one kind go at once, and who is next. Pure bookkeeping, no clock and no tasks.

    ring:  tenant a ─▶ [session 3, session 9]        each turn serves one tenant, in it one session, of it one turn;
           tenant b ─▶ [session 5]                   who still has something goes to the back of its line

A slot is a number, not a thing: `active` counts the runs that hold one. A run that waits for a child lends its slot
(`active` falls, `parked` rises) and stands in `returning` until one is free again, ahead of every newcomer.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict, deque
from typing import TYPE_CHECKING

from scheduler import errors
from scheduler.checks import check_limit
from scheduler.request import End

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import trio

    from scheduler.run import Run
    from scheduler.session import Session

DEFAULT_LANE = "main"
DEFAULT_LIMITS = {"main": 2, "subagent": 4, "delegate": 100, "cron": 1, "heartbeat": 1}
PARKED_PER_SLOT = 50
WAIT_SAMPLES = 1024
WAIT_BOUNDS_S = (0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 15.0, 60.0, 300.0, 1800.0)
"""Waits are counted up to each of these, and beyond the last."""


class Lane:
    __slots__ = (
        "active",
        "ends",
        "limit",
        "line_of",
        "lines",
        "name",
        "parked",
        "returning",
        "started",
        "stuck",
        "wait_counts",
        "waited_s",
        "waiting",
        "waits",
    )

    def __init__(self, name: str, limit: int) -> None:
        self.name = name
        self.limit = limit
        self.active = 0  # runs that hold a slot
        self.parked = 0  # runs that have lent theirs
        self.waiting = 0  # turns in session queues that will need a slot here
        self.stuck = 0  # runs that ignore their cancellation
        self.started = 0
        self.ends = dict.fromkeys(End, 0)  # messages by how they ended
        self.waits: deque[float] = deque(maxlen=WAIT_SAMPLES)  # seconds from queue to slot, the latest
        self.wait_counts = [0] * (len(WAIT_BOUNDS_S) + 1)  # all of them, by how long they were
        self.waited_s = 0.0  # and together
        self.lines: deque[deque[Session]] = deque()  # the ring: one line per tenant, in the order they are served
        self.line_of: dict[str, deque[Session]] = {}
        self.returning: OrderedDict[Run, trio.Event] = OrderedDict()

    def __repr__(self) -> str:
        return f"<Lane {self.name!r} {self.active}/{self.limit}>"

    @property
    def free(self) -> bool:
        return self.active < self.limit

    def note_wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.wait_counts[bisect_left(WAIT_BOUNDS_S, seconds)] += 1
        self.waited_s += seconds

    def enter(self, session: Session) -> None:
        """Put a session at the back of its tenant's line."""
        session.ring = self
        line = self.line_of.get(session.tenant)
        if line is None:
            line = self.line_of[session.tenant] = deque()
            self.lines.append(line)
        line.append(session)

    def leave(self, session: Session) -> None:
        """Rare, so it may search: a cancel or a drop has left the session with nothing for this lane."""
        session.ring = None
        line = self.line_of[session.tenant]
        line.remove(session)
        if not line:
            del self.line_of[session.tenant]
            self.lines.remove(line)

    def next_session(self) -> Session:
        """Whose turn it is: the first session of the first line. The line goes to the back."""
        lines = self.lines
        line = lines[0]
        session = line.popleft()
        session.ring = None
        if not line:
            lines.popleft()
            del self.line_of[session.tenant]
        elif len(lines) > 1:
            lines.rotate(-1)
        return session

    def sessions_in_line(self) -> Iterator[Session]:
        for line in self.lines:
            yield from line

    @property
    def room_to_park(self) -> bool:
        return self.parked < self.limit * PARKED_PER_SLOT


class LaneManager:
    """The lanes by name. A name nobody made a lane for means ``main``."""

    def __init__(self, limits: Mapping[str, int], on_room: Callable[[Lane], None]) -> None:
        self.by_name: dict[str, Lane] = {}
        self._on_room = on_room
        for name, limit in {DEFAULT_LANE: DEFAULT_LIMITS[DEFAULT_LANE], **limits}.items():
            self.get_or_create(name, limit)

    def __iter__(self) -> Iterator[Lane]:
        return iter(self.by_name.values())

    def __getitem__(self, name: str) -> Lane:
        return self.by_name.get(name) or self.by_name[DEFAULT_LANE]

    def get_or_create(self, name: str, concurrency: int) -> Lane:
        """The lane of that name, made with this limit if there is none yet; an existing one keeps its limit."""
        check_limit(f"limit of lane {name!r}", concurrency)
        lane = self.by_name.get(name)
        if lane is None:
            lane = self.by_name[name] = Lane(name, concurrency)
        return lane

    def resize(self, name: str, limit: int) -> None:
        """Change a limit while running. A smaller one kills nothing: the lane shrinks as runs end."""
        lane = self.by_name.get(name)
        if lane is None:
            known = ", ".join(self.by_name)
            raise errors.InvalidRequest(f"there is no lane {name!r} to resize: expected one of {known}", value=name)
        check_limit(f"limit of lane {name!r}", limit)
        lane.limit = limit
        self._on_room(lane)
