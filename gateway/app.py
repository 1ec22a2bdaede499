"""The composition root: the only place that knows which parts make a gateway, and in which order they start and end.

Start: the store is there, outbound and endings begin to listen, the scheduler opens its lanes, what an earlier process
left open is taken up again; then the channels may hand messages in.
End: no message is taken in any more; runs get their grace; how they ended is written; what is in the outbox is sent.
What never started stays accepted in the store.
"""

from __future__ import annotations

import signal
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

import trio

from gateway.agents.demo import DemoAgent
from gateway.channels.terminal import Terminal
from gateway.clock import utc_now
from gateway.control import Control
from gateway.endings import Endings
from gateway.in_hand import InHand
from gateway.inbound import Inbound
from gateway.outbound import Outbound
from gateway.persist import persist
from gateway.quiet import Quiet
from gateway.turn import Turns
from scheduler import Closed, Scheduler, open_scheduler
from store.memory import MemoryStore
from store.records import CHAT_LEASE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from gateway.protocols import Agent, Channel
    from gateway.settings import Settings
    from store.protocols import MessageStore
    from store.records import Incoming, Message

ATTEMPTS = 3
LAST_WORDS_S = 5.0


class Gateway:
    """A running gateway, as the channels see it."""

    def __init__(self, settings: Settings, scheduler: Scheduler, inbound: Inbound, quiet: Quiet) -> None:
        self.scheduler = scheduler
        self._settings = settings
        self._inbound = inbound
        self._quiet = quiet

    async def receive(self, batch: Sequence[Incoming]) -> None:
        """Take messages in; when this returns they are kept."""
        await self._inbound.receive(batch)

    @property
    def busy(self) -> bool:
        """Something waits or runs."""
        return bool(self.scheduler.sessions)

    async def drained(self) -> None:
        """Wait until everything taken in so far has ended and was said."""
        while self.scheduler.sessions or not self._quiet.now:
            await self.scheduler.drain()
            await self._quiet.wait()

    async def close(self) -> Closed:
        """Let runs finish within the grace, write how everything ended, send what is to be sent."""
        closed = await self.scheduler.close(self._settings.shutdown.grace)
        with trio.move_on_after(LAST_WORDS_S):
            await self._quiet.wait()
        return closed


@asynccontextmanager
async def open_gateway(
    settings: Settings, store: MessageStore, agent: Agent, channels: Iterable[Channel]
) -> AsyncIterator[Gateway]:
    quiet = Quiet()
    outbound = Outbound(store, channels, quiet)
    process = uuid4().hex
    endings = Endings(process, store, outbound, quiet)
    turns = Turns(process, store, agent, outbound, endings)
    async with trio.open_nursery() as services:
        services.start_soon(outbound.run)
        services.start_soon(endings.run)
        async with open_scheduler(settings.lane.model_dump()) as scheduler:
            in_hand = InHand()
            control = Control(services, store, scheduler, outbound, quiet, in_hand)
            inbound = Inbound(settings, store, scheduler, turns, control, endings, in_hand)
            left = await set_aside_poison(endings, await persist(store.resume))
            standings = await persist(partial(store.standings, {message.session for message in left}))
            inbound.resume(left, standings)
            outbound.poke()
            gateway = Gateway(settings, scheduler, inbound, quiet)
            try:
                yield gateway
                await gateway.close()
            finally:
                turns.give_up()
        services.cancel_scope.cancel()


async def set_aside_poison(endings: Endings, messages: Sequence[Message]) -> list[Message]:
    """What is left to take up again, once the messages that keep killing the process are out of the way."""
    for message in messages:
        if message.attempts >= ATTEMPTS:
            await endings.quarantine(message)
    return [message for message in messages if message.attempts < ATTEMPTS]


async def chat(settings: Settings) -> None:
    """A chat in this terminal with the demo agent. Nothing is kept on disk.

    Ctrl-C stops what runs, and leaves when nothing does. SIGTERM leaves. Asking twice to leave ends everything at once.
    """
    terminal, store = Terminal(), MemoryStore(utc_now)
    messages = store.messages(await store.acquire(CHAT_LEASE, "terminal", timedelta(days=36_500)))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(terminal.write)
        async with open_gateway(settings, messages, DemoAgent(), [terminal]) as gateway:
            await nursery.start(watch_signals, terminal, gateway, nursery.cancel_scope)
            await terminal.read(gateway)
        with trio.move_on_after(LAST_WORDS_S):  # nobody may be reading any more
            await terminal.flush()
        nursery.cancel_scope.cancel()


async def watch_signals(
    terminal: Terminal, gateway: Gateway, everything: trio.CancelScope, task_status: trio.TaskStatus[None]
) -> None:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async for number in signals:
            if number == signal.SIGINT and gateway.busy and not terminal.leaving:
                await terminal.say(gateway, "/stop")
            elif not terminal.leave():
                everything.cancel()
