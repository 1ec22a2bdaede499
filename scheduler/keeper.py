"""Who answers for a child: the run that scheduled it, and after that run's end whoever answered for the run.

A stop of a session goes down these lists, so it reaches detached work for as long as any of it is open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scheduler.request import Ticket

NOBODY = cast("set[Any]", frozenset())  # shared by all who have no children, which is nearly everybody


class Keeper:
    """Has open children: messages that somebody it answers for has scheduled as their own."""

    __slots__ = ("children",)
    children: set[Ticket]

    def adopt(self, tickets: Iterable[Ticket]) -> None:
        if self.children is NOBODY:
            self.children = set()
        for ticket in tickets:
            ticket._keeper = self
            self.children.add(ticket)

    def disown(self, ticket: Ticket) -> None:
        self.children.discard(ticket)
        ticket._keeper = None
