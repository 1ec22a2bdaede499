"""Plays the steps of a script onto a connection: as a stream of events, or collected into one response."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import orjson
import trio

from tests.fakes import script
from tests.fakes.dialect import Usage
from tests.fakes.script import Asked, Call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.fakes.dialect import Dialect, Part, Writer
    from tests.fakes.wire import Line

NOTHING = Asked("", "", ())
JSON = {"content-type": "application/json"}
EVENTS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}


@dataclass(slots=True, eq=False)
class Received:
    """A request and what has become of it so far. The times are trio's."""

    number: int
    connection: int
    headers: Mapping[str, str]  # names in lower case
    key: str | None
    started: float
    body: Mapping[str, Any] = field(default_factory=dict)
    asked: Asked = NOTHING  # stays nothing when the request is refused
    status: int | None = None
    ended: float | None = None
    finished: bool = False  # all of the response was sent
    cut: bool = False  # the client closed the connection before that
    dropped: bool = False  # the script did
    said: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)


class Answer(ABC):
    """The answer to one request, step by step."""

    def __init__(self, line: Line, dialect: Dialect, received: Received, note: Callable[[], None]) -> None:
        self.line = line
        self.dialect = dialect
        self.received = received
        self.headers = dialect.headers(received.number)
        self.count = script.Count()
        self._note = note
        self._characters = 0
        self._calls = 0

    async def play(self, steps: script.Steps) -> None:
        self.count = next((step for step in steps if isinstance(step, script.Count)), self.count)
        for step in steps:
            if await self._play(step):
                return
        await self._end("tools" if self._calls else "stop")

    async def _play(self, step: script.Step) -> bool:
        """Whether this was the end."""
        match step:
            case script.Say():
                await self._say(step)
            case script.CallTool():
                await self._call(step)
            case script.Begin():
                await self.begin()
            case script.Ping():
                await self.ping()
            case script.Pause(seconds):
                await trio.sleep(seconds)
            case script.Wait(event):
                await event.wait()
            case script.Garbage(data, bare):
                await (self.line.bare(data) if bare else self.garbage(data))
            case script.Count():
                pass
            case _:
                await self._last(step)
                return True
        return False

    async def _last(self, step: script.Status | script.End | script.Truncate | script.Disconnect) -> None:
        match step:
            case script.Status():
                with self._finishing():
                    await self.fail(step)
            case script.End(reason):
                await self._end(reason)
            case script.Truncate():
                with self._finishing():
                    await self.truncate()
            case script.Disconnect(reset):
                await self.half()
                self.received.dropped = True
                await self.line.close(reset=reset)

    async def _say(self, step: script.Say) -> None:
        for number, piece in enumerate(pieces(step.text, step.chunk)):
            if number and step.pause_s:
                await trio.sleep(step.pause_s)
            self._characters += len(piece)
            await self.text(piece)

    async def _call(self, step: script.CallTool) -> None:
        name = step.id or self.dialect.call_id(self.received.number, self._calls)
        self._calls += 1
        self._characters += len(step.name) + len(step.written)
        await self.call(Call(name, step.name, step.written), pieces(step.written, step.chunk))

    async def _end(self, reason: str) -> None:
        with self._finishing():
            await self.end(reason)

    @contextmanager
    def _finishing(self) -> Iterator[None]:
        # Told before it is done, so that whoever has the last byte finds it finished; trio sends at once or raises.
        self.received.finished, self.received.ended = True, trio.current_time()
        try:
            yield
        except BaseException:
            self.received.finished, self.received.ended = False, None
            raise

    def usage(self, *, at_start: bool = False) -> Usage:
        told, asked = self.count, self.received.asked
        tokens_in = asked.tokens if told.tokens_in is None else told.tokens_in
        tokens_out = script.tokens(self._characters) if told.tokens_out is None else told.tokens_out
        return Usage(tokens_in, 1 if at_start else tokens_out, told.cached)

    def sending(self, *parts: Part) -> None:
        """Told before it is done: a client that has a piece finds it told."""
        self.received.said += [part for part in parts if isinstance(part, str)]
        self.received.calls += [part for part in parts if isinstance(part, Call)]
        self._note()

    async def fail(self, step: script.Status) -> None:
        body = error_body(self.dialect, step)
        self.received.status = step.code
        kind = {"content-type": "text/plain"} if isinstance(step.body, (str, bytes)) else JSON
        await self.line.whole(step.code, {**self.headers, **kind, **step.headers}, body)

    @abstractmethod
    async def begin(self) -> None: ...
    @abstractmethod
    async def text(self, piece: str) -> None: ...
    @abstractmethod
    async def call(self, call: Call, written: list[str]) -> None: ...
    @abstractmethod
    async def ping(self) -> None: ...
    @abstractmethod
    async def garbage(self, data: bytes) -> None: ...
    @abstractmethod
    async def end(self, reason: str) -> None: ...
    @abstractmethod
    async def truncate(self) -> None: ...
    @abstractmethod
    async def half(self) -> None:
        """Send what can be sent of an answer that will never be whole."""


