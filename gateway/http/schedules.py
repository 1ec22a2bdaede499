"""Schedules over HTTP: made from phrases, intervals, expressions or instants; answered with words and next fires."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query

from cron import report
from cron.errors import AgentMissing, JobEnded
from cron.jobs import Wish, check_schedule
from cron.phrases import parse_phrase
from cron.plans import Turn
from cron.schedule import Schedule as When
from cron.schedule import at, every, parse_cron, webhook
from gateway.access.tokens import Caller
from gateway.http.gate import GuardedRoute, Me, Room
from gateway.http.keys import Key as Key
from gateway.http.keys import made_before, once, own_uid
from gateway.http.problems import Problem, documented, not_found
from gateway.http.shapes import (
    NEXT_FIRES,
    Deleted,
    HintsIn,
    Page,
    Preview,
    Schedule,
    ScheduleEdit,
    ScheduleIn,
    Trigger_,
    WhenIn,
    Why,
    schedule_shape,
    trigger_shape,
)
from gateway.office import Office
from gateway.persist import persist
from store.jobs import Job, JobStatus, Rules, TriggerKind
from store.records import HIGHEST, SessionKey

router = APIRouter(route_class=GuardedRoute, tags=["schedules"])

Id = Annotated[int, Path(ge=1, le=HIGHEST, examples=[1])]


async def when_of(office: Office, me: Caller, asked: WhenIn, *, hook: bool = False) -> When | None:
    """The schedule that the request asks for; None if it names none."""
    given = [name for name in ("when", "every", "after", "at", "cron") if getattr(asked, name) is not None]
    if len(given) + hook > 1:
        names = ", ".join([*given, *(["webhook"] if hook else [])])
        raise Problem(422, "invalid-request", f"expected one of when, every, after, at and cron, got {names}")
    zone = await office.jobs.zone(me.tenant, asked.zone)
    if hook:
        return webhook()
    if asked.when is not None:
        return parse_phrase(asked.when, now=office.now(), zone=zone)
    if asked.every is not None:
        return every(asked.every, zone)
    if asked.after is not None:
        try:
            return at(office.now() + asked.after, zone)
        except OverflowError:
            raise Problem(422, "invalid-request", "after: that is beyond the year 9999") from None
    if asked.at is not None:
        return at(asked.at, zone)
    return parse_cron(asked.cron, zone) if asked.cron is not None else None


def rules_of(asked: Any) -> dict[str, Any]:
    return {name: value for name, value in dict(asked).items() if value is not None}


def check_agent(office: Office, agent: str) -> None:
    if agent not in office.agents:
        known = ", ".join(office.agents)
        raise Problem(422, AgentMissing.code, f'there is no agent "{agent[:64]}"', next=f"There are: {known}.")


def own_session(me: Caller, text: str) -> SessionKey:
    """A session of the caller's tenant; another's is as if it were not there."""
    try:
        key = SessionKey.parse(text)
    except ValueError:
        raise not_found("session with this key", "GET /v1/sessions lists those that there are.") from None
    if key.tenant != me.tenant:
        raise not_found("session with this key", "GET /v1/sessions lists those that there are.")
    return key


@router.post("/v1/schedules/preview", responses=documented(400, 401, 403, 422, 429, 503))
async def preview(
    asked: WhenIn, me: Me, office: Room, count: Annotated[int, Query(ge=1, le=100)] = NEXT_FIRES
) -> Preview:
    """What a schedule would mean: in words, with its next fires. Nothing is kept."""
    schedule = await when_of(office, me, asked)
    if schedule is None:
        raise Problem(422, "invalid-request", "expected one of when, every, after, at and cron")
    check_schedule(schedule, office.now())
    return Preview(
        words=schedule.words(),
        kind=schedule.timing.kind,
        zone=schedule.zone.key,
        recurring=schedule.recurring,
        next_fires=list(schedule.fires(office.now(), count)),
    )


@router.post("/v1/schedules", status_code=201, responses=documented(400, 401, 403, 404, 409, 422, 429, 503))
async def create(asked: ScheduleIn, me: Me, office: Room, key: Key = None) -> Schedule:
    """Make a schedule. With an Idempotency-Key, asking again is the same schedule."""
    if (known := await made_before(office, me, key, asked)) is not None:
        return schedule_shape(known, office.now())
    check_agent(office, asked.agent)
    schedule = await when_of(office, me, asked, hook=asked.webhook)
    if schedule is None:
        raise Problem(422, "invalid-request", "expected one of when, every, after, at, cron and webhook")
    deliver_to = None if asked.deliver_to is None else own_session(me, asked.deliver_to)
    check_schedule(schedule, office.now())
    await once(office, me, "schedule", key, asked)
    job = await office.jobs.create(
        Wish(
            tenant=me.tenant,
            agent=asked.agent,
            message=asked.message,
            when=schedule,
            name=asked.name,
            rules=Rules(**rules_of(asked.rules)),
            deliver_to=deliver_to,
            session=asked.session,
            session_name=asked.session_name,
            work_source=asked.work_source,
            owner=me.name,
            at_once=asked.at_once,
            uid="" if key is None else own_uid(me, "schedule", key),
        )
    )
    return schedule_shape(job, office.now())


@router.get("/v1/schedules", responses=documented(401, 403, 422, 429, 503))
async def list_all(
    me: Me,
    office: Room,
    status: Annotated[list[JobStatus] | None, Query(description="All that may still fire, unless named.")] = None,
    after: Annotated[int, Query(ge=0, le=HIGHEST)] = 0,
    limit: Annotated[int, Query(ge=1, le=200)] = 200,
) -> Page[Schedule]:
    """The tenant's schedules by number. Looking moves nothing."""
    statuses = tuple(status) if status else (JobStatus.ACTIVE, JobStatus.PAUSED)
    find = partial(office.store.cron.jobs, me.tenant, statuses=statuses, after=after, limit=limit)
    jobs = await persist(find)
    now = office.now()
    following = str(jobs[-1].id) if len(jobs) == limit else None
    return Page(items=[schedule_shape(job, now) for job in jobs], next=following)


