"""`sessions.json`: what conversations there are, for people to read. It is written now and then, never read back."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import trio

from store.files.disk import write_whole
from store.files.frames import encode
from store.records import MessageState

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from store.files.decode import Kept
    from store.files.disk import Disk
    from store.files.tables import Tables
    from store.records import SessionKey

T = TypeVar("T")

EXPORT = "sessions.json"
SLICE = 200


async def export(disk: Disk, place: Path, tables: Tables, now: datetime) -> None:
    """Rows are looked at a few at a time, so that others can work meanwhile; the figures may be a moment apart."""
    unsent: Counter[SessionKey] = Counter()
    for replies in _slices(tables.replies.rows.piecewise()):
        unsent.update(reply.note.session for _, reply in replies)
        await trio.lowlevel.checkpoint()
    lines: list[bytes] = []
    for texts in _slices(text for tenant in sorted(tables.sessions_of.of) for text in [*tables.sessions_of[tenant]]):
        kept = [tables.sessions.rows[tables.by_text[text]] for text in texts if text in tables.by_text]
        lines += [encode(_entry(tables, one, unsent[one.session.key])) for one in kept]
        await trio.lowlevel.checkpoint()
    await trio.to_thread.run_sync(_write, disk, place, lines, now)


def _slices(rows: Iterator[T]) -> Iterator[list[T]]:
    while some := list(islice(rows, SLICE)):
        yield some


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


def _write(disk: Disk, place: Path, lines: Sequence[bytes], now: datetime) -> None:
    head = encode({"written_at": now, "sessions": []}).removesuffix(b"]}")
    write_whole(disk, place / EXPORT, b"".join([head, b"\n", b",\n".join(lines), b"\n]}\n"]))
