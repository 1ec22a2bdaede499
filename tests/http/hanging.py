"""A store that stops answering whenever a test wants it to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from gateway.clock import utc_now
from store.memory import MemoryStore

if TYPE_CHECKING:
    from store.records import Tenant


class Hanging(MemoryStore):
    """A store that stops answering, and does not even let go when it is cancelled."""

    def __init__(self) -> None:
        super().__init__(utc_now)
        self.hangs = trio.Event()
        self.goes_on = trio.Event()
        self.asked = 0

    async def tenant(self, tenant: str) -> Tenant | None:
        if self.hangs.is_set():
            self.asked += 1
            with trio.CancelScope(shield=True):
                await self.goes_on.wait()
        return await super().tenant(tenant)
