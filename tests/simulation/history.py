"""What happened, in order: one flat list of events, written by the edges and read by the promises."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class What(StrEnum):
    # a life of the gateway
    OPENED = "opened"  # text: the limits of its lanes
    CLOSING = "closing"
    CLOSED = "closed"
    CRASHED = "crashed"
    # people
    ARRIVES = "arrives"  # a delivery is handed to the gateway
    KEPT = "kept"  # the gateway has acknowledged it
    UNHEARD = "unheard"  # it has not: the delivery will be repeated
    # the store, at the moment of the effect
    ACCEPTED = "accepted"
    BEGUN = "begun"
    SETTLED = "settled"  # text: the state; detail: whether the write had something to say
    STOPPED = "stopped"
    PUT_BACK = "put back"
    RESUMED = "resumed"
    REPLY = "reply"  # a reply has come into the outbox; detail: urgent or not
    # the store, as its callers see it
    CALL = "call"  # text: the verb and what about
    ERROR = "error"
    ANSWER = "answer"  # ids, for accept: what the gateway now takes up
    # the scheduler
    QUEUED = "queued"
    STARTED = "started"
    JOINED = "joined"  # became part of the turn that waits in the window
    STEERED = "steered"  # handed to a run that goes on already
    CANCELLING = "cancelling"
    STUCK = "stuck"
    FENCED = "fenced"
    ENDED = "ended"  # text: how
    RESIZED = "resized"
    # the agent
    IN = "in"  # it executes; text: what it works on
    ASKS = "asks"  # it waits for helpers
    BACK = "back"  # it executes again
    OUT = "out"  # text: returned, raised or cancelled
    # the channel
    SHOWN = "shown"
    CLEARED = "cleared"
    SEND = "send"
    UNSENT = "unsent"
    DELIVERED = "delivered"


class Event(NamedTuple):
    step: int
    at: float
    life: int
    what: What
    session: str = ""
    ids: tuple[int, ...] = ()
    run: int = 0
    text: str = ""
    detail: str = ""

    def __str__(self) -> str:
        parts = [
            f"{self.at:9.3f} {self.step:6} L{self.life} {self.what:<10}",
            self.session,
            f"ids {','.join(map(str, self.ids))}" if self.ids else "",
            f"run {self.run}" if self.run else "",
            repr(self.text) if self.text else "",
            f"({self.detail})" if self.detail else "",
        ]
        return " ".join(part for part in parts if part)


class Found(NamedTuple):
    """A broken promise."""

    promise: str
    why: str
    after: int
    """How many events had happened."""
