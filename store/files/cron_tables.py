"""Rows of cron in memory, and the ways to find them. Each is told of every change, and says what the rows say.

A snapshot is not of one moment, so while one is read two rows may contradict each other until the journal has been put
over it: no index relies on what only the verbs see to, for instance that a job has one trigger that executes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from store.cron_steps import wants_trigger
from store.files import decode_cron
from store.files.indexes import ByAge
from store.files.ordered import Ordered, Tally, View
from store.files.shards import Shards
from store.files.table import Table
from store.jobs import Job, Notification, Run, RunState, Trigger, TriggerState

if TYPE_CHECKING:
    from datetime import datetime

JobKey = tuple[str, int]
"""A tenant and the number of its job."""
RowKey = tuple[str, str]
"""A tenant and the id of its trigger or run."""
NewsKey = tuple[str, int]
"""A tenant and the number of its notification."""


class CronTables:
    def __init__(self) -> None:
        # Triggers before jobs: of a job that is read back it is then known that it has one.
        self.triggers: Table[RowKey, Trigger] = Table(
            "trigger", decode_cron.named, decode_cron.trigger, self._note_trigger, lambda row: (row.tenant, row.id)
        )
        self.jobs: Table[JobKey, Job] = Table(
            "job", decode_cron.numbered, decode_cron.job, self._note_job, lambda row: row.key
        )
        self.runs: Table[RowKey, Run] = Table(
            "run", decode_cron.named, decode_cron.run, self._note_run, lambda row: (row.tenant, row.id)
        )
        self.outputs: Table[RowKey, str] = Table("output", decode_cron.named, decode_cron.text, self._note_output)
        """Those that the run's summary does not hold."""
        self.news: Table[NewsKey, Notification] = Table(
            "news",
            decode_cron.numbered,
            decode_cron.notification,
            self._note_news,
            lambda row: (row.news.tenant, row.seq),
        )
        self.numbers: Table[str, int] = Table("job_number", decode_cron.text, decode_cron.count)
        """The highest number that a job of the tenant had."""
        self.told: Table[str, int] = Table("news_number", decode_cron.text, decode_cron.count)
        """The highest number that a notification of the tenant had."""

        self.jobs_of = View[Job](lambda job: job.key)
        self.by_status = View[Job](lambda job: (job.tenant, job.status, job.id))
        self.by_uid = View[Job](lambda job: (job.tenant, job.spec.uid, job.id))
        self.statuses = Tally[Job](lambda job: (job.tenant, job.status))
        self.living = Tally[Job](lambda job: None if job.status.ended else job.tenant)
        self.living_of_agent = Tally[Job](lambda job: None if job.status.ended else (job.tenant, job.spec.agent))
        self.unplanned = Ordered()
        """Keys of jobs that should have an open planned trigger and have none."""
        self.jobs_by_age: ByAge[JobKey] = ByAge(self._job_over_at)

        self.open_of = View[Trigger](
            lambda one: (one.tenant, one.job, one.claim_at, one.id) if one.state.open else None
        )
        self.planned = View[Trigger](
            lambda one: (one.tenant, one.job, one.id) if one.state.open and one.kind.planned else None
        )
        self.claimable = View[Trigger](lambda one: (one.tenant, one.claim_at, one.id) if one.state.open else None)
        self.of_agent = View[Trigger](
            lambda one: (one.tenant, one.agent, one.claim_at, one.id, one.job) if one.state.open else None
        )
        self.fronts = Ordered()
        """Tenants, when the first trigger of each job can be claimed, and the job: while one executes, it is that."""
        self._front_of: Shards[JobKey, datetime] = Shards()
        self.heads = Ordered()
        """When the first trigger of each tenant can be claimed, and the tenant."""
        self._head_of: dict[str, datetime] = {}
        self.executing = View[Trigger](lambda one: (one.tenant, one.job, one.id) if executes(one) else None)
        self.leases = View[Trigger](lambda one: (one.claim_at, one.tenant, one.id) if executes(one) else None)
        self.owned = View[Trigger](lambda one: (one.owner, one.tenant, one.id) if executes(one) else None)
        self.states = Tally[Trigger](lambda one: (one.tenant, one.state) if one.state.open else None)
        self.triggers_of = View[Trigger](lambda one: (one.tenant, one.job, one.slot, one.id))
        self.by_key = View[Trigger](lambda one: None if one.key is None else (one.tenant, one.key, one.id))
        self.triggers_by_age: ByAge[RowKey] = ByAge(self._trigger_ended_at)

        self.runs_of = View[Run](lambda run: (run.tenant, run.started_at, run.id))
        self.runs_of_job = View[Run](lambda run: (run.tenant, run.job, run.started_at, run.id))
        self.running = View[Run](
            lambda run: (run.tenant, run.trigger, run.id) if run.state is RunState.RUNNING else None
        )
        self.runs_by_age: ByAge[RowKey] = ByAge(self._run_ended_at)
        self.outputs_by_age: ByAge[RowKey] = ByAge(self._output_ended_at)
        self.news_of = View[Notification](lambda one: (one.news.tenant, one.seq))
        self.news_by_age: ByAge[NewsKey] = ByAge(self._told_at)

        self._views_of_jobs: tuple[View[Job] | Tally[Job], ...] = (
            self.jobs_of,
            self.by_status,
            self.by_uid,
            self.statuses,
            self.living,
            self.living_of_agent,
        )
        self._views_of_triggers: tuple[View[Trigger] | Tally[Trigger], ...] = (
            self.open_of,
            self.planned,
            self.claimable,
            self.of_agent,
            self.executing,
            self.leases,
            self.owned,
            self.states,
            self.triggers_of,
            self.by_key,
        )
        self._views_of_runs = (self.runs_of, self.runs_of_job, self.running)

    @property
    def every(self) -> tuple[Table[Any, Any], ...]:
        return (self.triggers, self.jobs, self.runs, self.outputs, self.news, self.numbers, self.told)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(table.name for table in self.every)

    def open_triggers(self, tenant: str, job: int) -> list[Trigger]:
        return [self.triggers.rows[tenant, entry[-1]] for entry in self.open_of.under(tenant, job)]

    def run_of(self, trigger: Trigger) -> Run | None:
        """The one that was begun for it and has not ended."""
        entry = next(self.running.under(trigger.tenant, trigger.id), None)
        return None if entry is None else self.runs.rows[trigger.tenant, entry[-1]]

    def with_uid(self, tenant: str, uid: str) -> Job | None:
        entry = next(self.by_uid.under(tenant, uid), None)
        return None if entry is None else self.jobs.rows[tenant, entry[-1]]

    def with_key(self, tenant: str, key: str | None) -> Trigger | None:
        entry = None if key is None else next(self.by_key.under(tenant, key), None)
        return None if entry is None else self.triggers.rows[tenant, entry[-1]]

    # ── indexes ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _note_job(self, key: JobKey, old: Job | None, new: Job | None) -> None:
        for view in self._views_of_jobs:
            view.follow(old, new)
        self._note_plan(key)
        if new is not None and new.status.ended:
            self.jobs_by_age.add(new.updated_at, key)

    def _note_trigger(self, key: RowKey, old: Trigger | None, new: Trigger | None) -> None:
        for view in self._views_of_triggers:
            view.follow(old, new)
        for job in dict.fromkeys(row.job for row in (old, new) if row is not None):
            self._note_plan((key[0], job))
            self._note_front((key[0], job))
        self._note_head(key[0])
        if new is not None and new.ended_at is not None:
            self.triggers_by_age.add(new.ended_at, key)

    def _note_run(self, key: RowKey, old: Run | None, new: Run | None) -> None:
        for view in self._views_of_runs:
            view.follow(old, new)
        ended_at = None if new is None else new.ended_at
        if ended_at is not None and (old is None or old.ended_at != ended_at):
            self.runs_by_age.add(ended_at, key)
            if key in self.outputs.rows:
                self.outputs_by_age.add(ended_at, key)

    def _note_output(self, key: RowKey, old: str | None, new: str | None) -> None:
        ended_at = self._run_ended_at(key)
        if new is not None and ended_at is not None:
            self.outputs_by_age.add(ended_at, key)

    def _note_news(self, key: NewsKey, old: Notification | None, new: Notification | None) -> None:
        self.news_of.follow(old, new)
        if new is not None:
            self.news_by_age.add(new.at, key)

    def _note_plan(self, key: JobKey) -> None:
        """Has the job the trigger that it should have?"""
        job = self.jobs.rows.get(key)
        missing = job is not None and wants_trigger(job) and not self.planned.has(*key)
        if missing is not self.unplanned.has(*key):
            (self.unplanned.add if missing else self.unplanned.drop)(key)

    def _note_front(self, key: JobKey) -> None:
        tenant, job = key
        executing = [self.triggers.rows[tenant, entry[-1]].claim_at for entry in self.executing.under(tenant, job)]
        first = next(self.open_of.under(tenant, job), None)
        at = min(executing) if executing else None if first is None else first[2]
        before = self._front_of.get(key)
        if before == at:
            return
        if before is not None:
            del self._front_of[key]
            self.fronts.drop((tenant, before, job))
        if at is not None:
            self._front_of[key] = at
            self.fronts.add((tenant, at, job))

    def _note_head(self, tenant: str) -> None:
        first = next(self.fronts.under(tenant), None)
        at = None if first is None else first[1]
        before = self._head_of.get(tenant)
        if before == at:
            return
        if before is not None:
            del self._head_of[tenant]
            self.heads.drop((before, tenant))
        if at is not None:
            self._head_of[tenant] = at
            self.heads.add((at, tenant))

    # ── ages ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _job_over_at(self, key: JobKey) -> datetime | None:
        job = self.jobs.rows.get(key)
        return job.updated_at if job is not None and job.status.ended else None

    def _trigger_ended_at(self, key: RowKey) -> datetime | None:
        trigger = self.triggers.rows.get(key)
        return None if trigger is None else trigger.ended_at

    def _run_ended_at(self, key: RowKey) -> datetime | None:
        run = self.runs.rows.get(key)
        return None if run is None else run.ended_at

    def _output_ended_at(self, key: RowKey) -> datetime | None:
        return self._run_ended_at(key) if key in self.outputs.rows else None

    def _told_at(self, key: NewsKey) -> datetime | None:
        told = self.news.rows.get(key)
        return None if told is None else told.at


def executes(trigger: Trigger) -> bool:
    return trigger.state is TriggerState.EXECUTING
