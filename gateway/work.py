"""A whole gateway at work on a store: what a chat in the terminal and `goclaw run` have in common.

    crew ──▶ API ──▶ the chat lease, jobs meanwhile ──▶ gateway ──▶ … ──▶ API ends ──▶ gateway drains

The API is up before the gateway has its turn, so that one that waits can be asked too.
"""

from __future__ import annotations

import importlib
import logging
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import trio

from cron.jobs import CronJobs
from gateway.access.doorman import Allowlist, read_allowlist
from gateway.access.limits import USUAL_LIMITS, Limits
from gateway.access.tokens import Doorkeeper
from gateway.agents.workspace import forget_tenant
from gateway.app import Parts, in_lanes, look_around, open_gateway, tidy_up
from gateway.channels.http import HttpChannel
from gateway.clock import utc_now
from gateway.commands import COMMANDS, FOR_ADMINS
from gateway.cron_log import CronLog
from gateway.cron_runs import LaneRunner
from gateway.events import Bus
from gateway.hiring import open_crew, with_limits, workspaces
from gateway.local import new_token
from gateway.metrics.figures import Figures
from gateway.metrics.measured import measured
from gateway.office import Office
from gateway.persist import persist
from gateway.stores import data_directory
from gateway.supervisor import plain
from gateway.tenure import tenure
from gateway.timetable import CronParts, Timetable, cron_options, new_id
from gateway.toolbox import Toolbox
from gateway.traces import Traces
from gateway.tracing import Tracer
from scheduler import open_scheduler
from store.protocols import CannotOpen, StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator

    from gateway.access.doorman import Doorman
    from gateway.agents.spec import Catalog
    from gateway.app import Gateway
    from gateway.channels.telegram import Telegram
    from gateway.crew import Crew
    from gateway.protocols import Channel
    from gateway.settings import Settings
    from gateway.stores import Opened
    from store.protocols import MessageStore, Store
    from store.records import Lease

logger = logging.getLogger("goclaw.work")

CHANNEL = "telegram"
HAND_OVER_S = 2.0


@dataclass(frozen=True, slots=True)
class Setup:
    """What a gateway is started with."""

    settings: Settings
    catalog: Catalog
    redact: Callable[[str], str] = str
    hide: Callable[[str], None] = lambda secret: None
    """Never print this from now on."""
    limits: Limits = USUAL_LIMITS


@dataclass(slots=True)
class Working:
    gateway: Gateway
    office: Office
    token: str
    """What this process itself asks the API with."""


def make_office(
    settings: Settings,
    store: Store,
    agents: Iterable[str],
    token: str,
    poke: Callable[[], None] = lambda: None,
    limits: Limits = USUAL_LIMITS,
) -> Office:
    """An office on a store, without a gateway. ``token`` may do everything."""
    given = {"local": token}
    if settings.gateway_token is not None:
        given["gateway"] = settings.gateway_token.get_secret_value()
    jobs = CronJobs(store, cron_options(settings), now=utc_now, new_id=new_id, persist=persist, poke=poke)
    return Office(
        settings,
        store,
        jobs,
        Doorkeeper(store, given),
        tuple(agents),
        HttpChannel(),
        limits=limits,
        forget_files=partial(forget_tenant, workspaces(settings)),
    )


@asynccontextmanager
async def working(
    setup: Setup,
    opened: Opened,
    channels: Iterable[Channel],
    waiting: Callable[[Lease], None],
    *,
    serving: Callable[[str], None] | None = None,
) -> AsyncIterator[Working]:
    """A gateway with its API for as long as the block, once this process may work on the messages.

    ``serving`` hears the address; without it the API is a convenience that takes any port and may fail.
    """
    settings, figures = setup.settings, Figures()
    store = measured(opened.store, figures)
    logs = data_directory(settings) / "logs"
    traces = Traces(logs, utc_now, redact=setup.redact)
    token = new_token()
    setup.hide(token)
    with CronLog(logs, utc_now, redact=setup.redact) as log:
        tell = figures.telling(log)
        cron = CronParts(store, opened.owner, utc_now, tell, with_limits(cron_options(settings), setup.catalog))
        office = make_office(settings, store, setup.catalog.agents, token, limits=setup.limits)
        office.figures = figures
        figures.lost_lines.update(traces=lambda: traces.lost, scheduler=lambda: log.dropped)
        async with (
            open_crew(settings, setup.catalog) as crew,
            jobs_meanwhile(setup, crew, cron, office) as meanwhile,
            open_api(office, token, serving) as api,
            tenure(store, opened.owner, opened.lease_span, partial(wait, waiting, meanwhile)) as lease,
            open_telegram(setup, office.pairings) as telegram,
            open_gateway(
                settings,
                Parts(
                    store.messages(lease),
                    store,
                    crew,
                    [*channels, office.channel, *([] if telegram is None else [telegram])],
                    cron,
                    traces,
                    redact=setup.redact,
                    figures=figures,
                ),
            ) as gateway,
            trio.open_nursery() as services,
        ):
            services.start_soon(meanwhile.stop)
            gateway.supervisor.start("look_around", partial(look_around, store, gateway))
            gateway.supervisor.start("tidy_up", partial(tidy_up, store))
            gateway.bus.watch(office.activity.heard)
            if gateway.timetable is not None:
                office.jobs = gateway.timetable.jobs
            office.gateway, office.scheduler = gateway, gateway.scheduler
            if telegram is not None:
                begin_telegram(telegram, gateway, store.messages(lease))
            try:
                yield Working(gateway, office, token)
                if telegram is not None:
                    telegram.leave()
                await api.stop()
            finally:
                office.gateway = office.scheduler = None
            services.cancel_scope.cancel()


