"""Jobs from a directory into the database, with their triggers and runs.

A job that the database knows by its uid goes on there: nothing of it is touched. A new one keeps its number, or gets
the next free one if another job has that here. The process that held a claim is gone, so what was executing waits again
with its attempt counted, and its run has failed. Notifications come along only to a tenant that has none yet, since
their numbers are what readers go by.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from store.jobs import RunState, TriggerState
from store.postgres import cron_rows
from store.postgres.queries import load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from store.copying import Everything
    from store.jobs import Job, Run, Trigger
    from store.postgres.adopt import Mark, Taking

    Key = tuple[str, int]

ADOPT, CRON = load("adopt"), load("cron")
LOST = "lost when moved"


async def take_cron(take: Taking, everything: Everything, mark: Mark) -> tuple[int, int]:
    """How many jobs and runs were new."""
    tenants = sorted({tenant for tenant, _, _ in everything.numbers} | {job.tenant for job in everything.jobs})
    for tenant in tenants:
        await take.connection.execute(CRON["adding"], tenant)
    found = await take.connection.fetch(ADOPT["counters"], cron_rows.texts(tenants))
    counters = {row["tenant_id"]: (row["jobs"], row["news"]) for row in found}
    numbers = await _new_numbers(take, everything, mark, counters)
    jobs = [replace(job, id=numbers[job.key]) for job in everything.jobs if job.key in numbers]
    await take("jobs", map(cron_rows.job_row, jobs))
    await take("triggers", (_trigger(one, numbers) for one in everything.triggers if (one.tenant, one.job) in numbers))
    mine = [_run(one, numbers, everything.newest) for one in everything.runs if (one.tenant, one.job) in numbers]
    runs = await take("runs", map(cron_rows.run_row, mine))
    await take("outputs", _outputs(everything, mine, {(row["tenant_id"], row["id"]) for row in runs}))
    await _take_news(take, everything, numbers, counters)
    await take("count_on", _highest(everything, numbers))
    if jobs:
        await take.connection.execute(ADOPT["tell_of_jobs"])
    return len(jobs), len(runs)


async def _new_numbers(
    take: Taking, everything: Everything, mark: Mark, counters: Mapping[str, tuple[int, int]]
) -> dict[Key, int]:
    """The number that each new job gets, by its key there."""

    def is_new(job: Job) -> bool:
        return not mark.copied or job.created_at > mark.upto or job.id > counters.get(job.tenant, (0, 0))[0]

    new = sorted((job for job in everything.jobs if is_new(job)), key=lambda job: job.key)
    asked = ({"tenant_id": job.tenant, "id": job.id, "uid": job.spec.uid} for job in new)
    met = {(row["tenant_id"], row["id"]): row for row in await take("known_jobs", asked)}
    highest = {tenant: jobs for tenant, (jobs, _) in counters.items()}
    for tenant, jobs, _ in everything.numbers:
        highest[tenant] = max(highest.get(tenant, 0), jobs)
    for job in everything.jobs:
        highest[job.tenant] = max(highest.get(job.tenant, 0), job.id)
    numbers: dict[Key, int] = {}
    for job in new:
        if job.key not in met:
            numbers[job.key] = job.id
        elif not met[job.key]["is_known"]:
            numbers[job.key] = highest[job.tenant] = highest[job.tenant] + 1
    return numbers


async def _take_news(
    take: Taking, everything: Everything, numbers: Mapping[Key, int], counters: Mapping[str, tuple[int, int]]
) -> None:
    silent = [(tenant, one) for tenant, one in everything.news if counters.get(tenant, (0, 0))[1] == 0]
    await take(
        "news",
        (
            {
                "tenant_id": tenant,
                "seq": one.seq,
                "at": one.at,
                "kind": one.news.kind,
                "job": numbers.get((tenant, one.news.job), one.news.job),
                "run": one.news.run,
                "data": dict(one.news.data),
            }
            for tenant, one in silent
        ),
    )


def _highest(everything: Everything, numbers: Mapping[Key, int]) -> list[dict[str, object]]:
    """How far numbers go from now on."""
    jobs = {tenant: number for tenant, number, _ in everything.numbers}
    for (tenant, _), number in numbers.items():
        jobs[tenant] = max(jobs.get(tenant, 0), number)
    news = {tenant: number for tenant, _, number in everything.numbers}
    return [{"tenant_id": one, "jobs": number, "news": news.get(one, 0)} for one, number in sorted(jobs.items())]


def _trigger(trigger: Trigger, numbers: Mapping[Key, int]) -> dict[str, object]:
    here = replace(trigger, job=numbers[trigger.tenant, trigger.job])
    if here.state is TriggerState.EXECUTING:
        here = replace(here, state=TriggerState.PENDING, owner="", leased_until=None)
    return cron_rows.trigger_row(0, here)


def _run(run: Run, numbers: Mapping[Key, int], at: datetime) -> Run:
    here = replace(run, job=numbers[run.tenant, run.job])
    return replace(here, state=RunState.FAILED, ended_at=at, error=LOST) if here.state is RunState.RUNNING else here


def _outputs(everything: Everything, runs: Sequence[Run], taken: set[Any]) -> list[dict[str, object]]:
    ended = {(run.tenant, run.id): run.ended_at for run in runs if (run.tenant, run.id) in taken}
    return [
        {"tenant_id": tenant, "run": run, "written_at": ended[tenant, run], "body": text}
        for tenant, run, text in everything.outputs
        if (tenant, run) in ended
    ]
