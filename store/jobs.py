"""What cron keeps: jobs, the triggers that fire them, the runs they lead to, and what is told about those. Values only.

    job      active ◀──▶ paused        one-shots end as completed | failed, a deleted job is cancelled
    trigger  pending ──▶ executing ──▶ completed | failed | skipped (reason)
                ▲            │
                └────────────┘  another attempt, a shutdown, or an owner whose lease is over
    run      running ──▶ succeeded | failed | timeout | cancelled

A trigger is one occurrence to fire and the only thing that is ever claimed; its attempts are numbered, each is a run,
and at most one of them succeeds. An active recurring job has exactly one open planned trigger. A skipped trigger may
stand for a whole stretch of slots: `slot` is then the first of them, `last` the last, `count` how many.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from store.records import Note, Said, SessionKey

LONGEST_MESSAGE = 16_000
"""Bytes of a job's message."""
LONGEST_SUMMARY = 4_096
"""Bytes of a run's summary; what is longer is kept whole beside it."""
KEEP_RUNS = timedelta(days=30)
"""Ended runs, ended triggers and ended jobs."""
KEEP_OUTPUTS = timedelta(days=7)
KEEP_NEWS = timedelta(days=7)


class JobStatus(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        return self in (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED)


class TriggerKind(StrEnum):
    SCHEDULE = "schedule"
    MANUAL = "manual"
    CATCH_UP = "catch-up"
    """In the place of a scheduled one: slots passed while a run went on, and the job fires once for them."""
    WEBHOOK = "webhook"

    @property
    def planned(self) -> bool:
        """It stands for slots of the schedule."""
        return self in (TriggerKind.SCHEDULE, TriggerKind.CATCH_UP)


class TriggerState(StrEnum):
    PENDING = "pending"
    EXECUTING = "executing"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"

    @property
    def open(self) -> bool:
        return self in (TriggerState.PENDING, TriggerState.EXECUTING)


class RunState(StrEnum):
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"


class Delivery(StrEnum):
    """What became of a run's answer: a failed delivery is not a failed run."""

    NONE = "none"
    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"


Source = Literal[
    "baseline-cron", "baseline-interval", "ai-interval", "ai-oneshot", "clamped-min", "clamped-max", "paused"
]
"""What decided when a trigger is due."""
Overlap = Literal["skip", "queue"]
CatchUp = Literal["one", "skip"]
Anchor = Literal["start", "completion"]
TimingKind = Literal["at", "every", "cron", "webhook"]
SessionKind = Literal["fresh", "named", "chat"]


@dataclass(frozen=True, slots=True)
class Timing:
    """A schedule as it is kept. Exactly the field that its kind names is set; a webhook job has none."""

    kind: TimingKind
    zone: str = "UTC"
    at: datetime | None = None
    every: timedelta | None = None
    cron: str = ""

    @property
    def recurring(self) -> bool:
        return self.kind in ("every", "cron")


@dataclass(frozen=True, slots=True)
class Hints:
    """What an agent proposed for its own job; it counts while it has not expired."""

    interval: timedelta | None = None
    next_at: datetime | None = None
    expires_at: datetime | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Rules:
    """How a job is treated; what is None follows the settings."""

    overlap: Overlap = "skip"
    catch_up: CatchUp | None = None
    grace: timedelta | None = None
    """How late it is still worth running."""
    anchor: Anchor = "start"
    min_interval: timedelta | None = None
    max_interval: timedelta | None = None
    max_retries: int | None = None
    run_timeout: timedelta | None = None
    delete_after_success: bool = False


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job as somebody asks for it."""

    uid: str
    """A second job with the same one is the same job: asking again is harmless."""
    tenant: str
    agent: str
    message: str
    timing: Timing
    name: str = ""
    rules: Rules = Rules()
    deliver_to: SessionKey | None = None
    """Where answers go; None: nowhere, whatever happens."""
    session: SessionKind = "fresh"
    session_name: str = ""
    work_source: str = ""
    owner: str = ""
    """Who made it, for people to read."""
    made_by_agent: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    id: int
    """Counts from 1 inside a tenant: people type it."""
    spec: NewJob
    created_at: datetime
    updated_at: datetime
    status: JobStatus = JobStatus.ACTIVE
    reason: str = ""
    """Why it is paused or has failed."""
    hints: Hints = Hints()
    paused_until: datetime | None = None
    failures: int = 0
    """Occurrences in a row that failed for good."""
    runs: int = 0
    last_run_at: datetime | None = None
    """When the last run started."""
    last_run: str = ""
    last_state: RunState | None = None
    last_slot: datetime | None = None
    """The latest slot that has been settled: none up to it is planned again, whatever the clock does."""
    next_at: datetime | None = None
    """When its open planned trigger is due, or was if it executes; the store keeps it true."""
    next_source: Source | None = None

    @property
    def tenant(self) -> str:
        return self.spec.tenant

    @property
    def key(self) -> tuple[str, int]:
        return self.spec.tenant, self.id

    @property
    def recurring(self) -> bool:
        return self.spec.timing.recurring


@dataclass(frozen=True, slots=True)
class Trigger:
    id: str
    tenant: str
    job: int
    agent: str
    """That of its job, also after an edit: claims look at it."""
    kind: TriggerKind
    slot: datetime
    """Which occurrence: no two planned triggers of a job have the same."""
    due_at: datetime
    """When it may be claimed: later than its slot while it waits for another attempt."""
    created_at: datetime
    state: TriggerState = TriggerState.PENDING
    reason: str = ""
    source: Source | None = None
    key: str | None = None
    """An idempotency key, unique in its tenant."""
    trace: str = ""
    attempt: int = 0
    """How many attempts have begun."""
    token: int = 0
    """Rises with every claim; whoever holds an older one is refused."""
    owner: str = ""
    leased_until: datetime | None = None
    last: datetime | None = None
    count: int = 1
    ended_at: datetime | None = None

    @property
    def claim_at(self) -> datetime:
        """When it can be claimed: a pending one when it is due, an executing one when its lease is over."""
        return self.due_at if self.leased_until is None else self.leased_until


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt. The whole output is kept beside it if the summary does not hold it."""

    id: str
    tenant: str
    job: int
    trigger: str
    attempt: int
    agent: str
    kind: TriggerKind
    source: Source | None
    worker: str
    trace: str
    started_at: datetime
    lateness: timedelta
    """How long after it was due it began."""
    state: RunState = RunState.RUNNING
    ended_at: datetime | None = None
    summary: str = ""
    error: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    delivery: Delivery = Delivery.NONE
    delivery_error: str = ""


NewsKind = Literal["run.started", "run.completed", "run.failed", "run.skipped"]


@dataclass(frozen=True, slots=True)
class News:
    """Something that happened to a job, not yet numbered."""

    kind: NewsKind
    tenant: str
    job: int
    run: str
    data: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Notification:
    """Numbered per tenant without gaps, in the order in which they can be seen: nobody who reads on misses one."""

    seq: int
    at: datetime
    news: News


# ── claims ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Claim:
    """A trigger that is this worker's until its lease is over, and its job as it was then."""

    trigger: Trigger
    job: Job
    claimed_at: datetime
    """By the store's clock."""
    lost: Run | None = None
    """The run that an earlier owner had begun and did not end."""
    tenant_enabled: bool = True


@dataclass(frozen=True, slots=True)
class Start:
    """An attempt that begins."""

    claim: Claim
    run: str


@dataclass(frozen=True, slots=True)
class Fire:
    """A trigger beside the schedule, as somebody asks for it."""

    id: str
    tenant: str
    job: int
    kind: TriggerKind = TriggerKind.MANUAL
    key: str | None = None
    trace: str = ""


class Bounds(NamedTuple):
    """How many jobs there may be that have not ended; None is no bound."""

    of_tenant: int | None = None
    of_agent: int | None = None


# ── changes, decided by pure functions and carried out by a store in one write ───────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Next:
    """The trigger that a job gets: the occurrence, when it is due, and why then."""

    id: str
    slot: datetime
    due_at: datetime
    source: Source | None
    kind: TriggerKind = TriggerKind.SCHEDULE
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Slots that will never run, as one row."""

    id: str
    first: datetime
    last: datetime
    count: int
    reason: str


@dataclass(frozen=True, slots=True)
class Ended:
    """How an attempt ended, as its worker saw it. Without a run nothing was attempted: the trigger is passed over."""

    claim: Claim
    run: str = ""
    started_at: datetime | None = None
    state: RunState = RunState.CANCELLED
    reason: str = ""
    """For what was not attempted: why."""
    output: str = ""
    error: str = ""
    permanent: bool = False
    """Trying again would not help."""
    agent_missing: bool = False
    tokens_in: int = 0
    tokens_out: int = 0


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of a trigger: it ends, or it waits for `again_at`."""

    state: TriggerState
    reason: str = ""
    again_at: datetime | None = None
    counts: bool = True
    """Whether the attempt counts; a shutdown costs none."""
    last: datetime | None = None
    count: int = 1
    """For a trigger that ends in the name of later slots too: the last of them, and how many they are with its own."""


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of a job: decided under its lock from what it is there and then.

    The store carries all of it out or nothing, keeps `next_at` true, and numbers the news.
    """

    job: Job
    fate: Fate | None = None
    """Of the trigger that the decision is about: the claimed one, or else the open planned one if it is pending."""
    withdraw: bool = False
    """The open planned trigger, if it is pending, goes without a trace: its slot has not come, or is planned anew."""
    drop_others: str = ""
    """For this reason every other pending trigger of the job ends as skipped."""
    next: Next | None = None
    """Added unless the job then still has an open planned trigger."""
    stretches: tuple[Stretch, ...] = ()
    notes: tuple[Note, ...] = ()
    said: tuple[Said, ...] = ()
    """For the transcript of `said_in`, or else of the session that answers go to."""
    said_in: SessionKey | None = None
    news: tuple[News, ...] = ()
    remove: bool = False
    """The job goes, with all its history."""


class CronCounts(NamedTuple):
    """A few figures for people."""

    active: int
    paused: int
    pending: int
    executing: int
