"""What the scheduler has to tell, kept until its state is whole and told then: callbacks may call back in.

Every verb notes what happened while it changes things and publishes at its very end. A callback that schedules or
cancels only adds to the notes; whoever publishes already comes to them. So no callback ever sees half a change, and
one that raises harms nobody.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any

from scheduler.observe import Event, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from scheduler.request import Ticket
    from scheduler.run import Run

logger = logging.getLogger("goclaw.scheduler")


class News:
    def __init__(self) -> None:
        self.errors = 0
        self.observers: tuple[Callable[[Event], None], ...] = ()
        self._notes: deque[tuple[Callable[..., Any], Any]] = deque()
        self._publishing = False

    def observe(self, observer: Callable[[Event], None]) -> Callable[[], None]:
        self.observers = (*self.observers, observer)

        def forget() -> None:
            self.observers = tuple(other for other in self.observers if other is not observer)

        return forget

    def of_ticket(self, kind: Kind, now: float, ticket: Ticket) -> None:
        if self.observers:
            request, outcome = ticket.request, ticket.outcome
            run, end = (0, None) if outcome is None else (outcome.run, outcome.end)
            event = Event(kind, now, ticket._lane.name, request.session, request.tenant, ticket.id, run, end)
            for observer in self.observers:
                self._notes.append((observer, event))

    def of_run(self, kind: Kind, now: float, run: Run, detail: object = None) -> None:
        if self.observers:
            request, leader = run.request, run._tickets[0]
            self.tell(Event(kind, now, run._lane.name, request.session, request.tenant, leader.id, run.id, detail))

    def tell(self, event: Event) -> None:
        for observer in self.observers:
            self._notes.append((observer, event))

    def of_end(self, now: float, ticket: Ticket) -> None:
        """A message has ended: observers hear it, and its own callback does, in the message's own context."""
        self.of_ticket(Kind.ENDED, now, ticket)
        if ticket.request.on_end is not None:
            self._notes.append((call_on_end, ticket))

    def publish(self) -> None:
        """Tell everything noted so far. The last thing a verb does."""
        notes = self._notes
        if not notes or self._publishing:
            return
        self._publishing = True
        try:
            while notes:
                call, about = notes.popleft()
                try:
                    call(about)
                except Exception:
                    self.errors += 1
                    logger.exception("a callback of the scheduler raised; the lanes go on")
        finally:
            self._publishing = False


def call_on_end(ticket: Ticket) -> None:
    if ticket.request.on_end is not None:
        ticket._context.run(ticket.request.on_end, ticket)