class Streamed(Answer):
    """Each step goes out when it is played."""

    _writer: Writer

    async def begin(self) -> None:
        if self.received.status is None:
            self.received.status = 200
            self._writer = self.dialect.writer(self.received.asked, self.received.body, self.usage(at_start=True))
            await self.line.start(200, {**self.headers, **EVENTS})
            await self.line.data(self._writer.begin())
            self._note()

    async def text(self, piece: str) -> None:
        await self.begin()
        self.sending(piece)
        await self.line.data(self._writer.text(piece))

    async def call(self, call: Call, written: list[str]) -> None:
        await self.begin()
        await self.line.data(self._writer.call(call))
        for piece in written[:-1]:
            await self.line.data(self._writer.arguments(piece))
        self.sending(call)
        await self.line.data(self._writer.arguments(written[-1]))

    async def ping(self) -> None:
        await self.begin()
        await self.line.data(self._writer.ping())

    async def garbage(self, data: bytes) -> None:
        await self.begin()
        await self.line.data(data)

    async def fail(self, step: script.Status) -> None:
        if self.received.status is None:
            await super().fail(step)
        else:
            body = orjson.loads(error_body(self.dialect, step))
            await self.line.finish(self._writer.error(step.code, body))

    async def end(self, reason: str) -> None:
        await self.begin()
        await self.line.finish(self._writer.end(reason, self.usage()))

    async def truncate(self) -> None:
        await self.begin()
        await self.line.finish()

    async def half(self) -> None:
        """All of it has gone out already."""


class Whole(Answer):
    """The steps are played first, the response is sent at the end."""

    def __init__(self, line: Line, dialect: Dialect, received: Received, note: Callable[[], None]) -> None:
        super().__init__(line, dialect, received, note)
        self._parts: list[Part] = []
        self._garbage = b""

    async def begin(self) -> None:
        """There is nothing to be sent before all of it."""

    async def text(self, piece: str) -> None:
        if self._parts and isinstance(self._parts[-1], str):
            piece = str(self._parts.pop()) + piece
        self._parts.append(piece)

    async def call(self, call: Call, written: list[str]) -> None:
        self._parts.append(call)

    async def ping(self) -> None:
        """A body has no place for it."""

    async def garbage(self, data: bytes) -> None:
        self._garbage += data

    async def end(self, reason: str) -> None:
        self.sending(*self._parts)
        await self._send(self._body(reason))

    async def truncate(self) -> None:
        body = self._body("stop")
        await self._send(body[: len(body) // 2])

    async def half(self) -> None:
        if self._parts or self._garbage:
            body = self._body("stop")
            self.received.status = 200
            await self.line.start(200, {**self.headers, **JSON, "content-length": str(len(body))})
            await self.line.data(body[: len(body) // 2])

    async def _send(self, body: bytes) -> None:
        self.received.status = 200
        await self.line.whole(200, {**self.headers, **JSON}, body)

    def _body(self, reason: str) -> bytes:
        body = self.dialect.whole(self.received.asked, self._parts, reason, self.usage())
        return self._garbage or orjson.dumps(body)


def pieces(text: str, size: int | None) -> list[str]:
    if size is None or not text:
        return [text]
    return [text[start : start + size] for start in range(0, len(text), size)]


def error_body(dialect: Dialect, step: script.Status) -> bytes:
    if isinstance(step.body, (str, bytes)):
        return step.body.encode() if isinstance(step.body, str) else step.body
    known = step.code in list(HTTPStatus)
    message = step.message or (HTTPStatus(step.code).phrase if known else f"status {step.code}")
    return orjson.dumps(dialect.error(step.code, message) if step.body is None else step.body)
