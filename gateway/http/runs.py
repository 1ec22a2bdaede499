"""Runs and notifications over HTTP: what happened, and what happens."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query
from starlette.responses import PlainTextResponse, StreamingResponse

from gateway.access.tokens import Caller
from gateway.http.events import BEAT, Pulse, begun, documented_stream, frame
from gateway.http.gate import GuardedRoute, Me, Room
from gateway.http.problems import Problem, documented, not_found
from gateway.http.shapes import Notification_, Page, Run_, notification_shape, run_shape, stamp
from gateway.news import Read
from gateway.office import Office
from gateway.persist import persist
from store.jobs import Notification
from store.records import HIGHEST

router = APIRouter(route_class=GuardedRoute, tags=["runs"])

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
    """Newest first; with `since` oldest first, and `next` is the `since` to go on with, that run included.

    More than `limit` come if so many began at the same instant.
    """
    if schedule is not None:
        await office.jobs.get(me.tenant, schedule)
    start = None if since is None else moment_of(since)
    many = limit
    while True:
        found = await persist(partial(office.store.cron.runs, me.tenant, job=schedule, since=start, limit=many))
        if start is None or len(found) < many or found[-1].started_at > start:
            break
        many *= 2  # all of them began at that instant: a page must go beyond it, or nobody would get on
    following = stamp(found[-1].started_at) if start is not None and len(found) == many else None
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
    responses={200: documented_stream("Server-sent events."), **documented(401, 403, 422, 429, 503)},
)
async def stream(
    me: Me,
    office: Room,
    last: Annotated[str | None, Header(alias="Last-Event-ID", max_length=32)] = None,
) -> StreamingResponse:
    """`open`, then every `notification` of the tenant once and in order; after Last-Event-ID if that is sent.

    Without it, what comes from now on; after 0, everything that is kept. `reset` tells that there is a gap: what was
    asked for is not kept any more, or never was; the data say after which number, and which one is `next`.
    `GET /v1/runs?since=` has what was missed.
    """
    if last is not None and not (last.isascii() and last.isdigit() and int(last) <= HIGHEST):
        raise Problem(422, "invalid-request", "Last-Event-ID: expected the id of an event of this stream")
    return await begun(told(office, me, None if last is None else int(last)))


async def told(office: Office, me: Caller, after: int | None) -> AsyncGenerator[bytes]:
    with ExitStack() as open_:
        this = open_.enter_context(office.streams.open(me, "read"))
        feed = open_.enter_context(office.news.following(me.tenant, this))
        newest = await feed.now()
        place = newest if after is None else min(after, newest)
        # With its number, so that a client that is cut off before anything happens misses nothing all the same.
        yield frame("open", {"ok": True}, place)
        if after is not None and after > newest:
            yield reset(after, newest)
        pulse = Pulse(office.beat_s)
        while not this.ended:
            this.ready()
            read = Read([], place)
            with this.asking(pulse.due_at):
                read = await feed.after(place)
            if this.ended:
                return
            before = read.news[0].seq - 1 if read.news else read.upto
            if before > place:
                yield reset(place, before)
            place = read.upto
            if read.news:
                yield b"".join(office.news.once(one, notified) for one in read.news)
            elif not await this.wait(pulse.left_s):
                pulse.shown()
                yield BEAT


def notified(one: Notification) -> bytes:
    return frame("notification", notification_shape(one).model_dump(), one.seq)


def reset(after: int, place: int) -> bytes:
    """What follows does not follow on what the client has: it goes on after ``place``."""
    return frame("reset", {"after": after, "next": place + 1}, place)
