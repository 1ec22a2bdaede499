"""Short ways to say which jobs there are, what became of them, and how a decision reads that is only data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from store.jobs import (
    Bounds,
    Change,
    Ended,
    Fate,
    Fire,
    Job,
    JobStatus,
    NewJob,
    News,
    Next,
    Run,
    RunState,
    Start,
    Stretch,
    Timing,
    TriggerKind,
    TriggerState,
)
from store.records import Note, Role, Said
from tests.contract.rows import HERE

if TYPE_CHECKING:
    from datetime import datetime

    from store.cron_protocol import CronStore
    from store.jobs import Claim, NewsKind, Trigger

MOMENT = timedelta(microseconds=1)
NOW = timedelta(0)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
LEASE = timedelta(minutes=5)
ANY = Bounds()
HOURLY = Timing("every", every=HOUR)
AT_NOON = Timing("cron", "Europe/Berlin", cron="0 12 * * *")
WEBHOOK = Timing("webhook")


@dataclass(frozen=True, slots=True)
class Plan:
    """A decision as data: the same for every store that is handed it, however often it asks."""

    next: str = ""
    """The id of the next trigger, before the number of the job; none without one."""
    after: timedelta = HOUR
    """How long from now until that is due."""
    offset: timedelta = NOW
    """How far its slot is from that."""
    kind: TriggerKind = TriggerKind.SCHEDULE
    end: TriggerState | None = None
    """What the trigger becomes that the decision is about."""
    again: timedelta | None = None
    counts: bool = True
    reason: str = ""
    status: JobStatus | None = None
    agent: str = ""
    withdraw: bool = False
    drop_others: str = ""
    stretch: str = ""
    """Like `next`, of a stretch of three slots an hour ago."""
    note: str = ""
    said: str = ""
    news: NewsKind | None = None
    remove: bool = False
    nothing: bool = False

    def first(self, job: Job) -> Change:
        return self.change(job, job.created_at)

    def decide(self, job: Job, planned: Trigger | None, now: datetime) -> Change | None:
        return None if self.nothing else self.change(job, now)

    def conclude(self, job: Job, trigger: Trigger, ended: Ended, now: datetime) -> Change:
        change = self.change(job, now, ended.run)
        return change if change.remove or not ended.run else replace(change, job=counted(change.job, ended))

    def change(self, job: Job, now: datetime, run: str = "") -> Change:
        spec = replace(job.spec, agent=self.agent or job.spec.agent)
        told = job.spec.deliver_to or replace(HERE, tenant=job.tenant)
        due, past = now + self.after, now - HOUR + self.offset
        return Change(
            replace(job, spec=spec, status=self.status or job.status),
            fate=None if self.end is None else Fate(self.end, self.reason, self.again_at(now), self.counts),
            withdraw=self.withdraw,
            drop_others=self.drop_others,
            next=Next(called(self.next, job), due + self.offset, due, "baseline-interval", self.kind, f"trace {job.id}")
            if self.next
            else None,
            stretches=(Stretch(called(self.stretch, job), past, past + 2 * MINUTE, 3, "missed"),)
            if self.stretch
            else (),
            notes=(Note(told, self.note, run=run),) if self.note else (),
            said=(Said(Role.ASSISTANT, self.said, {"job": job.id}),) if self.said else (),
            news=(News(self.news, job.tenant, job.id, run, {"job": job.id}),) if self.news else (),
            remove=self.remove,
        )

    def again_at(self, now: datetime) -> datetime | None:
        return None if self.again is None else now + self.again


NOTHING = Plan(nothing=True)
DONE = Plan("next", end=TriggerState.COMPLETED)
PASSED = Plan(end=TriggerState.SKIPPED, reason="missed")


def called(name: str, job: Job) -> str:
    return f"{name}#{job.id}"


def counted(job: Job, ended: Ended) -> Job:
    return replace(job, runs=job.runs + 1, last_run=ended.run, last_state=ended.state)


# ── jobs ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def new(uid: str = "a", **fields: Any) -> NewJob:
    """A job that is asked for; its uid names it."""
    given: dict[str, Any] = {"tenant": "default", "agent": "main", "message": f"do {uid}", "timing": HOURLY}
    return NewJob(uid, **(given | fields))


async def added(cron: CronStore, uid: str = "a", after: timedelta = HOUR, **fields: Any) -> Job:
    """A job with an open planned trigger, `<uid>#<job>`, that is due after so long."""
    job = await cron.add_job(new(uid, **fields), Plan(uid, after).first, ANY)
    assert job is not None
    return job


async def changed(cron: CronStore, job: Job, plan: Plan) -> Job:
    found = await cron.change_job(job.tenant, job.id, plan.decide)
    assert found is not None
    return found


async def job_now(cron: CronStore, job: Job) -> Job:
    found = await cron.job(job.tenant, job.id)
    assert found is not None
    return found


async def triggers_of(cron: CronStore, job: Job) -> dict[str, Trigger]:
    return {one.id: one for one in await cron.triggers(job.tenant, job.id, limit=1000)}


async def planned_of(cron: CronStore, job: Job) -> list[Trigger]:
    """Its open planned triggers: one, or none."""
    found = (await triggers_of(cron, job)).values()
    return [one for one in found if one.kind.planned and one.state.open]


async def fired(cron: CronStore, job: Job, name: str = "fire", **fields: Any) -> Trigger:
    trigger = await cron.fire(Fire(name, job.tenant, job.id, **fields))
    assert trigger is not None
    return trigger


# ── claims ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def claimed(cron: CronStore, limit: int = 100, worker: str = "w1", **narrowed: Any) -> list[str]:
    """The ids of what is claimed now."""
    return [one.trigger.id for one in await cron.claim(worker, limit, LEASE, **narrowed)]


async def claim_one(cron: CronStore, worker: str = "w1", span: timedelta = LEASE) -> Claim:
    (only,) = await cron.claim(worker, 1, span)
    return only


async def started(cron: CronStore, claim: Claim, run: str = "r1") -> Run:
    (begun,) = await cron.start([Start(claim, run)])
    assert begun is not None
    return begun


async def running(cron: CronStore, uid: str = "a", run: str = "r1", **fields: Any) -> Claim:
    """The claim of a new job that is due, and its first run begun; nothing else may be due."""
    await added(cron, uid, NOW, **fields)
    claim = await claim_one(cron)
    await started(cron, claim, run)
    return claim


def ended(claim: Claim, run: str = "r1", state: RunState = RunState.SUCCEEDED, **fields: Any) -> Ended:
    return Ended(claim, run, state=state, **fields)


def passed(claim: Claim) -> Ended:
    """It was not attempted."""
    return Ended(claim, reason="missed")


async def settled(cron: CronStore, one: Ended, plan: Plan = DONE) -> bool:
    (answer,) = await cron.settle([one], plan.conclude)
    return answer


# ── what happened ────────────────────────────────────────────────────────────────────────────────────────────────────


async def run_now(cron: CronStore, run: str = "r1", tenant: str = "default") -> Run:
    found = await cron.run(tenant, run)
    assert found is not None
    return found


async def told(cron: CronStore, tenant: str = "default") -> list[tuple[int, str]]:
    """Its news: each number and what kind it was."""
    return [(one.seq, one.news.kind) for one in await cron.notifications(tenant, limit=1000)]
