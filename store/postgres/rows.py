"""Rows as they come from Postgres, made into records and back.

A row that cannot be read, since another program or an older one has written it, is left out and named in the log: it
does not keep the others from being read.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import trio

from store.postgres.text import NOWHERE, from_json, to_json
from store.records import (
    ApiToken,
    Beat,
    DeliveryKey,
    Incoming,
    Lease,
    Line,
    MachineSnapshot,
    Message,
    MessageState,
    NewToken,
    Note,
    Reading,
    Receipt,
    Reply,
    Role,
    Said,
    Session,
    SessionKey,
    SessionPolicy,
    Standing,
    Tenant,
    Worker,
    WorkerStatus,
)
from store.rules import check_session, check_words, plain_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from store.records import Address

T = TypeVar("T")

BIGGEST = 2**63 - 1
AT_ONCE = 100
"""So many rows are made into records before somebody else has a turn: about a millisecond."""

log = logging.getLogger(__name__)


def ids_of(ids: Iterable[int]) -> list[int]:
    """Each once, in order, but for numbers that no row can have."""
    return [number for number in dict.fromkeys(ids) if 0 < number <= BIGGEST]


def fitting(number: int) -> int:
    """A number that means the same to the server, whatever was asked for."""
    return max(-BIGGEST, min(number, BIGGEST))


def limit_of(number: int) -> int:
    """How many rows may be answered. Fewer than none are none."""
    return max(0, fitting(number))


# ── into the database ────────────────────────────────────────────────────────────────────────────────────────────────


def address_text(address: Address) -> str:
    """One text for an address: no two that can be written have the same."""
    try:
        return ":".join(quote(part, safe="@+ ") for part in address)
    except UnicodeEncodeError:
        return NOWHERE


def session_text(session: SessionKey) -> str:
    """To look for it. One with half a character in it cannot be there."""
    try:
        return str(session)
    except UnicodeEncodeError:
        return NOWHERE


def batch_json(batch: Sequence[Incoming]) -> str:
    return to_json([_delivery(place, incoming) for place, incoming in enumerate(batch)])


def _delivery(place: int, incoming: Incoming) -> dict[str, object]:
    check_session(incoming.session)
    check_words(*incoming.key, incoming.sender, incoming.text)
    return {
        "place": place,
        "tenant_id": incoming.session.tenant,
        "session": str(incoming.session),
        "channel": incoming.key.channel,
        "account": incoming.key.account,
        "external_id": incoming.key.external_id,
        "sender": incoming.sender,
        "body": incoming.text,
        "is_group": incoming.group,
        "is_admin": incoming.admin,
        "is_control": incoming.control,
    }


def notes_json(notes: Sequence[Note]) -> str:
    return to_json([_note(place, note) for place, note in enumerate(notes)])


def _note(place: int, note: Note) -> dict[str, object]:
    check_session(note.session)
    check_words(note.text, note.run)
    return {
        "place": place,
        "tenant_id": note.session.tenant,
        "session": str(note.session),
        "address": address_text(note.session.address),
        "body": note.text,
        "urgent": note.urgent,
        "run": note.run,
    }


def said_json(said: Sequence[Said]) -> str:
    check_words(*(one.text for one in said))
    return to_json(
        [
            {"place": place, "role": one.role, "body": one.text, "data": plain_json(one.data)}
            for place, one in enumerate(said, start=1)
        ]
    )


# ── out of the database ──────────────────────────────────────────────────────────────────────────────────────────────


async def records(found: Iterable[Any], make: Callable[[Any], T]) -> tuple[T, ...]:
    """A record for each row that can be read, in order. Others have a turn in between, also if there are very many.

    What the rows tell of has happened on the server, so that a cancel does not take them away from the caller.
    """
    made: list[T] = []
    for place, row in enumerate(found, start=1):
        one = readable(row, make)
        if one is not None:
            made.append(one)
        if place % AT_ONCE == 0:
            await trio.lowlevel.cancel_shielded_checkpoint()
    return tuple(made)


def readable(row: Any, make: Callable[[Any], T]) -> T | None:
    """What is made of the row; None, and a word in the log, if nothing can be."""
    try:
        return make(row)
    except ValueError as error:
        name = next(f"{name} {row[name]!r}" for name in ("id", "number", "session", "sender") if name in row)
        log.error("the %s with the %s cannot be read and is left out: %s", make.__name__, name, error)
        return None


def message(row: Any) -> Message:
    return Message(
        id=row["id"],
        incoming=Incoming(
            key=DeliveryKey(row["channel"], row["account"], row["external_id"]),
            session=SessionKey.parse(row["session"]),
            sender=row["sender"],
            text=row["body"],
            group=row["is_group"],
            admin=row["is_admin"],
            control=row["is_control"],
        ),
        accepted_at=row["accepted_at"],
        state=MessageState(row["state"]),
        attempts=row["attempts"],
        turn=row["turn"],
    )


def receipt(row: Any) -> Receipt:
    return Receipt(
        id=row["id"],
        state=MessageState(row["state"]),
        message=readable(row, message) if row["ended_at"] is None else None,
        fresh=row["is_fresh"],
        standing=(None if row["context"] is None else readable(row, standing)) or Standing(),
    )


def standing(row: Any) -> Standing:
    policy = SessionPolicy(
        row["mode"], row["cap"], row["drops"], row["debounce_ms"], row["max_concurrent"], row["zone"]
    )
    return Standing(policy, row["context"])


def reply(row: Any) -> Reply:
    note = Note(SessionKey.parse(row["session"]), row["body"], row["urgent"], row["run"])
    return Reply(row["id"], note, tuple(row["answers"]), row["parts"], row["live"])


def session(row: Any) -> Session:
    key = SessionKey.parse(row["session"])
    return Session(key, readable(row, standing) or Standing(), row["lines"], row["trimmed"], row["updated_at"])


def line(row: Any) -> Line:
    return Line(row["number"], row["said_at"], Said(Role(row["role"]), row["body"], from_json(row["data"])))


def tenant(row: Any) -> Tenant:
    return Tenant(row["id"], row["name"], row["zone"], row["enabled"], row["created_at"])


def token(row: Any) -> ApiToken:
    scopes = tuple(from_json(row["scopes"]))
    new = NewToken(row["id"], row["tenant_id"], row["name"], row["digest"], scopes, row["expires_at"])
    return ApiToken(new, row["created_at"], row["last_used_at"], row["revoked_at"])


def worker(row: Any) -> Worker:
    return Worker(row["id"], WorkerStatus(row["status"]), row["started_at"], row["seen_at"])


def beat(row: Any) -> Beat:
    return Beat(row["worker"], WorkerStatus(row["status"]), row["run"], from_json(row["context"]), row["at"])


def snapshot(row: Any) -> MachineSnapshot:
    reading = Reading(
        worker=row["worker"],
        active_workers=row["active_workers"],
        active_runs=row["active_runs"],
        cpu_percent=row["cpu_percent"],
        memory_mb=row["memory_mb"],
        context=from_json(row["context"]),
    )
    return MachineSnapshot(reading, row["at"])


def lease(row: Any) -> Lease:
    return Lease(row["name"], row["owner"], row["token"], row["until"])
