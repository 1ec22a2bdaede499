"""The OpenAPI document: complete, so that a client can be made from it, and nothing in it that is secret."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gateway.clock import utc_now
from gateway.http.app import TAGS, document, make_api
from gateway.http.table import ACCESS
from gateway.work import make_office
from store.memory import MemoryStore
from tests.http.calls import CALLS
from tests.http.world import settings_for

if TYPE_CHECKING:
    from pathlib import Path

MEDIA_TYPE = "application/problem+json"
Operations = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture
def whole_document(tmp_path: Path) -> dict[str, Any]:
    return document(make_api(make_office(settings_for(tmp_path), MemoryStore(utc_now), ["main"], "local_secret")))


@pytest.fixture
def operations(whole_document: dict[str, Any]) -> Operations:
    paths = whole_document["paths"]
    return {(method.upper(), path): one for path, methods in paths.items() for method, one in methods.items()}


def test_every_route_stands_in_it(operations: Operations) -> None:
    """But the document itself; each under a name of its own, with a tag that is explained."""
    assert set(operations) == set(ACCESS) - {("GET", "/openapi.json")}
    names = [one["operationId"] for one in operations.values()]
    assert len(set(names)) == len(names)
    for route, one in operations.items():
        assert one["summary"], route
        assert set(one["tags"]) <= set(TAGS), route


def test_every_route_says_how_it_refuses(operations: Operations) -> None:
    """Each problem that comes from in front of it, by status, as a problem."""
    for route, one in operations.items():
        expected = {400, 403, 405, 421, 422}
        if ACCESS[route] != "anybody":
            expected |= {401, 429, 503}
        if CALLS[route].json is not None:
            expected |= {408, 413, 415}
        if "{" in route[1]:
            expected.add(404)
        for status in expected:
            found = one["responses"][str(status)]["content"][MEDIA_TYPE]["schema"]
            assert found == {"$ref": "#/components/schemas/Problem"}, route


def test_a_token_is_asked_for_where_it_is_needed(whole_document: dict[str, Any], operations: Operations) -> None:
    """The security scheme stands on every route but those of health."""
    (scheme,) = whole_document["components"]["securitySchemes"]
    assert whole_document["components"]["securitySchemes"][scheme]["scheme"] == "bearer"
    for route, one in operations.items():
        assert one.get("security", []) == ([] if ACCESS[route] == "anybody" else [{scheme: []}]), route


def test_it_is_about_something(whole_document: dict[str, Any]) -> None:
    """A title, a version, words, tags and examples; no secret and nothing of this machine."""
    info = whole_document["info"]
    assert (info["title"], info["license"]["name"]) == ("goclaw", "MIT")
    assert "Idempotency-Key" in info["description"]
    assert {tag["name"] for tag in whole_document["tags"]} == set(TAGS)
    schemas = whole_document["components"]["schemas"]
    assert schemas["ScheduleIn"]["properties"]["when"]["examples"]
    assert schemas["MessageIn"]["properties"]["text"]["examples"]
    assert schemas["HintsIn"]["properties"]["lasts"]["default"] == "1h"
    assert "local_secret" not in str(whole_document)


def test_what_makes_something_takes_a_key(operations: Operations) -> None:
    """Every POST that leaves something behind."""
    for route, one in operations.items():
        headers = [given["name"] for given in one.get("parameters", []) if given["in"] == "header"]
        takes = route[0] == "POST" and route[1] != "/v1/schedules/preview"
        assert ("Idempotency-Key" in headers) == takes, route
