"""HTTP by hand: what no client would send, byte by byte over a real socket."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import h11
import trio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.http.world import Served


@dataclass(frozen=True)
class Answered:
    status: int
    headers: dict[str, str]
    body: bytes
    closed: bool
    """The server has ended the connection."""

    @property
    def problem(self) -> dict[str, Any]:
        assert self.headers["content-type"] == "application/problem+json", self.body
        found: dict[str, Any] = json.loads(self.body)
        assert found["status"] == self.status
        return found


class Wire:
    """One connection."""

    def __init__(self, stream: trio.SocketStream, host: str) -> None:
        self.stream = stream
        self.host = host

    async def send(self, data: bytes) -> None:
        await self.stream.send_all(data)

    def head(self, method: str, target: str, *headers: str, host: str | None = None) -> bytes:
        lines = [f"{method} {target} HTTP/1.1", f"Host: {self.host if host is None else host}", *headers, "", ""]
        return "\r\n".join(lines).encode("latin-1")

    async def answer(self, method: str = "GET") -> Answered:
        """The next answer, whole; after it a look whether the connection goes on."""
        reader = h11.Connection(h11.CLIENT)
        reader.send(h11.Request(method=method, target="/", headers=[("host", "x"), ("content-length", "0")]))
        reader.send(h11.EndOfMessage())
        status, headers, body, closed = 0, {}, b"", False
        while True:
            event = reader.next_event()
            if event is h11.NEED_DATA:
                data = await self.receive()
                closed = closed or not data
                reader.receive_data(data)
            elif isinstance(event, h11.Response):
                status = event.status_code
                headers = {name.decode(): value.decode() for name, value in event.headers}
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, (h11.EndOfMessage, h11.ConnectionClosed)):
                return Answered(status, headers, body, closed or headers.get("connection") == "close")

    async def receive(self) -> bytes:
        try:
            return bytes(await self.stream.receive_some(65_536))
        except trio.BrokenResourceError:
            return b""

    async def is_closed(self) -> bool:
        """Waits for the end: False only if something else comes."""
        return not await self.receive()


@asynccontextmanager
async def connected(served: Served) -> AsyncIterator[Wire]:
    parts = urlsplit(served.url)
    stream = await trio.open_tcp_stream(parts.hostname or "", parts.port or 0)
    async with stream:
        yield Wire(stream, parts.netloc)


def bearer(secret: str) -> str:
    return f"Authorization: Bearer {secret}"
