"""What goes in and comes out over HTTP. Times are RFC 3339 with Z; spans are texts such as `10m`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    Strict,
    WithJsonSchema,
)

from cron.durations import duration_text, parse_duration
from cron.errors import DurationError
from cron.report import upcoming
from cron.schedule import schedule_of
from gateway.access.pairing import id_of
from store.records import DropPolicy, QueueMode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from store.jobs import Job, Notification, Run, Trigger
    from store.pairing import Pairing
    from store.records import ApiToken, Line, Session, Tenant, Worker

Item = TypeVar("Item")

NEXT_FIRES = 5
ONE = re.compile(r"([0-9.]+) *([a-zA-Z]+)")
SEVERAL = re.compile(r"(?:[0-9.]{1,20} *[a-zA-Z]{1,20} *){1,6}")
UNITS = {"second": "s", "minute": "m", "hour": "h", "day": "d"}
LONGEST_KEY = 5_000
"""Characters of a session's key: every one of its parts may be written out byte by byte."""


def stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def short(unit: str) -> str:
    return UNITS.get(unit.lower().removesuffix("s"), unit)


def read_span(value: object) -> object:
    if isinstance(value, timedelta):
        return value
    if not isinstance(value, str):
        raise ValueError('expected a text such as "10m"')
    try:
        if SEVERAL.fullmatch(value):  # as spans are written in answers
            return sum((parse_duration(number + short(unit)) for number, unit in ONE.findall(value)), timedelta())
        return parse_duration(value)
    except (DurationError, OverflowError) as error:
        raise ValueError(str(error)) from None


def read_moment(value: object) -> object:
    """A number is nobody's way to write a time."""
    if not isinstance(value, datetime) and not (isinstance(value, str) and "-" in value[1:]):
        raise ValueError("expected a time with its zone, for instance 2030-06-01T12:00:00Z")
    return value


def aware(moment: datetime) -> datetime:
    if moment.utcoffset() is None:
        raise ValueError("expected a time with its zone, for instance 2030-06-01T12:00:00Z")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("expected a time between the years 1 and 9999 in UTC") from None


def sendable(text: str) -> str:
    """Half of a surrogate pair cannot be kept, and no store keeps NUL."""
    if "\0" in text or any("\ud800" <= one <= "\udfff" for one in text):
        raise ValueError("expected whole characters, and no NUL among them")
    return text


Moment = Annotated[
    datetime, BeforeValidator(read_moment), AfterValidator(aware), PlainSerializer(stamp, return_type=str)
]
Span = Annotated[
    timedelta,
    BeforeValidator(read_span),
    PlainSerializer(duration_text, return_type=str),
    WithJsonSchema({"type": "string", "examples": ["10m", "1h 30m"]}),
]
Text = Annotated[str, AfterValidator(sendable)]
Whole = Annotated[int, Strict()]
Flag = Annotated[bool, Strict()]
"""1 is no yes, and yes is no 1."""


