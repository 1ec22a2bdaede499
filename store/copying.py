"""Everything that one store holds, on its way to another: files pack it, Postgres unpacks it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from store.jobs import Job, Notification, Run, Trigger
    from store.pairing import Pairing
    from store.records import (
        ApiToken,
        Beat,
        Line,
        MachineSnapshot,
        Message,
        OwnKey,
        Reply,
        Seen,
        Session,
        Tenant,
        Worker,
    )


@dataclass(frozen=True, slots=True)
class Everything:
    """What a directory holds, with the numbers that it has there."""

    source: str
    id: int
    """The highest that a message or reply has."""
    change: int
    """The number of the last transaction: signs of life and readings are called by the one that made them."""
    newest: datetime
    """The latest time that anything there bears."""
    tenants: tuple[Tenant, ...]
    tokens: tuple[ApiToken, ...]
    sessions: tuple[tuple[Session, tuple[Line, ...]], ...]
    messages: tuple[Message, ...]
    ended: tuple[tuple[OwnKey, Seen], ...]
    replies: tuple[Reply, ...]
    cursors: tuple[tuple[str, str, int], ...]
    workers: tuple[Worker, ...]
    beats: tuple[tuple[int, Beat], ...]
    readings: tuple[tuple[int, MachineSnapshot], ...]
    jobs: tuple[Job, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    runs: tuple[Run, ...] = ()
    outputs: tuple[tuple[str, str, str], ...] = ()
    """Tenant, run, and all that it said."""
    news: tuple[tuple[str, Notification], ...] = ()
    numbers: tuple[tuple[str, int, int], ...] = ()
    """Tenant, and the highest number that a job and a notification of it ever had."""
    pairings: tuple[Pairing, ...] = ()


@dataclass(frozen=True, slots=True)
class Copied:
    """How much was new to the database."""

    tenants: int = 0
    tokens: int = 0
    sessions: int = 0
    lines: int = 0
    messages: int = 0
    replies: int = 0
    beats: int = 0
    readings: int = 0
    jobs: int = 0
    runs: int = 0
    pairings: int = 0
    ended: int = 0
    """Messages that waited in the database and had ended in the files since."""
    left: int = 0
    """Sessions that have gone on in the database in another way; they were left alone."""

    def __str__(self) -> str:
        counts = [f"{one.name} {getattr(self, one.name)}" for one in fields(self) if one.name != "left"]
        text = f"copied: {', '.join(counts)}"
        return f"{text}; left alone, because they went on in the database: sessions {self.left}" if self.left else text
