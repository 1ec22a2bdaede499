"""In front of every route: whose request it is, whether the table lets it in, and how often. Before a body is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import trio
from fastapi import Depends, Request, params
from fastapi.dependencies.utils import get_flat_params
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.routing import Match

from gateway.access.guesses import Guesses
from gateway.access.rates import Rates
from gateway.access.tokens import Caller, digest_of
from gateway.http.problems import Problem, unavailable
from gateway.http.table import ACCESS
from gateway.office import Office
from gateway.plain import excerpt

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from starlette.responses import Response
    from starlette.types import Scope as Scope_

    from gateway.access.limits import Limits
    from gateway.access.scopes import Scope
    from gateway.access.tokens import Doorkeeper

SECRETS_IN_URLS = frozenset({"access_token", "api_key", "apikey", "auth", "authorization", "secret", "token"})
WITHOUT_BRACES = frozenset(path for _, path in ACCESS if "{" not in path)
ANY_QUERY = frozenset({"/v1/schedules/{id}/trigger"})
"""Called by programs of others, which add what they like."""

bearer = HTTPBearer(auto_error=False, description="A token made by `goclaw token create`.")


GUESSED = "too many wrong tokens came from this address"


class Gate:
    def __init__(self, doorkeeper: Doorkeeper, rate: float, limits: Limits) -> None:
        self._doorkeeper = doorkeeper
        self._rates = Rates(rate, 2 * rate)
        self._guesses = Guesses(limits.wrong_rate, limits.wrong_burst)

    async def admit(self, request: Request, need: str) -> Caller | None:
        """Whose request it is; None where nobody need say. Raises the problem otherwise."""
        if hidden := sorted(SECRETS_IN_URLS & {name.lower() for name in request.query_params}):
            raise in_the_url(hidden[0])
        if need == "anybody":
            return None
        caller = await self._caller(request, "" if request.client is None else request.client.host)
        if wait_s := self._rates.take(caller.digest, trio.current_time()):
            raise too_often("this token is used too often", wait_s)
        if need != "any-token" and not caller.may(scope_of(need)):
            has = ", ".join(sorted(caller.scopes)) or "none"
            detail = f'this token may not do that: it needs the scope "{need}" and has {has}'
            raise Problem(403, "missing-scope", detail, next="Make one that may: goclaw token create --scope " + need)
        return caller

    async def _caller(self, request: Request, peer: str) -> Caller:
        given = request.headers.getlist("authorization")
        kind, _, secret = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        secret = secret.strip()
        if not secret or kind.lower() != "bearer":
            raise unknown("this needs a token in one header `Authorization: Bearer …`")
        if wait_s := self._guesses.wait_s(peer, secret, digest_of(secret), trio.current_time()):
            raise too_often(GUESSED, wait_s)
        caller = await self._doorkeeper.caller(secret)
        if caller is not None:
            self._guesses.was_right(peer, caller.digest)
            return caller
        if wait_s := self._guesses.was_wrong(peer, trio.current_time()):
            raise too_often(GUESSED, wait_s)
        raise unknown("this token is not known: it is wrong, has expired or was revoked")


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


def in_the_url(name: str) -> Problem:
    return Problem(
        400,
        "token-in-url",
        f'"{name}" stands in the address of this request, where others can read it: a token has no place there',
        next="Send it as the header `Authorization: Bearer …`, and revoke this one if it was real.",
    )


def too_often(detail: str, wait_s: float) -> Problem:
    seconds = max(1, round(wait_s + 0.5))
    return Problem(
        429, "too-often", detail, next=f"Wait {seconds} s.", headers={"Retry-After": str(seconds)}, retry_after=seconds
    )


class GuardedRoute(APIRoute):
    """A route that asks the gate first, and does not keep anybody waiting for ever."""

    def matches(self, scope: Scope_) -> tuple[Match, Scope_]:
        """A path that another route has word for word is not one of this one's ids."""
        if "{" in self.path_format and scope.get("path") in WITHOUT_BRACES:
            return Match.NONE, {}
        return super().matches(scope)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        needs = {method: ACCESS[method, self.path_format] for method in self.methods or ()}

        known = {one.alias for one in get_flat_params(self.dependant) if isinstance(one.field_info, params.Query)}

        async def guarded(request: Request) -> Response:
            office: Office = request.app.state.office
            with trio.move_on_after(office.limits.request_s) as soon:
                request.state.caller = await request.app.state.gate.admit(request, needs[request.method])
                if self.path_format not in ANY_QUERY:
                    check_query(request, known)
                soon.deadline = trio.current_time() + office.patience_s
                request.state.soon = soon
                return await handle(request)
            raise unavailable("the store has not answered in time")

        return guarded


def check_query(request: Request, known: set[str]) -> None:
    """What is misspelt would else be passed over in silence."""
    if unknown_ones := sorted(set(request.query_params) - known):
        expected = f"expected {', '.join(sorted(known))}" if known else "expected nothing after the path"
        raise Problem(
            422, "invalid-request", f"query.{excerpt(unknown_ones[0])}: there is no such parameter, {expected}"
        )


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
