"""One connection of the API: hypercorn's HTTP/1.1 with an end to everything that it would wait for without one.

It leans on names inside hypercorn; `tests/http/test_stream_wire.py` fails clearly when a new one changes them. HTTP/2
is not spoken: an upgrade to it is passed over, as it may be, and whoever begins with it is told so in HTTP/1.1.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import trio
from hypercorn.events import Closed, RawData
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.trio.task_group import TaskGroup, _handle
from hypercorn.trio.tcp_server import MAX_RECV, TCPServer
from hypercorn.typing import ConnectionState
from hypercorn.utils import parse_socket_addr

if TYPE_CHECKING:
    from collections.abc import Iterator

    import h11
    from hypercorn.config import Config
    from hypercorn.events import Event
    from hypercorn.trio.worker_context import WorkerContext

    from gateway.access.limits import Limits

LINGER_S = 0.5
"""For a peer to take the answer, after which nobody listens to what else it sends."""
SLICE = 65_536
"""A peer has the whole time for each piece of so many bytes: one that reads slowly is not one that does not read."""


class Connections:
    """Who is connected."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._of: Counter[str] = Counter()
        self._sending: set[trio.CancelScope] = set()
        self._over = False
        self._refused = 0
        self.turned_away = 0
        """How many are being told so just now."""

    def __len__(self) -> int:
        return self._of.total()

    def counts(self) -> tuple[int, int]:
        """How many are connected, and how many were refused because there were too many."""
        return len(self), self._refused

    def take(self, address: str) -> bool:
        if len(self) >= self.limits.connections or self._of[address] >= self.limits.per_address:
            self._refused += 1
            return False
        self._of[address] += 1
        return True

    def leave(self, address: str) -> None:
        self._of[address] -= 1
        if not self._of[address]:
            del self._of[address]

    @contextmanager
    def sending(self) -> Iterator[trio.CancelScope]:
        """Around a send: it is not cut short by a cancellation, only by its own end or by `cut`."""
        with trio.CancelScope(deadline=trio.current_time() + self.limits.send_s, shield=True) as scope:
            self._sending.add(scope)
            if self._over:
                scope.cancel()
            try:
                yield scope
            finally:
                self._sending.discard(scope)

    def cut(self) -> None:
        """Whoever has not read by now does not matter any more."""
        self._over = True
        for scope in self._sending:
            scope.cancel()


class Tasks(TaskGroup):
    """An app that has answered reads no more of the request; hypercorn would wait for it to do so."""

    async def spawn_app(self, app: Any, config: Config, scope: Any, send: Any) -> Any:
        put, get = trio.open_memory_channel[Any](config.max_app_queue_size)
        over = False

        async def hand(event: Any) -> None:
            nonlocal over
            if event["type"] != "http.disconnect":
                if not over:
                    await put.send(event)
                return
            over = True
            while True:  # this must be heard: what is left of the body matters to nobody any more
                try:
                    put.send_nowait(event)
                except trio.WouldBlock:
                    get.receive_nowait()
                else:
                    return

        assert self._nursery is not None  # noqa: S101 - it is open for as long as there is a connection
        threads = trio.to_thread.run_sync, trio.from_thread.run
        self._nursery.start_soon(_handle, app, config, scope, get.receive, send, *threads)
        return hand


class Http1(H11Protocol):
    async def _check_protocol(self, event: h11.Request) -> None:
        """Where hypercorn would go over to HTTP/2."""

    @property
    def hears_more(self) -> bool:
        """The peer is in the middle of a body that nobody wants."""
        return repr(self.connection.their_state) == "SEND_BODY"


class Connection(TCPServer):
    protocol: Http1  # type: ignore[assignment]  # nothing wrapped around it
    stream: trio.SocketStream  # type: ignore[assignment]  # no TLS

    def __init__(
        self, app: Any, config: Config, context: WorkerContext, stream: trio.SocketStream, connections: Connections
    ) -> None:
        super().__init__(app, config, context, ConnectionState({}), stream)  # type: ignore[arg-type]  # no TLS
        self.connections = connections
        self._over = False
        self._gone = trio.Event()

    async def run(self) -> None:
        try:
            socket = self.stream.socket
            client, server = (parse_socket_addr(socket.family, it()) for it in (socket.getpeername, socket.getsockname))
            async with Tasks() as tasks:
                self._task_group = tasks
                self.protocol = Http1(
                    self.app,
                    self.config,
                    self.context,
                    tasks,
                    ConnectionState({}),
                    False,
                    client,
                    server,
                    self.protocol_send,
                )
                await self.idle_task.restart(tasks, self._idle_timeout)
                await self._read_data()
                await self.idle_task.stop()  # else a peer that has left would count until its idle time is over
        finally:
            await self._close()

    async def _read_data(self) -> None:
        while True:
            try:
                data = await self.stream.receive_some(MAX_RECV)
            except (trio.ClosedResourceError, trio.BrokenResourceError):
                break
            if not self._over:
                await self.protocol.handle(RawData(bytes(data)))
            if not data:
                break
        self._gone.set()
        await self.protocol.handle(Closed())

    async def protocol_send(self, event: Event) -> None:
        if isinstance(event, RawData):
            if not await self._sent(event.data):
                await trio.aclose_forcefully(self.stream)
                await self.protocol.handle(Closed())
        elif isinstance(event, Closed) and self.protocol.hears_more and not self._over:
            self._over = True
            self._task_group.spawn(self._linger)
        else:
            with self.connections.sending():
                await super().protocol_send(event)

    async def _linger(self) -> None:
        """Closed with a body still coming in, the answer would be torn up on its way."""
        with trio.move_on_after(LINGER_S):
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError):
                await self.stream.send_eof()
            await self._gone.wait()
        await self._close()

    async def _sent(self, data: bytes) -> bool:
        """Whether the peer took all of it."""
        async with self.send_lock:
            for place in range(0, len(data), SLICE):
                with self.connections.sending() as soon:
                    try:
                        await self.stream.send_all(data[place : place + SLICE])
                    except (trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError):
                        return False  # gone, or being closed by another task
                if soon.cancelled_caught:
                    return False
        return True
