"""The API as a service of the gateway: it serves, hears of news, watches the tokens of streams, and can be found."""

from __future__ import annotations

import logging
import os
from functools import partial
from ipaddress import ip_address
from pathlib import Path

import trio

from gateway.addresses import is_any, is_ip, is_loopback
from gateway.http.app import make_app
from gateway.http.connection import Connections
from gateway.http.server import serve
from gateway.local import Local, announced
from gateway.office import Office
from gateway.supervisor import keep_running, plain
from store.protocols import CannotOpen

logger = logging.getLogger("goclaw.http")


async def run(
    office: Office,
    directory: Path,
    token: str,
    *,
    any_port: bool = False,
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Until cancelled; starts with the address. ``token`` is the one that programs of the same user find."""
    host, port = office.settings.host, 0 if any_port else office.settings.port
    if not is_loopback(host) and office.settings.gateway_token is None:
        raise CannotOpen(f'GOCLAW_HOST="{host}" can be reached from elsewhere: set GOCLAW_GATEWAY_TOKEN too')
    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep_running, office.news.run, failed)
        nursery.start_soon(keep_running, office.streams.watch, failed)
        nursery.start_soon(keep_running, office.followers.watch, failed)
        nursery.start_soon(keep_running, office.pulse.run, failed)
        nursery.start_soon(office.lag.run)
        connections = Connections(office.limits)
        office.connected = connections.counts
        app = make_app(office, host)
        bound = await nursery.start(
            partial(serve, app, office.streams, host, port, limits=office.limits, connections=connections)
        )
        url = f"http://{reachable(host)}:{bound}"
        with announced(directory, Local(url, token, os.getpid())):
            office.serving = True
            task_status.started(url)
            try:
                await trio.sleep_forever()
            finally:
                office.serving = False


def failed(error: Exception, again_in_s: float) -> None:
    logger.error("a part of the API failed: %s; going on in %g s", plain(error), again_in_s)


def reachable(host: str) -> str:
    """The address under which this machine itself reaches what listens there."""
    if is_any(host):
        return "127.0.0.1" if ip_address(host).version == 4 else "[::1]"
    return f"[{host}]" if is_ip(host) and ip_address(host).version == 6 else host