class Shape(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Page(BaseModel, Generic[Item]):
    items: list[Item]
    next: str | None = Field(None, description="Hand this in as `after` for what follows; null at the end.")


# ── schedules ────────────────────────────────────────────────────────────────────────────────────────────────────────


class WhenIn(Shape):
    """Exactly one of these says when."""

    when: Text | None = Field(
        None,
        max_length=1_000,
        description="A phrase, a cron expression or an instant.",
        examples=["every weekday at 9am", "in 2 hours", "0 9 * * 1-5"],
    )
    every: Span | None = Field(None, description="An interval, for instance 10m.")
    after: Span | None = Field(None, description="Once, so long from now.")
    at: Moment | None = Field(None, description="Once, at this instant.")
    cron: Text | None = Field(None, max_length=1_000, description="A cron expression.", examples=["0 9 * * 1-5"])
    zone: Text = Field("", max_length=100, description="Where times are meant.", examples=["Europe/Berlin"])


class RulesIn(Shape):
    overlap: Literal["skip", "queue"] | None = None
    catch_up: Literal["one", "skip"] | None = None
    grace: Span | None = None
    anchor: Literal["start", "completion"] | None = None
    min_interval: Span | None = None
    max_interval: Span | None = None
    max_retries: Whole | None = Field(None, ge=0, le=20)
    run_timeout: Span | None = None
    delete_after_success: Flag | None = None


class ScheduleIn(WhenIn):
    message: Text = Field(
        min_length=1,
        max_length=16_000,
        description="What the agent is told each time.",
        examples=["Summarise what is new."],
    )
    agent: Text = Field("main", min_length=1, max_length=64)
    name: Text = Field("", max_length=200)
    webhook: Flag = Field(False, description="It has no times: only POST /v1/schedules/{id}/trigger fires it.")
    deliver_to: Text | None = Field(None, max_length=LONGEST_KEY, description="The session in which answers are said.")
    session: Literal["fresh", "named", "chat"] = "fresh"
    session_name: Text = Field("", max_length=200)
    work_source: Text = Field("", max_length=1_000)
    rules: RulesIn = RulesIn()
    at_once: Flag = Field(False, description="The first run is now.")


class ScheduleEdit(WhenIn):
    message: Text | None = Field(None, min_length=1, max_length=16_000)
    agent: Text | None = Field(None, min_length=1, max_length=64)
    name: Text | None = Field(None, max_length=200)
    rules: RulesIn = RulesIn()
    status: Literal["active", "paused"] | None = None
    paused_until: Moment | None = None
    reason: Text = Field("", max_length=200)


class HintsIn(Shape):
    interval: Span | None = None
    next_at: Moment | None = None
    lasts: Span = Field(timedelta(hours=1), json_schema_extra={"default": "1h"})
    reason: Text = Field("", max_length=200)


class Hints(BaseModel):
    interval: Span | None
    next_at: Moment | None
    expires_at: Moment | None
    reason: str


class Rules(BaseModel):
    overlap: str
    catch_up: str | None
    grace: Span | None
    anchor: str
    min_interval: Span | None
    max_interval: Span | None
    max_retries: int | None
    run_timeout: Span | None
    delete_after_success: bool


class Schedule(BaseModel):
    id: int
    name: str
    agent: str
    message: str
    status: str
    reason: str
    words: str = Field(description="The schedule in words, with its zone.")
    kind: str
    zone: str
    at: Moment | None
    every: Span | None
    cron: str | None
    next_at: Moment | None
    next_fires: list[Moment] = Field(description="The next five as far as they are known.")
    next_source: str | None = Field(description="What decided the next one.")
    paused_until: Moment | None
    runs: int
    failures: int
    last_run: str | None
    last_run_at: Moment | None
    last_state: str | None
    hints: Hints
    rules: Rules
    deliver_to: str | None
    session: str
    session_name: str
    work_source: str
    owner: str
    made_by_agent: bool
    created_at: Moment
    updated_at: Moment


class Preview(BaseModel):
    words: str
    kind: str
    zone: str
    recurring: bool
    next_fires: list[Moment]


class Trigger_(BaseModel):
    id: str
    schedule: int
    kind: str
    slot: Moment
    due_at: Moment
    state: str
    reason: str
    attempt: int
    source: str | None
    trace: str
    last: Moment | None
    count: int
    ended_at: Moment | None


class Run_(BaseModel):
    id: str
    schedule: int
    trigger: str
    attempt: int
    agent: str
    kind: str
    source: str | None
    worker: str
    trace: str
    state: str
    started_at: Moment
    ended_at: Moment | None
    lateness_s: float
    summary: str
    error: str
    tokens_in: int
    tokens_out: int
    delivery: str
    delivery_error: str


class Why(BaseModel):
    schedule: int
    text: str


class Deleted(BaseModel):
    deleted: Literal[True] = True


class Notification_(BaseModel):
    seq: int
    at: Moment
    kind: str
    task_id: int
    run_id: str | None
    agent_id: str | None
    status: str | None
    started_at: str | None = None
    completed_at: str | None = None
    result_summary: str | None = None
    error_message: str | None = None
    data: dict[str, Any]


def schedule_shape(job: Job, now: datetime) -> Schedule:
    spec, schedule = job.spec, schedule_of(job.spec.timing)
    timing, rules, hints = spec.timing, spec.rules, job.hints
    return Schedule(
        id=job.id,
        name=spec.name,
        agent=spec.agent,
        message=spec.message,
        status=job.status,
        reason=job.reason,
        words=schedule.words(),
        kind=timing.kind,
        zone=timing.zone,
        at=timing.at,
        every=timing.every,
        cron=timing.cron or None,
        next_at=job.next_at,
        next_fires=upcoming(job, now, NEXT_FIRES),
        next_source=job.next_source,
        paused_until=job.paused_until,
        runs=job.runs,
        failures=job.failures,
        last_run=job.last_run or None,
        last_run_at=job.last_run_at,
        last_state=job.last_state,
        hints=Hints(interval=hints.interval, next_at=hints.next_at, expires_at=hints.expires_at, reason=hints.reason),
        rules=Rules(
            overlap=rules.overlap,
            catch_up=rules.catch_up,
            grace=rules.grace,
            anchor=rules.anchor,
            min_interval=rules.min_interval,
            max_interval=rules.max_interval,
            max_retries=rules.max_retries,
            run_timeout=rules.run_timeout,
            delete_after_success=rules.delete_after_success,
        ),
        deliver_to=None if spec.deliver_to is None else str(spec.deliver_to),
        session=spec.session,
        session_name=spec.session_name,
        work_source=spec.work_source,
        owner=spec.owner,
        made_by_agent=spec.made_by_agent,
        created_at=job.created_at,
        updated_at=job.updated_at,
    )


def trigger_shape(trigger: Trigger) -> Trigger_:
    return Trigger_(
        id=trigger.id,
        schedule=trigger.job,
        kind=trigger.kind,
        slot=trigger.slot,
        due_at=trigger.due_at,
        state=trigger.state,
        reason=trigger.reason,
        attempt=trigger.attempt,
        source=trigger.source,
        trace=trigger.trace,
        last=trigger.last,
        count=trigger.count,
        ended_at=trigger.ended_at,
    )


def run_shape(run: Run) -> Run_:
    return Run_(
        id=run.id,
        schedule=run.job,
        trigger=run.trigger,
        attempt=run.attempt,
        agent=run.agent,
        kind=run.kind,
        source=run.source,
        worker=run.worker,
        trace=run.trace,
        state=run.state,
        started_at=run.started_at,
        ended_at=run.ended_at,
        lateness_s=run.lateness.total_seconds(),
        summary=run.summary,
        error=run.error,
        tokens_in=run.tokens_in,
        tokens_out=run.tokens_out,
        delivery=run.delivery,
        delivery_error=run.delivery_error,
    )


def notification_shape(one: Notification) -> Notification_:
    news = one.news
    agent, status = news.data.get("agent"), news.data.get("status")
    return Notification_(
        seq=one.seq,
        at=one.at,
        kind=news.kind,
        task_id=news.job,
        run_id=news.run or None,
        agent_id=None if agent is None else str(agent),
        status=None if status is None else str(status),
        started_at=text_in(news.data, "started_at") or (stamp(one.at) if news.kind == "run.started" else None),
        completed_at=text_in(news.data, "completed_at"),
        result_summary=text_in(news.data, "result_summary"),
        error_message=text_in(news.data, "error_message"),
        data=dict(news.data),
    )


def text_in(data: Mapping[str, object], name: str) -> str | None:
    """What is kept under this name, if it is a text."""
    value = data.get(name)
    return value if isinstance(value, str) else None


# ── conversations ────────────────────────────────────────────────────────────────────────────────────────────────────


class MessageIn(Shape):
    text: Text = Field(min_length=1, max_length=100_000, examples=["What is the weather like?"])
    agent: Text = Field("main", min_length=1, max_length=64)
    chat: Text = Field(
        "main", min_length=1, max_length=200, description="Which conversation; one is as good as another."
    )
    thread: Text = Field("", max_length=200)
    wait: Annotated[float, Strict()] = Field(
        0, ge=0, le=300, description="Seconds to wait for the answer; a stream waits anyway."
    )


class MessageOut(BaseModel):
    id: int
    session: str
    state: str
    answer: str | None = Field(description="What was said about it, as far as it is known here.")
    answers: list[int] = Field(default_factory=list, description="Every message that this is said about.")


class StopIn(Shape):
    everything: Flag = Field(False, description="Also what waits; else the oldest run only.")


class Stopping(BaseModel):
    session: str
    state: str


class PolicyIn(Shape):
    """What is named is set, null takes it back; what is not named stays."""

    mode: QueueMode | None = None
    cap: Whole | None = Field(None, ge=1, le=10_000, description="How many messages may wait.")
    drop: DropPolicy | None = None
    debounce_ms: Whole | None = Field(None, ge=0, le=60_000)
    max_concurrent: Whole | None = Field(None, ge=1, le=100, description="How many runs at once.")
    zone: Text | None = Field(None, min_length=1, max_length=100, description="Where times written here are meant.")


class SessionOut(BaseModel):
    key: str
    agent: str
    channel: str
    chat: str
    thread: str
    lines: int
    context: float
    policy: dict[str, Any]
    updated_at: Moment
    running: int = 0
    waiting: int = 0


class LineOut(BaseModel):
    number: int
    at: Moment
    role: str
    text: str
    data: dict[str, Any]


def session_shape(session: Session, running: int = 0, waiting: int = 0) -> SessionOut:
    policy = session.standing.policy
    names = ("mode", "cap", "drop", "debounce_ms", "max_concurrent", "zone")
    return SessionOut(
        key=str(session.key),
        agent=session.key.agent,
        channel=session.key.channel,
        chat=session.key.chat,
        thread=session.key.thread,
        lines=session.lines,
        context=session.standing.context,
        policy={name: getattr(policy, name) for name in names if getattr(policy, name) is not None},
        updated_at=session.updated_at,
        running=running,
        waiting=waiting,
    )


def line_shape(line: Line) -> LineOut:
    return LineOut(number=line.number, at=line.at, role=line.said.role, text=line.said.text, data=dict(line.said.data))


# ── the gateway ──────────────────────────────────────────────────────────────────────────────────────────────────────


class LaneOut(BaseModel):
    name: str
    limit: int
    active: int = 0
    parked: int = 0
    waiting: int = 0
    stuck: int = 0
    started: int = 0
    wait_p50_s: float = 0.0
    wait_p99_s: float = 0.0
    oldest_wait_s: float = 0.0


class LaneIn(Shape):
    limit: Whole = Field(ge=1, le=10_000)


class AgentOut(BaseModel):
    name: str


class RunningOut(BaseModel):
    run: str
    session: str
    agent: str
    lane: str
    of: str
    since: Moment
    trace: str


class ServiceOut(BaseModel):
    name: str
    state: str
    since: Moment
    restarts: int
    error: str


class Status(BaseModel):
    version: str
    mode: str
    state: Literal["running", "waiting", "stopped"] = Field(
        description="running: works on messages. waiting: another gateway does. stopped: no gateway runs here."
    )
    started_at: Moment
    now: Moment
    lanes: list[LaneOut]
    running: list[RunningOut]
    next: list[Schedule] = Field(description="The next five schedules that fire.")
    schedules: dict[str, int]
    services: list[ServiceOut]
    cron: dict[str, Any]


class WorkerOut(BaseModel):
    id: str
    status: str
    started_at: Moment
    seen_at: Moment


class HealthOut(BaseModel):
    status: Literal["ok", "unhealthy"]


class MeOut(BaseModel):
    tenant: str
    token: str
    name: str
    scopes: list[str]


def worker_shape(worker: Worker) -> WorkerOut:
    return WorkerOut(id=worker.id, status=worker.status, started_at=worker.started_at, seen_at=worker.seen_at)


# ── tenants and tokens ───────────────────────────────────────────────────────────────────────────────────────────────


class TokenIn(Shape):
    name: Text = Field(min_length=1, max_length=100)
    scopes: list[Text] = Field(default_factory=lambda: ["read", "chat", "schedule", "trigger"], max_length=10)
    expires_at: Moment | None = None
    tenant: Text | None = Field(None, max_length=64, description="Another tenant than one's own; for operators.")


class TokenOut(BaseModel):
    id: str
    tenant: str
    name: str
    scopes: list[str]
    state: Literal["good", "expired", "revoked"]
    created_at: Moment
    expires_at: Moment | None
    last_used_at: Moment | None
    revoked_at: Moment | None


class NewTokenOut(TokenOut):
    secret: str = Field(description="Shown once, now.")


class TenantIn(Shape):
    id: str = Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")
    name: Text = Field("", max_length=200)
    zone: Text = Field("UTC", max_length=100)


class TenantEdit(Shape):
    """What is not named stays."""

    enabled: Flag | None = None
    name: Text | None = Field(None, max_length=200)
    zone: Text | None = Field(None, min_length=1, max_length=100)


class TenantOut(BaseModel):
    id: str
    name: str
    zone: str
    enabled: bool
    created_at: Moment


def token_shape(token: ApiToken, now: datetime) -> TokenOut:
    new = token.new
    return TokenOut(
        id=new.id,
        tenant=new.tenant,
        name=new.name,
        scopes=list(new.scopes),
        state="revoked" if token.revoked_at is not None else "good" if token.opens_at(now) else "expired",
        created_at=token.created_at,
        expires_at=new.expires_at,
        last_used_at=token.last_used_at,
        revoked_at=token.revoked_at,
    )


def tenant_shape(tenant: Tenant) -> TenantOut:
    return TenantOut(
        id=tenant.id, name=tenant.name, zone=tenant.zone, enabled=tenant.enabled, created_at=tenant.created_at
    )


# ── who was let in ───────────────────────────────────────────────────────────────────────────────────────────────────


class CodeIn(Shape):
    code: Text = Field(min_length=1, max_length=64, description="As the gateway has shown it in the chat.")
    tenant: Text | None = Field(None, max_length=64, description="Another tenant than one's own; for operators.")


class KnockIn(Shape):
    code: Text = Field(min_length=1, max_length=64, description="The code; for operators also the id in the list.")


class PairingOut(BaseModel):
    id: str
    state: Literal["pending", "denied", "approved"]
    channel: str
    account: str
    sender: str
    name: str = Field(description="What they call themselves. It proves nothing.")
    tenant: str | None = Field(description="Where they were let in.")
    asked_at: Moment
    until: Moment | None = Field(description="When it is forgotten; null for who was let in.")
    by: str = Field(description="The token that decided.")
    decided_at: Moment | None


def pairing_shape(one: Pairing) -> PairingOut:
    return PairingOut(
        id=id_of(one.who),
        state=one.state.value,
        channel=one.who.channel,
        account=one.who.account,
        sender=one.who.sender,
        name=one.name,
        tenant=one.tenant,
        asked_at=one.asked_at,
        until=one.until,
        by=one.by,
        decided_at=one.decided_at,
    )
