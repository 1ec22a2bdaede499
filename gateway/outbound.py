"""From the outbox to the channels: in order, urgent first, again until the channel has it.

A reply leaves the outbox after the channel took it, so a crash in between sends it again: at least once.
A chat whose channel refuses for now rests, longer each time; meanwhile all others are served.
"""

from __future__ import annotations

import logging
import math
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import trio

from gateway.persist import FIRST_DELAY_S, LONGEST_DELAY_S, persist
from gateway.protocols import Channel, ChannelError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.quiet import Quiet
    from store.protocols import MessageStore
    from store.records import Address, Reply

logger = logging.getLogger("goclaw.outbound")

BATCH = 20


class Rest(NamedTuple):
    until: float
    next_s: float


class Outbound:
    def __init__(self, store: MessageStore, channels: Iterable[Channel], quiet: Quiet) -> None:
        self._store = store
        self._channels = {channel.name: channel for channel in channels}
        self._quiet = quiet
        self._poked = trio.Event()
        self._resting: dict[Address, Rest] = {}

    def poke(self) -> None:
        """There may be something in the outbox."""
        if not self._poked.is_set():
            self._quiet.begin()
            self._poked.set()

    def channel(self, name: str) -> Channel | None:
        return self._channels.get(name)

    async def run(self) -> None:
        while True:
            with trio.CancelScope(deadline=min((rest.until for rest in self._resting.values()), default=math.inf)):
                await self._poked.wait()
            poked, self._poked = self._poked.is_set(), trio.Event()
            self._quiet.begin()
            while await self._send_some():
                pass
            self._quiet.end()
            if poked:
                self._quiet.end()

    async def _send_some(self) -> bool:
        """Send what is due, but look again after each: something urgent may have come in."""
        now = trio.current_time()
        skip = [address for address, rest in self._resting.items() if rest.until > now]
        replies = await persist(partial(self._store.outbox, BATCH, skip))
        for reply in replies:
            failed = await self._send(reply)
            if failed is None:
                break
            await persist(partial(self._store.sent, reply.id, failed=failed))
            if self._poked.is_set():
                break
        return bool(replies)

    async def _send(self, reply: Reply) -> str | None:
        """Empty if the channel has it, else why it never will; None if it is to be tried again: its address rests."""
        session = reply.note.session
        channel = self._channels.get(session.channel)
        if channel is None:
            logger.error("reply %d is for the channel %r, which is not connected", reply.id, session.channel)
            return f"the channel {session.channel} is not connected"
        failed = ""
        try:
            await channel.send(session, reply.note.text)
        except ChannelError as error:
            if error.retriable:
                self._rest(session.address, error)
                return None
            logger.error("reply %d cannot be delivered: %s", reply.id, error)
            failed = str(error) or type(error).__name__
        if self._resting.pop(session.address, None) is not None:
            self._quiet.end()
        return failed

    def _rest(self, address: Address, error: ChannelError) -> None:
        rest = self._resting.get(address)
        if rest is None:
            self._quiet.begin()
        delay_s = FIRST_DELAY_S if rest is None else rest.next_s
        logger.warning("%s; trying again in %g s", error, delay_s)
        self._resting[address] = Rest(trio.current_time() + delay_s, min(delay_s * 2, LONGEST_DELAY_S))
