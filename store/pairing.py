"""Who was let in, who knocks, and who was turned away: values, and the rules that every store keeps. Pure.

    knock ──▶ pending ──▶ approved ──▶ (forgotten)
                 │
                 ├──▶ denied ──▶ (gone after a day)
                 └──▶ (gone after an hour)

There is one row for each sender of an account, so nobody can be in two tenants or have two codes. Of a code only its
SHA-256 is kept. That is not what keeps it secret, since whoever reads the store can try out forty bits: it keeps codes
out of journals, dumps and lists. What protects a code is that it lives an hour, that it is tried a few times an hour at
most, and that it opens nothing without a token that may let people in. It is found by its digest, as tokens are: how
long that takes tells nothing about the code.

Who knocks belongs to no tenant. Whoever lets somebody in takes them into a tenant, and only that one sees them then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from store.rules import check_words

CODE_LASTS = timedelta(hours=1)
DENIED_FOR = timedelta(days=1)
MOST_PENDING = 3
"""So many may knock at one account at the same time: a crowd of strangers fills no list."""


class Sender(NamedTuple):
    """Somebody as a channel calls them, for instance by a number."""

    channel: str
    account: str
    sender: str


class PairingState(StrEnum):
    PENDING = "pending"
    DENIED = "denied"
    APPROVED = "approved"


@dataclass(frozen=True, slots=True)
class Pairing:
    """Somebody who knocked, and what became of it."""

    who: Sender
    name: str
    """What they call themselves: it proves nothing."""
    digest: str
    """The SHA-256 of their code, in hexadecimal."""
    asked_at: datetime
    state: PairingState = PairingState.PENDING
    tenant: str | None = None
    """Where they belong, once they are let in."""
    by: str = ""
    """Who decided."""
    decided_at: datetime | None = None

    @property
    def changed_at(self) -> datetime:
        return self.decided_at or self.asked_at

    @property
    def until(self) -> datetime | None:
        """When it counts for nothing any more; None if it is for good."""
        if self.state is PairingState.APPROVED:
            return None
        return self.changed_at + (CODE_LASTS if self.state is PairingState.PENDING else DENIED_FOR)

    def counts_at(self, now: datetime) -> bool:
        return self.until is None or now < self.until

    def knocks_at(self, now: datetime) -> bool:
        return self.state is PairingState.PENDING and self.counts_at(now)


@dataclass(frozen=True, slots=True)
class Knock:
    """Somebody who is not let in yet asks to be, with a code that was made for that."""

    who: Sender
    name: str
    digest: str

    def check(self) -> None:
        check_words(*self.who, self.name, self.digest)


def is_heard(own: Pairing | None, pending: int, *, taken: bool, now: datetime) -> bool:
    """Whether the knock makes a row; the code is to be shown only then. ``own`` is the sender's row.

    ``pending`` of the same account knock already; ``taken`` tells that the digest belongs to somebody else's row.
    """
    return (own is None or not own.counts_at(now)) and pending < MOST_PENDING and not taken


def was_heard(knock: Knock, own: Pairing | None, now: datetime) -> bool:
    """This very knock has made the sender's row before: the caller did not hear of it, and asks again."""
    return own is not None and own.digest == knock.digest and own.knocks_at(now)


def approved(found: Pairing | None, tenant: str, by: str, now: datetime) -> Pairing | None:
    """The row from now on; None if its code opens nothing.

    A tenant that asks again with a code that it has used is told of the same row: the answer may have been lost. For
    everybody else the code is spent.
    """
    if found is None:
        return None
    if found.knocks_at(now):
        return replace(found, state=PairingState.APPROVED, tenant=tenant, by=by, decided_at=now)
    return found if found.tenant == tenant else None


def denied(found: Pairing | None, by: str, now: datetime) -> Pairing | None:
    """The row from now on; None if there is nobody to turn away. Who was turned away already stays so."""
    if found is None or found.state is PairingState.APPROVED or not found.counts_at(now):
        return None
    if found.state is PairingState.DENIED:
        return found
    return replace(found, state=PairingState.DENIED, by=by, decided_at=now)


def may_forget(found: Pairing | None, tenant: str | None, now: datetime) -> bool:
    """Whether that tenant, or whoever looks after those who are in none, has this row."""
    return found is not None and found.tenant == tenant and found.counts_at(now)
