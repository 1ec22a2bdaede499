"""Rows of cron as they come from Postgres, made into records and back. Columns go by their order in the tables.

A row that cannot be read is left out and named in the log, as in `rows`.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import trio

from store.jobs import (
    Anchor,
    CatchUp,
    Claim,
    Delivery,
    Hints,
    Job,
    JobStatus,
    NewJob,
    News,
    Notification,
    Overlap,
    Rules,
    Run,
    RunState,
    Timing,
    Trigger,
    TriggerKind,
    TriggerState,
)
from store.postgres.rows import AT_ONCE
from store.postgres.text import escaped, from_json, to_json
from store.records import SessionKey
from store.rules import not_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

T = TypeVar("T")
Cells = tuple[Any, ...]
Row = dict[str, object]

TRIGGER, JOB, RUN = 21, 35, 20
"""How many columns each table has."""
US = timedelta(microseconds=1)
SPANS = ("grace", "min_interval", "max_interval", "run_timeout")
WORDS = {"overlap": get_args(Overlap), "catch_up": get_args(CatchUp), "anchor": get_args(Anchor)}
USUAL = Rules()

log = logging.getLogger(__name__)


def as_json(found: Sequence[object]) -> str:
    """For a parameter. What no store can keep, half a character for instance, is refused in our own words."""
    try:
        return to_json(found)
    except TypeError as refused:
        raise not_json(refused) from None


def names(found: Iterable[tuple[str, Any]]) -> tuple[list[str], list[Any]]:
    """Pairs as two parameters. The connection's codec passes arrays by, so it is called here."""
    pairs = list(found)
    return texts(tenant for tenant, _ in pairs), [escaped(one) if isinstance(one, str) else one for _, one in pairs]


def texts(found: Iterable[str]) -> list[str]:
    return [escaped(text) for text in found]


# ── out of the database ──────────────────────────────────────────────────────────────────────────────────────────────


async def records(found: Iterable[Any], make: Callable[[Cells], T]) -> tuple[T, ...]:
    """A record for each row that can be read, in order. Others have a turn in between, also if there are very many."""
    made: list[T] = []
    for place, row in enumerate(found, start=1):
        one = readable(row[:], make)
        if one is not None:
            made.append(one)
        if place % AT_ONCE == 0:
            await trio.lowlevel.cancel_shielded_checkpoint()
    return tuple(made)


def readable(cells: Cells, make: Callable[[Cells], T]) -> T | None:
    """What is made of the row; None, and a word in the log, if nothing can be."""
    try:
        return make(cells)
    except (ValueError, TypeError, OverflowError) as error:
        name = make.__name__.replace("_", " ")
        log.error("the %s %r of the tenant %r cannot be read and is left out: %s", name, cells[1], cells[0], error)
        return None


def job(cells: Cells) -> Job:
    (
        tenant, number, uid, agent, name, message, kind, zone, at, every, cron, rules, deliver_to, session,
        session_name, work_source, owner, made_by_agent, created_at, updated_at, status, reason, hint, hint_at,
        hint_expires_at, hint_reason, paused_until, failures, runs, last_run_at, last_run, last_state, last_slot,
        next_at, next_source,
    ) = cells[:JOB]  # fmt: skip
    spec = NewJob(
        uid=uid,
        tenant=tenant,
        agent=agent,
        message=message,
        timing=Timing(kind, zone, at, _span(every), cron),
        name=name,
        rules=_rules(rules),
        deliver_to=None if deliver_to is None else SessionKey.parse(deliver_to),
        session=session,
        session_name=session_name,
        work_source=work_source,
        owner=owner,
        made_by_agent=made_by_agent,
    )
    return Job(
        id=number,
        spec=spec,
        created_at=created_at,
        updated_at=updated_at,
        status=JobStatus(status),
        reason=reason,
        hints=Hints(_span(hint), hint_at, hint_expires_at, hint_reason),
        paused_until=paused_until,
        failures=failures,
        runs=runs,
        last_run_at=last_run_at,
        last_run=last_run,
        last_state=None if last_state is None else RunState(last_state),
        last_slot=last_slot,
        next_at=next_at,
        next_source=next_source,
    )


def trigger(cells: Cells) -> Trigger:
    (
        tenant, name, number, agent, kind, slot, due_at, created_at, state, reason, source, key, trace, attempt, token,
        owner, leased_until, last, count, ended_at, _,
    ) = cells[:TRIGGER]  # fmt: skip
    return Trigger(
        name, tenant, number, agent, TriggerKind(kind), slot, due_at, created_at, TriggerState(state), reason, source,
        key, trace, attempt, token, owner, leased_until, last, count, ended_at,
    )  # fmt: skip


def run(cells: Cells) -> Run:
    (
        tenant, name, number, trigger_id, attempt, agent, kind, source, worker, trace, started_at, lateness, state,
        ended_at, summary, error, tokens_in, tokens_out, delivery, delivery_error,
    ) = cells[:RUN]  # fmt: skip
    return Run(
        name, tenant, number, trigger_id, attempt, agent, TriggerKind(kind), source, worker, trace, started_at,
        lateness * US, RunState(state), ended_at, summary, error, tokens_in, tokens_out, Delivery(delivery),
        delivery_error,
    )  # fmt: skip


