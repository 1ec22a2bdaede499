"""Tenants and API tokens in Postgres."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.postgres import rows
from store.postgres.queries import load
from store.postgres.text import to_json
from store.records import DEFAULT_TENANT, USED_LATELY
from store.rules import check_words, default_stays, unknown_tenant

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from store.postgres.database import Database
    from store.records import ApiToken, NewToken, Tenant

SQL = load("tenants")


class PostgresTenants:
    db: Database
    now: Callable[[], datetime | None]

    async def create_tenant(self, tenant: str, name: str = "", zone: str = "UTC") -> bool:
        check_words(tenant, name, zone)
        return await self.db.first(SQL["create_tenant"], self.now(), tenant, name, zone) is not None

    async def tenant(self, tenant: str) -> Tenant | None:
        row = await self.db.first(SQL["tenant"], tenant)
        return None if row is None else rows.tenant(row)

    async def tenants(self) -> tuple[Tenant, ...]:
        found = [rows.tenant(row) for row in await self.db.fetch(SQL["tenants"])]
        return tuple(sorted(found, key=lambda one: one.id))

    async def enable_tenant(self, tenant: str, enabled: bool) -> bool:
        return await self.db.first(SQL["enable_tenant"], tenant, enabled) is not None

    async def edit_tenant(self, tenant: str, *, name: str | None = None, zone: str | None = None) -> bool:
        check_words(name or "", zone or "")
        return await self.db.first(SQL["edit_tenant"], tenant, name, zone) is not None

    async def delete_tenant(self, tenant: str) -> bool:
        if tenant == DEFAULT_TENANT:
            raise default_stays()
        return await self.db.first(SQL["delete_tenant"], tenant) is not None

    async def add_token(self, token: NewToken) -> bool:
        check_words(token.id, token.name, token.digest, *token.scopes)
        row = await self.db.first(
            SQL["add_token"],
            self.now(),
            token.tenant,
            token.id,
            token.name,
            token.digest,
            to_json(token.scopes),
            token.expires_at,
        )
        if not row["known"]:
            raise unknown_tenant(token.tenant)
        return bool(row["added"])

    async def token_for(self, digest: str) -> ApiToken | None:
        row = await self.db.first(SQL["token_for"], self.now(), digest, USED_LATELY)
        return None if row is None else rows.token(row)

    async def tokens(self, tenant: str) -> tuple[ApiToken, ...]:
        found = [rows.token(row) for row in await self.db.fetch(SQL["tokens"], tenant)]
        return tuple(sorted(found, key=lambda one: one.new.id))

    async def revoke_token(self, tenant: str, token: str) -> bool:
        return await self.db.first(SQL["revoke_token"], self.now(), tenant, token) is not None

    async def note_key(self, tenant: str, key: str, meaning: str) -> str:
        check_words(key, meaning)
        row = await self.db.first(SQL["note_key"], self.now(), tenant, key, meaning)
        if row is None:
            raise unknown_tenant(tenant)
        return str(row["meaning"])
