"""Jobs as people and agents ask for them: checked first, then kept in one write.

What cannot be meant is refused with the field, the value and an example, and nothing is stored. What a job becomes is
decided in `cron.plans`, under the store's lock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, get_args

from cron import plans
from cron.durations import duration_text
from cron.errors import BadInput, CronError, JobNotFound, PastError, QuotaReached, quoted
from cron.phrases import parse_phrase
from cron.schedule import schedule_of
from cron.work import open_source
from cron.zones import read_zone
from store.jobs import LONGEST_MESSAGE, Fire, Hints, JobStatus, NewJob, Rules, SessionKind, TriggerKind

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from cron.options import Options
    from cron.run import Persist
    from cron.schedule import Schedule
    from store.cron_protocol import Decide
    from store.jobs import Job, Trigger
    from store.protocols import Store
    from store.records import SessionKey

LONGEST_NAME = 200
LONGEST_TIMEOUT = timedelta(days=1)
LONGEST_SPAN = timedelta(days=36_500)
SHORTEST_INTERVAL = timedelta(seconds=1)
MOMENT = timedelta(seconds=1)
MOST_RETRIES = 20
HINT_LASTS = timedelta(hours=1)
AS_SET = Rules()
LOOKED_AT = 10
"""So many fires ahead tell how close together a cron expression is."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A job as somebody asks for it. ``when`` is a phrase, a cron expression or a schedule."""

    tenant: str
    agent: str
    message: str
    when: str | Schedule
    name: str = ""
    zone: str = ""
    rules: Rules = AS_SET
    deliver_to: SessionKey | None = None
    session: SessionKind = "fresh"
    session_name: str = ""
    work_source: str = ""
    owner: str = ""
    made_by_agent: bool = False
    inside_run: bool = False
    """Asked for by a run of a job."""
    at_once: bool = False
    """The first run is now, not when the schedule says."""
    uid: str = ""
    """A second wish with the same one is the same job."""
    asked_at: datetime | None = None
    """When it was asked for, if that was not just now: `in 1 hour` counts from then."""


class NotAllowed(CronError):
    code = "not-allowed"