@asynccontextmanager
async def open_telegram(setup: Setup, guests: Doorman) -> AsyncIterator[Telegram | None]:
    """The channel, if there is a token for it. Loaded only then: its library takes as long as all the rest."""
    settings = setup.settings.telegram
    if settings.token is None:
        yield None
        return
    module = await trio.to_thread.run_sync(importlib.import_module, "gateway.channels.telegram")
    token = settings.token.get_secret_value()
    setup.hide(token)
    setup.hide(token.partition(":")[2])
    doorman = Allowlist(read_allowlist(settings.allow or ""), guests)
    if not doorman.numbers:
        logger.info("GOCLAW_TELEGRAM_ALLOW names nobody; whoever writes to the bot is shown a code to be let in with")
    async with module.open_telegram(token, settings.api_url, doorman, module.Menu(COMMANDS, FOR_ADMINS)) as telegram:
        yield telegram


def begin_telegram(telegram: Telegram, gateway: Gateway, messages: MessageStore) -> None:
    supervisor = gateway.supervisor
    supervisor.start("telegram_signs", telegram.look_alive)
    poll = partial(
        telegram.poll,
        gateway,
        messages.cursor,
        troubled=partial(supervisor.troubled, CHANNEL),
        well=partial(supervisor.well, CHANNEL),
    )
    supervisor.start(CHANNEL, poll)


class Api:
    """The API while it is served, or while that is tried."""

    def __init__(self) -> None:
        self._scope = trio.CancelScope()
        self._stopping = False
        self.ended = trio.Event()

    @contextmanager
    def trying(self) -> Iterator[None]:
        with trio.CancelScope() as self._scope:
            if self._stopping:
                self._scope.cancel()
            yield

    def end(self) -> None:
        self._stopping = True
        self._scope.cancel()

    async def stop(self) -> None:
        """When this returns, nobody is connected any more."""
        self.end()
        await self.ended.wait()


@asynccontextmanager
async def open_api(office: Office, token: str, serving: Callable[[str], None] | None) -> AsyncIterator[Api]:
    api = Api()
    async with trio.open_nursery() as nursery:
        if serving is not None:
            serving(await nursery.start(serve_loudly, api, office, token))
        else:
            nursery.start_soon(serve_quietly, api, office, token)
        try:
            yield api
        finally:
            api.end()


async def serve_api(
    api: Api,
    office: Office,
    token: str,
    *,
    any_port: bool = False,
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
) -> None:
    with api.trying():
        # Loaded only where it is used, and beside the first words of a chat: it takes as long as all the rest.
        service = await trio.to_thread.run_sync(importlib.import_module, "gateway.http.service")
        directory = data_directory(office.settings)
        await service.run(office, directory, token, any_port=any_port, task_status=task_status)


async def serve_loudly(api: Api, office: Office, token: str, task_status: trio.TaskStatus[str]) -> None:
    """For a gateway: on its port or not at all."""
    try:
        await serve_api(api, office, token, task_status=task_status)
    finally:
        api.ended.set()


async def serve_quietly(api: Api, office: Office, token: str) -> None:
    """For a chat: on its port if that is free, else on another one; without it if need be."""
    try:
        await serve_api(api, office, token)
    except (CannotOpen, ExceptionGroup) as error:
        logger.info("the API's port is taken: %s", plain(error))
        try:
            await serve_api(api, office, token, any_port=True)
        except (StoreError, OSError, ExceptionGroup) as again:
            logger.warning("the API is not served: %s", plain(again))
    finally:
        api.ended.set()


def wait(waiting: Callable[[Lease], None], meanwhile: Meanwhile, holder: Lease) -> None:
    waiting(holder)
    meanwhile.begin()


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
async def jobs_meanwhile(setup: Setup, crew: Crew, cron: CronParts, office: Office) -> AsyncIterator[Meanwhile]:
    """What runs meanwhile is seen and stopped in the office like what runs later."""
    settings, bus = setup.settings, Bus(utc_now)
    bus.watch(office.activity.heard)
    async with trio.open_nursery() as services:
        async with open_scheduler(settings.lane.model_dump()) as scheduler:
            office.scheduler = scheduler
            tracer = Tracer(utc_now, None, bus, ended=office.figures.run_ended, redact=setup.redact)
            toolbox = Toolbox(crew, tracer, float(settings.session.run_timeout), setup.redact)
            runner = LaneRunner(scheduler, toolbox, cron.store)
            # A name of its own: when the wait is over, the gateway's cron begins before this one has ended.
            parts = replace(cron, worker=f"{cron.worker}:waiting")
            settled, lanes = (lambda: None), partial(in_lanes, scheduler)
            toolbox.timetable = Timetable(parts, runner, settled, lanes)
            yield Meanwhile(toolbox.timetable, services)
        services.cancel_scope.cancel()