def claim(cells: Cells) -> Claim:
    """A trigger, whether its tenant is enabled, its place, the time, its job, and the run that goes on or nothing."""
    enabled, _, claimed_at = cells[TRIGGER : TRIGGER + 3]
    rest = cells[TRIGGER + 3 :]
    lost = rest[JOB:]
    return Claim(trigger(cells), job(rest), claimed_at, None if lost[1] is None else run(lost), enabled)


def notification(cells: Cells) -> Notification:
    tenant, seq, at, kind, number, name, data = cells
    return Notification(seq, at, News(kind, tenant, number, name, from_json(data)))


def _span(us: int | None) -> timedelta | None:
    return None if us is None else us * US


def _rules(text: str) -> Rules:
    if text == "{}":
        return USUAL
    kept = from_json(text)
    for name, known in WORDS.items():
        if kept.get(name) not in (None, *known):
            raise ValueError(f"{name} {kept[name]!r}: expected one of {', '.join(known)}")
    values: dict[str, Any] = {name: _span(value) if name in SPANS else value for name, value in kept.items()}
    return Rules(**values)


# ── into the database ────────────────────────────────────────────────────────────────────────────────────────────────


def job_row(job: Job) -> Row:
    """All of it."""
    spec, timing = job.spec, job.spec.timing
    return {
        **job_state(job),
        "uid": spec.uid,
        "agent": spec.agent,
        "name": spec.name,
        "message": spec.message,
        "kind": timing.kind,
        "zone": timing.zone,
        "at": timing.at,
        "every_us": _us(timing.every),
        "cron": timing.cron,
        "rules": _rules_row(spec.rules),
        "deliver_to": None if spec.deliver_to is None else str(spec.deliver_to),
        "session_kind": spec.session,
        "session_name": spec.session_name,
        "work_source": spec.work_source,
        "owner": spec.owner,
        "made_by_agent": spec.made_by_agent,
        "created_at": job.created_at,
    }


def job_state(job: Job) -> Row:
    """What changes while nobody edits it."""
    hints = job.hints
    return {
        "tenant_id": job.spec.tenant,
        "id": job.id,
        "updated_at": job.updated_at,
        "status": job.status,
        "reason": job.reason,
        "hint_us": _us(hints.interval),
        "hint_at": hints.next_at,
        "hint_expires_at": hints.expires_at,
        "hint_reason": hints.reason,
        "paused_until": job.paused_until,
        "failures": job.failures,
        "runs": job.runs,
        "last_run_at": job.last_run_at,
        "last_run": job.last_run,
        "last_state": job.last_state,
        "last_slot": job.last_slot,
        "next_at": job.next_at,
        "next_source": job.next_source,
    }


def trigger_row(place: int, one: Trigger) -> Row:
    return {
        "place": place,
        "tenant_id": one.tenant,
        "id": one.id,
        "job": one.job,
        "agent": one.agent,
        "kind": one.kind,
        "slot": one.slot,
        "due_at": one.due_at,
        "created_at": one.created_at,
        "state": one.state,
        "reason": one.reason,
        "source": one.source,
        "key": one.key,
        "trace": one.trace,
        "attempt": one.attempt,
        "token": one.token,
        "owner": one.owner,
        "leased_until": one.leased_until,
        "last": one.last,
        "count": one.count,
        "ended_at": one.ended_at,
    }


def run_end(one: Run) -> Row:
    """What the end of a run adds to it."""
    return {
        "tenant_id": one.tenant,
        "id": one.id,
        "state": one.state,
        "ended_at": one.ended_at,
        "summary": one.summary,
        "error": one.error,
        "tokens_in": one.tokens_in,
        "tokens_out": one.tokens_out,
        "delivery": one.delivery,
    }


def run_row(one: Run) -> Row:
    """All of it."""
    return {
        **run_end(one),
        "job": one.job,
        "trigger": one.trigger,
        "attempt": one.attempt,
        "agent": one.agent,
        "kind": one.kind,
        "source": one.source,
        "worker": one.worker,
        "trace": one.trace,
        "started_at": one.started_at,
        "lateness_us": _us(one.lateness),
        "delivery_error": one.delivery_error,
    }


def news_row(place: int, news: News) -> Row:
    return {
        "place": place,
        "tenant_id": news.tenant,
        "kind": news.kind,
        "job": news.job,
        "run": news.run,
        "data": dict(news.data),
    }


def _us(span: timedelta | None) -> int | None:
    return None if span is None else span // US


def _rules_row(rules: Rules) -> Row:
    given = {name: getattr(rules, name) for name in Rules.__dataclass_fields__}
    changed = {name: value for name, value in given.items() if value != getattr(USUAL, name)}
    return {name: _us(value) if isinstance(value, timedelta) else value for name, value in changed.items()}
