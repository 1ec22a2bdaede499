"""The composition root: the only place that knows which parts make a gateway, and in which order they start and end.

Start: the store is opened and the chat lease held, outbound and endings begin to listen, the scheduler opens its lanes,
what an earlier process left open is taken up again, cron begins to fire; then the channels may hand messages in.
End: no message is taken in any more; cron fires nothing more, its runs and all others get their grace; how they ended
is written; what is in the outbox is sent. What never started stays accepted in the store.
"""

from __future__ import annotations

import signal
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

import trio

from gateway.agents.demo import DemoAgent
from gateway.channels.terminal import WELCOME, Terminal
from gateway.clock import utc_now
from gateway.collector import paced_collector
from gateway.commands import counted
from gateway.control import Control
from gateway.cron_log import CronLog
from gateway.cron_runs import LaneRunner
from gateway.endings import Endings
from gateway.in_hand import InHand
from gateway.inbound import Inbound
from gateway.outbound import Outbound
from gateway.persist import persist
from gateway.quiet import Quiet
from gateway.stores import data_directory, open_store
from gateway.tenure import tenure
from gateway.timetable import CronParts, Timetable, cron_options
from gateway.turn import Turns
from scheduler import Closed, Scheduler, open_scheduler
from store.protocols import INBOX, OUTBOX, POLL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from gateway.protocols import Agent, Channel
    from gateway.settings import Settings
    from gateway.stores import Opened
    from store.protocols import MessageStore, Store
    from store.records import Cursor, Incoming, Lease, Message

ATTEMPTS = 3
LAST_WORDS_S = 5.0
HAND_OVER_S = 2.0
TIDY_EVERY_S = 3600.0
MAIN_AGENT = "main"


class Gateway:
    """A running gateway, as the channels see it."""

    def __init__(
        self,
        settings: Settings,
        scheduler: Scheduler,
        inbound: Inbound,
        outbound: Outbound,
        timetable: Timetable | None,
        quiet: Quiet,
        taken_up: int,
    ) -> None:
        self.scheduler = scheduler
        self.timetable = timetable
        """Jobs and what fires them; None where there is no cron."""
        self.taken_up = taken_up
        """How many messages an earlier process had left open."""
        self._settings = settings
        self._inbound = inbound
        self._outbound = outbound
        self._quiet = quiet

    async def receive(self, batch: Sequence[Incoming], cursor: Cursor | None = None) -> None:
        """Take messages in; when this returns they are kept, and so is how far the channel was read."""
        await self._inbound.receive(batch, cursor)

    async def look(self) -> None:
        """Take up what was handed in elsewhere."""
        await self._inbound.look()

    def deliver(self) -> None:
        """Send what others have put into the outbox."""
        self._outbound.poke()

    @property
    def busy(self) -> bool:
        """A message is being taken in, waits or runs. What cron does keeps nobody."""
        return self._inbound.receiving or not self._inbound.open.now

    async def drained(self) -> None:
        """Wait until everything taken in so far has ended and was said."""
        while not (self._inbound.open.now and self._quiet.now):
            await self._inbound.open.wait()
            await self._quiet.wait()

    async def close(self) -> Closed:
        """Let runs finish within the grace, write how everything ended, send what is to be sent."""
        deadline = trio.current_time() + self._settings.shutdown.grace
        if self.timetable is not None:
            await self.timetable.stop(self._settings.shutdown.grace)
        closed = await self.scheduler.close(max(deadline - trio.current_time(), 0.0))
        with trio.move_on_after(LAST_WORDS_S):
            await self._quiet.wait()
        return closed


@asynccontextmanager
async def open_gateway(
    settings: Settings,
    store: MessageStore,
    agent: Agent,
    channels: Iterable[Channel],
    cron: CronParts | None = None,
) -> AsyncIterator[Gateway]:
    """A gateway that lives as long as the block; without the parts for it there is no cron in it."""
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
            timetable = None
            if cron is not None:
                runner = LaneRunner(scheduler, {MAIN_AGENT: agent})
                timetable = Timetable(cron, cron_options(settings), runner, outbound.poke, partial(in_lanes, scheduler))
            control = Control(services, store, scheduler, outbound, quiet, in_hand, timetable)
            inbound = Inbound(settings, store, scheduler, turns, control, endings, in_hand)
            left = await set_aside_poison(endings, await persist(store.resume))
            standings = await persist(partial(store.standings, {message.session for message in left}))
            inbound.resume(left, standings)
            outbound.poke()
            if timetable is not None:
                services.start_soon(timetable.run)
            gateway = Gateway(settings, scheduler, inbound, outbound, timetable, quiet, len(left))
            try:
                yield gateway
                await gateway.close()
            finally:
                turns.give_up()
        services.cancel_scope.cancel()


