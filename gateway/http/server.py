"""The one function that serves the API: hypercorn's protocol on our own listeners, as a good child of a nursery.

    serve ──▶ listening ──cancelled──▶ streams are told to end ──▶ connections finish within the grace ──▶ cut

A peer that does not read is cut off instead of being waited for, and one address has only so many connections.
"""

from __future__ import annotations

import logging
import socket
from collections import Counter
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import trio
from hypercorn.config import Config
from hypercorn.events import RawData
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState
from hypercorn.utils import wrap_app

from store.protocols import CannotOpen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hypercorn.events import Event

    from gateway.streams import Streams

logger = logging.getLogger("goclaw.http")

GRACE_S = 1.0
SEND_S = 10.0
"""How long a peer may take to read what was sent to it."""
IDLE_S = 10.0
"""For the head of a request, and between two of them."""
MOST_CONNECTIONS = 2_000
MOST_PER_ADDRESS = 1_200
BACKLOG = 1_000


class Connections:
    """Who is connected."""

    def __init__(self) -> None:
        self._of: Counter[str] = Counter()
        self._sending: set[trio.CancelScope] = set()
        self._refused = 0

    def counts(self) -> tuple[int, int]:
        """How many are connected, and how many were refused because there were too many."""
        return self._of.total(), self._refused

    def take(self, address: str) -> bool:
        if self._of.total() >= MOST_CONNECTIONS or self._of[address] >= MOST_PER_ADDRESS:
            self._refused += 1
            return False
        self._of[address] += 1
        return True

    @contextmanager
    def sending(self) -> Iterator[trio.CancelScope]:
        """Around a send: it is not cut short by a cancellation, only by its own end or by `cut`."""
        with trio.CancelScope(deadline=trio.current_time() + SEND_S, shield=True) as scope:
            self._sending.add(scope)
            try:
                yield scope
            finally:
                self._sending.discard(scope)

    def cut(self) -> None:
        """Whoever has not read by now does not matter any more."""
        for scope in self._sending:
            scope.cancel()

    def leave(self, address: str) -> None:
        self._of[address] -= 1
        if not self._of[address]:
            del self._of[address]


class Connection(TCPServer):
    """One connection. What hypercorn would wait for without end has an end here."""

    connections: Connections

    async def protocol_send(self, event: Event) -> None:
        with self.connections.sending() as soon:
            await self._send(event)
        if soon.cancelled_caught:
            await trio.aclose_forcefully(self.stream)

    async def _send(self, event: Event) -> None:
        if not isinstance(event, RawData):
            await super().protocol_send(event)
            return
        async with self.send_lock:
            try:
                await self.stream.send_all(event.data)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                gone = True
            else:
                gone = False
        if gone:
            await super().protocol_send(RawData(b""))


async def serve(
    app: Any,
    streams: Streams,
    host: str,
    port: int,
    *,
    grace_s: float = GRACE_S,
    connections: Connections | None = None,
    task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until cancelled; starts with the port. Raises `CannotOpen` if the address cannot be listened on."""
    listeners = await listen(host, port)
    wrapped, config, context = wrap_app(app, 0, "asgi"), settings(), WorkerContext(None)
    connections = Connections() if connections is None else connections
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
                    await context.terminated.set()
                    watching.start_soon(cut_after_grace)
                watching.cancel_scope.cancel()

    async def cut_after_grace() -> None:
        await trio.sleep(grace_s)
        connections.cut()
        everything.cancel()

    async with trio.open_nursery() as nursery:
        await nursery.start(wind_down)
        task_status.started(listeners[0].socket.getsockname()[1])
        try:
            await trio.sleep_forever()
        finally:
            streams.close()
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
        await trio.aclose_forcefully(stream)
        return
    try:
        connection = Connection(app, config, context, ConnectionState({}), stream)  # type: ignore[arg-type]  # no TLS
        connection.connections = connections
        await connection
    except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
        pass
    except Exception:
        logger.warning("a connection ended in a surprise", exc_info=True)
    finally:
        connections.leave(address)


async def listen(host: str, port: int) -> list[trio.SocketListener]:
    try:
        return list(await trio.open_tcp_listeners(port, host=host, backlog=BACKLOG))
    except (OSError, socket.gaierror, UnicodeError) as error:
        raise CannotOpen(
            f"cannot listen on {host} port {port}: {error}. Is another gateway running? GOCLAW_PORT sets another port."
        ) from None


def settings() -> Config:
    config = Config()
    config.keep_alive_timeout = IDLE_S
    config.include_server_header = False
    config.errorlog = None
    config.accesslog = None
    config.h11_max_incomplete_size = 65_536  # holds the longest key of a session, written out byte by byte
    config.websocket_max_message_size = 512 * 1024
    return config
