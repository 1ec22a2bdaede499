"""Tenants and tokens of the JSON store."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from store.files.cron_keeping import forget_tenant
from store.files.sessions import JsonSessions
from store.records import DEFAULT_TENANT, USED_LATELY, ApiToken, Noted, Tenant
from store.rules import check_words, default_stays, renamed, unknown_tenant

if TYPE_CHECKING:
    from store.records import NewToken


class JsonTenants(JsonSessions):
    async def create_tenant(self, tenant: str, name: str = "", zone: str = "UTC") -> bool:
        return await self.journal.do(lambda: self._create_tenant(tenant, name, zone))

    async def tenant(self, tenant: str) -> Tenant | None:
        return await self.journal.do(lambda: self.tables.tenants.rows.get(tenant))

    async def tenants(self) -> tuple[Tenant, ...]:
        rows = self.tables.tenants.rows
        return await self.journal.do(lambda: tuple(rows[tenant] for tenant in sorted(rows)))

    async def enable_tenant(self, tenant: str, enabled: bool) -> bool:
        return await self.journal.do(lambda: self._enable_tenant(tenant, enabled))

    async def edit_tenant(self, tenant: str, *, name: str | None = None, zone: str | None = None) -> bool:
        return await self.journal.do(lambda: self._edit_tenant(tenant, name, zone))

    async def delete_tenant(self, tenant: str) -> bool:
        return await self.journal.do(lambda: self._delete_tenant(tenant))

    async def add_token(self, token: NewToken) -> bool:
        return await self.journal.do(lambda: self._add_token(token))

    async def token_for(self, digest: str) -> ApiToken | None:
        return await self.journal.do(lambda: self._token_for(digest))

    async def tokens(self, tenant: str) -> tuple[ApiToken, ...]:
        return await self.journal.do(
            lambda: tuple([self.tables.tokens.rows[tenant, token] for token in self.tables.tokens_of[tenant]])
        )

    async def revoke_token(self, tenant: str, token: str) -> bool:
        return await self.journal.do(lambda: self._revoke_token(tenant, token))

    async def note_key(self, tenant: str, key: str, meaning: str) -> str:
        return await self.journal.do(lambda: self._note_key(tenant, key, meaning))

    # ── each in one step ─────────────────────────────────────────────────────────────────────────────────────────────

    def _create_tenant(self, tenant: str, name: str, zone: str) -> bool:
        check_words(tenant, name, zone)
        if tenant in self.tables.tenants.rows:
            return False
        self.tables.put(self.tables.tenants, tenant, Tenant(tenant, name, zone, True, self.now()))
        return True

    def _enable_tenant(self, tenant: str, enabled: bool) -> bool:
        row = self.tables.tenants.rows.get(tenant)
        if row is None:
            return False
        self.tables.put(self.tables.tenants, tenant, replace(row, enabled=enabled))
        return True

    def _edit_tenant(self, tenant: str, name: str | None, zone: str | None) -> bool:
        check_words(name or "", zone or "")
        row = self.tables.tenants.rows.get(tenant)
        if row is None:
            return False
        self.tables.put(self.tables.tenants, tenant, renamed(row, name, zone))
        return True

    def _delete_tenant(self, tenant: str) -> bool:
        tables = self.tables
        if tenant == DEFAULT_TENANT:
            raise default_stays()
        if tables.drop(tables.tenants, tenant) is None:
            return False
        for message in list(tables.messages_of[tenant]):
            tables.drop(tables.messages, message)
        for key in list(tables.seen_of[tenant]):
            tables.drop(tables.seen, key)
        for reply in list(tables.replies_of[tenant]):
            tables.drop(tables.replies, reply)
        for text in list(tables.sessions_of[tenant]):
            self.drop_session(tables.by_text[text])
        for token in list(tables.tokens_of[tenant]):
            tables.drop(tables.tokens, (tenant, token))
        for noted in list(tables.noted_of[tenant]):
            tables.drop(tables.noted, (tenant, noted))
        for who in list(tables.paired_of[tenant]):
            tables.drop(tables.paired, who)
        forget_tenant(tables, tenant)
        return True

    def _add_token(self, token: NewToken) -> bool:
        check_words(token.id, token.name, token.digest, *token.scopes)
        if token.tenant not in self.tables.tenants.rows:
            raise unknown_tenant(token.tenant)
        if (token.tenant, token.id) in self.tables.tokens.rows or token.digest in self.tables.by_digest:
            return False
        self.tables.put(self.tables.tokens, (token.tenant, token.id), ApiToken(token, self.now()))
        return True

    def _token_for(self, digest: str) -> ApiToken | None:
        key, now = self.tables.by_digest.get(digest), self.now()
        if key is None:
            return None
        token, tenant = self.tables.tokens.rows[key], self.tables.tenants.rows.get(key[0])
        if tenant is None or not tenant.enabled or not token.opens_at(now):
            return None
        if token.last_used_at is None or token.last_used_at <= now - USED_LATELY:
            return self.tables.put(self.tables.tokens, key, replace(token, last_used_at=now))
        return token

    def _revoke_token(self, tenant: str, token: str) -> bool:
        found = self.tables.tokens.rows.get((tenant, token))
        if found is None or found.revoked_at is not None:
            return False
        self.tables.put(self.tables.tokens, (tenant, token), replace(found, revoked_at=self.now()))
        return True

    def _note_key(self, tenant: str, key: str, meaning: str) -> str:
        check_words(key, meaning)
        if tenant not in self.tables.tenants.rows:
            raise unknown_tenant(tenant)
        known = self.tables.noted.rows.get((tenant, key))
        if known is None:
            known = self.tables.put(self.tables.noted, (tenant, key), Noted(meaning, self.now()))
        return known.meaning
