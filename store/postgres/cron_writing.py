"""What is there under the locks of some jobs, and how the rows that decisions leave are written. On the event loop."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from store.cron_protocol import DUE, JOBS
from store.cron_steps import Rows, is_current, is_own, settle_one
from store.jobs import TriggerState
from store.postgres import cron_rows
from store.postgres.queries import load
from store.postgres.rows import notes_json
from store.rules import plain_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from store.cron_protocol import Conclude
    from store.jobs import Ended, Job, Run, Trigger

    Key = tuple[str, int]
    Name = tuple[str, str]

SQL = load("cron")
SOON = timedelta(seconds=60)
"""Whoever waits for something to claim looks by himself after this."""


@dataclass(slots=True)
class Picture:
    """Some jobs, their open triggers and the runs of these, as they are and as decisions change them one by one."""

    now: datetime
    jobs: dict[Key, Job]
    triggers: dict[Name, Trigger]
    runs: dict[Name, Run]
    changed: list[Rows] = field(default_factory=list)
    gone: set[Key] = field(default_factory=set)

    def open_of(self, key: Key) -> list[Trigger]:
        return [one for one in self.triggers.values() if (one.tenant, one.job) == key and one.state.open]

    def settle(self, ended: Ended, conclude: Conclude) -> bool | None:
        """Whether it is settled. None if it is nothing that is open: then its token in the store has to tell."""
        claimed = ended.claim.trigger
        key, trigger = (claimed.tenant, claimed.job), self.triggers.get((claimed.tenant, claimed.id))
        if key in self.gone:
            return False
        if trigger is None:
            return None
        if not is_current(ended.claim, trigger):
            return is_own(ended.claim, trigger)
        job, run = self.jobs[key], self.runs.get((trigger.tenant, ended.run))
        change = conclude(job, trigger, ended, self.now)
        self.take(settle_one(ended, change, self.open_of(key), trigger, run, self.now))
        return True

    def take(self, rows: Rows) -> None:
        self.changed.append(rows)
        self.gone.update(rows.removed)
        for withdrawn in rows.withdrawn:
            self.triggers.pop((withdrawn.tenant, withdrawn.id))
        self.triggers |= {(one.tenant, one.id): one for one in rows.triggers}
        self.jobs |= {one.key: one for one in rows.jobs}
        self.runs |= {(one.tenant, one.id): one for one in rows.runs}

    def rows(self) -> Rows:
        """All that has changed, each row once and as it is in the end."""
        all_ = Rows()
        triggers: dict[Name, Trigger] = {}
        jobs: dict[Key, Job] = {}
        runs: dict[Name, Run] = {}
        for rows in self.changed:
            for withdrawn in rows.withdrawn:
                triggers.pop((withdrawn.tenant, withdrawn.id), None)
            triggers |= {(one.tenant, one.id): one for one in rows.triggers}
            jobs |= {one.key: one for one in rows.jobs}
            runs |= {(one.tenant, one.id): one for one in rows.runs}
            for name in ("removed", "withdrawn", "outputs", "notes", "said", "news"):
                getattr(all_, name).extend(getattr(rows, name))
        all_.jobs = [one for one in jobs.values() if one.key not in self.gone]
        all_.triggers = sorted(triggers.values(), key=lambda one: one.state.open)
        all_.runs = list(runs.values())
        return all_


async def look(connection: Any, now: datetime | None, keys: Sequence[Key]) -> Picture:
    """These jobs, locked, and what is open of theirs. A job with anything that cannot be read is left out."""
    tenants, numbers = cron_rows.names(keys)
    locked = await connection.fetch(SQL["lock_jobs"], now, tenants, numbers)
    if not locked:
        return Picture(now, {}, {}, {})  # type: ignore[arg-type]  # nothing is decided by it
    found = await connection.fetch(SQL["open_triggers"], tenants, numbers)
    picture = Picture(locked[0]["now"], {}, {}, {})
    for row in locked:
        job = cron_rows.readable(row[:], cron_rows.job)
        if job is not None:
            picture.jobs[job.key] = job
    for row in found:
        _add_trigger(picture, row[:])
    return picture


def _add_trigger(picture: Picture, cells: cron_rows.Cells) -> None:
    tenant, key, going_on = cells[0], (cells[0], cells[2]), cells[cron_rows.TRIGGER :]
    trigger = cron_rows.readable(cells, cron_rows.trigger)
    if trigger is None:
        picture.jobs.pop(key, None)
    if trigger is None or key not in picture.jobs:
        picture.gone.add(key)
        return
    picture.triggers[tenant, trigger.id] = trigger
    run = None if going_on[1] is None else cron_rows.readable(going_on, cron_rows.run)
    if run is not None:
        picture.runs[tenant, run.id] = run


async def write(connection: Any, rows: Rows, now: datetime, *, known: Mapping[Key, Job], edited: bool) -> None:
    """All of it. ``edited``: somebody has changed a job, and not only its time has gone on."""
    if rows.withdrawn:
        await connection.execute(SQL["withdraw"], *cron_rows.names((one.tenant, one.id) for one in rows.withdrawn))
    whole = [job for job in rows.jobs if job.key not in known or known[job.key].spec != job.spec]
    if whole:
        await connection.execute(SQL["put_jobs"], cron_rows.as_json([cron_rows.job_row(job) for job in whole]))
    if rows.outputs or rows.notes or rows.said:
        await _say(connection, rows, now)
    done = {job.key for job in whole}
    await connection.execute(
        SQL["write"],
        now,
        cron_rows.as_json([cron_rows.job_state(job) for job in rows.jobs if job.key not in done]),
        cron_rows.as_json([cron_rows.trigger_row(place, one) for place, one in enumerate(rows.triggers)]),
        cron_rows.as_json([cron_rows.run_end(run) for run in rows.runs]),
        cron_rows.as_json([cron_rows.news_row(place, one) for place, one in enumerate(rows.news)]),
        _words(rows, now, edited=edited),
    )
    if rows.removed:
        await connection.execute(SQL["remove"], *cron_rows.names(rows.removed))


async def _say(connection: Any, rows: Rows, now: datetime) -> None:
    outputs = [{"tenant_id": tenant, "run": run, "body": text} for tenant, run, text in rows.outputs]
    lines = [(session, one) for session, said in rows.said for one in said]
    said = [
        {
            "place": place,
            "tenant_id": session.tenant,
            "session": str(session),
            "role": one.role,
            "body": one.text,
            "data": plain_json(one.data),
        }
        for place, (session, one) in enumerate(lines)
    ]
    await connection.execute(
        SQL["say"], now, cron_rows.as_json(outputs), notes_json(rows.notes), cron_rows.as_json(said)
    )


def _words(rows: Rows, now: datetime, *, edited: bool) -> list[str]:
    """What others are told, beside the news."""
    waiting = [one.due_at for one in rows.triggers if one.state is TriggerState.PENDING]
    due = bool(waiting) and (edited or min(waiting) <= now + SOON)
    return [DUE] * due + [JOBS] * (edited or bool(rows.removed))
