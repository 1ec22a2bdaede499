"""In front of every route: whose request it is, whether the table lets it in, and how often. Before a body is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import trio
from fastapi import Depends, Request
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from gateway.access.rates import Rates
from gateway.access.tokens import Caller
from gateway.http.problems import Problem, unavailable
from gateway.http.table import ACCESS
from gateway.office import Office

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from starlette.responses import Response

    from gateway.access.scopes import Scope
    from gateway.access.tokens import Doorkeeper

REQUEST_S = 20.0
"""How long a request may keep its route busy; a stream, once it has begun, is not meant."""
WRONG_RATE, WRONG_BURST = 0.5, 20
"""Wrong tokens from one address: twenty at once, then one every two seconds."""

bearer = HTTPBearer(auto_error=False, description="A token made by `goclaw token create`.")


class Gate:
    def __init__(self, doorkeeper: Doorkeeper, rate: float) -> None:
        self._doorkeeper = doorkeeper
        self._rates = Rates(rate, 2 * rate)
        self._wrong = Rates(WRONG_RATE, WRONG_BURST)

    async def admit(self, request: Request, need: str) -> Caller | None:
        """Whose request it is; None where nobody need say. Raises the problem otherwise."""
        if need == "anybody":
            return None
        peer = "" if request.client is None else request.client.host
        if wait_s := self._wrong.wait_s(peer, trio.current_time()):
            raise too_often("too many wrong tokens came from this address", wait_s)
        caller = await self._caller(request, peer)
        if wait_s := self._rates.take(caller.token, trio.current_time()):
            raise too_often("this token is used too often", wait_s)
        if need != "any-token" and not caller.may(scope_of(need)):
            detail = f'this token may not do that: it needs the scope "{need}" and has {sorted(caller.scopes)}'
            raise Problem(403, "missing-scope", detail, next="Make one that may: goclaw token create --scope " + need)
        return caller

    async def _caller(self, request: Request, peer: str) -> Caller:
        kind, _, secret = request.headers.get("authorization", "").partition(" ")
        secret = secret.strip()
        if not secret or kind.lower() != "bearer":
            raise unknown("this needs a token in the header `Authorization: Bearer …`")
        caller = await self._doorkeeper.caller(secret)
        if caller is None:
            self._wrong.take(peer, trio.current_time())
            raise unknown("this token is not known: it is wrong, has expired or was revoked")
        return caller


def scope_of(need: str) -> Scope:
    return need  # type: ignore[return-value]  # the table holds nothing else


def unknown(detail: str) -> Problem:
    return Problem(
        401,
        "unauthorized",
        detail,
        next="Make a token: goclaw token create NAME",
        headers={"WWW-Authenticate": 'Bearer realm="goclaw"'},
    )


def too_often(detail: str, wait_s: float) -> Problem:
    seconds = max(1, round(wait_s + 0.5))
    return Problem(
        429, "too-often", detail, next=f"Wait {seconds} s.", headers={"Retry-After": str(seconds)}, retry_after=seconds
    )


class GuardedRoute(APIRoute):
    """A route that asks the gate first, and does not keep anybody waiting for ever."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        needs = {method: ACCESS[method, self.path_format] for method in self.methods or ()}

        async def guarded(request: Request) -> Response:
            office: Office = request.app.state.office
            with trio.move_on_after(REQUEST_S) as soon:
                request.state.caller = await request.app.state.gate.admit(request, needs[request.method])
                soon.deadline = trio.current_time() + office.patience_s
                request.state.soon = soon
                return await handle(request)
            raise unavailable("the store has not answered in time")

        return guarded


def caller_of(
    request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)] = None
) -> Caller:
    caller: Caller = request.state.caller
    return caller


def office_of(request: Request) -> Office:
    office: Office = request.app.state.office
    return office


Me = Annotated[Caller, Depends(caller_of)]
Room = Annotated[Office, Depends(office_of)]