@router.get("/v1/schedules/{id}", responses=documented(401, 403, 404, 422, 429, 503))
async def show(id: Id, me: Me, office: Room) -> Schedule:
    return schedule_shape(await office.jobs.get(me.tenant, id), office.now())


@router.patch("/v1/schedules/{id}", responses=documented(400, 401, 403, 404, 409, 422, 429, 503))
async def edit(id: Id, asked: ScheduleEdit, me: Me, office: Room) -> Schedule:
    """Change what is named, pause or resume, all of it or nothing. What is not named stays as it is then."""
    job = await still_there(office, me, id)
    turn = turn_of(asked)
    changes: dict[str, Any] = {
        name: getattr(asked, name) for name in ("message", "agent", "name") if getattr(asked, name) is not None
    }
    if asked.agent is not None:
        check_agent(office, asked.agent)
    if rules := rules_of(asked.rules):
        changes["rules"] = rules
    if asked.zone:
        changes["zone"] = asked.zone
    # New times are meant where the old ones are.
    schedule = await when_of(office, me, asked.model_copy(update={"zone": asked.zone or job.spec.timing.zone}))
    if changes or schedule is not None or turn is not None:
        job = await office.jobs.edit(me.tenant, id, when=schedule, turn=turn, **changes)
    return schedule_shape(job, office.now())


def turn_of(asked: ScheduleEdit) -> Turn | None:
    if asked.paused_until is not None:
        if asked.status == "active":
            raise Problem(422, "invalid-request", "paused_until is for status paused")
        return Turn(active=False, until=asked.paused_until, reason=asked.reason)
    if asked.status is None:
        return None
    return Turn(asked.status == "active", reason=asked.reason if asked.status == "paused" else "")


