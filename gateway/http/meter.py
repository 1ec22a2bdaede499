"""Around everything: counts requests by their route and status, and how long it takes until an answer begins.

A route is named by its pattern, never by what was asked for. What matches none is `none`, and a method that no route of
ours has is `other`: whoever sends requests cannot make new series.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from gateway.metrics.figures import Figures

METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
GONE = "gone"
"""The status of what was never answered, because whoever asked has left or the server ended."""


class Meter:
    def __init__(self, app: ASGIApp, figures: Figures) -> None:
        self._app = app
        self._figures = figures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        figures, began, status = self._figures, trio.current_time(), GONE

        async def seen(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
                figures.response_s[route_of(scope)].add(trio.current_time() - began)
            await send(message)

        figures.requests_open += 1
        try:
            await self._app(scope, receive, seen)
        finally:
            figures.requests_open -= 1
            method = scope["method"] if scope["method"] in METHODS else "other"
            figures.requests[method, route_of(scope), status] += 1


def route_of(scope: Scope) -> str:
    return getattr(scope.get("route"), "path_format", "none")
