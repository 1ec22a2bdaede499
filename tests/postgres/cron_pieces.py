"""Jobs that fire at once and decisions about them, for the tests of cron on Postgres."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

from store.jobs import Bounds, Change, Ended, Fate, NewJob, News, Next, RunState, Start, Timing, TriggerState

if TYPE_CHECKING:
    from datetime import datetime

    from store.cron_protocol import CronStore
    from store.jobs import Claim, Job, Trigger

LEASE = timedelta(minutes=5)
NO_BOUNDS = Bounds()


def new_id() -> str:
    return uuid4().hex


def new(uid: str, tenant: str = "default", agent: str = "main") -> NewJob:
    return NewJob(uid, tenant, agent, "say hello", Timing("every", every=timedelta(seconds=1)))


def at_once(job: Job) -> Change:
    return Change(job, next=Next(new_id(), job.created_at, job.created_at, "baseline-interval"))


def done(job: Job, trigger: Trigger, ended: Ended, now: datetime) -> Change:
    """It ran; the next one is due at once."""
    after = replace(job, runs=job.runs + 1, last_run=ended.run)
    slot = max(trigger.slot, job.next_at or trigger.slot) + timedelta(milliseconds=1)
    following = Next(new_id(), slot, now, "baseline-interval")
    return Change(after, Fate(TriggerState.COMPLETED), next=following, news=(told(job, ended),))


def done_for_good(job: Job, trigger: Trigger, ended: Ended, now: datetime) -> Change:
    return Change(replace(job, runs=job.runs + 1), Fate(TriggerState.COMPLETED), news=(told(job, ended),))


def told(job: Job, ended: Ended) -> News:
    return News("run.completed", job.tenant, job.id, ended.run, {"status": ended.state.value})


async def run_all(cron: CronStore, claims: tuple[Claim, ...]) -> list[Ended]:
    """Each of them has begun and ended."""
    runs = await cron.start([Start(claim, new_id()) for claim in claims])
    assert all(runs)
    return [
        Ended(claim, run=run.id, state=RunState.SUCCEEDED)
        for claim, run in zip(claims, runs, strict=True)
        if run is not None
    ]
