"""Who was let in, in the JSON store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.files.verbs import Verbs
from store.pairing import Pairing, approved, denied, is_heard, may_forget, was_heard
from store.rules import check_words, unknown_tenant

if TYPE_CHECKING:
    from store.pairing import Knock, Sender


class JsonPairings(Verbs):
    async def allowed(self, who: Sender) -> str | None:
        return await self.journal.do(lambda: self._allowed(who))

    async def knock(self, knock: Knock) -> bool:
        return await self.journal.do(lambda: self._knock(knock))

    async def knocks(self) -> tuple[Pairing, ...]:
        return await self.journal.do(self._knocks)

    async def pairings(self, tenant: str) -> tuple[Pairing, ...]:
        tables = self.tables
        return await self.journal.do(lambda: tuple([tables.paired.rows[who] for who in tables.paired_of[tenant]]))

    async def approve(self, digest: str, tenant: str, by: str) -> Pairing | None:
        return await self.journal.do(lambda: self._approve(digest, tenant, by))

    async def deny(self, who: Sender, by: str) -> bool:
        return await self.journal.do(lambda: self._deny(who, by))

    async def dismiss(self, tenant: str | None, who: Sender) -> bool:
        return await self.journal.do(lambda: self._dismiss(tenant, who))

    # ── each in one step ─────────────────────────────────────────────────────────────────────────────────────────────

    def _allowed(self, who: Sender) -> str | None:
        found = self.tables.paired.rows.get(who)
        tenant = None if found is None or found.tenant is None else self.tables.tenants.rows.get(found.tenant)
        return tenant.id if tenant is not None and tenant.enabled else None

    def _knock(self, knock: Knock) -> bool:
        knock.check()
        tables, now, who = self.tables, self.now(), knock.who
        own = tables.paired.rows.get(who)
        if was_heard(knock, own, now):
            return True
        pending = sum(tables.paired.rows[one].knocks_at(now) for one in tables.knocking_at[who[:2]])
        taken = tables.by_code.get(knock.digest, who) != who
        if not is_heard(own, pending, taken=taken, now=now):
            return False
        tables.put(tables.paired, who, Pairing(who, knock.name, knock.digest, now))
        return True

    def _knocks(self) -> tuple[Pairing, ...]:
        now, tables = self.now(), self.tables
        rows = [tables.paired.rows[who] for place in tables.knocking_at.of.values() for who in place]
        return tuple(sorted((one for one in rows if one.counts_at(now)), key=lambda one: one.who))

    def _approve(self, digest: str, tenant: str, by: str) -> Pairing | None:
        check_words(digest, by)
        if tenant not in self.tables.tenants.rows:
            raise unknown_tenant(tenant)
        who = self.tables.by_code.get(digest)
        found = None if who is None else self.tables.paired.rows[who]
        return self._write(found, approved(found, tenant, by, self.now()))

    def _deny(self, who: Sender, by: str) -> bool:
        check_words(by)
        found = self.tables.paired.rows.get(who)
        return self._write(found, denied(found, by, self.now())) is not None

    def _write(self, found: Pairing | None, row: Pairing | None) -> Pairing | None:
        if row is not None and row is not found:
            self.tables.put(self.tables.paired, row.who, row)
        return row

    def _dismiss(self, tenant: str | None, who: Sender) -> bool:
        found = may_forget(self.tables.paired.rows.get(who), tenant, self.now())
        if found:
            self.tables.drop(self.tables.paired, who)
        return found
