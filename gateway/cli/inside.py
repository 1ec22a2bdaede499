"""The API in this process, asked like one that is served elsewhere: no socket, and answers come as they are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx2
import trio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, MutableMapping

    from starlette.types import ASGIApp

    Message = MutableMapping[str, Any]

PIECES = 100
"""So many pieces of an answer wait for whoever reads it."""


class Inside(httpx2.AsyncBaseTransport):
    """Requests become tasks of the nursery, and end with it."""

    def __init__(self, app: ASGIApp, nursery: trio.Nursery) -> None:
        self._app = app
        self._nursery = nursery

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = await request.aread()
        call = Call(body)
        self._nursery.start_soon(call.run, self._app, scope_of(request))
        await call.begun.wait()
        return httpx2.Response(call.status, headers=call.headers, stream=Pieces(call))


class Call:
    """One request on its way through the app."""

    def __init__(self, body: bytes) -> None:
        self.status = 500
        self.headers: list[tuple[bytes, bytes]] = []
        self.begun = trio.Event()
        self.scope = trio.CancelScope()
        self._body: bytes | None = body
        self._put, self.pieces = trio.open_memory_channel[bytes](PIECES)

    async def run(self, app: ASGIApp, scope: MutableMapping[str, Any]) -> None:
        try:
            with self._put, self.scope:
                await app(scope, self._receive, self._send)
        finally:
            self.begun.set()

    async def _receive(self) -> Message:
        if self._body is None:
            await trio.sleep_forever()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], list(message.get("headers", ()))
            self.begun.set()
        elif message.get("body"):
            await self._put.send(message["body"])


class Pieces(httpx2.AsyncByteStream):
    def __init__(self, call: Call) -> None:
        self._call = call

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._call.pieces:
            yield piece

    async def aclose(self) -> None:
        """Nobody reads the rest: what is left of the call ends."""
        self._call.scope.cancel()
        self._call.pieces.close()


def scope_of(request: httpx2.Request) -> MutableMapping[str, Any]:
    url = request.url
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "scheme": url.scheme,
        "path": url.path,
        "raw_path": url.raw_path.split(b"?")[0],
        "query_string": url.query,
        "server": (url.host, url.port),
        "client": ("127.0.0.1", 0),
        "root_path": "",
    }
