"""Sessions, lanes, workers and what goes on, over HTTP."""

from __future__ import annotations

from collections import Counter
from functools import partial
from importlib.metadata import version
from typing import Annotated, Any
from uuid import uuid4

from fastapi import APIRouter, Path, Query

from cron.service import CronState
from cron.zones import read_zone
from gateway.access.tokens import Caller
from gateway.channels.http import CHANNEL
from gateway.http.gate import GuardedRoute, Me, Room
from gateway.http.keys import Key, once
from gateway.http.problems import Problem, documented, not_found
from gateway.http.schedules import own_session
from gateway.http.shapes import (
    LONGEST_KEY,
    AgentOut,
    Deleted,
    LaneIn,
    LaneOut,
    LineOut,
    MeOut,
    Page,
    PolicyIn,
    RunningOut,
    ServiceOut,
    SessionOut,
    Status,
    StopIn,
    Stopping,
    WorkerOut,
    line_shape,
    schedule_shape,
    session_shape,
    stamp,
    worker_shape,
)
from gateway.office import Office
from gateway.persist import persist
from gateway.timetable import LOOKED_AT
from store.records import HIGHEST, DeliveryKey, Incoming, Session, SessionKey, SessionPolicy

router = APIRouter(route_class=GuardedRoute, tags=["gateway"])

NEXT_SHOWN = 5
JOBS = "cron"
"""Where the runs of jobs are that share no conversation: the session is the job and the run."""
SessionId = Annotated[str, Path(min_length=1, max_length=LONGEST_KEY, examples=["default:main:http::main::0"])]


@router.get("/v1/me", responses=documented(401, 403, 422, 429, 503))
async def me(me: Me) -> MeOut:
    """Whose token this is."""
    return MeOut(tenant=me.tenant, token=me.token, name=me.name, scopes=sorted(me.scopes))


@router.get("/v1/status", responses=documented(401, 403, 422, 429, 503))
async def status(me: Me, office: Room) -> Status:
    """What runs, what waits and what is next: of the tenant, and lanes and services as they are for all."""
    gateway, now = office.gateway, office.now()
    jobs = await office.jobs.list(me.tenant, limit=LOOKED_AT)
    planned = sorted((job for job in jobs if job.next_at is not None), key=lambda job: job.next_at or now)
    counts = await persist(partial(office.store.cron.counts, me.tenant))
    timetable = None if gateway is None else gateway.timetable
    cron = None if timetable is None else timetable.service.state()
    return Status(
        version=version("goclaw"),
        mode="managed" if office.settings.managed else "standalone",
        state="running" if gateway is not None else "waiting" if office.serving else "stopped",
        started_at=office.started_at,
        now=now,
        lanes=lanes_of(office, me),
        running=[
            RunningOut(
                run=one.run,
                session=one.session,
                agent=one.agent,
                lane=one.lane,
                of=one.of,
                since=one.since,
                trace=one.trace,
            )
            for one in office.activity.running(me.tenant)
        ],
        next=[schedule_shape(job, now) for job in planned[:NEXT_SHOWN]],
        schedules=counts._asdict(),
        services=services_of(office, full=me.may("operator")),
        cron={} if cron is None else cron_figures(cron, full=me.may("operator")),
    )


def cron_figures(cron: CronState, *, full: bool) -> dict[str, Any]:
    if not full:
        return {"status": str(cron.status)}
    return {
        "status": str(cron.status),
        "checks": cron.check_count,
        "triggers": cron.trigger_count,
        "started_at": None if cron.started_at is None else stamp(cron.started_at),
        "last_check_at": None if cron.last_check_at is None else stamp(cron.last_check_at),
    }


def services_of(office: Office, *, full: bool) -> list[ServiceOut]:
    health = () if office.gateway is None else office.gateway.health()
    return [
        ServiceOut(
            name=one.name, state=one.state, since=one.since, restarts=one.restarts, error=one.error if full else ""
        )
        for one in health
    ]


def lanes_of(office: Office, me: Caller) -> list[LaneOut]:
    """How full each lane is: for operators with all figures, for others with their own tenant's runs only."""
    if office.scheduler is None:
        limits = office.settings.lane.model_dump()
        return [LaneOut(name=name, limit=limit) for name, limit in limits.items()]
    lanes = office.scheduler.statistics().lanes
    if not me.may("operator"):
        own = Counter(one.lane for one in office.activity.running(me.tenant))
        return [LaneOut(name=lane.name, limit=lane.limit, active=own[lane.name]) for lane in lanes]
    return [
        LaneOut(
            name=lane.name,
            limit=lane.limit,
            active=lane.active,
            parked=lane.parked,
            waiting=lane.waiting,
            stuck=lane.stuck,
            started=lane.started,
            wait_p50_s=lane.wait.p50_s,
            wait_p99_s=lane.wait.p99_s,
            oldest_wait_s=lane.oldest_wait_s,
        )
        for lane in lanes
    ]


@router.get("/v1/agents", responses=documented(401, 403, 429, 503))
async def agents(me: Me, office: Room) -> Page[AgentOut]:
    """Whom one can write to and schedule for."""
    return Page(items=[AgentOut(name=name) for name in office.agents], next=None)


@router.get("/v1/lanes", responses=documented(401, 403, 422, 429, 503))
async def lanes(me: Me, office: Room) -> Page[LaneOut]:
    """What runs at once, and how much of it; only operators see more of it than their own tenant's runs."""
    return Page(items=lanes_of(office, me), next=None)


