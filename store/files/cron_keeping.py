"""What becomes of cron's rows beside its verbs: the end of a job or a tenant, age, and what damage has left."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from store.files.ordered import TOP, Ordered
from store.jobs import KEEP_NEWS, KEEP_OUTPUTS, KEEP_RUNS, Delivery
from store.records import DEFAULT_TENANT, Tenant

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from store.files.cron_tables import CronTables
    from store.files.tables import Tables

AT_ONCE = 2_000
"""A job with more triggers or runs than this goes when they have gone, so that no step takes long."""


def delivered(tables: Tables, tenant: str, run: str, failed: str) -> None:
    """What became of the note in which a run said something."""
    known = tables.cron.runs.rows.get((tenant, run))
    if known is not None:
        state = Delivery.FAILED if failed else Delivery.DELIVERED
        tables.put(tables.cron.runs, (tenant, run), replace(known, delivery=state, delivery_error=failed))


def remove_job(tables: Tables, tenant: str, job: int) -> None:
    """With its triggers, runs and outputs."""
    cron = tables.cron
    tables.drop(cron.jobs, (tenant, job))
    for entry in list(cron.triggers_of.under(tenant, job)):
        tables.drop(cron.triggers, (tenant, entry[-1]))
    for entry in list(cron.runs_of_job.under(tenant, job)):
        drop_run(tables, tenant, entry[-1])


def drop_run(tables: Tables, tenant: str, run: str) -> None:
    tables.drop(tables.cron.outputs, (tenant, run))
    tables.drop(tables.cron.runs, (tenant, run))


def forget_tenant(tables: Tables, tenant: str) -> None:
    cron = tables.cron
    for key in list(cron.jobs_of.under(tenant)):
        remove_job(tables, *key)
    for entry in list(cron.news_of.under(tenant)):
        tables.drop(cron.news, entry)
    tables.drop(cron.numbers, tenant)
    tables.drop(cron.told, tenant)


# ── age ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def tidy(tables: Tables, now: datetime, limit: int) -> int:
    """Up to so many of each kind; how many went."""
    cron, old = tables.cron, now - KEEP_RUNS
    count = _tidy_jobs(tables, old, limit)
    triggers = cron.triggers_by_age.pop_until(old, limit)
    for key in triggers:
        tables.drop(cron.triggers, key)
    outputs = cron.outputs_by_age.pop_until(now - KEEP_OUTPUTS, limit)
    for key in outputs:
        tables.drop(cron.outputs, key)
    runs = cron.runs_by_age.pop_until(old, limit)
    for tenant, run in runs:
        count += (tenant, run) in cron.outputs.rows
        drop_run(tables, tenant, run)
    news = cron.news_by_age.pop_until(now - KEEP_NEWS, limit)
    for told in news:
        tables.drop(cron.news, told)
    return count + len(triggers) + len(outputs) + len(runs) + len(news)


def _tidy_jobs(tables: Tables, old: datetime, limit: int) -> int:
    cron, count, room = tables.cron, 0, AT_ONCE
    waiting = []
    for key in cron.jobs_by_age.pop_until(old, limit):
        size = _history(cron, *key)
        if size > room:
            waiting.append((cron.jobs.rows[key].updated_at, key))
            continue
        room -= size
        count += 1
        remove_job(tables, *key)
    for at, key in waiting:
        cron.jobs_by_age.add(at, key)
    return count


def _history(cron: CronTables, tenant: str, job: int) -> int:
    """How many rows a job has; what is beyond `AT_ONCE` is not counted."""
    views = (cron.triggers_of, cron.runs_of_job)
    return sum(sum(1 for _ in islice(view.under(tenant, job), AT_ONCE + 1)) for view in views)


# ── damage ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def mend(tables: Tables) -> Iterator[str]:
    """Rows that nobody could work with, because others are missing: what is done about them, a sentence for each.

    Nothing is written here; whoever recovers a directory writes everything anew when there was anything to say.
    """
    yield from _without_job(tables)
    yield from _without_tenant(tables)
    cron = tables.cron
    for tenant, number in _highest(cron.jobs_of):
        if cron.numbers.rows.get(tenant, 0) < number:
            cron.numbers.set(tenant, number)
            yield f"how far the jobs of {tenant!r} were numbered is missing: it goes on after {number}"
    for tenant, number in _highest(cron.news_of):
        if cron.told.rows.get(tenant, 0) < number:
            cron.told.set(tenant, number)
            yield f"how far the notifications of {tenant!r} were numbered is missing: it goes on after {number}"


def _without_job(tables: Tables) -> Iterator[str]:
    cron = tables.cron
    triggers = [key for key, one in cron.triggers.rows.items() if (one.tenant, one.job) not in cron.jobs.rows]
    runs = [key for key, one in cron.runs.rows.items() if (one.tenant, one.job) not in cron.jobs.rows]
    for key in triggers:
        cron.triggers.set(key, None)
    for key in runs:
        cron.runs.set(key, None)
    outputs = [key for key in cron.outputs.rows if key not in cron.runs.rows]
    for key in outputs:
        cron.outputs.set(key, None)
    if triggers or runs or outputs:
        yield (
            f"{len(triggers)} triggers, {len(runs)} runs and {len(outputs)} outputs belong to jobs that are missing: "
            "they are left out"
        )


def _without_tenant(tables: Tables) -> Iterator[str]:
    """Its jobs would stop those of everybody else; what it was is not known, so it fires nothing for now."""
    for tenant, number in _highest(tables.cron.jobs_of):
        if tenant not in tables.tenants.rows and tenant != DEFAULT_TENANT:
            made_at = tables.cron.jobs.rows[tenant, number].created_at
            tables.tenants.set(tenant, Tenant(tenant, "", "UTC", False, made_at))
            yield f"the tenant {tenant!r} is missing and has jobs: it is made anew, disabled until somebody enables it"


def _highest(view: Ordered) -> Iterator[tuple[str, int]]:
    """Each tenant and its last number."""
    entry = view.first()
    while entry is not None:
        last = next(view.backwards(entry[0]))
        yield last[0], last[1]
        entry = view.first((entry[0], TOP))
