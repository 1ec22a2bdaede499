"""Readers of server-sent events over plain sockets: they see how a stream ends, and can be cut off anywhere."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import h11
import orjson
import trio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from random import Random

    from store.protocols import Store

PATH = "/v1/notifications/stream"


@dataclass(frozen=True, slots=True)
class Event:
    kind: str
    data: Any = None
    id: int | None = None


class Frames:
    """Bytes into events; half of one is kept for later, and lost if there is no later. A comment is an event too."""

    def __init__(self) -> None:
        self._half = b""

    def feed(self, data: bytes) -> list[Event]:
        *whole, self._half = (self._half + data).split(b"\n\n")
        return [read_frame(one.decode()) for one in whole]


def read_frame(text: str) -> Event:
    if text.startswith(":"):
        return Event("comment", text[1:].strip())
    fields = dict(line.split(": ", 1) for line in text.split("\n"))
    id = fields.get("id")
    return Event(fields["event"], orjson.loads(fields["data"]), None if id is None else int(id))


class Line:
    """One connection that reads a stream. ``end`` says how it ended: `clean`, or `cut` in the middle."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.status = 0
        self.headers: dict[str, str] = {}
        self.end = ""
        self._http = h11.Connection(h11.CLIENT)
        self._frames = Frames()

    async def ask(
        self, url: str, secret: str, path: str = PATH, *, method: str = "GET", body: bytes = b"", **headers: str
    ) -> None:
        given = {"Host": urlsplit(url).netloc, "Authorization": f"Bearer {secret}", **headers}
        if body:
            given |= {"Content-Length": str(len(body)), "Content-Type": "application/json"}
        request = h11.Request(method=method, target=path, headers=list(given.items()))
        wire = self._http.send(request) or b""
        wire += (self._http.send(h11.Data(data=body)) or b"") if body else b""
        await self.stream.send_all(wire + (self._http.send(h11.EndOfMessage()) or b""))

    async def read(self, most: int = 65_536) -> list[Event]:
        """What came with the next bytes; at the end `end` is set."""
        try:
            self._http.receive_data(bytes(await self.stream.receive_some(most)))
        except trio.BrokenResourceError:
            self.end = "cut"
            return []
        events: list[Event] = []
        while not self.end:
            try:
                got = self._http.next_event()
            except h11.RemoteProtocolError:
                self.end = "cut"
                break
            if got is h11.NEED_DATA:
                break
            if isinstance(got, h11.Response):
                self.status = got.status_code
                self.headers = {name.decode(): value.decode() for name, value in got.headers}
            elif isinstance(got, h11.Data):
                events += self._frames.feed(bytes(got.data))
            elif isinstance(got, h11.EndOfMessage):
                self.end = "clean"
            elif isinstance(got, h11.ConnectionClosed):
                self.end = "cut"
        return events

    async def until(self, kind: str, kept: list[Event] | None = None) -> Event:
        """The next event of this kind; those before it go to ``kept``."""
        while not self.end:
            for event in await self.read():
                if kept is not None:
                    kept.append(event)
                if event.kind == kind:
                    return event
        raise AssertionError(f"the stream ended ({self.end}) without {kind!r}")

    async def rest(self) -> list[Event]:
        """Everything up to the end."""
        events: list[Event] = []
        while not self.end:
            events += await self.read()
        return events


def after(last: object) -> dict[str, Any]:
    """The header of somebody who comes back."""
    return {"Last-Event-ID": str(last)}


@asynccontextmanager
async def open_line(
    url: str, secret: str, path: str = PATH, *, method: str = "GET", body: bytes = b"", **headers: str
) -> AsyncIterator[Line]:
    host, port = urlsplit(url).hostname, urlsplit(url).port
    assert host is not None
    assert port is not None
    async with await trio.open_tcp_stream(host, port) as stream:
        line = Line(stream)
        await line.ask(url, secret, path, method=method, body=body, **headers)
        yield line


@dataclass(eq=False)
class Reader:
    """Somebody who follows the notifications, however often the connection is lost."""

    urls: list[str]
    secret: str
    cuts: Random | None = None
    """When it is cut off, if it is."""
    longest: int = 20_000
    """After so many bytes at the latest."""
    last: int | None = None
    seen: list[int] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    resets: list[Event] = field(default_factory=list)
    connections: int = 0
    opened: trio.Event = field(default_factory=trio.Event)
    heard: Callable[[Event], None] = lambda event: None
    _changed: trio.Event = field(default_factory=trio.Event)

    async def follow(self) -> None:
        """For ever, with a new connection whenever one has ended."""
        while True:
            headers = {} if self.last is None else after(self.last)
            url = self.urls[self.connections % len(self.urls)]
            self.connections += 1
            try:
                async with open_line(url, self.secret, **headers) as line:
                    await self._read(line)
            except OSError:
                await trio.sleep(0.05)

    async def _read(self, line: Line) -> None:
        left = None if self.cuts is None else self.cuts.randint(1, self.longest)
        while not line.end and left != 0:
            most = 65_536 if self.cuts is None else self.cuts.randint(1, 2_000)
            if left is not None:
                most = min(most, left)
                left -= most
            for event in await line.read(most):
                self._take(event)
        assert line.status in (0, 200)  # 0: it was cut off before anything came

    def _take(self, event: Event) -> None:
        if event.id is not None:
            self.last = event.id
        if event.kind == "open":
            self.opened.set()
        elif event.kind == "reset":
            self.resets.append(event)
        elif event.kind == "notification":
            assert event.id is not None
            self.seen.append(event.id)
            self.events.append(event)
            self.heard(event)
        self._changed.set()

    async def until(self, number: int) -> None:
        """Wait until it has seen that one."""
        while not self.seen or self.seen[-1] < number:
            self._changed = trio.Event()
            await self._changed.wait()


async def kept(store: Store, tenant: str = "default", after: int = 0) -> list[int]:
    """The numbers of all notifications that the store has."""
    numbers: list[int] = []
    while page := await store.cron.notifications(tenant, after=numbers[-1] if numbers else after, limit=500):
        numbers += [one.seq for one in page]
    return numbers
