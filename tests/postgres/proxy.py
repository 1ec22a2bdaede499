"""A wire to the server that can go dead: bytes are taken and not passed on, as behind a broken router."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import trio

from store.postgres.dsn import read_dsn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Proxy:
    """Made by `proxied`; ``dsn`` leads through it."""

    def __init__(self, dsn: str, said: dict[bytes, bytes]) -> None:
        self.server = read_dsn(dsn)
        self.dsn = dsn
        self.said = said
        self.flowing = trio.Event()
        self.flowing.set()
        self.opened = 0

    def go_dead(self) -> None:
        self.flowing = trio.Event()

    def come_back(self) -> None:
        self.flowing.set()

    async def carry(self, client: trio.SocketStream) -> None:
        self.opened += 1
        await self.flowing.wait()
        server = await self.connect()
        async with client, server, trio.open_nursery() as nursery:
            nursery.start_soon(self.pass_on, client, server, nursery.cancel_scope)
            nursery.start_soon(self.pass_on, server, client, nursery.cancel_scope)

    async def connect(self) -> trio.SocketStream:
        if self.server.host.startswith("/"):
            return await trio.open_unix_socket(f"{self.server.host}/.s.PGSQL.{self.server.port}")
        return await trio.open_tcp_stream(self.server.host, int(self.server.port))

    async def pass_on(self, source: trio.SocketStream, sink: trio.SocketStream, scope: trio.CancelScope) -> None:
        try:
            async for data in source:
                await self.flowing.wait()
                await sink.send_all(self.rewritten(data))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        scope.cancel()

    def rewritten(self, data: bytes | bytearray) -> bytes:
        for before, after in self.said.items():
            data = data.replace(before, after)
        return bytes(data)


@asynccontextmanager
async def proxied(dsn: str, said: dict[bytes, bytes] | None = None) -> AsyncIterator[Proxy]:
    """A proxy before that server, on a port of its own; what it hears may be passed on ``said`` in other words."""
    proxy = Proxy(dsn, said or {})
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listeners[0].socket.getsockname()[1]
        parts = urlsplit(dsn)
        person = parts.netloc.rpartition("@")[0]
        proxy.dsn = urlunsplit(parts._replace(netloc=f"{person}@127.0.0.1:{port}", query="sslmode=disable"))
        nursery.start_soon(trio.serve_listeners, proxy.carry, listeners)
        yield proxy
        nursery.cancel_scope.cancel()
