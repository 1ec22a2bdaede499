"""Who was let in, in the store without a disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from store.pairing import Knock, Pairing, PairingState, Sender, approved, denied, is_heard, may_forget, was_heard
from store.rules import check_words, unknown_tenant

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from store.records import Tenant


class MemoryPairings:
    now: Callable[[], datetime]
    people: dict[str, Tenant]
    paired: dict[Sender, Pairing]

    async def allowed(self, who: Sender) -> str | None:
        await trio.lowlevel.checkpoint()
        found = self.paired.get(who)
        if found is None or found.tenant is None or not self.people[found.tenant].enabled:
            return None
        return found.tenant

    async def knock(self, knock: Knock) -> bool:
        await trio.lowlevel.checkpoint()
        knock.check()
        now, who = self.now(), knock.who
        own = self.paired.get(who)
        if was_heard(knock, own, now):
            return True
        pending = sum(one.who[:2] == who[:2] and one.knocks_at(now) for one in self.paired.values())
        taken = any(one.digest == knock.digest and one.who != who for one in self.paired.values())
        if not is_heard(own, pending, taken=taken, now=now):
            return False
        self.paired[who] = Pairing(who, knock.name, knock.digest, now)
        return True

    async def knocks(self) -> tuple[Pairing, ...]:
        await trio.lowlevel.checkpoint()
        now = self.now()
        rows = [one for one in self.paired.values() if one.state is not PairingState.APPROVED and one.counts_at(now)]
        return tuple(sorted(rows, key=lambda one: one.who))

    async def pairings(self, tenant: str) -> tuple[Pairing, ...]:
        await trio.lowlevel.checkpoint()
        rows = [one for one in self.paired.values() if one.tenant == tenant]
        return tuple(sorted(rows, key=lambda one: one.who))

    async def approve(self, digest: str, tenant: str, by: str) -> Pairing | None:
        await trio.lowlevel.checkpoint()
        check_words(digest, by)
        if tenant not in self.people:
            raise unknown_tenant(tenant)
        found = next((one for one in self.paired.values() if one.digest == digest), None)
        row = approved(found, tenant, by, self.now())
        if row is not None:
            self.paired[row.who] = row
        return row

    async def deny(self, who: Sender, by: str) -> bool:
        await trio.lowlevel.checkpoint()
        check_words(by)
        row = denied(self.paired.get(who), by, self.now())
        if row is not None:
            self.paired[who] = row
        return row is not None

    async def dismiss(self, tenant: str | None, who: Sender) -> bool:
        await trio.lowlevel.checkpoint()
        found = may_forget(self.paired.get(who), tenant, self.now())
        if found:
            del self.paired[who]
        return found

    def tidy_pairings(self, now: datetime) -> int:
        """What counts for nothing any more goes; how much that was."""
        old = [who for who, one in self.paired.items() if not one.counts_at(now)]
        for who in old:
            del self.paired[who]
        return len(old)
