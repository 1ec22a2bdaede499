"""One conversation: its debounce window, its queue and what runs. Pure bookkeeping, no clock and no tasks.

    arrives ──▶ window (same sender, quick) ──▶ queue (FIFO, cap) ──▶ ring of a lane ──▶ running
                    20 messages, 5 windows         drop old / new        one place per session

A session exists while it has any of these; the scheduler forgets it the moment it has none.
The session waits in the ring of its *head's* lane: the lane belongs to the message, the order to the session.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from scheduler.keeper import NOBODY, Keeper
from scheduler.request import Mode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scheduler.lane import Lane
    from scheduler.request import Policy, Request, Ticket
    from scheduler.run import Run
    from scheduler.timers import Timer

WINDOW_MESSAGES = 20
WINDOW_STRETCH = 5
THROTTLE_FROM = 0.6
THROTTLE_UNTIL = 0.5


class Window:
    """Quick messages of one sender that will be one turn."""

    __slots__ = ("closes_at", "last_call", "tickets", "timer")

    def __init__(self, ticket: Ticket, now: float) -> None:
        span = ticket.request.policy.debounce_s
        self.tickets = [ticket]
        self.closes_at = now + span
        self.last_call = now + WINDOW_STRETCH * span  # however fast messages come in, the turn starts by then
        self.timer: Timer | None = None

    def takes(self, ticket: Ticket) -> bool:
        return runs_together(self.tickets[0], ticket)

    def join(self, ticket: Ticket, now: float) -> None:
        self.tickets.append(ticket)
        self.closes_at = min(now + ticket.request.policy.debounce_s, self.last_call)

    @property
    def full(self) -> bool:
        return len(self.tickets) >= WINDOW_MESSAGES


class Session(Keeper):
    __slots__ = ("context_used", "key", "limit", "policy", "queue", "ring", "running", "tenant", "throttled", "window")

    def __init__(self, request: Request) -> None:
        self.key = request.session
        self.tenant = request.tenant
        self.queue: deque[Ticket] = deque()
        self.running: list[Run] = []  # oldest first
        self.window: Window | None = None
        self.ring: Lane | None = None  # the lane in whose ring it waits for a slot
        self.limit = 1
        self.policy: Policy | None = None  # what the newest message brought along
        self.context_used = -1.0
        self.throttled = False
        self.children = NOBODY

    def heed(self, request: Request) -> bool:
        """Take policy and context figure of the newest message, with hysteresis between 50 and 60 %.

        True if the limit has changed.
        """
        self.policy, self.context_used = request.policy, request.context_used
        used = request.context_used
        if used >= THROTTLE_FROM:
            self.throttled = True
        elif used < THROTTLE_UNTIL:
            self.throttled = False
        before, self.limit = self.limit, 1 if self.throttled else request.policy.max_concurrent
        return self.limit != before

    def ready(self) -> bool:
        """Its head may start as soon as there is a slot."""
        if not self.queue or len(self.running) >= self.limit:
            return False
        after = self.queue[0]._after
        return not after or all(run.ended or run.fenced for run in after)

    def full(self, request: Request) -> bool:
        """Whether there is no room for this message.

        The cap does not count for what is taken up again after a restart, neither as newcomer nor as one who waits,
        and not for an interrupt, which has just made room.
        """
        if request.resumed or request.policy.mode is Mode.INTERRUPT:
            return False
        return len(self.droppable()) >= request.policy.cap

    def droppable(self) -> list[Ticket]:
        return [ticket for ticket in self.queue if not ticket.request.resumed]

    def steered_by(self, ticket: Ticket) -> Run | None:
        """The run that ``ticket`` can steer: the sender's own newest one, with nobody waiting in between."""
        if self.queue or ticket._parent is not None:
            return None
        for run in reversed(self.running):
            if run.owner == ticket.request.sender and run.request.steerable and run.reason is None and not run.sealed:
                return run if len(run._inbox) < ticket.request.policy.cap else None
        return None

    def turn_of(self, leader: Ticket) -> tuple[Ticket, ...]:
        """All messages that run together with one that was just taken from the head of the queue."""
        if leader.request.policy.mode is Mode.COLLECT:
            while self.queue and self.collects(leader, self.queue[0]):
                leader._joined = [*(leader._joined or ()), *flattened([self.queue.popleft()])]
        if leader._joined is None:
            return (leader,)
        return (leader, *leader._joined)

    @staticmethod
    def collects(leader: Ticket, other: Ticket) -> bool:
        return other.request.policy.mode is Mode.COLLECT and runs_together(leader, other)


def runs_together(one: Ticket, other: Ticket) -> bool:
    """Only what has the same author, place and handler may become one turn."""
    a, b = one.request, other.request
    return (
        a.sender == b.sender
        and one._lane is other._lane
        and a.thread == b.thread
        and a.handler == b.handler
        and one._parent is other._parent
    )


def flattened(leaders: Iterable[Ticket]) -> list[Ticket]:
    """All messages of these turns, in order."""
    return [ticket for leader in leaders for ticket in (leader, *(leader._joined or ()))]
