"""The Bot API over HTTP on loopback: methods, files, trouble, and the door for a test or a person from outside.

    /bot<token>/<method>   /file/bot<token>/<path>   /control/<verb>   /

Each connection has two tasks while a request is being answered: one answers, one reads, so that a client that leaves
is noticed at once.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import orjson
import trio

from gateway.clock import utc_now
from tests.fakes.telegram import asking, control, sending
from tests.fakes.telegram.errors import Failure
from tests.fakes.telegram.pace import Limits
from tests.fakes.telegram.parameters import read_parameters
from tests.fakes.telegram.people import Person
from tests.fakes.telegram.polls import BY_WEBHOOK, Polls
from tests.fakes.telegram.request import Request
from tests.fakes.telegram.trouble import Drop, Hang, Refuse, Reply, Slow
from tests.fakes.telegram.webhook import Webhook
from tests.fakes.telegram.world import World
from tests.fakes.wire import Gone, HttpRequest, Line, Refused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from datetime import datetime

    from tests.fakes.telegram.trouble import Kind, Trouble

HOST = "127.0.0.1"
TOKEN = "42:TEST-double"  # noqa: S105 it opens nothing but this double
BOT = Person(42, "Fake", "fake_bot", is_bot=True)
MAX_BODY = 64 * 2**20
METHODS = {**asking.METHODS, **sending.METHODS}
JSON = "application/json"
DOWNLOAD = "(download)"
"""Stands for the method where a file is fetched."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes
    content_type: str = JSON

    @property
    def headers(self) -> dict[str, str]:
        return {"content-type": self.content_type, "server": "nginx/1.18.0"}


class Dropped(Exception):
    """The connection is to end here without an answer."""


class BotApi(World):
    """Made by `open_botapi`."""

    def __init__(self, token: str, port: int, bot: Person, **options: Any) -> None:
        super().__init__(bot, **options)
        self.token = token
        self.address = f"http://{HOST}:{port}"
        self.base_url = f"{self.address}/bot"
        self.base_file_url = f"{self.address}/file/bot"
        self.polls = Polls(self)
        self.webhook = Webhook(self)
        self.connections = 0

    async def serve(self, stream: trio.SocketStream) -> None:
        """One connection, until it ends."""
        line = Line(stream, MAX_BODY)
        self.connections += 1
        try:
            while (http := await line.request()) is not None:
                if not await self._take(line, http):
                    break
        except Gone:
            pass
        except Refused as refused:
            await line.refuse(refused.status, {"content-type": JSON}, failed(Failure(refused.status, refused.why)).body)
        finally:
            self.connections -= 1
            self.note()

    async def _take(self, line: Line, http: HttpRequest) -> bool:
        """Whether the connection can be used again."""
        where = unquote(http.path)
        if where.startswith("/bot"):
            token, _, method = where.removeprefix("/bot").partition("/")
            return await self._ask(line, http, token, method)
        if where.startswith("/file/bot"):
            token, _, path = where.removeprefix("/file/bot").partition("/")
            return await self._ask(line, http, token, DOWNLOAD, path)
        answer = await control.answer(self, http)
        await line.whole(answer.status, answer.headers, answer.body)
        return True

    def _check(self, token: str) -> None:
        if ":" not in token:
            raise Failure(404, "Not Found")
        if token != self.token:
            raise Failure(401, "Unauthorized")

    async def _ask(self, line: Line, http: HttpRequest, token: str, method: str, path: str = "") -> bool:
        request = Request(len(self.requests) + 1, method, self.now(), path=path)
        self.requests.append(request)
        self.open.append(request)
        answered = False

        async def watch(scope: trio.CancelScope) -> None:
            await line.watch()
            scope.cancel()

        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(watch, nursery.cancel_scope)
                answered = await self._answer(line, http, request, token)
                nursery.cancel_scope.cancel()
        finally:
            request.ended = self.now()
            self.open.remove(request)
            self.note()
        return answered

    async def _answer(self, line: Line, http: HttpRequest, request: Request, token: str) -> bool:
        """Whether there was an answer, to its end."""
        kind: Kind | None = None
        try:
            try:
                request.given = read_parameters(http)
                self._check(token)
                self.note()
                answer, kind = await self._troubled(request)
            except Failure as failure:
                answer = failed(failure)
                request.description = failure.description
            if isinstance(kind, Drop):
                await break_off(line, answer, kind)
                return False
            request.status = answer.status
            await (dribble(line, answer, kind) if isinstance(kind, Slow) else whole(line, answer))
        except Dropped:
            await line.close()
            return False
        except Gone:
            request.cut = True
            return False
        except trio.Cancelled:
            request.cut = not request.status
            raise
        return True

    async def _troubled(self, request: Request) -> tuple[Answer, Kind | None]:
        trouble = self.meets(request)
        kind = None if trouble is None else trouble.kind
        if isinstance(kind, Refuse):
            raise kind.failure
        if isinstance(kind, Drop) and kind.when == "before":
            return Answer(0, b""), kind
        if isinstance(kind, Reply) and not kind.effect:
            return Answer(kind.status, kind.body, kind.content_type), kind
        return await self._hung(request, trouble), kind

    async def _hung(self, request: Request, trouble: Trouble | None) -> Answer:
        kind = None if trouble is None else trouble.kind
        if trouble is not None and isinstance(kind, Hang) and kind.happens == "after":
            await trouble.released.wait()
        result, description = await self._do(request)
        request.done = True
        self.note()
        if trouble is not None and isinstance(kind, Hang) and kind.happens == "before":
            await trouble.released.wait()
        if isinstance(kind, Reply):
            return Answer(kind.status, kind.body, kind.content_type)
        if isinstance(result, bytes):
            return Answer(200, result, "application/octet-stream")
        told = {"ok": True, "result": result}
        return Answer(200, orjson.dumps({**told, "description": description} if description else told))

    async def _do(self, request: Request) -> tuple[Any, str]:
        """What the method answers, with what is said of it."""
        match request.method.lower():
            case "getupdates":
                return await self.polls.take(request.given, webhook=bool(self.webhook.url)), ""
            case "setwebhook":
                said = self.webhook.set(request.given)
                if self.webhook.url:
                    self.polls.end(BY_WEBHOOK)
                return True, said
            case "deletewebhook":
                return True, self.webhook.delete(request.given)
            case _ if request.method == DOWNLOAD:
                return self.files.download(request.path), ""
            case "getwebhookinfo":
                return self.webhook.info, ""
            case name if name in METHODS:
                return METHODS[name](self, request), ""
        raise Failure(404, "Not Found: method not found")


