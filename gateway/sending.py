"""One attempt to hand a reply to its channel, and what follows: it is delivered, tried again, or given up."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import trio

from gateway.persist import FIRST_DELAY_S, persist
from gateway.protocols import Channel, ChannelError, Delivery

if TYPE_CHECKING:
    from store.protocols import MessageStore
    from store.records import Reply

logger = logging.getLogger("goclaw.outbound")

SEND_S = 60.0
"""How long a channel may take without getting on."""
LONGEST_REST_S = 60.0
STRIKES = 5
"""So many surprises in a row, and a reply is given up: it would stop its chat for ever."""


@dataclass(slots=True)
class Attempt:
    reply: Reply
    """With as much of it delivered as the channel has told."""
    receipt: str = ""
    error: Exception | None = None
    took_s: float = 0.0


async def attempt(store: MessageStore, channel: Channel, turn: str, reply: Reply) -> Attempt:
    """Hand it over once. Whatever goes wrong is in the answer: a channel's mistake is nobody else's trouble."""
    this = Attempt(reply)
    began = trio.current_time()
    try:
        await hand_over(store, channel, turn, this)
    except Exception as error:
        this.error = alone(error)
        if not isinstance(this.error, ChannelError):
            logger.warning("%s has a mistake, met by reply %d", channel.name, reply.id, exc_info=error)
    this.took_s = trio.current_time() - began
    return this


async def hand_over(store: MessageStore, channel: Channel, turn: str, this: Attempt) -> None:
    reply = this.reply
    with trio.move_on_after(SEND_S) as limit:

        async def progress(parts: int, live: str) -> None:
            limit.deadline = trio.current_time() + SEND_S
            this.reply = replace(reply, parts=max(parts, this.reply.parts), live=live)
            await persist(partial(store.progress, reply.id, parts, live))

        note = reply.note
        delivery = Delivery(note.session, note.text, turn, reply.parts, reply.live, progress, reply.answers)
        this.receipt = await channel.send(delivery)
    if limit.cancelled_caught:
        raise ChannelError(f"nothing was delivered for {SEND_S:g} s")


@dataclass(slots=True)
class Trouble:
    """What an address has been through since its channel last took something."""

    rest_s: float = FIRST_DELAY_S
    reply: int = 0
    strikes: int = 0

    def rest_after(self, this: Attempt) -> float | None:
        """How long to leave the address alone before the next attempt; None if another one would not help."""
        if not self._may_help(this):
            return None
        rest_s, self.rest_s = self.rest_s, min(self.rest_s * 2, LONGEST_REST_S)
        wanted_s = this.error.retry_after_s if isinstance(this.error, ChannelError) else None
        return wanted_s if wanted_s and wanted_s > 0 else rest_s

    def _may_help(self, this: Attempt) -> bool:
        if isinstance(this.error, ChannelError):
            self.strikes = 0
            return this.error.retriable
        self.strikes = self.strikes + 1 if this.reply.id == self.reply else 1
        self.reply = this.reply.id
        return self.strikes < STRIKES


def alone(error: Exception) -> Exception:
    """What a group holds, if it is one thing."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def in_words(error: Exception) -> str:
    """One line that every store can keep."""
    text = " ".join(str(error).split())[:200] or type(error).__name__
    return text.encode(errors="replace").decode()
