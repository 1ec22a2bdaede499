"""Histories of jobs: planned, fired, claimed, lost, settled, changed and forgotten."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING

from hypothesis import strategies as st
from hypothesis.stateful import rule

from store.jobs import KEEP_NEWS, KEEP_OUTPUTS, KEEP_RUNS, Bounds, Ended, Fire, JobStatus, RunState, Start, TriggerState
from store.records import WorkerStatus
from tests.contract.cron_pools import (
    bounds,
    ended_names,
    fire_keys,
    fire_kinds,
    job_numbers,
    job_tenants,
    lease_spans,
    outputs,
    plans,
    retries,
    rooms,
    run_ends,
    soon,
    usual_plans,
    wishes,
)
from tests.contract.cron_rows import NOW, Plan
from tests.contract.machine import StoreMachine
from tests.contract.pools import MOMENT, limits, pick, picks, tenants, troubles, workers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from store.jobs import Claim, NewJob, TriggerKind

LEASE = timedelta(minutes=5)
GONE = Plan(status=JobStatus.COMPLETED, end=TriggerState.COMPLETED)


class CronRules(StoreMachine):
    def __init__(self) -> None:
        super().__init__()
        self.numbers = count(1)

    def named(self, plan: Plan) -> Plan:
        """The same with ids and slots of its own: no two planned triggers of a job have the same."""
        number = next(self.numbers)
        return replace(
            plan,
            next=plan.next and f"n{number}",
            stretch=plan.stretch and f"s{number}",
            offset=timedelta(milliseconds=number),
        )

    # ── jobs ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    @rule(job=wishes, bounds=bounds, plan=plans)
    def add_job(self, job: NewJob, bounds: Bounds, plan: Plan) -> None:
        first = replace(self.named(plan), remove=False)
        self.ask(lambda side: side.whole.cron.add_job(job, first.first, bounds))

    @rule(tenant=job_tenants, job=job_numbers, plan=plans)
    def change_job(self, tenant: str, job: int, plan: Plan) -> None:
        named = self.named(plan)
        self.ask(lambda side: side.whole.cron.change_job(tenant, job, named.decide))

    @rule(
        tenant=job_tenants,
        statuses=st.none() | st.lists(st.sampled_from(JobStatus), max_size=2),
        after=st.integers(min_value=-1, max_value=3),
        limit=limits,
    )
    def read_jobs(self, tenant: str, statuses: Sequence[JobStatus] | None, after: int, limit: int) -> None:
        self.ask(lambda side: side.whole.cron.jobs(tenant, statuses=statuses, after=after, limit=limit))
        self.ask(lambda side: side.whole.cron.unplanned(limit))
        self.ask(lambda side: side.whole.cron.triggers(tenant, after, limit=limit))

    @rule(tenant=job_tenants, job=st.none() | job_numbers, back=st.none() | soon, after=pick, limit=limits)
    def read_history(self, tenant: str, job: int | None, back: timedelta | None, after: int, limit: int) -> None:
        since = None if back is None else self.wall() - back
        self.ask(lambda side: side.whole.cron.runs(tenant, job=job, since=since, limit=limit))
        self.ask(lambda side: side.whole.cron.notifications(tenant, after=after, limit=limit))

    # ── triggers ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @rule(tenant=job_tenants, job=job_numbers, kind=fire_kinds, key=fire_keys, again=st.booleans())
    def fire(self, tenant: str, job: int, kind: TriggerKind, key: str | None, again: bool) -> None:
        """Once, and once more: the same wish, or another one for the same job."""
        first = Fire(f"f{next(self.numbers)}", tenant, job, kind, key, "trace\x00")
        second = first if again else Fire(f"f{next(self.numbers)}", tenant, job, kind)
        self.ask(lambda side: side.whole.cron.fire(first))
        self.ask(lambda side: side.whole.cron.fire(second))

    @rule(worker=workers, limit=limits, span=lease_spans, after=st.just("") | tenants, room=rooms)
    def claim(self, worker: str, limit: int, span: timedelta, after: str, room: Mapping[str, int] | None) -> None:
        self.ask(lambda side: side.whole.cron.next_due())
        self.ask(lambda side: side.whole.cron.claim(worker, limit, span, after=after, room=room))

    @rule(worker=workers, limit=limits, span=lease_spans, silent=soon)
    def claim_orphans(self, worker: str, limit: int, span: timedelta, silent: timedelta) -> None:
        self.ask(lambda side: side.whole.cron.claim_orphans(worker, limit, span, silent))

    @rule(worker=workers)
    def held(self, worker: str) -> None:
        self.ask(lambda side: side.whole.cron.held(worker))

    @rule(those=picks, span=lease_spans)
    def renew_claims(self, those: Sequence[int], span: timedelta) -> None:
        self.ask(lambda side: side.whole.cron.renew(side.claimed(those), span))

    @rule(those=picks)
    def start_claims(self, those: Sequence[int]) -> None:
        self.ask(lambda side: side.whole.cron.start(starts(side.claimed(those))))

    @rule(those=picks, end=run_ends, output=outputs, name=ended_names, plan=plans | retries)
    def settle_claims(self, those: Sequence[int], end: RunState, output: str, name: str, plan: Plan) -> None:
        named = self.named(replace(plan, nothing=False))
        self.ask(
            lambda side: side.whole.cron.settle(
                [one_end(claim, end, output, name) for claim in side.claimed(those)], named.conclude
            )
        )

    # ── moments that matter ──────────────────────────────────────────────────────────────────────────────────────────

    @rule(
        job=wishes,
        worker=workers,
        end=run_ends,
        output=outputs,
        plan=usual_plans | retries,
        failed=st.sampled_from(["", "", "blocked\x00"]),
    )
    def run_a_job(self, job: NewJob, worker: str, end: RunState, output: str, plan: Plan, failed: str) -> None:
        """The usual way, from the wish to the delivered answer."""
        first, last = self.named(Plan("n", NOW)), self.named(plan)
        self.ask(lambda side: side.whole.cron.add_job(job, first.first, Bounds()))
        self.ask(lambda side: side.whole.cron.claim(worker, 1, LEASE))
        self.start_claims([0, 0])
        self.ask(
            lambda side: side.whole.cron.settle([one_end(one, end, output) for one in side.claimed([0])], last.conclude)
        )
        self.ask(lambda side: side.whole.cron.runs(job.tenant, since=self.wall()))
        self.ask(lambda side: side.view(0).outbox(100))
        self.ask(lambda side: side.view(0).sent(side.reply(0), failed=failed))

    @rule(worker=workers, span=lease_spans, early=st.booleans(), begun=st.booleans(), plan=plans | retries)
    def lose_a_run(self, worker: str, span: timedelta, early: bool, begun: bool, plan: Plan) -> None:
        """Its lease is over, or nearly; the next owner settles what was lost, and the old one comes too late."""
        named = self.named(replace(plan, nothing=False))
        self.ask(lambda side: side.whole.cron.claim("w1", 1, span))
        if begun:
            self.start_claims([0])
        self.wall.pass_by(span - early * MOMENT)
        self.ask(lambda side: side.whole.cron.next_due())
        self.ask(lambda side: side.whole.cron.claim(worker, 1, span))
        self.ask(
            lambda side: side.whole.cron.settle(
                [one_end(claim, RunState.FAILED, "lost") for claim in side.claimed([0, 1])], named.conclude
            )
        )

    @rule(worker=workers, beats=st.booleans(), leaves=st.booleans(), silent=soon, early=st.booleans())
    def orphan_a_run(self, worker: str, beats: bool, leaves: bool, silent: timedelta, early: bool) -> None:
        """Its worker was heard of, or not, or has left, when others look for orphans."""
        self.ask(lambda side: side.whole.cron.claim(worker, 2, LEASE))
        self.start_claims([0, 1])
        self.wall.pass_by(LEASE)
        if beats:
            self.ask(lambda side: side.whole.beat(worker, WorkerStatus.BUSY))
        if leaves:
            self.ask(lambda side: side.whole.leave(worker))
        self.wall.pass_by(max(silent - early * MOMENT, NOW))
        self.ask(lambda side: side.whole.cron.claim_orphans("w2", 2, LEASE, silent))

    @rule(
        tenant=job_tenants,
        job=job_numbers,
        over=st.booleans(),
        age=st.sampled_from([KEEP_RUNS, KEEP_OUTPUTS, KEEP_NEWS]),
        early=st.booleans(),
    )
    def grow_old(self, tenant: str, job: int, over: bool, age: timedelta, early: bool) -> None:
        """What has ended is tidied at the moment of its age, or just before."""
        plan = self.named(GONE if over else Plan(stretch="s", news="run.skipped"))
        self.ask(lambda side: side.whole.cron.change_job(tenant, job, plan.decide))
        self.wall.pass_by(age - early * MOMENT)
        self.tidy()

    @rule(kinds=troubles, job=wishes, plan=plans)
    def plan_in_trouble(self, kinds: Sequence[int], job: NewJob, plan: Plan) -> None:
        """Every write of a run's life fails once and is repeated: each has its effect once."""
        first, last = self.named(Plan("n", NOW)), self.named(replace(plan, nothing=False))
        self.trouble(kinds)
        self.ask(lambda side: side.whole.cron.add_job(job, first.first, Bounds()))
        self.trouble(kinds)
        self.ask(lambda side: side.whole.cron.claim("w1", 2, LEASE))
        self.trouble(kinds)
        self.start_claims([0, 1])
        self.trouble(kinds)
        self.ask(
            lambda side: side.whole.cron.settle(
                [one_end(claim, RunState.SUCCEEDED, "fine") for claim in side.claimed([0, 1])], last.conclude
            )
        )


def own_run(claim: Claim) -> str:
    """One run for each claim, and none beside a lost one."""
    return f"{claim.trigger.id}/{claim.trigger.token}" if claim.lost is None else claim.lost.id


def starts(claims: Sequence[Claim]) -> list[Start]:
    return [Start(claim, own_run(claim)) for claim in claims if claim.lost is None]


def one_end(claim: Claim, state: RunState, output: str, name: str = "own") -> Ended:
    run = {"own": own_run(claim), "none": "", "unknown": "nobody's"}[name]
    return Ended(claim, run, state=state, output=output, error="broke" * (state is not RunState.SUCCEEDED))
