"""Around the whole app: which names it answers to, whose pages may call it, how large and how slow a body may be.

A page from elsewhere that a browser shows may send requests to this machine, under any name that leads here. So the
name in `Host` must be one of ours, and what changes something must not come from a foreign page. (S8)
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import trio

from gateway.addresses import is_any, is_ip
from gateway.http.problems import Problem, surprise

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_BODY = 1_000_000
BODY_S = 15.0
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
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
    def __init__(self, app: ASGIApp, bound: str, hosts: Collection[str] = ()) -> None:
        """``bound`` is the address that is listened on, ``hosts`` are other names that lead to it."""
        self._app = app
        self._hosts = LOOPBACK | {name.lower() for name in hosts} | {bound.lower()}
        self._any_address = is_any(bound)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        problem = self._foreign(scope, headers)
        if scope["type"] == "websocket":
            if problem is not None:
                await send({"type": "websocket.close", "code": 1008, "reason": problem.code})
                return
            await self._app(scope, receive, send)
            return
        await self._guarded(scope, headers, receive, send, problem)

    async def _guarded(
        self, scope: Scope, headers: dict[str, str], receive: Receive, send: Send, problem: Problem | None
    ) -> None:
        begun = False

        async def marked(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                given = {name.lower() for name, _ in message.get("headers", ())}
                message = {
                    **message,
                    "headers": [*message.get("headers", ()), *(one for one in HEADERS if one[0] not in given)],
                }
            await send(message)

        body = Body(receive, headers.get("content-length", ""))
        try:
            if problem is not None:
                raise Refused(problem)
            body.check_length()
            await self._app(scope, body.receive, marked)
        except Refused as refused:
            if not begun:
                await refused.problem.response()(scope, receive, marked)
        except Exception as error:  # noqa: BLE001 - whatever it is, the answer is a problem and not a dead connection
            if isinstance(error, ExceptionGroup) and (refused_inside := error.subgroup(Refused)) is not None:
                found = refused_inside.exceptions[0]
                problem = found.problem if isinstance(found, Refused) else surprise(error)
            else:
                problem = surprise(error)
            if not begun:
                await problem.response()(scope, receive, marked)

    def _foreign(self, scope: Scope, headers: dict[str, str]) -> Problem | None:
        host = headers.get("host", "")
        if not self._answers_to(host):
            return Problem(
                421,
                "unknown-host",
                "this gateway is not known under the name in the header Host",
                next="Use its own address, or add the name to GOCLAW_HTTP_HOSTS.",
            )
        unsafe = scope["type"] == "websocket" or scope["method"] not in SAFE
        origin = headers.get("origin")
        if unsafe and (not is_own(origin, host) or headers.get("sec-fetch-site") in ("cross-site", "same-site")):
            return Problem(403, "foreign-origin", "a page from elsewhere may not do that", next="Use the API directly.")
        return None

    def _answers_to(self, host: str) -> bool:
        name = name_in(host)
        if name is None:
            return False
        return name in self._hosts or (self._any_address and is_ip(name))


class Body:
    """A request's body, as large and as slow as it may be."""

    def __init__(self, receive: Receive, length: str) -> None:
        self._receive = receive
        self._length = length
        self._read = 0
        self._whole = False
        self._until: float | None = None

    def check_length(self) -> None:
        if self._length.isascii() and self._length.isdigit() and int(self._length[:20]) > LARGEST_BODY:
            raise Refused(too_large())

    async def receive(self) -> Message:
        if self._whole:
            return await self._receive()
        if self._until is None:
            self._until = trio.current_time() + BODY_S
        message: Message = {}
        with trio.move_on_at(self._until) as scope:
            message = await self._receive()
        if scope.cancelled_caught:
            raise Refused(Problem(408, "too-slow", f"the body did not come within {BODY_S:g} s"))
        if message["type"] == "http.request":
            self._read += len(message.get("body", b""))
            self._whole = not message.get("more_body", False)
            if self._read > LARGEST_BODY:
                raise Refused(too_large())
        return message


def too_large() -> Problem:
    return Problem(413, "too-large", f"the body has more than {LARGEST_BODY:,} bytes", next="Send less at a time.")


def name_in(host: str) -> str | None:
    """The name in a Host header, without its port; None if it is none."""
    try:
        parts = urlsplit(f"//{host}")
        name, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not name or parts.username is not None or parts.path or parts.query or parts.fragment or port == 0:
        return None
    return name.rstrip(".").lower()


def is_own(origin: str | None, host: str) -> bool:
    """Whether a page of that origin is one of ours. No origin: it was no page."""
    if origin is None:
        return True
    parts = urlsplit(origin) if origin.startswith(("http://", "https://")) else None
    return parts is not None and parts.netloc.lower() == host.lower()