def failed(failure: Failure) -> Answer:
    return Answer(failure.code, orjson.dumps(failure.body))


async def whole(line: Line, answer: Answer) -> None:
    await line.whole(answer.status, answer.headers, answer.body)


async def dribble(line: Line, answer: Answer, how: Slow) -> None:
    await line.start(answer.status, {**answer.headers, "content-length": str(len(answer.body))})
    for start in range(0, len(answer.body), how.chunk):
        await trio.sleep(how.pause_s)
        await line.data(answer.body[start : start + how.chunk])
    await line.finish()


async def break_off(line: Line, answer: Answer, how: Drop) -> None:
    if how.when == "mid":
        await line.start(answer.status, {**answer.headers, "content-length": str(len(answer.body))})
        await line.data(answer.body[: len(answer.body) // 2])
    await line.close(reset=how.reset)


@asynccontextmanager
async def open_botapi(
    *,
    token: str = TOKEN,
    port: int = 0,
    bot: Person = BOT,
    limits: Limits | None = None,
    privacy: bool = False,
    now: Callable[[], float] = trio.current_time,
    wall: Callable[[], datetime] = utc_now,
) -> AsyncIterator[BotApi]:
    """A Telegram for as long as the block lasts. What the block raises comes out as it is, not in a group.

    ``now`` measures the limits, ``wall`` dates the messages. An error in the double itself ends the block.
    """
    raised: Exception | None = None
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(port, host=HOST)
        taken = listeners[0].socket.getsockname()[1]
        api = BotApi(token, taken, bot, now=now, wall=wall, limits=limits or Limits(), privacy=privacy)
        nursery.start_soon(api.webhook.run)
        nursery.start_soon(trio.serve_listeners, api.serve, listeners)
        try:
            yield api
        except Exception as error:  # noqa: BLE001 raised again below, outside of the nursery that would wrap it
            raised = error
        nursery.cancel_scope.cancel()
    if raised is not None:
        raise raised
