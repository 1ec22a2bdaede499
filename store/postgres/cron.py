"""Jobs, triggers and runs in Postgres: reading and claiming are one statement each, a decision is one transaction.

    lock the jobs ──▶ look at their open triggers ──▶ decide (pure, on the event loop) ──▶ write ──▶ commit

Everybody waits for rows in the order that stands at the top of `sql/cron.sql`; a claim waits for nobody.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from store.cron_steps import carry_out, check_new, new_job
from store.jobs import CronCounts
from store.postgres import cron_rows
from store.postgres.cron_writing import Picture, look, write
from store.postgres.queries import load
from store.postgres.rows import fitting, limit_of
from store.protocols import StoreUnavailable
from store.rules import check_words, unknown_tenant

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import datetime, timedelta

    from store.cron_protocol import Conclude, Decide, First
    from store.jobs import Bounds, Claim, Ended, Fire, Job, JobStatus, NewJob, Notification, Run, Start, Trigger
    from store.postgres.database import Database

T = TypeVar("T")

SQL = load("cron")
LOOKS = 5
"""What somebody else is adding is found at the second look; if not by then, something is wrong."""
SUSPECTS = 1_000
"""So many jobs whose time has come are looked at for one whose trigger has vanished."""
EXECUTING = "cron_triggers_executing"


@dataclass(frozen=True, slots=True)
class PostgresCron:
    db: Database
    now: Callable[[], datetime | None]

    # ── jobs ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def add_job(self, new: NewJob, first: First, bounds: Bounds) -> Job | None:
        check_new(new)
        return await self.db.together(lambda connection: _add_job(connection, self.now(), new, first, bounds))

    async def job(self, tenant: str, job: int) -> Job | None:
        return await self._one("job", cron_rows.job, tenant, fitting(job))

    async def job_with(self, tenant: str, uid: str) -> Job | None:
        return await self._one("job_with", cron_rows.job, tenant, uid)

    async def jobs(
        self, tenant: str, *, statuses: Collection[JobStatus] | None = None, after: int = 0, limit: int = 200
    ) -> tuple[Job, ...]:
        wanted = None if statuses is None else list(statuses)
        return await self._all("jobs", cron_rows.job, tenant, fitting(after), limit_of(limit), wanted)

    async def change_job(self, tenant: str, job: int, decide: Decide) -> Job | None:
        key = tenant, fitting(job)
        return await self.db.together(lambda connection: _change_job(connection, self.now(), key, decide))

    async def unplanned(self, limit: int = 100) -> tuple[Job, ...]:
        return await self._all("unplanned", cron_rows.job, self.now(), limit_of(limit), SUSPECTS)

    # ── triggers ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def fire(self, fire: Fire) -> Trigger | None:
        check_words(fire.id, fire.key or "", fire.trace)
        asked = (fire.tenant, fire.id, fire.key, fitting(fire.job), fire.kind, fire.trace)
        for _ in range(LOOKS):
            row = await self.db.first(SQL["fire"], self.now(), *asked)
            if row is None:
                return None
            if row["id"] is not None:
                return cron_rows.readable(row[:], cron_rows.trigger)
        raise StoreUnavailable("somebody else keeps adding this trigger: try again")

    async def trigger(self, tenant: str, trigger: str) -> Trigger | None:
        return await self._one("trigger", cron_rows.trigger, tenant, trigger)

    async def triggers(self, tenant: str, job: int, *, limit: int = 50) -> tuple[Trigger, ...]:
        return await self._all("triggers", cron_rows.trigger, tenant, fitting(job), limit_of(limit))

    async def next_due(self) -> timedelta | None:
        row = await self.db.first(SQL["next_due"], self.now())
        wait: timedelta | None = None if row is None else row["wait"]
        return wait

    async def claim(
        self, worker: str, limit: int, span: timedelta, *, after: str = "", room: Mapping[str, int] | None = None
    ) -> tuple[Claim, ...]:
        check_words(worker)
        left = {agent: limit_of(places) for agent, places in (room or {}).items()}
        mine: list[Claim] = []
        for _ in range(LOOKS):
            asked = limit_of(limit - len(mine))
            found = await self._lease(
                self.now(), worker, asked, span, after, cron_rows.texts(left), list(left.values())
            )
            got = await cron_rows.records(found, cron_rows.claim)
            mine += got
            if len(got) == len(found):
                break
            # What cannot be read is leased like the others: it is out of the way for a while, and takes nobody's place.
            taken = Counter(claim.trigger.agent for claim in got)
            left = {agent: places - taken[agent] for agent, places in left.items()}
        return tuple(mine)

    async def claim_orphans(self, worker: str, limit: int, span: timedelta, silent: timedelta) -> tuple[Claim, ...]:
        check_words(worker)
        return await self._all("claim_orphans", cron_rows.claim, self.now(), worker, limit_of(limit), span, silent)

    async def held(self, worker: str) -> tuple[Claim, ...]:
        return await self._all("held", cron_rows.claim, self.now(), worker)

    async def renew(self, claims: Sequence[Claim], span: timedelta) -> tuple[bool, ...]:
        if not claims:
            return ()
        keys = [(one.trigger.tenant, one.trigger.id, fitting(one.trigger.token)) for one in claims]
        asked = [{"tenant_id": tenant, "id": name, "token": token} for tenant, name, token in keys]
        renewed = await self.db.fetch(SQL["renew"], self.now(), span, cron_rows.as_json(asked))
        known = {row[:] for row in renewed}
        return tuple(key in known for key in keys)

    async def start(self, starts: Sequence[Start]) -> tuple[Run | None, ...]:
        check_words(*(start.run for start in starts))
        triggers = {(start.claim.trigger.tenant, start.claim.trigger.id) for start in starts}
        runs = {(start.claim.trigger.tenant, start.run) for start in starts}
        if len(triggers) == len(runs) == len(starts):
            return await self._start(starts)
        return tuple([one for start in starts for one in await self._start([start])])

    async def settle(self, ended: Sequence[Ended], conclude: Conclude) -> tuple[bool, ...]:
        if not ended:
            return ()
        return await self.db.together(lambda connection: _settle(connection, self.now(), ended, conclude))

    # ── what happened ────────────────────────────────────────────────────────────────────────────────────────────────

    async def runs(
        self, tenant: str, *, job: int | None = None, since: datetime | None = None, limit: int = 100
    ) -> tuple[Run, ...]:
        which = "runs" if job is None else "runs_of_job"
        narrowed = [] if job is None else [fitting(job)]
        if since is not None:
            return await self._all(f"{which}_since", cron_rows.run, tenant, limit_of(limit), *narrowed, since)
        return await self._all(which, cron_rows.run, tenant, limit_of(limit), *narrowed)

    async def run(self, tenant: str, run: str) -> Run | None:
        return await self._one("run", cron_rows.run, tenant, run)

    async def output(self, tenant: str, run: str) -> str | None:
        row = await self.db.first(SQL["output"], tenant, run)
        return None if row is None else str(row["body"])

    async def notifications(self, tenant: str, *, after: int = 0, limit: int = 100) -> tuple[Notification, ...]:
        return await self._all("notifications", cron_rows.notification, tenant, fitting(after), limit_of(limit))

    async def told(self, tenant: str) -> int:
        row = await self.db.first(SQL["told"], tenant)
        return 0 if row is None else int(row[0])

    async def counts(self, tenant: str) -> CronCounts:
        return CronCounts(*await self.db.first(SQL["counts"], tenant))

    # ── single statements ────────────────────────────────────────────────────────────────────────────────────────────

    async def _one(self, name: str, make: Callable[[Any], T], *args: object) -> T | None:
        row = await self.db.first(SQL[name], *args)
        return None if row is None else cron_rows.readable(row[:], make)

    async def _all(self, name: str, make: Callable[[Any], T], *args: object) -> tuple[T, ...]:
        return await cron_rows.records(await self.db.fetch(SQL[name], *args), make)

    async def _lease(self, *args: object) -> list[Any]:
        """Two claims that begin before a new trigger can be seen and end after it may want two of one job."""
        for _ in range(LOOKS - 1):
            try:
                return await self.db.fetch(SQL["claim"], *args)
            except StoreUnavailable as error:
                if error.fields.get("constraint") != EXECUTING:
                    raise
        return await self.db.fetch(SQL["claim"], *args)

    async def _start(self, starts: Sequence[Start]) -> tuple[Run | None, ...]:
        if not starts:
            return ()
        asked = [_start_row(place, start) for place, start in enumerate(starts)]
        for _ in range(LOOKS):
            found = await self.db.fetch(SQL["start"], self.now(), cron_rows.as_json(asked))
            if all(row["id"] is not None or not row["is_current"] for row in found):
                return tuple(None if row["id"] is None else cron_rows.run(row[:]) for row in found)
        raise StoreUnavailable("somebody else keeps adding these runs: try again")


def _start_row(place: int, start: Start) -> dict[str, object]:
    trigger = start.claim.trigger
    token = fitting(trigger.token)
    return {"place": place, "tenant_id": trigger.tenant, "id": trigger.id, "token": token, "run": start.run}


# ── on the event loop ────────────────────────────────────────────────────────────────────────────────────────────────


async def _add_job(connection: Any, now: datetime | None, new: NewJob, first: First, bounds: Bounds) -> Job | None:
    most = [None if bound is None else limit_of(bound) for bound in bounds]
    await connection.execute(SQL["adding"], new.tenant)
    row = await connection.fetchrow(SQL["before_adding"], now, new.tenant, new.uid, new.agent, *most)
    if row is None:
        raise unknown_tenant(new.tenant)
    if row["known"] is not None:
        return cron_rows.job((await connection.fetchrow(SQL["job"], new.tenant, row["known"]))[:])
    if row["full"]:
        return None
    rows = carry_out(first(new_job(row["number"], new, row["at"])), [], None, row["at"])
    await write(connection, rows, row["at"], known={}, edited=True)
    await connection.execute(SQL["added"], new.tenant, row["number"])
    return rows.jobs[0]


async def _change_job(connection: Any, now: datetime | None, key: tuple[str, int], decide: Decide) -> Job | None:
    picture = await look(connection, now, [key])
    known = picture.jobs.get(key)
    if known is None:
        return None
    open_ = picture.open_of(key)
    change = decide(known, next((one for one in open_ if one.kind.planned), None), picture.now)
    if change is None:
        return known
    rows = carry_out(change, open_, None, picture.now)
    await write(connection, rows, picture.now, known={key: known}, edited=True)
    return rows.jobs[0] if rows.jobs else known


async def _settle(
    connection: Any, now: datetime | None, ended: Sequence[Ended], conclude: Conclude
) -> tuple[bool, ...]:
    keys = {(one.claim.trigger.tenant, fitting(one.claim.trigger.job)) for one in ended}
    picture: Picture = await look(connection, now, sorted(keys))
    before = dict(picture.jobs)
    answers = [picture.settle(one, conclude) for one in ended]
    if picture.changed:
        await write(connection, picture.rows(), picture.now, known=before, edited=False)
    if None in answers:
        tokens = await _tokens(connection, ended)
        return tuple(
            answer if answer is not None else tokens.get(_name(one)) == one.claim.trigger.token
            for answer, one in zip(answers, ended, strict=True)
        )
    return tuple(bool(answer) for answer in answers)


async def _tokens(connection: Any, ended: Sequence[Ended]) -> dict[tuple[str, str], int]:
    asked = {_name(one) for one in ended}
    found = await connection.fetch(SQL["tokens"], *cron_rows.names(asked))
    return {(row["tenant_id"], row["id"]): row["token"] for row in found}


def _name(ended: Ended) -> tuple[str, str]:
    return ended.claim.trigger.tenant, ended.claim.trigger.id
