"""`sessions.json`: what conversations there are, for people to read. It is written now and then, never read back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
import trio

from store.disk import write_whole
from store.records import MessageState

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from store.decode import Kept
    from store.disk import Disk
    from store.tables import Tables

EXPORT = "sessions.json"
SLICE = 200


async def export(disk: Disk, place: Path, tables: Tables, now: datetime) -> None:
    """Rows are looked at a few at a time, so that others can work meanwhile; the figures may be a moment apart."""
    unsent: dict[object, int] = {}
    for number, reply in enumerate(list(tables.replies.rows.values())):
        unsent[reply.note.session] = unsent.get(reply.note.session, 0) + 1
        if number % SLICE == SLICE - 1:
            await trio.lowlevel.checkpoint()
    sessions = []
    for number, kept in enumerate(list(tables.sessions.rows.values())):
        sessions.append(_entry(tables, kept, unsent.get(kept.session.key, 0)))
        if number % SLICE == SLICE - 1:
            await trio.lowlevel.checkpoint()
    await trio.to_thread.run_sync(_write, disk, place, {"written_at": now, "sessions": sessions})


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


def _write(disk: Disk, place: Path, document: dict[str, Any]) -> None:
    document["sessions"].sort(key=lambda entry: entry["session"])
    write_whole(disk, place / EXPORT, orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z) + b"\n")
