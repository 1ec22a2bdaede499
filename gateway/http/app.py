"""The API as one ASGI app: every route, in front of them the gate, around it all the guard."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException

from cron.errors import CronError
from gateway.access.scopes import UnknownScope
from gateway.http import health, messages, metrics, pairings, people, problems, runs, schedules, state
from gateway.http.gate import Gate, GuardedRoute
from gateway.http.guard import Guard
from gateway.http.meter import Meter
from gateway.http.methods import Methods
from gateway.http.table import ACCESS
from store.protocols import StoreError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from gateway.office import Office

ROUTERS = tuple(module.router for module in (health, metrics, schedules, runs, messages, state, people, pairings))
TAGS = {
    "schedules": "What agents do at certain times, or when they are called.",
    "runs": "What came of it, and a stream that tells as it happens.",
    "messages": "Talking to an agent.",
    "gateway": "Conversations, lanes, and how the gateway is.",
    "access": "Tokens, tenants, and who may write in a chat.",
}
ABOUT = """A gateway between people who chat and AI agents.

Every request but those about health carries a token: `Authorization: Bearer …`. A token belongs to a tenant, sees only
that one, and may do what its scopes say. Errors are problem details (RFC 9457) with `detail`, `code` and `next`.

Lists answer `items` and `next`: hand `next` in as `after` for what follows, until it is null. What makes something
takes an `Idempotency-Key`: sent again with the same one, the same request happens once; another request with it is
refused. Times are RFC 3339 with their zone, spans are texts such as `10m`. A body has a megabyte at most.
"""


def make_api(office: Office) -> FastAPI:
    api = FastAPI(
        title="goclaw",
        version=version("goclaw"),
        description=ABOUT,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        generate_unique_id_function=lambda route: route.name,
    )
    api.state.office = office
    api.state.gate = Gate(office.doorkeeper, office.settings.http.rate, office.limits)
    api.router.redirect_slashes = False
    for router in ROUTERS:
        api.include_router(router)
    api.router.route_class = GuardedRoute
    api.get("/openapi.json", include_in_schema=False)(reader_of(api))
    api.add_exception_handler(HTTPException, problems.on_http)
    api.add_exception_handler(RequestValidationError, problems.on_validation)
    for kind in (problems.Problem, CronError, StoreError, UnknownScope):
        api.add_exception_handler(kind, problems.on_problem)
    return api


def reader_of(api: FastAPI) -> Any:
    made: dict[str, Any] = {}

    async def openapi() -> dict[str, Any]:
        """This document."""
        if not made:
            made.update(document(api))
        return made

    return openapi


def document(api: FastAPI) -> dict[str, Any]:
    """The OpenAPI document."""
    made = get_openapi(
        title=api.title,
        version=api.version,
        summary="Chats with AI agents, and their schedules.",
        description=api.description,
        routes=api.routes,
        tags=[{"name": name, "description": about} for name, about in TAGS.items()],
        license_info={"name": "MIT", "identifier": "MIT"},
    )
    made.setdefault("components", {}).setdefault("schemas", {})["Problem"] = problems.SCHEMA
    for path, operations in made["paths"].items():
        for method, operation in operations.items():
            for status in refusals(ACCESS[method.upper(), path], has_body="requestBody" in operation):
                operation["responses"].setdefault(str(status), problems.documented(status)[status])
    return made


def refusals(need: str, *, has_body: bool) -> tuple[int, ...]:
    """The problems that come from in front of a route."""
    body = (408, 413, 415) if has_body else ()
    return (400, 403, 405, 421, 422, *body) if need == "anybody" else (400, 401, 403, 405, 421, 422, 429, 503, *body)


def routes_of(api: FastAPI | APIRouter) -> list[GuardedRoute]:
    """Every route that is served, each with its methods. What does not ask the gate cannot be served."""
    found: list[GuardedRoute] = []
    for route in api.routes:
        inside = getattr(route, "original_router", None)  # of a router that was included
        if inside is not None:
            found += routes_of(inside)
        elif isinstance(route, GuardedRoute):
            found.append(route)
        else:
            raise TypeError(f"{route!r} does not ask the gate: make it with route_class=GuardedRoute")
    return found


def make_app(office: Office, bound: str = "127.0.0.1") -> ASGIApp:
    """What a server serves."""
    hosts = [name.strip() for name in (office.settings.http.hosts or "").split(",") if name.strip()]
    api = make_api(office)
    guarded = Guard(Methods(api, routes_of(api)), office.limits, bound, hosts)
    return Meter(guarded, office.figures)
