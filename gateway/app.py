"""The composition root: the only place that knows which parts make a gateway, and in which order they start and end.

Start: the store is opened and the chat lease held, outbound and endings begin to listen, the scheduler opens its lanes,
what an earlier process left open is taken up again, cron begins to fire; then the channels may hand messages in.
End: no message is taken in any more; cron fires nothing more, its runs and all others get their grace; how they ended
is written; what is in the outbox is sent. What never started stays accepted in the store. Asked twice, it ends at once.

Every service is looked after (`gateway.supervisor`): one that fails rests and begins anew, and the others go on.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

import trio

from gateway.chat_desk import ChatDesk
from gateway.clock import utc_now
from gateway.control import Control
from gateway.cron_runs import LaneRunner
from gateway.endings import Endings
from gateway.events import Bus
from gateway.in_hand import InHand
from gateway.inbound import Inbound
from gateway.metrics.figures import Figures
from gateway.outbound import Outbound, OutboundStatistics
from gateway.persist import persist
from gateway.quiet import Quiet
from gateway.supervisor import Supervisor
from gateway.timetable import CronParts, Timetable
from gateway.toolbox import Toolbox
from gateway.tracing import Tracer
from gateway.turn import Turns
from gateway.waiting import Waiting
from scheduler import Closed, Scheduler, open_scheduler
from store.protocols import INBOX, OUTBOX, POLL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence
    from datetime import datetime

    from gateway.crew import Crew
    from gateway.protocols import Channel
    from gateway.settings import Settings
    from gateway.supervisor import Health
    from gateway.traces import Traces
    from store.protocols import MessageStore, SessionStore, Store
    from store.records import Cursor, Incoming, Message, Receipt

ATTEMPTS = 3
LAST_WORDS_S = 5.0
TIDY_EVERY_S = 3600.0


@dataclass(frozen=True, slots=True)
class Parts:
    """What a gateway is made of besides its settings: who keeps things, who answers, who reaches people."""

    messages: MessageStore
    sessions: SessionStore
    crew: Crew
    channels: Iterable[Channel]
    cron: CronParts | None = None
    """Without them there is no cron in it."""
    traces: Traces | None = None
    """Where traces are kept; without it they are not."""
    now: Callable[[], datetime] = utc_now
    redact: Callable[[str], str] = str
    """Takes secrets out of what is told about errors."""
    figures: Figures = field(default_factory=Figures)
    """Where what happens is counted."""


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
        supervisor: Supervisor,
        bus: Bus,
        taken_up: int,
        figures: Figures,
    ) -> None:
        self.scheduler = scheduler
        self.supervisor = supervisor
        self.bus = bus
        """What happens here, for whoever wants to hear of it."""
        self.timetable = timetable
        """Jobs and what fires them; None where there is no cron."""
        self.taken_up = taken_up
        """How many messages an earlier process had left open."""
        self._settings = settings
        self._inbound = inbound
        self._outbound = outbound
        self._quiet = quiet
        self._figures = figures

    async def receive(self, batch: Sequence[Incoming], cursor: Cursor | None = None) -> None:
        """Take messages in; when this returns they are kept, and so is how far the channel was read."""
        await self.take_in(batch, cursor)

    async def take_in(self, batch: Sequence[Incoming], cursor: Cursor | None = None) -> tuple[Receipt, ...]:
        """The same for somebody who wants to know what became of each."""
        receipts = await self._inbound.receive(batch, cursor)
        self._figures.messages_came(batch, receipts)
        return receipts

    async def look(self) -> None:
        """Take up what was handed in elsewhere."""
        await self._inbound.look()

    def deliver(self) -> None:
        """Send what others have put into the outbox."""
        self._outbound.poke()

    def health(self) -> tuple[Health, ...]:
        """How each service is."""
        return self.supervisor.health()

    @property
    def in_hand(self) -> int:
        """How many messages wait, run, or are just being written down as ended."""
        return self._inbound.in_hand

    def outbox(self) -> OutboundStatistics:
        """What is known to wait for its channel."""
        return self._outbound.statistics()

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
async def open_gateway(settings: Settings, parts: Parts) -> AsyncIterator[Gateway]:
    """A gateway that lives as long as the block."""
    store, quiet, process = parts.messages, Quiet(), uuid4().hex
    bus = Bus(parts.now)
    tracer = Tracer(parts.now, parts.traces, bus, parts.figures.run_ended, redact=parts.redact)
    bus.watch(parts.figures.heard)
    outbound = Outbound(
        store,
        parts.channels,
        quiet,
        turn_of=tracer.turn_of,
        delivered=tracer.delivered,
        failed=tracer.failed,
        resting=tracer.resting,
    )
    endings = Endings(process, store, outbound, quiet, parts.redact)
    toolbox = Toolbox(parts.crew, tracer, float(settings.session.run_timeout), parts.redact)
    turns = Turns(process, store, parts.sessions, toolbox, outbound, endings)
    async with trio.open_nursery() as services:
        supervisor = Supervisor(services, parts.now, changed=partial(tell_health, bus), redact=parts.redact)
        if parts.traces is not None:
            supervisor.start("traces", parts.traces.run)
        supervisor.start("outbound", outbound.run)
        supervisor.start("endings", endings.run)
        async with open_scheduler(settings.lane.model_dump()) as scheduler:
            in_hand, waiting = InHand(), Waiting(scheduler, outbound)
            timetable = None
            if parts.cron is not None:
                runner = LaneRunner(scheduler, toolbox, parts.sessions)
                lanes = partial(in_lanes, scheduler)
                timetable = Timetable(parts.cron, runner, outbound.poke, lanes)
                toolbox.timetable = timetable
            chat_desk = ChatDesk(settings, parts.sessions, None if timetable is None else timetable.jobs.zone)
            control = Control(services, store, scheduler, outbound, quiet, in_hand, chat_desk, timetable)
            inbound = Inbound(settings, store, scheduler, turns, control, endings, outbound, in_hand, waiting)
            left = await set_aside_poison(endings, await persist(store.resume))
            standings = await persist(partial(store.standings, {message.session for message in left}))
            inbound.resume(left, standings)
            outbound.poke()
            supervisor.start("waiting", waiting.run)
            if timetable is not None:
                supervisor.start("cron", timetable.service.run, told=timetable.failed, left=timetable.left)
            gateway = Gateway(
                settings, scheduler, inbound, outbound, timetable, quiet, supervisor, bus, len(left), parts.figures
            )
            try:
                yield gateway
                await gateway.close()
            finally:
                turns.give_up()
        services.cancel_scope.cancel()


def tell_health(bus: Bus, health: Health) -> None:
    about = {"service": health.name, "state": health.state, "restarts": health.restarts, "error": health.error}
    bus.publish("service.changed", data=about)


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