def in_lanes(scheduler: Scheduler) -> dict[str, object]:
    """How busy each lane is, for the record of the machine."""
    lanes = scheduler.statistics().lanes
    return {lane.name: {"active": lane.active, "limit": lane.limit, "waiting": lane.waiting} for lane in lanes}


async def set_aside_poison(endings: Endings, messages: Sequence[Message]) -> list[Message]:
    """What is left to take up again, once the messages that keep killing the process are out of the way."""
    for message in messages:
        if message.attempts >= ATTEMPTS:
            await endings.quarantine(message)
    return [message for message in messages if message.attempts < ATTEMPTS]


async def chat(settings: Settings) -> None:
    """A chat in this terminal with the demo agent. What was said is kept; what was not answered is answered next time.

    Ctrl-C stops what runs, and leaves when nothing does. SIGTERM leaves. Asking twice to leave ends everything at once.
    """
    async with open_store(settings) as opened:
        with paced_collector():
            async with trio.open_nursery() as nursery:
                terminal = Terminal()
                nursery.start_soon(terminal.write)
                terminal.tell(WELCOME)
                await work(settings, opened, terminal, nursery)
                with trio.move_on_after(LAST_WORDS_S):  # nobody may be reading any more
                    await terminal.flush()
                nursery.cancel_scope.cancel()


async def work(settings: Settings, opened: Opened, terminal: Terminal, nursery: trio.Nursery) -> None:
    """Serve the terminal for as long as this process may work on the messages."""
    store = opened.store
    with CronLog(data_directory(settings) / "logs", utc_now) as log:
        cron = CronParts(store, opened.owner, utc_now, log)
        agent = DemoAgent()
        async with (
            jobs_meanwhile(settings, agent, cron) as meanwhile,
            tenure(store, opened.owner, opened.lease_span, partial(wait, terminal, meanwhile)) as lease,
            open_gateway(settings, store.messages(lease), agent, [terminal], cron) as gateway,
            trio.open_nursery() as services,
        ):
            if gateway.taken_up:
                terminal.tell(f"Going on with {counted(gateway.taken_up, 'message')} from before.")
            services.start_soon(meanwhile.stop)
            services.start_soon(look_around, store, gateway)
            services.start_soon(tidy_up, store)
            await nursery.start(watch_signals, terminal, gateway, nursery.cancel_scope)
            await terminal.read(gateway)
            services.cancel_scope.cancel()


class Meanwhile:
    """Jobs are run also by a gateway that waits for the chat lease; whoever has that sends what they say."""

    def __init__(self, timetable: Timetable, services: trio.Nursery) -> None:
        self._timetable = timetable
        self._services = services
        self._begun = False

    def begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._services.start_soon(self._timetable.run)

    async def stop(self) -> None:
        """The wait is over: what runs may finish soon, or begins anew in the gateway."""
        if self._begun:
            await self._timetable.stop(HAND_OVER_S)


@asynccontextmanager
async def jobs_meanwhile(settings: Settings, agent: Agent, cron: CronParts) -> AsyncIterator[Meanwhile]:
    async with trio.open_nursery() as services:
        async with open_scheduler(settings.lane.model_dump()) as scheduler:
            runner = LaneRunner(scheduler, {MAIN_AGENT: agent})
            # A name of its own: when the wait is over, the gateway's cron begins before this one has ended.
            parts = replace(cron, worker=f"{cron.worker}:waiting")
            settled, lanes = (lambda: None), partial(in_lanes, scheduler)
            yield Meanwhile(Timetable(parts, cron_options(settings), runner, settled, lanes), services)
        services.cancel_scope.cancel()


def wait(terminal: Terminal, meanwhile: Meanwhile, holder: Lease) -> None:
    terminal.tell(waiting_text(holder))
    meanwhile.begin()


def waiting_text(holder: Lease) -> str:
    return f"Another gateway ({holder.owner}) works on this store; waiting until it has ended. Ctrl-C leaves."


async def look_around(store: Store, gateway: Gateway) -> None:
    """Take up what others hand in, whenever the store tells that there may be something."""
    async with store.listen() as heard:
        async for word in heard:
            if word in (POLL, OUTBOX):
                gateway.deliver()
            if word in (POLL, INBOX):
                await gateway.look()


async def tidy_up(store: Store) -> None:
    """Let the store forget what it need not keep any longer."""
    while True:
        while any(await persist(store.tidy)):
            await trio.lowlevel.checkpoint()
        await trio.sleep(TIDY_EVERY_S)


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