class CronJobs:
    def __init__(
        self,
        store: Store,
        options: Options,
        *,
        now: Callable[[], datetime],
        new_id: Callable[[], str],
        persist: Persist,
        poke: Callable[[], None],
    ) -> None:
        self._store = store
        self._cron = store.cron
        self._options = options
        self._now = now
        self._new_id = new_id
        self._persist = persist
        self._poke = poke

    # ── looking ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def get(self, tenant: str, job: int) -> Job:
        found = await self._persist(partial(self._cron.job, tenant, job))
        if found is None:
            raise JobNotFound(tenant, job)
        return found

    async def list(self, tenant: str, *, everything: bool = False, limit: int = 200) -> tuple[Job, ...]:
        """The jobs that may still fire, or all of them; looking moves nothing."""
        statuses = None if everything else (JobStatus.ACTIVE, JobStatus.PAUSED)
        return await self._persist(partial(self._cron.jobs, tenant, statuses=statuses, limit=limit))

    async def zone(self, tenant: str, wished: str = "") -> str:
        """The one that is wished for, else the tenant's, else that of the settings.

        A tenant's UTC says nothing: every tenant begins with it.
        """
        known = await self._persist(partial(self._store.tenant, tenant))
        of_tenant = "" if known is None or known.zone == "UTC" else known.zone
        return wished or of_tenant or self._options.zone

    # ── changing ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def create(self, wish: Wish) -> Job:
        if wish.inside_run and not self._options.jobs_in_runs:
            raise NotAllowed("a run of a job may not make jobs: ask for it in a conversation instead")
        schedule = await self._schedule(wish)
        spec = self._checked(wish, schedule)
        begun = partial(plans.begun, new_id=self._new_id, at_once=wish.at_once)
        most = self._options.bounds
        if wish.made_by_agent and wish.agent in self._options.agent_jobs:
            most = most._replace(of_agent=self._options.agent_jobs[wish.agent])
        job = await self._persist(partial(self._cron.add_job, spec, begun, most))
        if job is None:
            raise QuotaReached(
                f"there are as many jobs as are allowed ({most.of_tenant} for all, {most.of_agent} for one agent): "
                "cancel one that is not needed any more, /cron list shows them",
                tenant=wish.tenant,
            )
        self._poke()
        return job

    async def edit(
        self,
        tenant: str,
        job: int,
        *,
        when: str | Schedule | None = None,
        turn: plans.Turn | None = None,
        **changes: Any,
    ) -> Job:
        """Other values for fields of `NewJob`, ``rules`` by their names, ``zone``; ``when`` for its schedule.

        What is not named stays. It is checked and changed as it is then, under the job's lock; with a ``turn`` it is
        paused or resumed in the same write.
        """
        if turn is not None:
            self._check_until(turn.until)
        zone, rules = changes.pop("zone", ""), changes.pop("rules", {})

        def edit(spec: NewJob) -> NewJob:
            after = replace(spec, rules=replace(spec.rules, **rules), **changes)
            if zone:
                after = replace(after, timing=replace(spec.timing, zone=read_zone(zone).key))
            if when is not None:
                schedule = self._read(when, zone or spec.timing.zone, self._now())
                check_schedule(schedule, self._now())
                after = replace(after, timing=schedule.timing)
            check_spec(after)
            self._check_pace(after)
            return after

        return await self._change(tenant, job, plans.edited(edit, self._new_id, turn))

    async def pause(self, tenant: str, job: int, reason: str = "", until: datetime | None = None) -> Job:
        self._check_until(until)
        decide = (
            plans.paused(reason, self._new_id) if until is None else plans.paused_until(until, reason, self._new_id)
        )
        return await self._change(tenant, job, decide)

    async def resume(self, tenant: str, job: int) -> Job:
        return await self._change(tenant, job, plans.resumed(self._new_id))

    async def cancel(self, tenant: str, job: int, *, purge: bool = False) -> Job:
        """It never fires again; with ``purge`` its history goes too."""
        return await self._change(tenant, job, plans.deleted(self._new_id, purge=purge))

    async def run_now(
        self, tenant: str, job: int, *, key: str | None = None, kind: TriggerKind = TriggerKind.MANUAL
    ) -> Trigger:
        """Once, beside its schedule, which it does not move. The same key again is the same trigger."""
        fire = Fire(self._new_id(), tenant, job, kind, key, trace=self._new_id().replace("-", ""))
        trigger = await self._persist(partial(self._cron.fire, fire))
        if trigger is None:
            known = await self.get(tenant, job)
            raise NotAllowed(
                f"job #{job} has ended ({known.status}): make it anew with /schedule", tenant=tenant, id=job
            )
        self._poke()
        return trigger

    async def hint(
        self,
        tenant: str,
        job: int,
        *,
        interval: timedelta | None = None,
        next_at: datetime | None = None,
        lasts: timedelta = HINT_LASTS,
        reason: str = "",
    ) -> Job:
        """What an agent proposes for its own job; it counts at once, and no longer than it lasts."""
        now = self._now()
        for field, span, least in (("interval", interval, self._options.agent_interval), ("lasts", lasts, MOMENT)):
            if span is not None and not least <= span <= LONGEST_SPAN:
                raise BadInput(
                    f"{field} {span}: expected {duration_text(least)} to {LONGEST_SPAN.days} days",
                    field=field,
                    value=str(span),
                    example="15m",
                )
        check_aware("next_at", next_at)
        if next_at is not None and next_at < now:
            raise PastError(
                f"{next_at:%Y-%m-%d %H:%M} is past", field="next_at", value=str(next_at), example="in 1 hour"
            )
        hints = Hints(interval, next_at, now + lasts, reason)
        return await self._change(tenant, job, plans.hinted(hints, self._new_id))

    async def clear_hints(self, tenant: str, job: int) -> Job:
        return await self._change(tenant, job, plans.unhinted(self._new_id))

    async def enable_tenant(self, tenant: str, enabled: bool) -> bool:
        """Switch a tenant; one that is switched on again has its jobs planned anew. False if there is none."""
        if not await self._persist(partial(self._store.enable_tenant, tenant, enabled)):
            return False
        after = 0
        while enabled and (page := await self._persist(partial(self._cron.jobs, tenant, after=after))):
            for job in page:
                await self._persist(partial(self._cron.change_job, tenant, job.id, plans.woken(self._new_id)))
            after = page[-1].id
        self._poke()
        return True

    async def _change(self, tenant: str, job: int, decide: Decide) -> Job:
        after = await self._persist(partial(self._cron.change_job, tenant, job, decide))
        if after is None:
            raise JobNotFound(tenant, job)
        self._poke()
        return after

    # ── checking ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _schedule(self, wish: Wish) -> Schedule:
        asked_at = wish.asked_at or self._now()
        schedule = self._read(wish.when, await self.zone(wish.tenant, wish.zone), asked_at)
        check_schedule(schedule, asked_at)
        return schedule

    def _read(self, when: str | Schedule, zone: str, now: datetime) -> Schedule:
        return parse_phrase(when, now=now, zone=zone) if isinstance(when, str) else when

    def _checked(self, wish: Wish, schedule: Schedule) -> NewJob:
        spec = NewJob(
            wish.uid or self._new_id(),
            wish.tenant,
            wish.agent,
            wish.message.strip(),
            schedule.timing,
            wish.name.strip(),
            wish.rules,
            wish.deliver_to,
            wish.session,
            wish.session_name,
            wish.work_source,
            wish.owner,
            wish.made_by_agent,
        )
        check_spec(spec)
        self._check_pace(spec)
        return spec

    def _check_until(self, until: datetime | None) -> None:
        check_aware("until", until)
        if until is not None and until <= self._now():
            raise PastError(
                f"a pause until {until:%Y-%m-%d %H:%M} is over already",
                field="until",
                value=str(until),
                example="in 2 days",
            )

    def _check_pace(self, spec: NewJob) -> None:
        """An agent may not schedule itself into a storm."""
        if not spec.made_by_agent:
            return
        fires = schedule_of(spec.timing).fires(self._now(), LOOKED_AT)
        closest = min((later - earlier for earlier, later in pairwise(fires)), default=None)
        shortest = self._options.shortest(spec.agent)
        if closest is not None and closest < shortest:
            least = duration_text(shortest)
            raise BadInput(
                f"an agent's job may run every {least} at most, this one would run every {duration_text(closest)}",
                field="schedule",
                value=schedule_of(spec.timing).words(),
                example="every 15 minutes",
            )


