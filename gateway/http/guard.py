"""Around the whole app: which names it answers to, whose pages may call it, how large and how slow a body may be.

A page from elsewhere that a browser shows may send requests to this machine, under any name that leads here. So the
name in `Host` must be one of ours, and what changes something must not come from a foreign page. (S8)
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import trio
from starlette.datastructures import Headers

from gateway.addresses import is_any, is_ip
from gateway.http.problems import Problem, surprise

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from gateway.access.limits import Limits

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
FOREIGN_SITES = frozenset({"cross-site", "same-site"})
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)


class Refused(Exception):
    """The request is answered with this problem, whatever the app makes of it."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


class Guard:
    def __init__(self, app: ASGIApp, limits: Limits, bound: str, hosts: Collection[str] = ()) -> None:
        """``bound`` is the address that is listened on, ``hosts`` are other names that lead to it."""
        self._app = app
        self._limits = limits
        self._hosts = LOOPBACK | {canonical(name) for name in hosts} | {canonical(bound)}
        self._any_address = is_any(bound)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        problem = self._foreign(scope, headers)
        if scope["type"] == "websocket":
            if problem is not None:
                await send({"type": "websocket.close", "code": 1008, "reason": problem.code})
                return
            await self._app(scope, receive, send)
            return
        await self._guarded(scope, headers, receive, send, problem)

    async def _guarded(
        self, scope: Scope, headers: Headers, receive: Receive, send: Send, problem: Problem | None
    ) -> None:
        begun = False
        body = Body(receive, headers.get("content-length", ""), self._limits)

        async def marked(message: Message) -> None:
            nonlocal begun
            if body.refused is not None and not begun:  # whatever the app has made of it
                raise body.refused
            if message["type"] == "http.response.start":
                begun = True
                given = {name.lower() for name, _ in message.get("headers", ())}
                message = {
                    **message,
                    "headers": [*message.get("headers", ()), *(one for one in HEADERS if one[0] not in given)],
                }
            await send(message)

        try:
            if problem is not None:
                raise Refused(problem)
            body.check_length()
            await self._app(scope, body.receive, marked)
        except Exception as error:  # noqa: BLE001 - whatever it is, the answer is a problem and not a dead connection
            refused, body.refused = body.refused or refused_in(error), None
            problem = surprise(error) if refused is None else refused.problem
            if not begun:
                await problem.response()(scope, receive, marked)

    def _foreign(self, scope: Scope, headers: Headers) -> Problem | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._answers_to(hosts[0]):
            return Problem(
                421,
                "unknown-host",
                "this gateway is not known under the name in the header Host",
                next="Use its own address, or add the name to GOCLAW_HTTP_HOSTS.",
            )
        unsafe = scope["type"] == "websocket" or scope["method"] not in SAFE
        elsewhere = any(not is_own(origin, hosts[0]) for origin in headers.getlist("origin"))
        if unsafe and (elsewhere or FOREIGN_SITES & set(headers.getlist("sec-fetch-site"))):
            return Problem(403, "foreign-origin", "a page from elsewhere may not do that", next="Use the API directly.")
        return None

    def _answers_to(self, host: str) -> bool:
        name = name_in(host)
        if name is None:
            return False
        return name in self._hosts or (self._any_address and is_ip(name))


def refused_in(error: Exception) -> Refused | None:
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error if isinstance(error, Refused) else None


class Body:
    """A request's body, as large and as slow as it may be."""

    def __init__(self, receive: Receive, length: str, limits: Limits) -> None:
        self._receive = receive
        self._limits = limits
        self._length = length
        self._read = 0
        self._whole = False
        self._until: float | None = None
        self.refused: Refused | None = None

    def check_length(self) -> None:
        if self._length.isascii() and self._length.isdigit() and int(self._length[:20]) > self._limits.body_bytes:
            raise Refused(too_large(self._limits))

    async def receive(self) -> Message:
        if self._whole:
            return await self._receive()
        if self._until is None:
            self._until = trio.current_time() + self._limits.body_s
        message: Message = {}
        with trio.move_on_at(self._until) as scope:
            message = await self._receive()
        if scope.cancelled_caught:
            raise self._refuse(Problem(408, "too-slow", f"the body did not come within {self._limits.body_s:g} s"))
        if message["type"] == "http.request":
            self._read += len(message.get("body", b""))
            self._whole = not message.get("more_body", False)
            if self._read > self._limits.body_bytes:
                raise self._refuse(too_large(self._limits))
        return message

    def _refuse(self, problem: Problem) -> Refused:
        self.refused = Refused(problem)
        return self.refused


def too_large(limits: Limits) -> Problem:
    return Problem(413, "too-large", f"the body has more than {limits.body_bytes:,} bytes", next="Send less at a time.")


def name_in(host: str) -> str | None:
    """The name in a Host header, without its port; None if it is none."""
    try:
        parts = urlsplit(f"//{host}")
        name, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not name or parts.username is not None or parts.path or parts.query or parts.fragment or port == 0:
        return None
    return canonical(name)


def canonical(name: str) -> str:
    """A name or an address in the one form that is compared."""
    name = name.removesuffix(".").lower()
    return ip_address(name).compressed if is_ip(name) else name


def is_own(origin: str, host: str) -> bool:
    """Whether a page of that origin is one of ours."""
    scheme, _, netloc = origin.partition("://")
    return scheme in ("http", "https") and netloc.lower() == host.lower()
