"""A model's server on loopback: it takes requests, has a script answer them, and remembers all that a test may ask.

Each connection has two tasks while a request is being answered: one plays the script, one reads, so that a client that
leaves is noticed at once, also while the model is silent.

    request ──> Received ──> steps ──> Answer ──> finished
                                 └─ client closed ──> cut
"""

from __future__ import annotations

from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson
import trio

from tests.fakes.answer import JSON, Received, Streamed, Whole
from tests.fakes.dialect import Complaint
from tests.fakes.script import Asked, Status
from tests.fakes.wire import Gone, Line, Refused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from tests.fakes.dialect import Dialect
    from tests.fakes.script import Message, Script, Steps
    from tests.fakes.wire import HttpRequest

HOST = "127.0.0.1"
MODELS = "/v1/models"
MAX_CONNECTIONS = 100
MAX_BODY = 16 * 2**20


class ModelServer:
    """Made by `serving`. ``script``, ``require_key`` and ``models`` may be changed at any time."""

    def __init__(self, dialect: Dialect, script: Script, port: int) -> None:
        self.base_url = f"http://{HOST}:{port}{dialect.prefix}"
        self.script = script
        self.require_key: str | None = None
        self.models: Sequence[str] = ("fake-large", "fake-small")
        self.max_connections = MAX_CONNECTIONS
        self.max_body = MAX_BODY
        self.requests: list[Received] = []
        """What the model was asked, in the order in which it came, refused or not."""
        self.others: list[tuple[str, str, int]] = []
        """Method, path and status of all other requests."""
        self.connections = 0
        self.heard: Callable[[Received], None] = lambda received: None
        """Called at the start and at the end of each request."""
        self._dialect = dialect
        self._accepted = 0
        self._attempts: Counter[tuple[str, str, tuple[Message, ...]]] = Counter()
        self._changed = trio.lowlevel.ParkingLot()

    @property
    def open(self) -> tuple[Received, ...]:
        """The requests that are being answered now."""
        return tuple(received for received in self.requests if received.ended is None)

    def text_sent(self, request: Received) -> str:
        return "".join(request.said)

    async def until(self, true: Callable[[], object]) -> None:
        """Wait for a condition about this server; it is looked at whenever anything changes here."""
        await trio.lowlevel.checkpoint()
        while not true():
            await self._changed.park()

    async def received(self, number: int = 1) -> Received:
        """The request with that number, as soon as it is there."""
        await self.until(lambda: len(self.requests) >= number)
        return self.requests[number - 1]

    async def serve(self, stream: trio.SocketStream) -> None:
        """One connection, until it ends."""
        line = Line(stream, self.max_body)
        self.connections += 1
        self._accepted += 1
        number = self._accepted
        try:
            if self.connections > self.max_connections:
                raise Refused(503, f"there are {self.max_connections} connections already")
            while (request := await line.request()) is not None:
                await self._take(line, request, number)
        except Gone:
            pass
        except Refused as refused:
            self.others.append(("", "", refused.status))
            await line.refuse(refused.status, JSON, self._error(refused.status, refused.why))
        finally:
            self.connections -= 1
            self._note()

    async def _take(self, line: Line, request: HttpRequest, connection: int) -> None:
        if (request.method, request.path) == ("POST", self._dialect.path):
            await self._ask(line, self._receive(request, connection), request.body)
            return
        status, body = 404, self._error(404, f"there is no {request.method} {request.path} here")
        if (request.method, request.path) == ("GET", MODELS):
            if self._lets_in(self._dialect.key(request.headers)):
                status, body = 200, orjson.dumps(self._dialect.models(self.models))
            else:
                status, body = 401, self._error(401, "the API key is not right")
        self.others.append((request.method, request.path, status))
        self._note()
        await line.whole(status, JSON, b"" if request.method == "HEAD" else body)

    def _receive(self, request: HttpRequest, connection: int) -> Received:
        number, key = len(self.requests) + 1, self._dialect.key(request.headers)
        received = Received(number, connection, request.headers, key, trio.current_time())
        self.requests.append(received)
        return received

    async def _ask(self, line: Line, received: Received, body: bytes) -> None:
        steps = self._steps(received, body)
        self._tell(received)
        gone = False

        async def watch(scope: trio.CancelScope) -> None:
            nonlocal gone
            await line.watch()
            gone = True
            scope.cancel()

        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(watch, nursery.cancel_scope)
                gone = not await self._answer(line, received, steps)
                nursery.cancel_scope.cancel()
        finally:
            received.cut = gone and not received.finished and not received.dropped
            received.ended = received.ended or trio.current_time()
            self._tell(received)
        if gone or received.dropped:
            raise Gone

    async def _answer(self, line: Line, received: Received, steps: Steps) -> bool:
        """Whether the client was there to the end."""
        answer = (Streamed if received.asked.stream else Whole)(line, self._dialect, received, self._note)
        try:
            await answer.play(steps)
        except Gone:
            return False
        return True

    def _steps(self, received: Received, body: bytes) -> Steps:
        if not self._lets_in(received.key):
            return [Status(401, message="the API key is not right")]
        try:
            received.body = orjson.loads(body)
            received.asked = self._numbered(self._dialect.read(received.body), received.number)
        except Complaint as complaint:
            return [Status(400, message=str(complaint))]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            return [Status(400, message=f"the body cannot be read: {error!r}")]
        return self.script(received.asked)

    def _numbered(self, asked: Asked, number: int) -> Asked:
        same = (asked.model, asked.system, asked.messages)
        self._attempts[same] += 1
        return replace(asked, number=number, attempt=self._attempts[same])

    def _lets_in(self, key: str | None) -> bool:
        return self.require_key in (None, key)

    def _error(self, status: int, why: str) -> bytes:
        return orjson.dumps(self._dialect.error(status, why))

    def _tell(self, received: Received) -> None:
        self.heard(received)
        self._note()

    def _note(self) -> None:
        self._changed.unpark_all()


@asynccontextmanager
async def serving(dialect: Dialect, script: Script, *, port: int = 0, **options: Any) -> AsyncIterator[ModelServer]:
    """A server for as long as the block lasts; the options are attributes of `ModelServer`.

    What the block raises comes out as it is, not in a group. An error in the script ends the block.
    """
    raised: Exception | None = None
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(port, host=HOST)
        server = ModelServer(dialect, script, listeners[0].socket.getsockname()[1])
        for name, value in options.items():
            setattr(server, name, value)
        nursery.start_soon(trio.serve_listeners, server.serve, listeners)
        try:
            yield server
        except Exception as error:  # noqa: BLE001 raised again below, outside of the nursery that would wrap it
            raised = error
        nursery.cancel_scope.cancel()
    if raised is not None:
        raise raised
