"""Rows as they come back from JSON: one function for each kind, the inverse of how `orjson` writes the dataclass."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from store.pairing import Pairing, PairingState, Sender
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
    Noted,
    OwnKey,
    Reading,
    Reply,
    Role,
    Said,
    Seen,
    Session,
    SessionKey,
    SessionPolicy,
    Standing,
    Tenant,
    Worker,
    WorkerStatus,
)

Raw = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kept:
    """A session, and how much of its transcript is in its file; the lines after that are rows."""

    session: Session
    file: str = ""
    size: int = 0
    """So many bytes of the file count; what is behind them was never finished."""
    first: int = 1
    """The number of the file's first line."""
    filed: int = 0
    """The number of its last."""

    @property
    def mostly_trimmed(self) -> bool:
        return bool(self.file) and 2 * (self.session.trimmed - self.first + 1) > self.filed - self.first + 1


def when(text: str) -> datetime:
    return datetime.fromisoformat(text)


def maybe_when(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def delivery_key(raw: list[str]) -> DeliveryKey:
    channel, account, external_id = raw
    return DeliveryKey(channel, account, external_id)


def own_key(raw: list[str]) -> OwnKey:
    tenant, channel, account, external_id = raw
    return OwnKey(tenant, channel, account, external_id)


def pair(raw: list[str]) -> tuple[str, str]:
    one, other = raw
    return one, other


def session_key(raw: Raw) -> SessionKey:
    return SessionKey(**raw)


def line_key(raw: list[Any]) -> tuple[SessionKey, int]:
    key, number = raw
    return session_key(key), int(number)


def message(raw: Raw) -> Message:
    sent = raw["incoming"]
    incoming = Incoming(
        delivery_key(sent["key"]),
        session_key(sent["session"]),
        sent["sender"],
        sent["text"],
        sent["group"],
        sent["admin"],
        sent["control"],
    )
    state = MessageState(raw["state"])
    return Message(raw["id"], incoming, when(raw["accepted_at"]), state, raw["attempts"], raw["turn"])


def seen(raw: Raw) -> Seen:
    return Seen(raw["id"], MessageState(raw["state"]), when(raw["at"]))


def reply(raw: Raw) -> Reply:
    """Notes of schema 1 know no run."""
    one = raw["note"]
    note = Note(session_key(one["session"]), one["text"], one["urgent"], one.get("run", ""))
    return Reply(raw["id"], note, tuple(raw["answers"]), raw["parts"], raw["live"])


def kept(raw: Raw) -> Kept:
    one = raw["session"]
    standing = Standing(SessionPolicy(**one["standing"]["policy"]), one["standing"]["context"] or 0.0)
    session = Session(session_key(one["key"]), standing, one["lines"], one["trimmed"], when(one["updated_at"]))
    return Kept(session, raw["file"], raw["size"], raw["first"], raw["filed"])


def line(raw: Raw) -> Line:
    said = raw["said"]
    return Line(raw["number"], when(raw["at"]), Said(Role(said["role"]), said["text"], said["data"]))


def tenant(raw: Raw) -> Tenant:
    return Tenant(raw["id"], raw["name"], raw["zone"], raw["enabled"], when(raw["created_at"]))


def token(raw: Raw) -> ApiToken:
    one = raw["new"]
    new = NewToken(
        one["id"],
        one["tenant"],
        one["name"],
        one["digest"],
        tuple(one["scopes"]),
        maybe_when(one["expires_at"]),
    )
    return ApiToken(new, when(raw["created_at"]), maybe_when(raw["last_used_at"]), maybe_when(raw["revoked_at"]))


def noted(raw: Raw) -> Noted:
    return Noted(raw["meaning"], when(raw["at"]))


def sender(raw: list[str]) -> Sender:
    channel, account, name = raw
    return Sender(channel, account, name)


def pairing(raw: Raw) -> Pairing:
    return Pairing(
        who=sender(raw["who"]),
        name=raw["name"],
        digest=raw["digest"],
        asked_at=when(raw["asked_at"]),
        state=PairingState(raw["state"]),
        tenant=raw["tenant"],
        by=raw["by"],
        decided_at=maybe_when(raw["decided_at"]),
    )


def worker(raw: Raw) -> Worker:
    return Worker(raw["id"], WorkerStatus(raw["status"]), when(raw["started_at"]), when(raw["seen_at"]))


def beat(raw: Raw) -> Beat:
    return Beat(raw["worker"], WorkerStatus(raw["status"]), raw["run"], raw["context"], when(raw["at"]))


def machine(raw: Raw) -> MachineSnapshot:
    return MachineSnapshot(Reading(**raw["reading"]), when(raw["at"]))


def lease(raw: Raw) -> Lease:
    return Lease(raw["name"], raw["owner"], raw["token"], when(raw["until"]))