def check_schedule(schedule: Schedule, now: datetime) -> None:
    timing = schedule.timing
    if timing.at is not None and timing.at <= now:
        raise PastError(
            f"scheduled time is in the past: {timing.at:%Y-%m-%d %H:%M} UTC",
            field="schedule",
            value=str(timing.at),
            example="in 1 hour",
        )
    if timing.every is not None and timing.every < SHORTEST_INTERVAL:
        raise BadInput(
            f"an interval of {timing.every.total_seconds():g} s is too short: a job runs once a second at most",
            field="schedule",
            value=f"{timing.every.total_seconds():g}s",
            example="every 10s",
        )


def check_spec(spec: NewJob) -> None:
    size = len(spec.message.encode(errors="replace"))
    if not spec.agent.strip():
        raise BadInput("no agent is named", field="agent", value=spec.agent, example="main")
    if not spec.message.strip():
        raise BadInput(
            "the message is empty: say what is to be done", field="message", value="", example="in 1 hour: look at it"
        )
    if size > LONGEST_MESSAGE:
        raise BadInput(
            f"the message has {size:,} bytes, more than {LONGEST_MESSAGE:,}: put the text into a file and name that",
            field="message",
            value=spec.message[:80],
            example="summarise notes.md",
        )
    if len(spec.name) > LONGEST_NAME:
        raise BadInput(
            f"the name has {len(spec.name)} characters, more than {LONGEST_NAME}",
            field="name",
            value=spec.name[:80],
            example="standup",
        )
    one_of("session", spec.session, get_args(SessionKind))
    if spec.session == "named" and not spec.session_name:
        raise BadInput("a named session needs a name", field="session_name", value="", example="daily-report")
    if spec.session == "chat" and spec.deliver_to is None:
        raise BadInput("there is no chat to answer in", field="session", value="chat", example="fresh")
    if spec.work_source:
        open_source(spec.work_source)
    check_rules(spec.rules)


def check_rules(rules: Rules) -> None:
    one_of("overlap", rules.overlap, ("skip", "queue"))
    one_of("anchor", rules.anchor, ("start", "completion"))
    if rules.catch_up is not None:
        one_of("catch_up", rules.catch_up, ("one", "skip"))
    for field, span in (
        ("min_interval", rules.min_interval),
        ("max_interval", rules.max_interval),
        ("run_timeout", rules.run_timeout),
    ):
        if span is not None and not timedelta(0) < span <= LONGEST_SPAN:
            raise BadInput(
                f"{field} {span}: expected a span of up to {LONGEST_SPAN.days} days",
                field=field,
                value=str(span),
                example="5m",
            )
    if rules.grace is not None and not timedelta(0) <= rules.grace <= LONGEST_SPAN:
        raise BadInput(
            f"grace {rules.grace}: expected none to {LONGEST_SPAN.days} days",
            field="grace",
            value=str(rules.grace),
            example="1h",
        )
    if rules.run_timeout is not None and rules.run_timeout > LONGEST_TIMEOUT:
        raise BadInput(
            f"run_timeout {rules.run_timeout} is longer than a day",
            field="run_timeout",
            value=str(rules.run_timeout),
            example="10m",
        )
    if rules.max_retries is not None and not 0 <= rules.max_retries <= MOST_RETRIES:
        raise BadInput(
            f"max_retries {rules.max_retries}: expected 0 to {MOST_RETRIES}",
            field="max_retries",
            value=str(rules.max_retries),
            example="3",
        )
    least, most = rules.min_interval, rules.max_interval
    if least is not None and most is not None and least > most:
        raise BadInput(
            f"min_interval {duration_text(least)} is longer than max_interval {duration_text(most)}",
            field="min_interval",
            value=duration_text(least),
            example=duration_text(most),
        )


def check_aware(field: str, moment: datetime | None) -> None:
    if moment is not None and moment.utcoffset() is None:
        raise BadInput(
            f"{field} {moment}: expected a time with its zone",
            field=field,
            value=str(moment),
            example="2030-06-01T12:00:00Z",
        )


def one_of(field: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise BadInput(
            f"{field} {quoted(str(value))}: expected one of {', '.join(known)}",
            field=field,
            value=str(value),
            example=known[0],
        )
    return value
