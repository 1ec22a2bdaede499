"""The API as one ASGI app: every route, in front of them the gate, around it all the guard."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from cron.errors import CronError
from gateway.access.scopes import UnknownScope
from gateway.http import health, messages, metrics, people, problems, runs, schedules, state
from gateway.http.gate import Gate, GuardedRoute
from gateway.http.guard import Guard
from gateway.http.meter import Meter
from store.protocols import StoreError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from gateway.office import Office

ABOUT = """A gateway between people who chat and AI agents.

Every request but those about health carries a token: `Authorization: Bearer …`. A token belongs to a tenant, sees only
that one, and may do what its scopes say. Errors are problem details (RFC 9457) with `detail`, `code` and `next`.
"""


def make_api(office: Office) -> FastAPI:
    api = FastAPI(
        title="goclaw", version=version("goclaw"), description=ABOUT, docs_url=None, redoc_url=None, openapi_url=None
    )
    api.state.office = office
    api.state.gate = Gate(office.doorkeeper, office.settings.http.rate)
    api.router.redirect_slashes = False
    for module in (health, metrics, schedules, runs, messages, state, people):
        api.include_router(module.router)
    api.router.route_class = GuardedRoute
    api.get("/openapi.json", include_in_schema=False)(lambda_for(api))
    api.add_exception_handler(HTTPException, problems.on_http)
    api.add_exception_handler(RequestValidationError, problems.on_validation)
    for kind in (problems.Problem, CronError, StoreError, UnknownScope):
        api.add_exception_handler(kind, problems.on_problem)
    return api


def lambda_for(api: FastAPI) -> Any:
    made: dict[str, Any] = {}

    async def openapi() -> dict[str, Any]:
        """This document."""
        if not made:
            made.update(document(api))
        return made

    return openapi


def document(api: FastAPI) -> dict[str, Any]:
    """The OpenAPI document."""
    made = get_openapi(title=api.title, version=api.version, description=api.description, routes=api.routes)
    made.setdefault("components", {}).setdefault("schemas", {})["Problem"] = problems.SCHEMA
    return made


def routes_of(api: FastAPI) -> list[APIRoute]:
    return [route for route in api.routes if isinstance(route, APIRoute)]


def make_app(office: Office, bound: str = "127.0.0.1") -> ASGIApp:
    """What a server serves."""
    hosts = [name.strip() for name in (office.settings.http.hosts or "").split(",") if name.strip()]
    return Meter(Guard(make_api(office), bound, hosts), office.figures)
