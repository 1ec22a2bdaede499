"""How the cron half of the store is asked: verbs that are each one transaction; of `start` and `settle`, which take
many, each member is one.

What a job becomes is decided in one place, by pure functions of the cron room. A verb that changes a job takes such a
function, calls it under the job's lock with what is there then, and carries its answer out, all of it or nothing. So a
hint that was written while a run went on counts for the plan after it, in every store, and no store knows a schedule.
The function may be called more than once; only its last answer counts.

Expected refusals are values: no such job, too many jobs, a lease that is over. Whatever raises a retriable `StoreError`
may be called again as it is and has its effect once; only a `claim` whose answer was lost leaves leases behind, which
`held` tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import datetime, timedelta

    from store.jobs import (
        Bounds,
        Change,
        Claim,
        CronCounts,
        Ended,
        Fire,
        Job,
        JobStatus,
        NewJob,
        Notification,
        Run,
        Start,
        Trigger,
    )

    First = Callable[[Job], Change]
    """What a new job begins with; its `created_at` is now."""
    Decide = Callable[[Job, Trigger | None, datetime], Change | None]
    """From the job, its open planned trigger and the time: what becomes of it; None for nothing."""
    Conclude = Callable[[Job, Trigger, Ended, datetime], Change]
    """From the job, the trigger that was claimed, how that ended and the time: what follows."""

DUE = "due"
"""What a listener hears when there may be something to claim sooner than was known."""
JOBS = "cache:cron"
"""What it hears when a job was changed."""
NEWS = "notification:"
"""How the word about a tenant's new notification begins; its tenant and number follow."""


class CronStore(Protocol):
    # ── jobs ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def add_job(self, new: NewJob, first: First, bounds: Bounds) -> Job | None:
        """A new job and what it begins with. None, and nothing is kept, if there are as many as the bounds allow.

        The job that has this `uid` already, if there is one. An unknown tenant breaks a rule.
        """

    async def job(self, tenant: str, job: int) -> Job | None:
        """What is known of it, also when it has ended."""

    async def job_with(self, tenant: str, uid: str) -> Job | None:
        """The job that was asked for with this `uid`."""

    async def jobs(
        self, tenant: str, *, statuses: Collection[JobStatus] | None = None, after: int = 0, limit: int = 200
    ) -> tuple[Job, ...]:
        """The tenant's jobs by their numbers, from the one after ``after`` on. Changes nothing."""

    async def change_job(self, tenant: str, job: int, decide: Decide) -> Job | None:
        """The job as ``decide`` leaves it; None if there is none."""

    async def unplanned(self, limit: int = 100) -> tuple[Job, ...]:
        """Active jobs that should have an open planned trigger and have none: there should never be any."""

    # ── triggers ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def fire(self, fire: Fire) -> Trigger | None:
        """One more trigger for a job, due now, whatever its schedule says. None if there is no such job or it is over.

        The trigger that has this id, or this idempotency key in this tenant, if there is one.
        """

    async def trigger(self, tenant: str, trigger: str) -> Trigger | None: ...

    async def triggers(self, tenant: str, job: int, *, limit: int = 50) -> tuple[Trigger, ...]:
        """Those of a job, the latest slot first; equal slots by id, highest first."""

    async def next_due(self) -> timedelta | None:
        """How long until there is something to claim, by the store's clock; nothing or less: now. None: never."""

    async def claim(
        self, worker: str, limit: int, span: timedelta, *, after: str = "", room: Mapping[str, int] | None = None
    ) -> tuple[Claim, ...]:
        """Up to so many due triggers, this worker's for that span under a new token each.

        Tenants take turns, beginning with the first one after ``after`` in the order of ids and going round; inside a
        tenant the one that could be claimed first comes first. Due is what is pending at its time, and what is
        executing under a lease that is over; its run, if it was begun, comes with it as lost. Left out is a trigger of
        a job of which another one executes, and what has no ``room``: agents named there get at most so many.
        """

    async def claim_orphans(self, worker: str, limit: int, span: timedelta, silent: timedelta) -> tuple[Claim, ...]:
        """Like `claim`, but only what executes under a lease that is over, by a worker that has left or not been heard
        of for so long."""

    async def held(self, worker: str) -> tuple[Claim, ...]:
        """Everything that executes in this worker's name, with the runs that were begun."""

    async def renew(self, claims: Sequence[Claim], span: timedelta) -> tuple[bool, ...]:
        """The same claims for that span from now on; False for each that is somebody else's or over by settling."""

    async def start(self, starts: Sequence[Start]) -> tuple[Run | None, ...]:
        """A run for each claim, and the news of it; None for each that is not this worker's any more. The attempt
        counts from here. A start that is repeated leads to the same run."""

    async def settle(self, ended: Sequence[Ended], conclude: Conclude) -> tuple[bool, ...]:
        """The end of each attempt and what follows for its job, each whole or not at all.

        False, and nothing of it is written, for each whose token is stale: another owner has the trigger, or the job is
        gone. True again if this very claim was settled before.
        """

    # ── what happened ────────────────────────────────────────────────────────────────────────────────────────────────

    async def runs(
        self, tenant: str, *, job: int | None = None, since: datetime | None = None, limit: int = 100
    ) -> tuple[Run, ...]:
        """Newest first. With ``since`` those that started then or later, oldest first, so that a reader can go on."""

    async def run(self, tenant: str, run: str) -> Run | None: ...

    async def output(self, tenant: str, run: str) -> str | None:
        """All that the run said; None if there is no such run."""

    async def notifications(self, tenant: str, *, after: int = 0, limit: int = 100) -> tuple[Notification, ...]:
        """In order, from the first one after that number on."""

    async def told(self, tenant: str) -> int:
        """The number of the tenant's newest notification, 0 if there never was one."""

    async def counts(self, tenant: str) -> CronCounts:
        """How many jobs and triggers there are."""
