"""`sessions.json` and `jobs.json`: what there is, for people to read. Written now and then, never read back."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import trio

from store.files.disk import Replacement
from store.files.frames import encode
from store.files.ordered import TOP
from store.records import MessageState

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from store.files.decode import Kept
    from store.files.disk import Disk
    from store.files.tables import Tables
    from store.jobs import Job
    from store.records import SessionKey

T = TypeVar("T")

SESSIONS = "sessions.json"
JOBS = "jobs.json"
SLICE = 200
PIECE = 10
"""So many slices are written at a time."""


async def export(disk: Disk, place: Path, tables: Tables, now: datetime) -> None:
    """Rows are looked at a few at a time, so that others can work meanwhile; the figures may be a moment apart."""
    await _export_sessions(disk, place / SESSIONS, tables, now)
    await _write(disk, place / JOBS, "jobs", _jobs(tables), now)


# ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def _export_sessions(disk: Disk, path: Path, tables: Tables, now: datetime) -> None:
    unsent: Counter[SessionKey] = Counter()
    for replies in _slices(tables.replies.rows.piecewise()):
        unsent.update(reply.note.session for _, reply in replies)
        await trio.lowlevel.checkpoint()
    await _write(disk, path, "sessions", _sessions(tables, unsent), now)


def _sessions(tables: Tables, unsent: Counter[SessionKey]) -> Iterator[list[bytes]]:
    for texts in _slices(text for tenant in sorted(tables.sessions_of.of) for text in [*tables.sessions_of[tenant]]):
        kept = [tables.sessions.rows[tables.by_text[text]] for text in texts if text in tables.by_text]
        yield [encode(_entry(tables, one, unsent[one.session.key])) for one in kept]


def _entry(tables: Tables, kept: Kept, unsent: int) -> dict[str, Any]:
    session = kept.session
    states = [tables.messages.rows[number].state for number in tables.open_in[session.key]]
    return {
        "session": str(session.key),
        "policy": {name: value for name, value in _policy(kept).items() if value is not None},
        "context": session.standing.context,
        "lines": session.lines,
        "trimmed": session.trimmed,
        "updated_at": session.updated_at,
        "waiting": states.count(MessageState.ACCEPTED),
        "running": states.count(MessageState.RUNNING),
        "unsent": unsent,
        "transcript": f"sessions/{kept.file}" if kept.file else None,
    }


def _policy(kept: Kept) -> dict[str, object]:
    policy = kept.session.standing.policy
    return {name: getattr(policy, name) for name in policy.__dataclass_fields__}


# ── jobs ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _jobs(tables: Tables) -> Iterator[list[bytes]]:
    rows, order = tables.cron.jobs.rows, tables.cron.jobs_of
    after: tuple[object, ...] = ()
    while some := list(islice(order.between((*after, TOP) if after else (), (TOP,)), SLICE)):
        yield [encode(_job(rows[tenant, number])) for tenant, number in some]
        after = some[-1]


def _job(job: Job) -> dict[str, Any]:
    timing = job.spec.timing
    return {
        "id": job.id,
        "tenant": job.tenant,
        "agent": job.spec.agent,
        "name": job.spec.name,
        "message": job.spec.message,
        "schedule": {
            "kind": timing.kind,
            "expr": timing.cron or None,
            "every_s": None if timing.every is None else timing.every.total_seconds(),
            "at": timing.at,
            "zone": timing.zone,
        },
        "status": job.status,
        "reason": job.reason,
        "next_at": job.next_at,
        "next_source": job.next_source,
        "last_run_at": job.last_run_at,
        "last_state": job.last_state,
        "failures": job.failures,
    }


# ── both ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _slices(rows: Iterator[T]) -> Iterator[list[T]]:
    while some := list(islice(rows, SLICE)):
        yield some


async def _write(disk: Disk, path: Path, name: str, slices: Iterator[list[bytes]], now: datetime) -> None:
    """The lines go to the disk as they come: in one list, all of them would be visited by the next collections."""
    file = await trio.to_thread.run_sync(Replacement, disk, path)
    try:
        lines, between = [encode({"written_at": now, name: []}).removesuffix(b"]}")], b"\n"
        for some in filter(None, slices):
            lines.append(between + b",\n".join(some))
            between = b",\n"
            if len(lines) >= PIECE:
                await trio.to_thread.run_sync(file.add, lines)
                lines = []
            else:
                await trio.lowlevel.checkpoint()
        await trio.to_thread.run_sync(file.add, [*lines, b"\n]}\n"])
        await trio.to_thread.run_sync(file.finish)
    finally:
        file.close()
