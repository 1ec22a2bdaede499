"""Jobs, triggers and runs of the JSON store: each verb one line of the journal, found by indexes, decided elsewhere."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from heapq import merge
from itertools import chain, islice
from typing import TYPE_CHECKING

from store.cron_protocol import NEWS
from store.cron_steps import carry_out, check_new, fired, is_current, is_own, leased, new_job, settle_one, started
from store.files.claiming import choose
from store.files.cron_keeping import remove_job
from store.files.ordered import TOP
from store.files.verbs import Verbs
from store.hearing import Ears
from store.jobs import Claim, CronCounts, JobStatus, Notification, TriggerState
from store.records import Reply
from store.rules import at_most, check_words, plain_json, unknown_tenant

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from datetime import datetime, timedelta

    from store.cron_protocol import Conclude, Decide, First
    from store.cron_steps import Rows
    from store.files.journal import Journal
    from store.jobs import Bounds, Ended, Fire, Job, NewJob, News, Run, Start, Trigger

STARTS = 6
ENDS = 2
"""So many are written down in one step: about a millisecond. An end changes some ten rows and thirty indexes."""


class JsonCron(Verbs):
    def __init__(self, journal: Journal, now: Callable[[], datetime]) -> None:
        super().__init__(journal, now)
        self.rows = self.tables.cron
        self.ears = Ears()

    # ── jobs ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def add_job(self, new: NewJob, first: First, bounds: Bounds) -> Job | None:
        return await self.journal.do(lambda: self._add_job(new, first, bounds))

    async def job(self, tenant: str, job: int) -> Job | None:
        return await self.journal.do(lambda: self.rows.jobs.rows.get((tenant, job)))

    async def job_with(self, tenant: str, uid: str) -> Job | None:
        return await self.journal.do(lambda: self.rows.with_uid(tenant, uid))

    async def jobs(
        self, tenant: str, *, statuses: Collection[JobStatus] | None = None, after: int = 0, limit: int = 200
    ) -> tuple[Job, ...]:
        return await self.journal.do(lambda: self._jobs(tenant, statuses, after, limit))

    async def change_job(self, tenant: str, job: int, decide: Decide) -> Job | None:
        return await self.journal.do(lambda: self._change_job(tenant, job, decide))

    async def unplanned(self, limit: int = 100) -> tuple[Job, ...]:
        return await self.journal.do(
            lambda: tuple([self.rows.jobs.rows[one, job] for one, job in islice(self.rows.unplanned, at_most(limit))])
        )

    # ── triggers ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def fire(self, fire: Fire) -> Trigger | None:
        return await self.journal.do(lambda: self._fire(fire))

    async def trigger(self, tenant: str, trigger: str) -> Trigger | None:
        return await self.journal.do(lambda: self.rows.triggers.rows.get((tenant, trigger)))

    async def triggers(self, tenant: str, job: int, *, limit: int = 50) -> tuple[Trigger, ...]:
        return await self.journal.do(lambda: self._triggers(tenant, job, limit))

    async def next_due(self) -> timedelta | None:
        return await self.journal.do(self._next_due)

    async def claim(
        self, worker: str, limit: int, span: timedelta, *, after: str = "", room: Mapping[str, int] | None = None
    ) -> tuple[Claim, ...]:
        return await self.journal.do(lambda: self._claim(worker, limit, span, after, room or {}))

    async def claim_orphans(self, worker: str, limit: int, span: timedelta, silent: timedelta) -> tuple[Claim, ...]:
        return await self.journal.do(lambda: self._claim_orphans(worker, limit, span, silent))

    async def held(self, worker: str) -> tuple[Claim, ...]:
        return await self.journal.do(lambda: self._held(worker))

    async def renew(self, claims: Sequence[Claim], span: timedelta) -> tuple[bool, ...]:
        return await self.journal.do(lambda: self._renew(claims, span))

    async def start(self, starts: Sequence[Start]) -> tuple[Run | None, ...]:
        pieces = [partial(self._start, starts[at : at + STARTS]) for at in range(0, len(starts), STARTS)]
        return tuple(chain.from_iterable(await self.journal.do_each(pieces)))

    async def settle(self, ended: Sequence[Ended], conclude: Conclude) -> tuple[bool, ...]:
        pieces = [partial(self._settle, ended[at : at + ENDS], conclude) for at in range(0, len(ended), ENDS)]
        return tuple(chain.from_iterable(await self.journal.do_each(pieces)))

    # ── what happened ────────────────────────────────────────────────────────────────────────────────────────────────

    async def runs(
        self, tenant: str, *, job: int | None = None, since: datetime | None = None, limit: int = 100
    ) -> tuple[Run, ...]:
        return await self.journal.do(lambda: self._runs(tenant, job, since, limit))

    async def run(self, tenant: str, run: str) -> Run | None:
        return await self.journal.do(lambda: self.rows.runs.rows.get((tenant, run)))

    async def output(self, tenant: str, run: str) -> str | None:
        return await self.journal.do(lambda: self._output(tenant, run))

    async def notifications(self, tenant: str, *, after: int = 0, limit: int = 100) -> tuple[Notification, ...]:
        return await self.journal.do(lambda: self._notifications(tenant, after, limit))

    async def told(self, tenant: str) -> int:
        return await self.journal.do(lambda: self.rows.told.rows.get(tenant, 0))

    async def counts(self, tenant: str) -> CronCounts:
        return await self.journal.do(lambda: self._counts(tenant))

    # ── jobs, each in one step ───────────────────────────────────────────────────────────────────────────────────────

    def _add_job(self, new: NewJob, first: First, bounds: Bounds) -> Job | None:
        check_new(new)
        if new.tenant not in self.tables.tenants.rows:
            raise unknown_tenant(new.tenant)
        known = self.rows.with_uid(new.tenant, new.uid)
        if known is not None:
            return known
        living = self.rows.living[new.tenant], self.rows.living_of_agent[new.tenant, new.agent]
        if any(bound is not None and count >= bound for count, bound in zip(living, bounds, strict=True)):
            return None
        now, number = self.now(), self.rows.numbers.rows.get(new.tenant, 0) + 1
        rows = carry_out(first(new_job(number, new, now)), [], None, now)
        self.tables.put(self.rows.numbers, new.tenant, number)
        self._write(rows, now)
        return rows.jobs[0]

    def _jobs(self, tenant: str, statuses: Collection[JobStatus] | None, after: int, limit: int) -> tuple[Job, ...]:
        """Those of each status are in order; together they are again."""
        if statuses is None:
            numbers = (number for _, number in self.rows.jobs_of.between((tenant, after, TOP), (tenant, TOP)))
        else:
            lists = [
                self.rows.by_status.between((tenant, status, after, TOP), (tenant, status, TOP))
                for status in dict.fromkeys(statuses)
            ]
            numbers = merge(*([number for _, _, number in islice(one, at_most(limit))] for one in lists))
        return tuple([self.rows.jobs.rows[tenant, number] for number in islice(numbers, at_most(limit))])

    def _change_job(self, tenant: str, job: int, decide: Decide) -> Job | None:
        known = self.rows.jobs.rows.get((tenant, job))
        if known is None:
            return None
        now, open_ = self.now(), self.rows.open_triggers(tenant, job)
        planned = next((trigger for trigger in open_ if trigger.kind.planned), None)
        change = decide(known, planned, now)
        if change is None:
            return known
        rows = carry_out(change, open_, None, now)
        self._write(rows, now)
        return rows.jobs[0] if rows.jobs else known

    # ── triggers, each in one step ───────────────────────────────────────────────────────────────────────────────────

    def _fire(self, fire: Fire) -> Trigger | None:
        check_words(fire.id, fire.key or "", fire.trace)
        known = self.rows.triggers.rows.get((fire.tenant, fire.id)) or self.rows.with_key(fire.tenant, fire.key)
        if known is not None:
            return known
        job = self.rows.jobs.rows.get((fire.tenant, fire.job))
        return None if job is None or job.status.ended else self._put(fired(fire, job, self.now()))

    def _triggers(self, tenant: str, job: int, limit: int) -> tuple[Trigger, ...]:
        found = islice(self.rows.triggers_of.backwards(tenant, job), at_most(limit))
        return tuple([self.rows.triggers.rows[tenant, entry[-1]] for entry in found])

    def _next_due(self) -> timedelta | None:
        first = self.rows.heads.first()
        if first is None:
            return None
        at: datetime = first[0]
        return at - self.now()

    def _claim(
        self, worker: str, limit: int, span: timedelta, after: str, room: Mapping[str, int]
    ) -> tuple[Claim, ...]:
        check_words(worker)
        now = self.now()
        chosen = choose(self.rows, now, at_most(limit), after, room)
        return tuple([self._lease(key, worker, now, span) for key in chosen])

    def _claim_orphans(self, worker: str, limit: int, span: timedelta, silent: timedelta) -> tuple[Claim, ...]:
        check_words(worker)
        now = self.now()
        over = (entry[1:] for entry in self.rows.leases.between((), (now, TOP)))
        found = list(islice((key for key in over if self._silent(key, now - silent)), at_most(limit)))
        return tuple([self._lease(key, worker, now, span) for key in found])

    def _held(self, worker: str) -> tuple[Claim, ...]:
        now = self.now()
        return tuple(
            [self._claimed(self.rows.triggers.rows[entry[1:]], now) for entry in self.rows.owned.under(worker)]
        )

    def _renew(self, claims: Sequence[Claim], span: timedelta) -> tuple[bool, ...]:
        until = self.now() + span
        return tuple([self._renew_one(claim, until) for claim in claims])

    def _start(self, starts: Sequence[Start]) -> tuple[Run | None, ...]:
        check_words(*(start.run for start in starts))
        now = self.now()
        return tuple([self._start_one(start, now) for start in starts])

    def _settle(self, ended: Sequence[Ended], conclude: Conclude) -> tuple[bool, ...]:
        now = self.now()
        return tuple([self._settle_one(one, conclude, now) for one in ended])

    # ── what happened, each in one step ──────────────────────────────────────────────────────────────────────────────

    def _runs(self, tenant: str, job: int | None, since: datetime | None, limit: int) -> tuple[Run, ...]:
        view, start = (self.rows.runs_of, (tenant,)) if job is None else (self.rows.runs_of_job, (tenant, job))
        found = view.backwards(*start) if since is None else view.between((*start, since), (*start, TOP))
        return tuple([self.rows.runs.rows[tenant, entry[-1]] for entry in islice(found, at_most(limit))])

    def _output(self, tenant: str, run: str) -> str | None:
        known = self.rows.runs.rows.get((tenant, run))
        return None if known is None else self.rows.outputs.rows.get((tenant, run), known.summary)

    def _notifications(self, tenant: str, after: int, limit: int) -> tuple[Notification, ...]:
        found = self.rows.news_of.between((tenant, after, TOP), (tenant, TOP))
        return tuple([self.rows.news.rows[one, number] for one, number in islice(found, at_most(limit))])

    def _counts(self, tenant: str) -> CronCounts:
        return CronCounts(
            self.rows.statuses[tenant, JobStatus.ACTIVE],
            self.rows.statuses[tenant, JobStatus.PAUSED],
            self.rows.states[tenant, TriggerState.PENDING],
            self.rows.states[tenant, TriggerState.EXECUTING],
        )

    # ── single rows ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _put(self, trigger: Trigger) -> Trigger:
        return self.tables.put(self.rows.triggers, (trigger.tenant, trigger.id), trigger)

    def _lease(self, key: tuple[str, str], worker: str, now: datetime, span: timedelta) -> Claim:
        return self._claimed(self._put(leased(self.rows.triggers.rows[key], worker, now + span)), now)

    def _claimed(self, trigger: Trigger, now: datetime) -> Claim:
        job = self.rows.jobs.rows[trigger.tenant, trigger.job]
        return Claim(trigger, job, now, self.rows.run_of(trigger), self.tables.tenants.rows[trigger.tenant].enabled)

    def _silent(self, key: tuple[str, str], since: datetime) -> bool:
        worker = self.tables.workers.rows.get(self.rows.triggers.rows[key].owner)
        return worker is None or worker.seen_at <= since

    def _renew_one(self, claim: Claim, until: datetime) -> bool:
        trigger = self._trigger_of(claim)
        if trigger is None or not is_current(claim, trigger):
            return False
        self._put(replace(trigger, leased_until=until))
        return True

    def _start_one(self, start: Start, now: datetime) -> Run | None:
        trigger = self._trigger_of(start.claim)
        if trigger is None or not is_current(start.claim, trigger):
            return None
        known = self.rows.runs.rows.get((trigger.tenant, start.run))
        if known is not None:
            return known
        again, run, news = started(start, trigger, now)
        self._put(again)
        self.tables.put(self.rows.runs, (run.tenant, run.id), run)
        self._tell([news], now)
        return run

    def _settle_one(self, ended: Ended, conclude: Conclude, now: datetime) -> bool:
        trigger = self._trigger_of(ended.claim)
        if trigger is None or not is_current(ended.claim, trigger):
            return is_own(ended.claim, trigger)
        job = self.rows.jobs.rows[trigger.tenant, trigger.job]
        change = conclude(job, trigger, ended, now)
        run = self.rows.runs.rows.get((trigger.tenant, ended.run))
        self._write(settle_one(ended, change, self.rows.open_triggers(*job.key), trigger, run, now), now)
        return True

    def _trigger_of(self, claim: Claim) -> Trigger | None:
        return self.rows.triggers.rows.get((claim.trigger.tenant, claim.trigger.id))

    def _write(self, rows: Rows, now: datetime) -> None:
        tables = self.tables
        for trigger in rows.withdrawn:
            tables.drop(self.rows.triggers, (trigger.tenant, trigger.id))
        for trigger in rows.triggers:
            self._put(trigger)
        for job in rows.jobs:
            tables.put(self.rows.jobs, job.key, job)
        for run in rows.runs:
            tables.put(self.rows.runs, (run.tenant, run.id), run)
        for tenant, name, text in rows.outputs:
            tables.put(self.rows.outputs, (tenant, name), text)
        for note in rows.notes:
            reply = Reply(tables.fresh_id(), note, ())
            tables.put(tables.replies, reply.id, reply)
        for session, said in rows.said:
            kept = self.keep(session)
            self.write_down(kept, kept.session, said)
        self._tell(rows.news, now)
        for key in rows.removed:
            remove_job(tables, *key)

    def _tell(self, news: Iterable[News], now: datetime) -> None:
        for one in news:
            number = self.rows.told.rows.get(one.tenant, 0) + 1
            self.tables.put(self.rows.told, one.tenant, number)
            told = Notification(number, now, replace(one, data=plain_json(one.data)))
            self.tables.put(self.rows.news, (one.tenant, number), told)
            self.ears.say(f"{NEWS}{one.tenant}:{number}")
