"""From the outbox to the channels: in order, urgent first, again until the channel has it.

A reply leaves the outbox after the channel took it, so a crash in between sends it again: at least once.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

import trio

from gateway.persist import insist, persist
from gateway.protocols import Channel, ChannelError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.quiet import Quiet
    from store.protocols import MessageStore
    from store.records import Reply

logger = logging.getLogger("goclaw.outbound")

BATCH = 20


class Outbound:
    def __init__(self, store: MessageStore, channels: Iterable[Channel], quiet: Quiet) -> None:
        self._store = store
        self._channels = {channel.name: channel for channel in channels}
        self._quiet = quiet
        self._poked = trio.Event()

    def poke(self) -> None:
        """There may be something in the outbox."""
        if not self._poked.is_set():
            self._quiet.begin()
            self._poked.set()

    def channel(self, name: str) -> Channel | None:
        return self._channels.get(name)

    async def run(self) -> None:
        while True:
            await self._poked.wait()
            self._poked = trio.Event()
            while await self._send_some():
                pass
            self._quiet.end()

    async def _send_some(self) -> bool:
        """Send what is due, but look again after each: something urgent may have come in."""
        replies = await persist(partial(self._store.outbox, BATCH))
        for reply in replies:
            await self._send(reply)
            await persist(partial(self._store.sent, reply.id))
            if self._poked.is_set():
                break
        return bool(replies)

    async def _send(self, reply: Reply) -> None:
        session = reply.note.session
        channel = self._channels.get(session.channel)
        if channel is None:
            logger.error("reply %d is for the channel %r, which is not connected", reply.id, session.channel)
            return
        try:
            await insist(partial(channel.send, session, reply.note.text), ChannelError)
        except ChannelError as error:
            logger.error("reply %d cannot be delivered: %s", reply.id, error)