async def still_there(office: Office, me: Caller, id: int) -> Job:
    """The schedule, if it was not deleted: its history can be read, and that is all."""
    job = await office.jobs.get(me.tenant, id)
    if job.status is JobStatus.CANCELLED:
        raise JobEnded(id, job.status)
    return job


async def still_going(office: Office, me: Caller, id: int) -> Job:
    job = await office.jobs.get(me.tenant, id)
    if job.status.ended:
        raise JobEnded(id, job.status)
    return job


@router.delete("/v1/schedules/{id}", responses=documented(401, 403, 404, 409, 422, 429, 503))
async def delete(
    id: Id, me: Me, office: Room, purge: Annotated[bool, Query(description="Its history goes too.")] = False
) -> Deleted:
    """It never fires again. Its history stays, unless it is purged."""
    await office.jobs.cancel(me.tenant, id, purge=purge)
    return Deleted()


@router.post("/v1/schedules/{id}/run", status_code=202, responses=documented(401, 403, 404, 409, 422, 429, 503))
async def run_now(id: Id, me: Me, office: Room, key: Key = None) -> Trigger_:
    """Run it once, beside its schedule."""
    return await fired(office, me, id, key, TriggerKind.MANUAL)


@router.post("/v1/schedules/{id}/trigger", status_code=202, responses=documented(401, 403, 404, 409, 422, 429, 503))
async def trigger(id: Id, me: Me, office: Room, key: Key = None) -> Trigger_:
    """A call from elsewhere fires it. A body is not looked at."""
    return await fired(office, me, id, key, TriggerKind.WEBHOOK)


async def fired(office: Office, me: Caller, id: int, key: str | None, kind: TriggerKind) -> Trigger_:
    await office.jobs.get(me.tenant, id)
    own = None if key is None else own_uid(me, kind, id, key)
    return trigger_shape(await office.jobs.run_now(me.tenant, id, key=own, kind=kind))


@router.put("/v1/schedules/{id}/hints", responses=documented(400, 401, 403, 404, 409, 422, 429, 503))
async def hint(id: Id, asked: HintsIn, me: Me, office: Room) -> Schedule:
    """Propose another pace or moment for a while; the schedule's own limits still hold."""
    await still_going(office, me, id)
    job = await office.jobs.hint(me.tenant, id, **asdict_of(asked))
    return schedule_shape(job, office.now())


def asdict_of(asked: HintsIn) -> dict[str, Any]:
    return {name: getattr(asked, name) for name in ("interval", "next_at", "lasts", "reason")}


@router.delete("/v1/schedules/{id}/hints", responses=documented(401, 403, 404, 409, 422, 429, 503))
async def unhint(id: Id, me: Me, office: Room) -> Schedule:
    return schedule_shape(await office.jobs.clear_hints(me.tenant, id), office.now())


@router.get("/v1/schedules/{id}/triggers", responses=documented(401, 403, 404, 422, 429, 503))
async def triggers(id: Id, me: Me, office: Room, limit: Annotated[int, Query(ge=1, le=200)] = 50) -> Page[Trigger_]:
    """Every slot and what became of it, the latest first."""
    await office.jobs.get(me.tenant, id)
    found = await persist(partial(office.store.cron.triggers, me.tenant, id, limit=limit))
    return Page(items=[trigger_shape(one) for one in found], next=None)


@router.get("/v1/schedules/{id}/why", responses=documented(401, 403, 404, 422, 429, 503))
async def why(id: Id, me: Me, office: Room) -> Why:
    """Why its last run and its next one are when they are, in words."""
    job = await office.jobs.get(me.tenant, id)
    cron = office.store.cron
    runs = await persist(partial(cron.runs, me.tenant, job=id, limit=1))
    slots = await persist(partial(cron.triggers, me.tenant, id))
    return Why(schedule=id, text=report.why(job, runs, slots, office.now()))
