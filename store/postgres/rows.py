"""Rows as they come from Postgres, made into records and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

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
    from collections.abc import Iterable, Sequence

    from store.records import Address

BIGGEST = 2**63 - 1


def ids_of(ids: Iterable[int]) -> list[int]:
    """Each once, in order, but for numbers that no row can have."""
    return [number for number in dict.fromkeys(ids) if 0 < number <= BIGGEST]


def fitting(number: int) -> int:
    """A limit that means the same to the server, whatever was asked for."""
    return max(-BIGGEST, min(number, BIGGEST))


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
    check_words(note.text)
    return {
        "place": place,
        "tenant_id": note.session.tenant,
        "session": str(note.session),
        "address": address_text(note.session.address),
        "body": note.text,
        "urgent": note.urgent,
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
        message=message(row) if row["ended_at"] is None else None,
        fresh=row["is_fresh"],
        standing=Standing() if row["context"] is None else standing(row),
    )


def standing(row: Any) -> Standing:
    policy = SessionPolicy(row["mode"], row["cap"], row["drops"], row["debounce_ms"], row["max_concurrent"])
    return Standing(policy, row["context"])


def reply(row: Any) -> Reply:
    note = Note(SessionKey.parse(row["session"]), row["body"], row["urgent"])
    return Reply(row["id"], note, tuple(row["answers"]), row["parts"], row["live"])


def session(row: Any) -> Session:
    key = SessionKey.parse(row["session"])
    return Session(key, standing(row), row["lines"], row["trimmed"], row["updated_at"])


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
