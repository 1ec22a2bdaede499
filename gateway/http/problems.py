"""Errors over HTTP: problem details (RFC 9457) that say what happened, why, and what to do next.

    {"type": "urn:goclaw:bad-phrase", "title": "…", "status": 400, "detail": "…", "code": "bad-phrase", "next": "…"}

Every error of the product becomes one here and nowhere else; what nobody expected is a 500 that gives nothing away.
"""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import orjson
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from cron.errors import BadInput, CronError, JobNotFound, PhraseError, QuotaReached
from cron.jobs import NotAllowed
from gateway.access.scopes import UnknownScope
from gateway.plain import excerpt
from store.protocols import RuleBroken, StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

logger = logging.getLogger("goclaw.http")

MEDIA_TYPE = "application/problem+json"
SHOWN_ERRORS = 20


class Problem(Exception):
    """Raised anywhere under a route, or answered by it."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        next: str = "",
        headers: Mapping[str, str] | None = None,
        **more: object,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.next = next
        self.headers = dict(headers or {})
        self.more = more

    def body(self) -> dict[str, object]:
        return {
            "type": f"urn:goclaw:{self.code}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            **({"next": self.next} if self.next else {}),
            **self.more,
        }

    def response(self) -> Response:
        content = orjson.dumps(self.body(), default=str)
        return Response(content, self.status, self.headers, media_type=MEDIA_TYPE)


def not_found(what: str, next: str = "") -> Problem:
    return Problem(404, "not-found", f"there is no {what}", next=next)


def unavailable(detail: str, seconds: int = 5) -> Problem:
    return Problem(
        503,
        "unavailable",
        detail,
        next="Try again a little later; with an Idempotency-Key nothing happens twice.",
        headers={"Retry-After": str(seconds)},
    )


def problem_of(error: Exception) -> Problem | None:
    """The problem that an error of the product is; None for what nobody expected."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, PhraseError):
        said = str(error).partition("\n")[0]
        return Problem(
            400,
            error.code,
            said,
            next=f'Use one of the accepted forms, for instance "{error.example}".',
            error=said,
            accepted=list(error.forms),
            field=error.field,
        )
    if isinstance(error, BadInput):
        return Problem(
            400, error.code, str(error), next=f"For instance: {error.example}", field=error.field, example=error.example
        )
    if isinstance(error, JobNotFound):
        return not_found(f"schedule {error.id}", "GET /v1/schedules lists those that there are.")
    if isinstance(error, QuotaReached):
        return Problem(409, error.code, str(error), next="Delete a schedule that is not needed any more.")
    if isinstance(error, (NotAllowed, CronError)):
        return Problem(409, error.code, str(error))
    if isinstance(error, UnknownScope):
        return Problem(422, "unknown-scope", str(error))
    if isinstance(error, RuleBroken):
        return Problem(409, error.code, str(error))
    if isinstance(error, StoreError):
        return unavailable(f"the store could not do this now: {error}")
    return None


def of_http(error: HTTPException) -> Problem:
    """What the framework itself refuses: an unknown path, a method, a body that is no JSON."""
    headers = dict(error.headers or {})
    if error.status_code == 404:
        return Problem(404, "not-found", "there is nothing under this path", next="GET /openapi.json lists every path.")
    if error.status_code == 405:
        allowed = headers.get("allow") or headers.get("Allow") or ""
        return Problem(405, "method-not-allowed", f"this path takes {allowed or 'other methods'}", headers=headers)
    if error.status_code == 400:  # nothing else in the framework says so
        return no_json("it is no text, too deep, or has a number that is too long")
    return Problem(error.status_code, "refused", str(error.detail), headers=headers)


def of_validation(error: RequestValidationError, media_type: str) -> Problem:
    """Everything that is wrong with a request, at once, each with its place."""
    all_of_them = error.errors()
    if all_of_them and all_of_them[0]["type"] == "json_invalid":
        return no_json(f"{all_of_them[0]['ctx']['error']} at character {all_of_them[0]['loc'][-1]}")
    if any(tuple(one["loc"]) == ("body",) for one in all_of_them) and not is_json(media_type):
        return Problem(415, "not-json", "the body must be JSON", next="Send Content-Type: application/json with it.")
    found = [
        {
            "field": whole(".".join(str(part) for part in one["loc"])),
            "error": whole(one["msg"].removeprefix("Value error, ")),
        }
        for one in all_of_them[:SHOWN_ERRORS]
    ]
    first = found[0] if found else {"field": "", "error": "it cannot be read"}
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    detail = f"{first['field']}: {first['error']}{more}"
    return Problem(422, "invalid-request", excerpt(detail, 300), next="GET /openapi.json has the shape.", errors=found)


def no_json(why: str) -> Problem:
    return Problem(400, "bad-json", f"the body cannot be read as JSON: {why}", next="GET /openapi.json has the shape.")


def is_json(media_type: str) -> bool:
    kind = media_type.partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))


def whole(text: str) -> str:
    """What can be written: names of fields come from whoever asked, halves of characters and all."""
    return excerpt(text.encode(errors="replace").decode(), 300)


async def on_problem(request: Request, error: Exception) -> Response:
    known = problem_of(error)
    return (known if known is not None else surprise(error)).response()


async def on_http(request: Request, error: Exception) -> Response:
    return of_http(error).response() if isinstance(error, HTTPException) else surprise(error).response()


async def on_validation(request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        return surprise(error).response()
    return of_validation(error, request.headers.get("content-type", "")).response()


def surprise(error: BaseException) -> Problem:
    logger.error("a request met a mistake of ours", exc_info=error)
    return Problem(500, "internal", "something went wrong here that should not have", next="The log says what it was.")


SCHEMA: dict[str, Any] = {
    "type": "object",
    "title": "Problem",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": {"type": "string", "description": "urn:goclaw: and the code"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "what happened, and why"},
        "code": {"type": "string", "description": "stable, for programs"},
        "next": {"type": "string", "description": "what to do"},
    },
}


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems that a route may answer with, for its documentation."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": HTTPStatus(status).phrase, "content": content} for status in statuses}
