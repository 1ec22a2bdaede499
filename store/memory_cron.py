"""Jobs, triggers and runs of the store without a disk: the plainest way to say what each verb does; no indexes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

import trio

from store.cron_protocol import NEWS
from store.cron_steps import (
    carry_out,
    check_new,
    fired,
    is_current,
    is_own,
    leased,
    new_job,
    settle_one,
    started,
    wants_trigger,
)
from store.jobs import (
    KEEP_NEWS,
    KEEP_OUTPUTS,
    KEEP_RUNS,
    Claim,
    CronCounts,
    Delivery,
    Job,
    JobStatus,
    Notification,
    RunState,
    TriggerState,
)
from store.records import Reply
from store.rules import at_most, check_words, copied, plain_json, unknown_tenant

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime, timedelta

    from store.cron_protocol import Conclude, Decide, First
    from store.cron_steps import Rows
    from store.jobs import Bounds, Ended, Fire, NewJob, News, Run, Start, Trigger
    from store.memory import MemoryStore


@dataclass(slots=True)
class CronTables:
    """The rows: triggers and runs by tenant and id."""

    jobs: dict[tuple[str, int], Job]
    triggers: dict[tuple[str, str], Trigger]
    runs: dict[tuple[str, str], Run]
    outputs: dict[tuple[str, str], str]
    news: dict[str, list[Notification]]
    numbers: dict[str, int]
    """The highest number that a job of the tenant had."""
    told: dict[str, int]
    """The highest number that a notification of the tenant had."""

    @classmethod
    def empty(cls) -> CronTables:
        return cls({}, {}, {}, {}, {}, {}, {})


@dataclass(frozen=True, slots=True)
class MemoryCron:
    whole: MemoryStore
    tables: CronTables

    # ── jobs ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def add_job(self, new: NewJob, first: First, bounds: Bounds) -> Job | None:
        await trio.lowlevel.checkpoint()
        check_new(new)
        if new.tenant not in self.whole.people:
            raise unknown_tenant(new.tenant)
        known = next((job for job in self._jobs(new.tenant) if job.spec.uid == new.uid), None)
        if known is not None:
            return known
        living = [job for job in self._jobs(new.tenant) if not job.status.ended]
        same_agent = [job for job in living if job.spec.agent == new.agent]
        if beyond(len(living), bounds.of_tenant) or beyond(len(same_agent), bounds.of_agent):
            return None
        number = self.tables.numbers.get(new.tenant, 0) + 1
        now = self.whole.now()
        change = first(new_job(number, new, now))
        rows = carry_out(change, [], None, now)
        self.tables.numbers[new.tenant] = number
        self._write(rows, now)
        return rows.jobs[0]

    async def job(self, tenant: str, job: int) -> Job | None:
        await trio.lowlevel.checkpoint()
        return self.tables.jobs.get((tenant, job))

    async def job_with(self, tenant: str, uid: str) -> Job | None:
        await trio.lowlevel.checkpoint()
        return next((job for job in self._jobs(tenant) if job.spec.uid == uid), None)

    async def jobs(
        self, tenant: str, *, statuses: Collection[JobStatus] | None = None, after: int = 0, limit: int = 200
    ) -> tuple[Job, ...]:
        await trio.lowlevel.checkpoint()
        found = (job for job in self._jobs(tenant) if job.id > after)
        return tuple(job for job in found if statuses is None or job.status in statuses)[: at_most(limit)]

    async def change_job(self, tenant: str, job: int, decide: Decide) -> Job | None:
        await trio.lowlevel.checkpoint()
        known = self.tables.jobs.get((tenant, job))
        if known is None:
            return None
        now, open_ = self.whole.now(), self._open(tenant, job)
        planned = next((trigger for trigger in open_ if trigger.kind.planned), None)
        change = decide(known, planned, now)
        if change is None:
            return known
        rows = carry_out(change, open_, None, now)
        self._write(rows, now)
        return rows.jobs[0] if rows.jobs else known

    async def unplanned(self, limit: int = 100) -> tuple[Job, ...]:
        await trio.lowlevel.checkpoint()
        found = [
            job
            for key, job in sorted(self.tables.jobs.items())
            if wants_trigger(job) and not any(trigger.kind.planned for trigger in self._open(*key))
        ]
        return tuple(found[: at_most(limit)])

    # ── triggers ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def fire(self, fire: Fire) -> Trigger | None:
        await trio.lowlevel.checkpoint()
        check_words(fire.id, fire.key or "", fire.trace)
        for known in self._triggers(fire.tenant):
            if known.id == fire.id or (fire.key is not None and known.key == fire.key):
                return known
        job = self.tables.jobs.get((fire.tenant, fire.job))
        if job is None or job.status.ended:
            return None
        trigger = fired(fire, job, self.whole.now())
        self.tables.triggers[trigger.tenant, trigger.id] = trigger
        return trigger

    async def trigger(self, tenant: str, trigger: str) -> Trigger | None:
        await trio.lowlevel.checkpoint()
        return self.tables.triggers.get((tenant, trigger))

    async def triggers(self, tenant: str, job: int, *, limit: int = 50) -> tuple[Trigger, ...]:
        await trio.lowlevel.checkpoint()
        found = [trigger for trigger in self._triggers(tenant) if trigger.job == job]
        return tuple(sorted(found, key=lambda one: (one.slot, one.id), reverse=True)[: at_most(limit)])

    async def next_due(self) -> timedelta | None:
        await trio.lowlevel.checkpoint()
        found = [trigger for trigger in self.tables.triggers.values() if trigger.state.open]
        busy = {(one.tenant, one.job) for one in found if one.state is TriggerState.EXECUTING}
        free = [one for one in found if one.state is TriggerState.EXECUTING or (one.tenant, one.job) not in busy]
        return min(one.claim_at for one in free) - self.whole.now() if free else None

    async def claim(
        self, worker: str, limit: int, span: timedelta, *, after: str = "", room: Mapping[str, int] | None = None
    ) -> tuple[Claim, ...]:
        await trio.lowlevel.checkpoint()
        check_words(worker)
        now = self.whole.now()
        tenants = sorted({tenant for tenant, _ in self.tables.triggers})
        in_turn = [one for one in tenants if one > after] + [one for one in tenants if one <= after]
        lists = [self._claimable(tenant, now) for tenant in in_turn]
        left = dict(room or {})
        taken: list[Trigger] = []
        busy: set[tuple[str, int]] = set()
        for trigger in chain.from_iterable(zip_longest(*lists)):
            if trigger is None or len(taken) >= at_most(limit) or (trigger.tenant, trigger.job) in busy:
                continue
            if left.get(trigger.agent, 1) <= 0:
                continue
            if trigger.agent in left:
                left[trigger.agent] -= 1
            busy.add((trigger.tenant, trigger.job))
            taken.append(trigger)
        return tuple(self._claim(trigger, worker, span, now) for trigger in taken)

    async def claim_orphans(self, worker: str, limit: int, span: timedelta, silent: timedelta) -> tuple[Claim, ...]:
        await trio.lowlevel.checkpoint()
        check_words(worker)
        now = self.whole.now()
        found = [
            trigger
            for trigger in sorted(self.tables.triggers.values(), key=lambda one: (one.claim_at, one.tenant, one.id))
            if trigger.state is TriggerState.EXECUTING
            and trigger.claim_at <= now
            and self._silent(trigger, now - silent)
        ]
        return tuple(self._claim(trigger, worker, span, now) for trigger in found[: at_most(limit)])

    async def held(self, worker: str) -> tuple[Claim, ...]:
        await trio.lowlevel.checkpoint()
        now = self.whole.now()
        mine = [
            trigger
            for _, trigger in sorted(self.tables.triggers.items())
            if trigger.state is TriggerState.EXECUTING and trigger.owner == worker
        ]
        return tuple(self._claimed(trigger, now) for trigger in mine)

    async def renew(self, claims: Sequence[Claim], span: timedelta) -> tuple[bool, ...]:
        await trio.lowlevel.checkpoint()
        until = self.whole.now() + span
        return tuple([self._renew(claim, until) for claim in claims])

    async def start(self, starts: Sequence[Start]) -> tuple[Run | None, ...]:
        await trio.lowlevel.checkpoint()
        check_words(*(start.run for start in starts))
        now = self.whole.now()
        return tuple([self._start(start, now) for start in starts])

    async def settle(self, ended: Sequence[Ended], conclude: Conclude) -> tuple[bool, ...]:
        await trio.lowlevel.checkpoint()
        now = self.whole.now()
        return tuple([self._settle(one, conclude, now) for one in ended])

    # ── what happened ────────────────────────────────────────────────────────────────────────────────────────────────

    async def runs(
        self, tenant: str, *, job: int | None = None, since: datetime | None = None, limit: int = 100
    ) -> tuple[Run, ...]:
        await trio.lowlevel.checkpoint()
        found = [run for run in self._runs(tenant) if job in (None, run.job)]
        if since is not None:
            found = [run for run in found if run.started_at >= since]
        ordered = sorted(found, key=lambda run: (run.started_at, run.id), reverse=since is None)
        return tuple(ordered[: at_most(limit)])

    async def run(self, tenant: str, run: str) -> Run | None:
        await trio.lowlevel.checkpoint()
        return self.tables.runs.get((tenant, run))

    async def output(self, tenant: str, run: str) -> str | None:
        await trio.lowlevel.checkpoint()
        known = self.tables.runs.get((tenant, run))
        return None if known is None else self.tables.outputs.get((tenant, run), known.summary)

    async def notifications(self, tenant: str, *, after: int = 0, limit: int = 100) -> tuple[Notification, ...]:
        await trio.lowlevel.checkpoint()
        return tuple(one for one in self.tables.news.get(tenant, ()) if one.seq > after)[: at_most(limit)]

    async def told(self, tenant: str) -> int:
        await trio.lowlevel.checkpoint()
        return self.tables.told.get(tenant, 0)

    async def counts(self, tenant: str) -> CronCounts:
        await trio.lowlevel.checkpoint()
        statuses = [job.status for job in self._jobs(tenant)]
        states = [trigger.state for trigger in self._triggers(tenant)]
        return CronCounts(
            statuses.count(JobStatus.ACTIVE),
            statuses.count(JobStatus.PAUSED),
            states.count(TriggerState.PENDING),
            states.count(TriggerState.EXECUTING),
        )

    # ── for the rest of the store ────────────────────────────────────────────────────────────────────────────────────

    def delivered(self, tenant: str, run: str, failed: str) -> None:
        """What became of the note in which a run said something."""
        known = self.tables.runs.get((tenant, run))
        if known is not None:
            state = Delivery.FAILED if failed else Delivery.DELIVERED
            self.tables.runs[tenant, run] = replace(known, delivery=state, delivery_error=failed)

    def tidy(self, now: datetime) -> int:
        """How much went."""
        tables = self.tables
        old = now - KEEP_RUNS
        jobs = [job.key for job in tables.jobs.values() if job.status.ended and job.updated_at <= old]
        count = len(jobs)
        for tenant, number in jobs:
            self._remove(tenant, number)
        triggers = [key for key, one in tables.triggers.items() if one.ended_at is not None and one.ended_at <= old]
        runs = [key for key, one in tables.runs.items() if one.ended_at is not None and one.ended_at <= old]
        young = now - KEEP_OUTPUTS
        for key in triggers:
            del tables.triggers[key]
        outputs = [key for key in tables.outputs if (ended := tables.runs[key].ended_at) is not None and ended <= young]
        for key in outputs:
            del tables.outputs[key]
        for key in runs:
            del tables.runs[key]
        told = 0
        for tenant, news in tables.news.items():
            tables.news[tenant] = [one for one in news if one.at > now - KEEP_NEWS]
            told += len(news) - len(tables.news[tenant])
        return count + len(triggers) + len(runs) + len(outputs) + told

    def forget_tenant(self, tenant: str) -> None:
        for job in self._jobs(tenant):
            self._remove(*job.key)
        for rows in (self.tables.news, self.tables.numbers, self.tables.told):
            rows.pop(tenant, None)

    # ── single rows ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _jobs(self, tenant: str) -> list[Job]:
        return [job for key, job in sorted(self.tables.jobs.items()) if key[0] == tenant]

    def _triggers(self, tenant: str) -> list[Trigger]:
        return [trigger for trigger in self.tables.triggers.values() if trigger.tenant == tenant]

    def _runs(self, tenant: str) -> list[Run]:
        return [run for run in self.tables.runs.values() if run.tenant == tenant]

    def _open(self, tenant: str, job: int) -> list[Trigger]:
        return [one for one in self._triggers(tenant) if one.job == job and one.state.open]

    def _claimable(self, tenant: str, now: datetime) -> list[Trigger]:
        """What is due, but for what would run beside another one of its job."""
        found = sorted(self._triggers(tenant), key=lambda one: (one.claim_at, one.id))
        executing = {one.job: one.id for one in found if one.state is TriggerState.EXECUTING}
        return [
            one for one in found if one.state.open and one.claim_at <= now and executing.get(one.job, one.id) == one.id
        ]

    def _silent(self, trigger: Trigger, since: datetime) -> bool:
        worker = self.whole.crew.get(trigger.owner)
        return worker is None or worker.seen_at <= since

    def _claim(self, trigger: Trigger, worker: str, span: timedelta, now: datetime) -> Claim:
        mine = leased(trigger, worker, now + span)
        self.tables.triggers[mine.tenant, mine.id] = mine
        return self._claimed(mine, now)

    def _claimed(self, trigger: Trigger, now: datetime) -> Claim:
        job = self.tables.jobs[trigger.tenant, trigger.job]
        return Claim(trigger, job, now, self._running(trigger), self.whole.people[trigger.tenant].enabled)

    def _running(self, trigger: Trigger) -> Run | None:
        """The run of this trigger that was begun and has not ended."""
        going_on = (run for run in self._runs(trigger.tenant) if run.trigger == trigger.id)
        return next((run for run in going_on if run.state is RunState.RUNNING), None)

    def _renew(self, claim: Claim, until: datetime) -> bool:
        key = claim.trigger.tenant, claim.trigger.id
        trigger = self.tables.triggers.get(key)
        if not is_current(claim, trigger):
            return False
        assert trigger is not None  # noqa: S101 - it is current
        self.tables.triggers[key] = replace(trigger, leased_until=until)
        return True

    def _start(self, start: Start, now: datetime) -> Run | None:
        key = start.claim.trigger.tenant, start.claim.trigger.id
        trigger = self.tables.triggers.get(key)
        if trigger is None or not is_current(start.claim, trigger):
            return None
        known = self.tables.runs.get((key[0], start.run))
        if known is not None:
            return known
        again, run, news = started(start, trigger, now)
        self.tables.triggers[key] = again
        self.tables.runs[run.tenant, run.id] = run
        self._tell([news], now)
        return run

    def _settle(self, ended: Ended, conclude: Conclude, now: datetime) -> bool:
        claim = ended.claim
        trigger = self.tables.triggers.get((claim.trigger.tenant, claim.trigger.id))
        if trigger is None or not is_current(claim, trigger):
            return is_own(claim, trigger)
        job = self.tables.jobs[trigger.tenant, trigger.job]
        change = conclude(job, trigger, ended, now)
        run = self.tables.runs.get((trigger.tenant, ended.run))
        self._write(settle_one(ended, change, self._open(*job.key), trigger, run, now), now)
        return True

    def _write(self, rows: Rows, now: datetime) -> None:
        tables = self.tables
        for session, _ in rows.said:
            self.whole.check_tenants([session])
        for trigger in rows.withdrawn:
            del tables.triggers[trigger.tenant, trigger.id]
        for trigger in rows.triggers:
            tables.triggers[trigger.tenant, trigger.id] = trigger
        for job in rows.jobs:
            tables.jobs[job.key] = job
        for run in rows.runs:
            tables.runs[run.tenant, run.id] = run
        for tenant, name, text in rows.outputs:
            tables.outputs[tenant, name] = text
        for note in rows.notes:
            reply = Reply(next(self.whole.ids), note, ())
            self.whole.outbox[reply.id] = reply
        for session, said in rows.said:
            self.whole.write_down(self.whole.keep(session), copied(said))
        self._tell(rows.news, now)
        for key in rows.removed:
            self._remove(*key)

    def _tell(self, news: Iterable[News], now: datetime) -> None:
        for one in news:
            number = self.tables.told[one.tenant] = self.tables.told.get(one.tenant, 0) + 1
            copy = replace(one, data=plain_json(one.data))
            self.tables.news.setdefault(one.tenant, []).append(Notification(number, now, copy))
            self.whole.ears.say(f"{NEWS}{one.tenant}:{number}")

    def _remove(self, tenant: str, job: int) -> None:
        tables = self.tables
        tables.jobs.pop((tenant, job), None)
        tables.triggers = {key: one for key, one in tables.triggers.items() if (one.tenant, one.job) != (tenant, job)}
        tables.runs = {key: one for key, one in tables.runs.items() if (one.tenant, one.job) != (tenant, job)}
        tables.outputs = {key: text for key, text in tables.outputs.items() if key in tables.runs}


def beyond(count: int, bound: int | None) -> bool:
    return bound is not None and count >= bound
