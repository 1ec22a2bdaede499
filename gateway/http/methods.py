"""Which methods a path takes: HEAD wherever GET is, OPTIONS everywhere, and a refusal that names all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from starlette.responses import Response
from starlette.routing import Match

from gateway.http.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Methods:
    """In front of the routes. What is no path of theirs is theirs to refuse."""

    def __init__(self, app: ASGIApp, routes: Iterable[BaseRoute]) -> None:
        self._app = app
        self._routes = tuple(routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        allowed = self._allowed(scope) if scope["type"] == "http" else frozenset()
        method = scope.get("method")
        if not allowed or method in allowed - {"HEAD", "OPTIONS"}:
            await self._app(scope, receive, send)
        elif method == "HEAD" and "HEAD" in allowed:
            await head_only(self._app, scope, receive, send)
        else:
            await answer(method == "OPTIONS", ", ".join(sorted(allowed)))(scope, receive, send)

    def _allowed(self, scope: Scope) -> frozenset[str]:
        found: set[str] = set()
        for route in self._routes:
            if route.matches(scope)[0] is not Match.NONE:
                found |= getattr(route, "methods", None) or set()
        return frozenset(found | {"OPTIONS"} | ({"HEAD"} if "GET" in found else set())) if found else frozenset()


def answer(asked: bool, allowed: str) -> Response:
    """To whoever asked for the methods, or used another one."""
    headers = {"Allow": allowed}
    if asked:
        return Response(status_code=204, headers=headers)
    return Problem(
        405, "method-not-allowed", f"this path takes {allowed}", next="GET /openapi.json has them all.", headers=headers
    ).response()


async def head_only(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """What GET would begin with. A stream ends there too."""
    with trio.CancelScope() as enough:

        async def first(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                enough.cancel()
            await trio.lowlevel.checkpoint()

        await app({**scope, "method": "GET"}, receive, first)
