"""Rows of cron as they come back from JSON, the inverse of how `orjson` writes the dataclasses. Spans are microseconds.

What an index looks at is what it should be, or the row is refused here: later it would spoil what others have there.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, TypeVar, get_args

from store.files.decode import Raw, maybe_when, session_key, when
from store.jobs import (
    Anchor,
    CatchUp,
    Delivery,
    Hints,
    Job,
    JobStatus,
    NewJob,
    News,
    NewsKind,
    Notification,
    Overlap,
    Rules,
    Run,
    RunState,
    SessionKind,
    Source,
    Timing,
    TimingKind,
    Trigger,
    TriggerKind,
    TriggerState,
)

T = TypeVar("T")

TIMINGS: tuple[TimingKind, ...] = get_args(TimingKind)
OVERLAPS: tuple[Overlap, ...] = get_args(Overlap)
CATCH_UPS: tuple[CatchUp | None, ...] = (*get_args(CatchUp), None)
ANCHORS: tuple[Anchor, ...] = get_args(Anchor)
SESSIONS: tuple[SessionKind, ...] = get_args(SessionKind)
SOURCES: tuple[Source | None, ...] = (*get_args(Source), None)
NEWS: tuple[NewsKind, ...] = get_args(NewsKind)


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def numbered(raw: list[Any]) -> tuple[str, int]:
    """A tenant's job or notification."""
    tenant, number = raw
    return a(str, tenant), a(int, number)


def named(raw: list[Any]) -> tuple[str, str]:
    """A tenant's trigger or run."""
    tenant, name = raw
    return a(str, tenant), a(str, name)


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def a(kind: type[T], value: object) -> T:
    if type(value) is not kind:
        raise TypeError(f"{value!r:.40} is no {kind.__name__}")
    return value


def one_of(known: tuple[T, ...], value: object) -> T:
    for one in known:
        if one == value:
            return one
    raise ValueError(f"{value!r:.40} is not known")


def count(raw: object) -> int:
    return a(int, raw)


def text(raw: object) -> str:
    return a(str, raw)


def moment(raw: str) -> datetime:
    """A time that others are compared with."""
    time = when(raw)
    if time.tzinfo is None:
        raise ValueError(f"{raw} has no zone")
    return time


def maybe_moment(raw: str | None) -> datetime | None:
    return None if raw is None else moment(raw)


def span(raw: int) -> timedelta:
    return timedelta(microseconds=raw)


def maybe_span(raw: int | None) -> timedelta | None:
    return None if raw is None else span(raw)


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def job(raw: Raw) -> Job:
    return Job(
        id=a(int, raw["id"]),
        spec=new_job(raw["spec"]),
        created_at=when(raw["created_at"]),
        updated_at=moment(raw["updated_at"]),
        status=JobStatus(raw["status"]),
        reason=raw["reason"],
        hints=hints(raw["hints"]),
        paused_until=maybe_when(raw["paused_until"]),
        failures=a(int, raw["failures"]),
        runs=a(int, raw["runs"]),
        last_run_at=maybe_when(raw["last_run_at"]),
        last_run=raw["last_run"],
        last_state=None if raw["last_state"] is None else RunState(raw["last_state"]),
        next_at=maybe_when(raw["next_at"]),
        next_source=one_of(SOURCES, raw["next_source"]),
    )


def new_job(raw: Raw) -> NewJob:
    return NewJob(
        uid=a(str, raw["uid"]),
        tenant=a(str, raw["tenant"]),
        agent=a(str, raw["agent"]),
        message=a(str, raw["message"]),
        timing=timing(raw["timing"]),
        name=raw["name"],
        rules=rules(raw["rules"]),
        deliver_to=None if raw["deliver_to"] is None else session_key(raw["deliver_to"]),
        session=one_of(SESSIONS, raw["session"]),
        session_name=raw["session_name"],
        work_source=raw["work_source"],
        owner=raw["owner"],
        made_by_agent=raw["made_by_agent"],
    )


def timing(raw: Raw) -> Timing:
    kind = one_of(TIMINGS, raw["kind"])
    return Timing(kind, a(str, raw["zone"]), maybe_when(raw["at"]), maybe_span(raw["every"]), a(str, raw["cron"]))


def hints(raw: Raw) -> Hints:
    return Hints(maybe_span(raw["interval"]), maybe_when(raw["next_at"]), maybe_when(raw["expires_at"]), raw["reason"])


def rules(raw: Raw) -> Rules:
    return Rules(
        overlap=one_of(OVERLAPS, raw["overlap"]),
        catch_up=one_of(CATCH_UPS, raw["catch_up"]),
        grace=maybe_span(raw["grace"]),
        anchor=one_of(ANCHORS, raw["anchor"]),
        min_interval=maybe_span(raw["min_interval"]),
        max_interval=maybe_span(raw["max_interval"]),
        max_retries=raw["max_retries"],
        run_timeout=maybe_span(raw["run_timeout"]),
        delete_after_success=raw["delete_after_success"],
    )


def trigger(raw: Raw) -> Trigger:
    return Trigger(
        id=a(str, raw["id"]),
        tenant=a(str, raw["tenant"]),
        job=a(int, raw["job"]),
        agent=a(str, raw["agent"]),
        kind=TriggerKind(raw["kind"]),
        slot=moment(raw["slot"]),
        due_at=moment(raw["due_at"]),
        created_at=when(raw["created_at"]),
        state=TriggerState(raw["state"]),
        reason=raw["reason"],
        source=one_of(SOURCES, raw["source"]),
        key=None if raw["key"] is None else a(str, raw["key"]),
        trace=raw["trace"],
        attempt=a(int, raw["attempt"]),
        token=a(int, raw["token"]),
        owner=a(str, raw["owner"]),
        leased_until=maybe_moment(raw["leased_until"]),
        last=maybe_when(raw["last"]),
        count=a(int, raw["count"]),
        ended_at=maybe_moment(raw["ended_at"]),
    )


def run(raw: Raw) -> Run:
    return Run(
        id=a(str, raw["id"]),
        tenant=a(str, raw["tenant"]),
        job=a(int, raw["job"]),
        trigger=a(str, raw["trigger"]),
        attempt=a(int, raw["attempt"]),
        agent=raw["agent"],
        kind=TriggerKind(raw["kind"]),
        source=one_of(SOURCES, raw["source"]),
        worker=raw["worker"],
        trace=raw["trace"],
        started_at=moment(raw["started_at"]),
        lateness=span(raw["lateness"]),
        state=RunState(raw["state"]),
        ended_at=maybe_moment(raw["ended_at"]),
        summary=a(str, raw["summary"]),
        error=raw["error"],
        tokens_in=raw["tokens_in"],
        tokens_out=raw["tokens_out"],
        delivery=Delivery(raw["delivery"]),
        delivery_error=raw["delivery_error"],
    )


def notification(raw: Raw) -> Notification:
    one = raw["news"]
    kind = one_of(NEWS, one["kind"])
    news = News(kind, a(str, one["tenant"]), a(int, one["job"]), a(str, one["run"]), a(dict, one["data"]))
    return Notification(a(int, raw["seq"]), moment(raw["at"]), news)
