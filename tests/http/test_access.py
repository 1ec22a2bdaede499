"""Who may use which route, from the one table: every route with every kind of token that is not good enough. (S7)"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from fastapi import APIRouter, FastAPI
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute

from gateway.access.limits import Limits
from gateway.access.scopes import SCOPES, Scope
from gateway.clock import utc_now
from gateway.http.app import make_api, make_app, routes_of
from gateway.http.gate import GuardedRoute
from gateway.http.table import ACCESS
from tests.http.calls import CALLS, STREAM, served_routes, something_of_everything
from tests.http.look import everything
from tests.http.world import open_served, problem_of

if TYPE_CHECKING:
    import httpx2

    from tests.http.calls import Owned
    from tests.http.world import Served

PATIENT = Limits(wrong_burst=1_000_000)
GUARDED = [(method, path, need) for (method, path), need in ACCESS.items() if need != "anybody"]


async def test_every_route_has_an_entry_and_every_entry_a_route() -> None:
    """The table, the routes and the requests of these tests name the same."""
    async with open_served() as served:
        routes = served_routes(served)
    assert routes == set(ACCESS) == set(CALLS)


def test_a_route_without_an_entry_cannot_be_made() -> None:
    """Nobody can forget to say who may use it."""
    router = APIRouter(route_class=GuardedRoute)
    with pytest.raises(KeyError):
        router.get("/v1/forgotten")(open_served)


def a_router() -> FastAPI:
    """With one route in a router that was included, and that is not in the document."""
    plain, api = APIRouter(), FastAPI(openapi_url=None)
    plain.get("/v1/forgotten", include_in_schema=False)(open_served)
    api.include_router(plain)
    return api


@pytest.mark.parametrize(
    "hidden",
    [
        a_router().routes[0],
        Route("/v1/forgotten", PlainTextResponse),
        WebSocketRoute("/v1/forgotten", PlainTextResponse),
        Mount("/v1/forgotten", PlainTextResponse("")),
    ],
    ids=["router", "function", "websocket", "mount"],
)
async def test_what_does_not_ask_the_gate_is_not_served(hidden: BaseRoute) -> None:
    """Whatever kind of route it is, and wherever it was added: the app with it cannot be made."""
    async with open_served() as served:
        api = make_api(served.office)
        assert routes_of(api)
        api.router.routes.append(hidden)
        with pytest.raises(TypeError, match="does not ask the gate"):
            routes_of(api)


async def tokens_for(served: Served, need: str) -> dict[str, tuple[str | None, int]]:
    """Every kind of token that must not open a route with this need, and what it is told."""
    past = utc_now() - timedelta(minutes=1)
    revoked, was_good = await served.token()
    assert await served.store.revoke_token("default", revoked)
    kinds: dict[str, tuple[str | None, int]] = {
        "no": (None, 401),
        "wrong": (f"gck_{'w' * 43}", 401),
        "empty": ("", 401),
        "garbage": ("\x7f\xff~ Bearer", 401),
        "long": ("x" * 10_000, 401),
        "expired": ((await served.token(expires_at=past))[1], 401),
        "revoked": (was_good, 401),
        "disabled": (await of_disabled(served), 401),
    }
    if need != "any-token":
        others: list[Scope] = [scope for scope in SCOPES if scope != need]
        kinds["other scope"] = ((await served.token(*others))[1], 403)
    return kinds


async def of_disabled(served: Served) -> str:
    if await served.store.tenant("off") is None:
        await served.tenant("off")
    secret = await served.secret(tenant="off")
    await served.store.enable_tenant("off", False)
    return secret


async def ask(
    client: httpx2.AsyncClient, owned: Owned, method: str, path: str, secret: str | None, **headers: str
) -> httpx2.Response:
    given: Any = {} if secret is None else {"authorization": f"Bearer {secret}".strip().encode("latin-1")}
    return await client.request(method, owned.path(path), json=CALLS[method, path].json, headers={**given, **headers})


async def test_no_token_that_is_not_good_enough_opens_anything() -> None:
    """Every route with every such token: 401 or 403 with a problem, documented, and nothing is changed."""
    async with open_served(limits=PATIENT) as served, served.client() as client:
        owned = await something_of_everything(served, "default")
        document = (await client.get("/openapi.json")).json()["paths"]
        tokens = {need: await tokens_for(served, need) for need in {need for _, _, need in GUARDED}}
        before = await everything(served.store)
        for method, path, need in GUARDED:
            for kind, (secret, status) in tokens[need].items():
                answer = await ask(client, owned, method, path, secret)
                assert answer.status_code == status, (method, path, kind, answer.text)
                problem = problem_of(answer)
                assert problem["next"], (method, path, kind)
                assert str(answer.status_code) in document[path][method.lower()]["responses"], (method, path)
                assert secret is None or len(secret) < 8 or secret not in answer.text
                if answer.status_code == 401:
                    assert answer.headers["www-authenticate"] == 'Bearer realm="goclaw"'
        assert await everything(served.store) == before


async def test_every_route_opens_for_its_scope_and_needs_no_other() -> None:
    """A token with just the scope of the table gets past the gate everywhere."""
    async with open_served() as served, served.client() as client:
        owned = await something_of_everything(served, "default")
        for method, path, need in GUARDED:
            if path == STREAM or method == "DELETE":
                continue
            scopes: list[Scope] = [scope for scope in SCOPES if need in (scope, "any-token")]
            secret = await served.secret(*scopes)
            answer = await ask(client, owned, method, path, secret)
            assert answer.status_code not in (401, 403) or "cannot give it away" in answer.text, (method, path)
            assert answer.status_code < 500, answer.text
            await served.store.enable_tenant("default", True)


async def test_a_body_is_not_read_before_the_token_was_looked_at() -> None:
    """Every route with a body, asked without a good token: answered without a look at a single byte of it."""
    async with open_served(limits=PATIENT) as served:
        app = make_app(served.office)
        for method, path, need in GUARDED:
            if CALLS[method, path].json is None:
                continue
            statuses: list[int] = []

            async def receive() -> Any:
                raise AssertionError("the body was read")

            async def send(message: Any, statuses: list[int] = statuses) -> None:
                if message["type"] == "http.response.start":
                    statuses.append(message["status"])

            for kind, (secret, status) in (await tokens_for(served, need)).items():
                headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"content-length", b"9")]
                if secret is not None:
                    headers.append((b"authorization", f"Bearer {secret}".strip().encode("latin-1")))
                url = path.format(id=1, key="default:main:http::main::0", name="main")
                scope = {
                    "type": "http",
                    "method": method,
                    "path": url,
                    "raw_path": url.encode(),
                    "query_string": b"",
                    "headers": headers,
                    "client": ("127.0.0.1", 1),
                    "scheme": "http",
                    "server": ("localhost", 1),
                    "state": {},
                }
                await app(scope, receive, send)
                assert statuses[-1] == status, (method, path, kind)
