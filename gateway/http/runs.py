"""Runs and notifications over HTTP: what happened, and what happens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

import orjson
import trio
from fastapi import APIRouter, Header, Path, Query
from starlette.responses import PlainTextResponse, StreamingResponse

from gateway.access.tokens import Caller
from gateway.http.gate import GuardedRoute, Me, Room
from gateway.http.problems import Problem, documented, not_found
from gateway.http.shapes import Notification_, Page, Run_, notification_shape, run_shape, stamp
from gateway.office import Office
from gateway.persist import persist
from store.jobs import Notification
from store.records import HIGHEST

router = APIRouter(route_class=GuardedRoute, tags=["runs"])

BEAT_S = 30.0
"""A stream with nothing to say shows that it is there."""
SSE = "text/event-stream"
STREAM: dict[int | str, dict[str, Any]] = {
    200: {"content": {SSE: {"schema": {"type": "string"}}}, "description": "Server-sent events."}
}

Id = Annotated[str, Path(min_length=1, max_length=128)]


def moment_of(text: str) -> datetime:
    """Seconds since 1970, or RFC 3339."""
    try:
        seconds = float(text)
    except ValueError:
        try:
            moment = datetime.fromisoformat(text)
            if moment.utcoffset() is not None:
                return moment.astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    else:
        try:
            return datetime.fromtimestamp(seconds, UTC)
        except (ValueError, OverflowError, OSError):
            pass
    raise Problem(422, "invalid-request", "since: expected seconds since 1970 or a time such as 2030-06-01T12:00:00Z")


@router.get("/v1/runs", responses=documented(401, 403, 404, 422, 429, 503))
async def runs(
    me: Me,
    office: Room,
    since: Annotated[str | None, Query(max_length=64, description="Runs that began then or later.")] = None,
    schedule: Annotated[int | None, Query(ge=1, le=HIGHEST)] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 100,
) -> Page[Run_]:
    """Newest first; with `since` oldest first, and `next` is the `since` to go on with, that run included."""
    if schedule is not None:
        await office.jobs.get(me.tenant, schedule)
    start = None if since is None else moment_of(since)
    found = await persist(partial(office.store.cron.runs, me.tenant, job=schedule, since=start, limit=limit))
    following = stamp(found[-1].started_at) if start is not None and len(found) == limit else None
    return Page(items=[run_shape(run) for run in found], next=following)


@router.get("/v1/runs/{id}", responses=documented(401, 403, 404, 422, 429, 503))
async def run(id: Id, me: Me, office: Room) -> Run_:
    found = await persist(partial(office.store.cron.run, me.tenant, id))
    if found is None:
        raise no_run()
    return run_shape(found)


@router.get(
    "/v1/runs/{id}/output", response_class=PlainTextResponse, responses=documented(401, 403, 404, 422, 429, 503)
)
async def output(id: Id, me: Me, office: Room) -> PlainTextResponse:
    """All that the run said."""
    text = await persist(partial(office.store.cron.output, me.tenant, id))
    if text is None:
        raise no_run()
    return PlainTextResponse(text)


def no_run() -> Problem:
    return not_found("run with this id", "GET /v1/runs lists the latest.")


@router.get("/v1/notifications", responses=documented(401, 403, 422, 429, 503))
async def notifications(
    me: Me,
    office: Room,
    after: Annotated[int, Query(ge=0, le=HIGHEST)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Page[Notification_]:
    """What happened to schedules, in order, from the first one after that number on."""
    found = await persist(partial(office.store.cron.notifications, me.tenant, after=after, limit=limit))
    following = str(found[-1].seq) if len(found) == limit else None
    return Page(items=[notification_shape(one) for one in found], next=following)


@router.get(
    "/v1/notifications/stream",
    response_class=StreamingResponse,
    responses={**STREAM, **documented(401, 403, 422, 429, 503)},
)
async def stream(
    me: Me,
    office: Room,
    last: Annotated[str | None, Header(alias="Last-Event-ID", max_length=32)] = None,
) -> StreamingResponse:
    """`open`, then every `notification` of the tenant once and in order; after Last-Event-ID if that is sent."""
    if last is not None and not (last.isascii() and last.isdigit() and int(last) <= HIGHEST):
        raise Problem(422, "invalid-request", "Last-Event-ID: expected the id of an event of this stream")
    return StreamingResponse(told(office, me, None if last is None else int(last)), media_type=SSE)


async def told(office: Office, me: Caller, after: int | None) -> AsyncIterator[bytes]:
    with ExitStack() as open_:
        this = open_.enter_context(office.streams.open(me, "read"))
        feed = open_.enter_context(office.news.following(me.tenant, this))
        place = await feed.now() if after is None else after
        yield b'event: open\ndata: {"ok":true}\n\n'
        beat_at = trio.current_time() + BEAT_S
        while not this.ended:
            this.ready()
            if some := await feed.after(place):
                place = some[-1].seq
                yield b"".join(frame(one) for one in some)
            elif not await this.wait(max(beat_at - trio.current_time(), 0.0)):
                yield b": heartbeat\n\n"
                beat_at = trio.current_time() + BEAT_S


def frame(one: Notification) -> bytes:
    body = orjson.dumps(notification_shape(one).model_dump())
    return b"id: %d\nevent: notification\ndata: %s\n\n" % (one.seq, body)
