"""Server-sent events: how they are written, and a response that sends them for as long as there are some."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import orjson
import trio
from starlette.responses import StreamingResponse

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.types import Send

SSE = "text/event-stream"
BEAT = b": heartbeat\n\n"


def frame(kind: str, data: object, id: int | None = None) -> bytes:
    """One event. A client that comes back says the last ``id`` that it has seen whole."""
    line = b"" if id is None else b"id: %d\n" % id
    return b"%sevent: %s\ndata: %s\n\n" % (line, kind.encode(), orjson.dumps(data))


class EventStream(StreamingResponse):
    """What a generator of events gives, the first of which is there already: before it nothing was promised."""

    def __init__(self, first: bytes, rest: AsyncGenerator[bytes]) -> None:
        super().__init__(rest, media_type=SSE)
        self._first = first
        self._rest = rest

    async def stream_response(self, send: Send) -> None:
        async with aclosing(self._rest):  # also when the client is gone, and at once
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            await send({"type": "http.response.body", "body": self._first, "more_body": True})
            async for one in self._rest:
                await send({"type": "http.response.body", "body": one, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def begun(events: AsyncGenerator[bytes]) -> EventStream:
    """The response, once the first event is there. What goes wrong until then is an error like any other."""
    return EventStream(await anext(events), events)


class Pulse:
    """When a stream is to show next that it is there."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self.due_at = trio.current_time() + every_s

    @property
    def left_s(self) -> float:
        return max(self.due_at - trio.current_time(), 0.0)

    def shown(self) -> None:
        self.due_at = trio.current_time() + self._every_s


def documented_stream(about: str) -> dict[str, Any]:
    return {"content": {SSE: {"schema": {"type": "string"}}}, "description": about}
