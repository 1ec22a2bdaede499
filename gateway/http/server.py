"""The one function that serves the API: hypercorn's protocol on our own listeners, as a good child of a nursery.

    serve ──▶ listening ──cancelled──▶ streams are told to end ──▶ connections finish within the grace ──▶ cut

A peer that does not read is cut off instead of being waited for, and one address has only so many connections.
"""

from __future__ import annotations

import logging
import socket
from functools import partial
from typing import TYPE_CHECKING, Any

import trio
from hypercorn.config import Config
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.utils import wrap_app

from gateway.access.limits import USUAL_LIMITS, Limits
from gateway.http.connection import Connection, Connections
from store.protocols import CannotOpen

if TYPE_CHECKING:
    from gateway.streams import Streams

logger = logging.getLogger("goclaw.http")

BACKLOG = 1_000
AWAY_S = 1.0
MOST_TURNED_AWAY = 100
"""So many at once are told why; the others are only closed."""
FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nRetry-After: 5\r\n"
    b"Connection: close\r\nContent-Length: %d\r\n\r\n%s"
)
WHY = (
    b'{"type":"urn:goclaw:too-many-connections","title":"Service Unavailable","status":503,"detail":"there are too many'
    b' connections from this address, or in all","code":"too-many-connections","next":"Close some, and try again."}'
)


async def serve(
    app: Any,
    streams: Streams,
    host: str,
    port: int,
    *,
    limits: Limits = USUAL_LIMITS,
    connections: Connections | None = None,
    task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until cancelled; starts with the port. Raises `CannotOpen` if the address cannot be listened on."""
    listeners = await listen(host, port)
    wrapped, config, context = wrap_app(app, 0, "asgi"), settings(limits), WorkerContext(None)
    connections = Connections(limits) if connections is None else connections
    stop, everything = trio.Event(), trio.CancelScope(shield=True)

    async def wind_down(task_status: trio.TaskStatus[None]) -> None:
        """Out of reach of whoever cancels: that only begins the end."""
        with everything:
            async with trio.open_nursery() as watching:
                async with trio.open_nursery() as handlers:
                    handler = partial(connected, wrapped, config, context, connections)
                    accept = partial(trio.serve_listeners, handler, listeners, handler_nursery=handlers)
                    async with trio.open_nursery() as accepting:
                        await accepting.start(accept)
                        task_status.started()
                        await stop.wait()
                        accepting.cancel_scope.cancel()
                    await context.terminated.set()  # before streams end: no connection is kept for another request
                    streams.close()
                    watching.start_soon(cut_after_grace)
                watching.cancel_scope.cancel()

    async def cut_after_grace() -> None:
        await trio.sleep(limits.grace_s)
        connections.cut()
        everything.cancel()

    async with trio.open_nursery() as nursery:
        await nursery.start(wind_down)
        task_status.started(listeners[0].socket.getsockname()[1])
        try:
            await trio.sleep_forever()
        finally:
            stop.set()


async def connected(
    app: Any, config: Config, context: WorkerContext, connections: Connections, stream: trio.SocketStream
) -> None:
    try:
        address = str(stream.socket.getpeername()[0])
    except OSError:
        await trio.aclose_forcefully(stream)
        return
    if not connections.take(address):
        await turn_away(connections, stream)
        return
    try:
        await Connection(app, config, context, stream, connections)
    except* (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
        pass
    except* Exception:
        logger.warning("a connection ended in a surprise", exc_info=True)
    finally:
        connections.leave(address)


async def turn_away(connections: Connections, stream: trio.SocketStream) -> None:
    """Say why, and let the peer read it: what is closed with something unread in it is torn up on its way."""
    if connections.turned_away < MOST_TURNED_AWAY:
        connections.turned_away += 1
        with trio.move_on_after(AWAY_S):
            try:
                await stream.send_all(FULL % (len(WHY), WHY))
                await stream.send_eof()
                while await stream.receive_some():
                    continue
            except trio.BrokenResourceError:
                pass
        connections.turned_away -= 1
    await trio.aclose_forcefully(stream)


async def listen(host: str, port: int) -> list[trio.SocketListener]:
    try:
        return list(await trio.open_tcp_listeners(port, host=host, backlog=BACKLOG))
    except (OSError, socket.gaierror, UnicodeError) as error:
        raise CannotOpen(
            f"cannot listen on {host} port {port}: {error}. Is another gateway running? GOCLAW_PORT sets another port."
        ) from None


def settings(limits: Limits) -> Config:
    config = Config()
    config.keep_alive_timeout = limits.idle_s
    config.include_server_header = False
    config.errorlog = None
    config.accesslog = None
    config.h11_max_incomplete_size = 65_536  # holds the longest key of a session, written out byte by byte
    config.websocket_max_message_size = 512 * 1024
    return config
