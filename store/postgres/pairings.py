"""Who was let in, in Postgres: whoever writes looks first, under one lock, and the rules are those of every store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from store.pairing import (
    CODE_LASTS,
    DENIED_FOR,
    Pairing,
    PairingState,
    Sender,
    approved,
    denied,
    is_heard,
    may_forget,
    was_heard,
)
from store.postgres.queries import load
from store.postgres.rows import records
from store.rules import check_words, unknown_tenant

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from store.pairing import Knock
    from store.postgres.database import Database

SQL = load("pairings")


class PostgresPairings:
    db: Database
    now: Callable[[], datetime | None]

    async def allowed(self, who: Sender) -> str | None:
        row = await self.db.first(SQL["allowed"], *who)
        return None if row is None else str(row["id"])

    async def knock(self, knock: Knock) -> bool:
        knock.check()
        return await self.db.together(lambda connection: _knock(connection, self.now(), knock))

    async def knocks(self) -> tuple[Pairing, ...]:
        found = await self.db.fetch(SQL["knocks"], self.now())
        rows = await records(found, pairing)
        return in_order(tuple(one for one in rows if one.counts_at(found[0]["now"])))

    async def pairings(self, tenant: str) -> tuple[Pairing, ...]:
        return in_order(await records(await self.db.fetch(SQL["of_tenant"], tenant), pairing))

    async def approve(self, digest: str, tenant: str, by: str) -> Pairing | None:
        check_words(digest, by)
        return await self.db.together(lambda connection: _approve(connection, self.now(), digest, tenant, by))

    async def deny(self, who: Sender, by: str) -> bool:
        check_words(by)
        return await self.db.together(lambda connection: _deny(connection, self.now(), who, by))

    async def dismiss(self, tenant: str | None, who: Sender) -> bool:
        return await self.db.together(lambda connection: _dismiss(connection, self.now(), tenant, who))

    async def tidy_pairings(self, limit: int) -> int:
        row = await self.db.first(SQL["tidy"], self.now(), CODE_LASTS, DENIED_FOR, limit)
        return int(row["went"])


def in_order(rows: tuple[Pairing, ...]) -> tuple[Pairing, ...]:
    return tuple(sorted(rows, key=lambda one: one.who))


def pairing(row: Any) -> Pairing:
    return Pairing(
        who=Sender(row["channel"], row["account"], row["sender"]),
        name=row["name"],
        digest=row["digest"],
        asked_at=row["asked_at"],
        state=PairingState(row["state"]),
        tenant=row["tenant_id"],
        by=row["decided_by"],
        decided_at=row["decided_at"],
    )


# ── on the event loop, in one transaction ────────────────────────────────────────────────────────────────────────────


async def _begin(connection: Any, now: datetime | None) -> datetime:
    await connection.execute(SQL["lock"])
    at: datetime = await connection.fetchval(SQL["moment"], now)
    return at


async def _one(connection: Any, statement: str, *args: str) -> Pairing | None:
    row = await connection.fetchrow(SQL[statement], *args)
    return None if row is None else pairing(row)


async def _knock(connection: Any, moment: datetime | None, knock: Knock) -> bool:
    now, who = await _begin(connection, moment), knock.who
    own = await _one(connection, "one", *who)
    if was_heard(knock, own, now):
        return True
    there = [pairing(row) for row in await connection.fetch(SQL["at_account"], *who[:2])]
    pending = sum(one.knocks_at(now) for one in there)
    other = await _one(connection, "with_code", knock.digest)
    if not is_heard(own, pending, taken=other is not None and other.who != who, now=now):
        return False
    await _write(connection, Pairing(who, knock.name, knock.digest, now))
    return True


async def _approve(connection: Any, moment: datetime | None, digest: str, tenant: str, by: str) -> Pairing | None:
    now = await _begin(connection, moment)
    if await connection.fetchrow(SQL["keep_tenant"], tenant) is None:
        raise unknown_tenant(tenant)
    found = await _one(connection, "with_code", digest)
    row = approved(found, tenant, by, now)
    if row is not None and row is not found:
        await _write(connection, row)
    return row


async def _deny(connection: Any, moment: datetime | None, who: Sender, by: str) -> bool:
    now = await _begin(connection, moment)
    found = await _one(connection, "one", *who)
    row = denied(found, by, now)
    if row is not None and row is not found:
        await _write(connection, row)
    return row is not None


async def _dismiss(connection: Any, moment: datetime | None, tenant: str | None, who: Sender) -> bool:
    now = await _begin(connection, moment)
    found = may_forget(await _one(connection, "one", *who), tenant, now)
    if found:
        await connection.execute(SQL["remove"], *who)
    return found


async def _write(connection: Any, row: Pairing) -> None:
    await connection.execute(
        SQL["write"],
        *row.who,
        row.name,
        row.digest,
        row.state,
        row.asked_at,
        row.tenant,
        row.by,
        row.decided_at,
    )
