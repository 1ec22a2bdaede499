"""Transcripts and policies in Postgres."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.postgres import rows
from store.postgres.queries import load
from store.records import SessionPolicy
from store.rules import check_session, unknown_tenant

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from datetime import datetime

    from store.postgres.database import Database
    from store.records import Line, Said, Session, SessionKey

SQL = load("sessions")


class PostgresSessions:
    db: Database
    now: Callable[[], datetime | None]

    async def session(self, key: SessionKey) -> Session | None:
        row = await self.db.first(SQL["session"], key.tenant, rows.session_text(key))
        return None if row is None else rows.session(row)

    async def sessions(self, tenant: str, *, limit: int = 100, after: str = "") -> tuple[Session, ...]:
        found = await self.db.fetch(SQL["sessions"], tenant, after, rows.limit_of(limit))
        return await rows.records(found, rows.session)

    async def set_policy(self, key: SessionKey, policy: SessionPolicy, only: Collection[str] | None = None) -> Session:
        check_session(key)
        policy = SessionPolicy().changed(policy, only)  # all that a session which there was not gets
        row = await self.db.first(
            SQL["set_policy"],
            self.now(),
            key.tenant,
            str(key),
            policy.mode,
            policy.cap,
            policy.drop,
            policy.debounce_ms,
            policy.max_concurrent,
            policy.zone,
            None if only is None else list(only),
        )
        if row is None:
            raise unknown_tenant(key.tenant)
        return rows.session(row)

    async def remember(self, key: SessionKey, said: Sequence[Said]) -> int:
        check_session(key)
        row = await self.db.first(SQL["remember"], self.now(), key.tenant, str(key), rows.said_json(said))
        if row is None:
            raise unknown_tenant(key.tenant)
        return int(row["lines"])

    async def transcript(self, key: SessionKey, *, after: int = 0, limit: int = 100) -> tuple[Line, ...]:
        found = await self.db.fetch(
            SQL["transcript"], key.tenant, rows.session_text(key), rows.fitting(after), rows.limit_of(limit)
        )
        return await rows.records(found, rows.line)

    async def newest(self, key: SessionKey, limit: int) -> tuple[Line, ...]:
        found = await self.db.fetch(SQL["newest"], key.tenant, rows.session_text(key), rows.limit_of(limit))
        return await rows.records(reversed(found), rows.line)

    async def trim(self, key: SessionKey, upto: int) -> int:
        row = await self.db.first(SQL["trim"], self.now(), key.tenant, rows.session_text(key), rows.fitting(upto))
        return 0 if row is None else int(row["went"])

    async def forget(self, key: SessionKey) -> bool:
        return await self.db.first(SQL["forget"], key.tenant, rows.session_text(key)) is not None
