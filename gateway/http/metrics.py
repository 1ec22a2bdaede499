"""Everything in figures, in the format of Prometheus. What is in it: docs/metrics.md."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest
from starlette.responses import Response

from gateway.http.gate import GuardedRoute, Me, Room
from gateway.http.problems import documented
from gateway.metrics.reading import Reading

router = APIRouter(route_class=GuardedRoute, tags=["gateway"])

TEXT: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "The figures."}
}


@router.get("/metrics", response_class=Response, responses={**TEXT, **documented(401, 403, 422, 429, 503)})
async def metrics(me: Me, office: Room) -> Response:
    """Of all tenants together, for Prometheus. Costs some milliseconds; the store is asked one small question."""
    office.lag.look()
    seen = await office.pulse.feel()
    registry = CollectorRegistry()
    registry.register(Reading(office, seen))
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)
