"""What the scheduler has to tell, kept until its state is whole and told then: callbacks may call back in.

Every verb notes what happened while it changes things and publishes at its very end. A callback that schedules or
cancels only adds to the notes; whoever publishes already comes to them. So no callback ever sees half a change, and
one that raises harms nobody.
"""

from __future__ import annotations

import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from scheduler.observe import Event, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from scheduler.lane import Lane
    from scheduler.request import Outcome, Ticket
    from scheduler.run import Run

logger = logging.getLogger("goclaw.scheduler")


ENDED = Kind.ENDED
new_event = partial(tuple.__new__, Event)  # what Event(*facts) does, without its detour through Python


class News:
    def __init__(self) -> None:
        self.errors = 0
        self.observers: tuple[Callable[[Event], None], ...] = ()
        self._notes: deque[Event | Ticket] = deque()  # a ticket stands for its own callback
        self._publishing = False

    def observe(self, observer: Callable[[Event], None]) -> Callable[[], None]:
        self.observers = (*self.observers, observer)

        def forget() -> None:
            self.observers = tuple(other for other in self.observers if other is not observer)

        return forget

    def of_ticket(self, kind: Kind, now: float, ticket: Ticket) -> None:
        if self.observers:
            request = ticket.request
            facts = (kind, now, ticket._lane.name, request.session, request.tenant, ticket.id, 0, None)
            self._notes.append(new_event(facts))

    def of_run(self, kind: Kind, now: float, run: Run, detail: object = None) -> None:
        if self.observers:
            session, leader = run._session, run._tickets[0]
            facts = (kind, now, run._lane.name, session.key, session.tenant, leader.id, run.id, detail)
            self._notes.append(new_event(facts))

    def of_end(self, now: float, ticket: Ticket, outcome: Outcome) -> None:
        """A message has ended: observers hear it, and its own callback does."""
        request = ticket.request
        if self.observers:
            end, _, _, _, run = outcome
            facts = (ENDED, now, ticket._lane.name, request.session, request.tenant, ticket.id, run, end)
            self._notes.append(new_event(facts))
        if request.on_end is not None:
            self._notes.append(ticket)

    def of_lane(self, kind: Kind, now: float, lane: Lane, detail: object) -> None:
        if self.observers:
            self._notes.append(Event(kind, now, lane.name, detail=detail))

    def publish(self) -> None:
        """Tell everything noted so far. The last thing a verb does."""
        notes = self._notes
        if not notes or self._publishing:
            return
        self._publishing = True
        try:
            while notes:
                note = notes.popleft()
                if isinstance(note, Event):
                    for observer in self.observers:
                        try:
                            observer(note)
                        except Exception:  # noqa: BLE001
                            self._count_error()
                else:
                    try:
                        call_on_end(note)
                    except Exception:  # noqa: BLE001
                        self._count_error()
        finally:
            self._publishing = False

    def _count_error(self) -> None:
        self.errors += 1
        logger.exception("a callback of the scheduler raised; the lanes go on")


def call_on_end(ticket: Ticket) -> None:
    """In the message's own context, like the message itself."""
    if ticket.request.on_end is not None:
        ticket._context.run(ticket.request.on_end, ticket)
