"""One HTTP/1.1 connection from the server's side: requests one after another, and a watch for a client that leaves."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import h11
import trio

if TYPE_CHECKING:
    from collections.abc import Mapping

READ = 65_536
HEAR_OUT_S = 1
AT_ONCE = struct.pack("ii", 1, 0)  # SO_LINGER: close with a RST, drop what was not sent


class Gone(Exception):
    """The client is no longer there."""


class Refused(Exception):
    """The request cannot be taken; the connection ends after the answer."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request with its whole body; header names are in lower case, ``path`` is without its ``query``."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    query: str = ""


class Line:
    """A connection. After `reset` or `close` nothing more can be done with it."""

    def __init__(self, stream: trio.SocketStream, max_body: int) -> None:
        self._stream = stream
        self._http = h11.Connection(h11.SERVER)
        self._max_body = max_body

    async def request(self) -> HttpRequest | None:
        """The next request; None when no other comes."""
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        if self._http.our_state is not h11.IDLE:
            return None
        head = await self._event()
        if not isinstance(head, h11.Request):
            return None
        path, _, query = head.target.decode("ascii").partition("?")
        headers = {name.decode("ascii"): value.decode("latin-1") for name, value in head.headers}
        return HttpRequest(head.method.decode("ascii"), path, headers, await self._body(), query)

    async def _body(self) -> bytes:
        body = bytearray()
        while True:
            event = await self._event()
            if isinstance(event, h11.EndOfMessage):
                return bytes(body)
            if not isinstance(event, h11.Data):
                raise Gone
            body += event.data
            if len(body) > self._max_body:
                raise Refused(413, f"the body is longer than {self._max_body} bytes")

    async def _event(self) -> h11.Event | type[h11.PAUSED]:
        while True:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as error:
                raise Refused(error.error_status_hint, str(error)) from error
            if event is not h11.NEED_DATA:
                return event  # type: ignore[return-value]  # mypy does not narrow by a sentinel class
            if self._http.they_are_waiting_for_100_continue:
                await self._send(h11.InformationalResponse(status_code=100, headers=[]))
            self._http.receive_data(await self._read())

    async def _read(self) -> bytes:
        try:
            return bytes(await self._stream.receive_some(READ))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise Gone from None

    async def watch(self) -> None:
        """Returns when the client has left. What it sends meanwhile, within reason, is kept for the next request."""
        ahead = 0
        while ahead <= self._max_body:
            try:
                data = await self._read()
            except Gone:
                return
            if not data:
                return
            ahead += len(data)
            self._http.receive_data(data)

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        await self._send(h11.Response(status_code=status, headers=list(headers.items())))

    async def data(self, data: bytes) -> None:
        await self._send(h11.Data(data=data))

    async def finish(self, data: bytes = b"") -> None:
        """The last piece goes out with the end: a client that has it has all, and may close without being rude."""
        await self._send(h11.Data(data=data), h11.EndOfMessage())

    async def whole(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        sized = {**headers, "content-length": str(len(body))}
        head = h11.Response(status_code=status, headers=list(sized.items()))
        await self._send(head, h11.Data(data=body), h11.EndOfMessage())

    async def bare(self, data: bytes) -> None:
        """Bytes that HTTP knows nothing of."""
        await self._send_bytes(data)

    async def refuse(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Answer whatever was being said, and hear it out for a while: a RST would take the answer away again."""
        try:
            await self.whole(status, {**headers, "connection": "close"}, body)
            await self._stream.send_eof()
            with trio.move_on_after(HEAR_OUT_S):
                while await self._read():
                    continue
        except (Gone, trio.BrokenResourceError, h11.LocalProtocolError):
            return  # nobody is there to be told

    async def _send(self, *events: h11.Event) -> None:
        await self._send_bytes(b"".join(self._http.send(event) or b"" for event in events))

    async def _send_bytes(self, data: bytes) -> None:
        try:
            await self._stream.send_all(data)
        except trio.BrokenResourceError:
            raise Gone from None

    async def close(self, *, reset: bool = False) -> None:
        if reset:
            self._stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
        await trio.aclose_forcefully(self._stream)
