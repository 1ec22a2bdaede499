"""A chat in this terminal: a gateway whose one channel is the terminal.

Ctrl-C stops what runs, and leaves when nothing does. SIGTERM leaves. Asking twice to leave ends everything at once.
While another gateway has the chat, nothing was taken in yet: whoever leaves then leaves at once.
"""

from __future__ import annotations

import signal
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import trio

from gateway.app import LAST_WORDS_S, Gateway, Parts, in_lanes, look_around, open_gateway, tidy_up
from gateway.channels.terminal import WELCOME, Terminal
from gateway.clock import utc_now
from gateway.collector import paced_collector
from gateway.commands import COMMANDS
from gateway.cron_log import CronLog
from gateway.cron_runs import LaneRunner
from gateway.hiring import open_crew, with_limits
from gateway.plain import counted
from gateway.stores import data_directory, open_store
from gateway.tenure import tenure
from gateway.timetable import CronParts, Timetable, cron_options
from gateway.toolbox import Toolbox
from gateway.traces import Traces
from gateway.tracing import Tracer
from scheduler import open_scheduler

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from gateway.agents.spec import Catalog
    from gateway.crew import Crew
    from gateway.settings import Settings
    from gateway.stores import Opened
    from store.records import Lease

HAND_OVER_S = 2.0


@dataclass(frozen=True, slots=True)
class Setup:
    """What a chat is started with."""

    settings: Settings
    catalog: Catalog
    redact: Callable[[str], str] = str


async def chat(setup: Setup) -> None:
    """What was said is kept; what was not answered is answered next time."""
    async with open_store(setup.settings) as opened:
        with paced_collector():
            async with trio.open_nursery() as nursery:
                terminal = Terminal(history=data_directory(setup.settings) / "chat_history", commands=COMMANDS)
                door = Door(terminal, nursery.cancel_scope)
                await nursery.start(watch_signals, door)
                nursery.start_soon(terminal.write)
                terminal.tell(WELCOME)
                with door.coming_in:
                    await work(setup, opened, terminal, door)
                with trio.move_on_after(LAST_WORDS_S):  # nobody may be reading any more
                    await terminal.flush()
                nursery.cancel_scope.cancel()


async def work(setup: Setup, opened: Opened, terminal: Terminal, door: Door) -> None:
    """Serve the terminal for as long as this process may work on the messages."""
    settings, store = setup.settings, opened.store
    logs = data_directory(settings) / "logs"
    traces = Traces(logs, utc_now, redact=setup.redact)
    with CronLog(logs, utc_now, redact=setup.redact) as log:
        cron = CronParts(store, opened.owner, utc_now, log, with_limits(cron_options(settings), setup.catalog))
        async with (
            open_crew(settings, setup.catalog) as crew,
            jobs_meanwhile(settings, crew, cron) as meanwhile,
            left_early(door),
            tenure(store, opened.owner, opened.lease_span, partial(wait, terminal, meanwhile)) as lease,
            open_gateway(
                settings,
                Parts(store.messages(lease), store, crew, [terminal], cron, traces, redact=setup.redact),
            ) as gateway,
            trio.open_nursery() as services,
        ):
            if gateway.taken_up:
                terminal.tell(f"Going on with {counted(gateway.taken_up, 'message')} from before.")
            services.start_soon(meanwhile.stop)
            gateway.supervisor.start("look_around", partial(look_around, store, gateway))
            gateway.supervisor.start("tidy_up", partial(tidy_up, store))
            door.gateway = gateway
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
async def jobs_meanwhile(settings: Settings, crew: Crew, cron: CronParts) -> AsyncIterator[Meanwhile]:
    async with trio.open_nursery() as services:
        async with open_scheduler(settings.lane.model_dump()) as scheduler:
            toolbox = Toolbox(crew, Tracer(utc_now), float(settings.session.run_timeout))
            runner = LaneRunner(scheduler, toolbox, cron.store)
            # A name of its own: when the wait is over, the gateway's cron begins before this one has ended.
            parts = replace(cron, worker=f"{cron.worker}:waiting")
            settled, lanes = (lambda: None), partial(in_lanes, scheduler)
            toolbox.timetable = Timetable(parts, runner, settled, lanes)
            yield Meanwhile(toolbox.timetable, services)
        services.cancel_scope.cancel()


def wait(terminal: Terminal, meanwhile: Meanwhile, holder: Lease) -> None:
    terminal.tell(waiting_text(holder))
    meanwhile.begin()


def waiting_text(holder: Lease) -> str:
    return f"Another gateway ({holder.owner}) works on this store; waiting until it has ended. Ctrl-C leaves."


class Door:
    """How a chat is left: at once as long as there is no gateway, then well, and at once when asked twice."""

    def __init__(self, terminal: Terminal, everything: trio.CancelScope) -> None:
        self.terminal = terminal
        self.gateway: Gateway | None = None
        self.coming_in = trio.CancelScope()
        self._everything = everything

    async def interrupt(self) -> None:
        if self.gateway is not None and self.gateway.busy and not self.terminal.leaving:
            await self.terminal.say(self.gateway, "/stop")
        else:
            self.leave()

    def leave(self) -> None:
        first = self.terminal.leave()
        if not first:
            self._everything.cancel()
        elif self.gateway is None:
            self.coming_in.cancel()


@asynccontextmanager
async def left_early(door: Door) -> AsyncIterator[None]:
    """Whoever closes the input before anything could be taken in, and has typed nothing, has left."""

    async def watch() -> None:
        await door.terminal.closed_unsaid()
        if door.gateway is None:
            door.leave()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        yield
        nursery.cancel_scope.cancel()


async def watch_signals(door: Door, task_status: trio.TaskStatus[None]) -> None:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async for number in signals:
            if number == signal.SIGINT:
                await door.interrupt()
            else:
                door.leave()