@router.put("/v1/lanes/{name}", responses=documented(401, 403, 404, 409, 422, 429, 503))
async def resize(
    name: Annotated[str, Path(min_length=1, max_length=64, examples=["main"])], asked: LaneIn, me: Me, office: Room
) -> LaneOut:
    """How many runs the lane has at once, from now on until the gateway ends."""
    if name not in office.settings.lane.model_dump():
        raise not_found("lane of this name", "GET /v1/lanes lists those that there are.")
    if office.gateway is None:
        variable = f"GOCLAW_LANE_{name.upper()}"
        raise Problem(409, "not-running", "no gateway runs here", next=f"Set {variable}={asked.limit} in .env.")
    office.gateway.scheduler.lanes.resize(name, asked.limit)
    return next(lane for lane in lanes_of(office, me) if lane.name == name)


@router.get("/v1/workers", responses=documented(401, 403, 422, 429, 503))
async def workers(me: Me, office: Room) -> Page[WorkerOut]:
    """The processes that work on this store."""
    return Page(items=[worker_shape(one) for one in await persist(office.store.workers)], next=None)


@router.get("/v1/sessions", responses=documented(401, 403, 422, 429, 503))
async def sessions(
    me: Me,
    office: Room,
    after: Annotated[str, Query(max_length=LONGEST_KEY)] = "",
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Page[SessionOut]:
    """The tenant's conversations by key."""
    found = await persist(partial(office.store.sessions, me.tenant, limit=limit, after=after))
    following = str(found[-1].key) if len(found) == limit else None
    return Page(items=[with_figures(office, one) for one in found], next=following)


def with_figures(office: Office, session: Session) -> SessionOut:
    if office.scheduler is None:
        return session_shape(session)
    here = office.scheduler.session_statistics(str(session.key))
    return session_shape(session, here.running, here.buffered + here.waiting + here.steering)


@router.get("/v1/sessions/{key}", responses=documented(401, 403, 404, 422, 429, 503))
async def session(key: SessionId, me: Me, office: Room) -> SessionOut:
    found = await persist(partial(office.store.session, own_session(me, key)))
    if found is None:
        raise not_found("session with this key", "GET /v1/sessions lists those that there are.")
    return with_figures(office, found)


@router.delete("/v1/sessions/{key}", responses=documented(401, 403, 404, 422, 429, 503))
async def forget(key: SessionId, me: Me, office: Room) -> Deleted:
    """Its transcript and what was set for it are gone."""
    if not await persist(partial(office.store.forget, own_session(me, key))):
        raise not_found("session with this key")
    return Deleted()


@router.get("/v1/sessions/{key}/transcript", responses=documented(401, 403, 404, 422, 429, 503))
async def transcript(
    key: SessionId,
    me: Me,
    office: Room,
    after: Annotated[int, Query(ge=0, le=HIGHEST)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Page[LineOut]:
    """What was said, in order."""
    own = own_session(me, key)
    if await persist(partial(office.store.session, own)) is None:
        raise not_found("session with this key")
    lines = await persist(partial(office.store.transcript, own, after=after, limit=limit))
    following = str(lines[-1].number) if len(lines) == limit else None
    return Page(items=[line_shape(line) for line in lines], next=following)


@router.patch("/v1/sessions/{key}/policy", responses=documented(400, 401, 403, 404, 422, 429, 503))
async def set_policy(key: SessionId, asked: PolicyIn, me: Me, office: Room) -> SessionOut:
    """How its messages are treated, from the next one on."""
    own = own_session(me, key)
    named = asked.model_dump(exclude_unset=True)
    if asked.zone is not None:
        named["zone"] = read_zone(asked.zone).key
    if await persist(partial(office.store.session, own)) is None:
        raise not_found("session with this key", "GET /v1/sessions lists those that there are.")
    changed = await persist(partial(office.store.set_policy, own, SessionPolicy(**named), tuple(named)))
    return with_figures(office, changed)


@router.post("/v1/sessions/{key}/stop", status_code=202, responses=documented(401, 403, 404, 422, 429, 503))
async def stop(key: SessionId, asked: StopIn, me: Me, office: Room, idempotency: Key = None) -> Stopping:
    """Stop what runs there, or all of it. The conversation is told; whichever gateway works on it does it."""
    own = own_session(me, key)
    await once(office, me, "stop", idempotency, str(own), asked)
    if own.channel == JOBS:
        return stop_job(office, own)
    await check_known(office, own)
    delivery = DeliveryKey(CHANNEL, "", f"{me.token}:stop:{idempotency or uuid4().hex}")
    text = "/stopall" if asked.everything else "/stop"
    receipt = await office.hand_in(Incoming(delivery, own, me.name, text, admin=True, control=True))
    return Stopping(session=str(own), state=receipt.state)


async def check_known(office: Office, own: SessionKey) -> None:
    """The answer is said there, so nobody is to be written to who has never said anything."""
    if own.channel == CHANNEL or await persist(partial(office.store.session, own)) is not None:
        return
    if office.scheduler is not None and str(own) in office.scheduler.sessions:
        return
    raise not_found("session with this key", "GET /v1/sessions lists those that there are.")


def stop_job(office: Office, own: SessionKey) -> Stopping:
    """Nobody is there who could be told: the run ends, and cron writes down that somebody stopped it."""
    here = f"cron:{own.tenant}:{own.chat}:{own.thread}"
    if office.scheduler is None or not office.scheduler.cancel_all(here):
        raise not_found("run of a job with this key at work here", "GET /v1/status lists what runs.")
    return Stopping(session=str(own), state="done")
