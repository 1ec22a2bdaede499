"""The chat lease in the gateway: one process works on messages at a time, and who loses it stops at once."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
import trio

from gateway.tenure import TenureOver, tenure
from store.memory import MemoryStore
from store.protocols import StoreUnavailable
from store.records import CHAT_LEASE

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio.testing import MockClock

    from store.records import Lease

SPAN = timedelta(seconds=15)


class StumblingStore(MemoryStore):
    """A store that is away while somebody says so."""

    away = False

    async def renew(self, lease: Lease, span: timedelta) -> Lease | None:
        if self.away:
            await trio.sleep(0.5)
            raise StoreUnavailable("the server is away")
        return await super().renew(lease, span)


def new_store() -> StumblingStore:
    return StumblingStore(lambda: datetime(2026, 3, 1, tzinfo=UTC) + timedelta(seconds=trio.current_time()))


def nobody_waits(holder: Lease) -> None:
    pytest.fail(f"had to wait for {holder}")


async def work_until_it_is_over(store: StumblingStore, then: Callable[[], None]) -> None:
    async with tenure(store, "one", SPAN, nobody_waits):
        then()
        await trio.sleep_forever()


async def test_a_lease_is_kept_for_as_long_as_the_work_goes_on(autojump_clock: MockClock) -> None:
    """An hour of work on a lease of seconds: nobody else gets it in between, and at the end it is free at once."""
    store = new_store()
    async with tenure(store, "one", SPAN, nobody_waits) as lease:
        for _ in range(3600):
            await trio.sleep(1)
            assert await store.acquire(CHAT_LEASE, "two", SPAN) is None
        held = await store.lease(CHAT_LEASE)
        assert held is not None
        assert held.token == lease.token
    assert await store.lease(CHAT_LEASE) is None


async def test_the_next_one_waits_until_the_lease_of_a_dead_one_is_over(autojump_clock: MockClock) -> None:
    """Whoever comes is told whom it waits for, and goes on within one lease. (hand-over)"""
    store = new_store()
    waited_for: list[Lease] = []
    await store.acquire(CHAT_LEASE, "dead", SPAN)
    async with tenure(store, "next", SPAN, waited_for.append) as lease:
        assert lease.owner == "next"
        assert trio.current_time() <= SPAN.total_seconds() + 1
    assert [holder.owner for holder in waited_for] == ["dead"]


async def test_work_ends_when_somebody_else_has_the_lease(autojump_clock: MockClock) -> None:
    """Refused at a renewal, everything that depends on the lease is cancelled and the reason told."""
    store = new_store()

    def hand_over() -> None:
        mine = store.leases[CHAT_LEASE]
        store.leases[CHAT_LEASE] = replace(mine, owner="two", token=mine.token + 1, until=store.now() + SPAN)

    with pytest.raises(TenureOver, match="another gateway works on the messages now"):
        await work_until_it_is_over(store, hand_over)
    assert trio.current_time() <= SPAN.total_seconds() / 3 + 0.1
    held = await store.lease(CHAT_LEASE)
    assert held is not None
    assert held.owner == "two"


async def test_work_ends_a_second_before_a_lease_that_cannot_be_renewed(autojump_clock: MockClock) -> None:
    """While the store is away nobody knows who else may begin: it stops in time by its own clock."""
    store = new_store()
    with pytest.raises(TenureOver, match=r"the store could not be reached .* start goclaw again"):
        await work_until_it_is_over(store, lambda: setattr(store, "away", True))
    assert trio.current_time() == SPAN.total_seconds() - 1


async def test_a_short_absence_of_the_store_costs_nothing(autojump_clock: MockClock) -> None:
    """A renewal that succeeds in time after some that failed keeps the work going."""
    store = new_store()
    async with tenure(store, "one", SPAN, nobody_waits):
        store.away = True
        await trio.sleep(10)
        store.away = False
        await trio.sleep(600)
    assert await store.acquire(CHAT_LEASE, "two", SPAN) is not None


async def test_a_long_lease_is_never_renewed(autojump_clock: MockClock) -> None:
    """Where a lock keeps others out the lease spans everything: an idle gateway does not wake up for it. (P13)"""
    store = new_store()
    async with tenure(store, "one", timedelta(days=36_500), nobody_waits):
        before = store.leases[CHAT_LEASE]
        await trio.sleep(timedelta(days=365).total_seconds())
        assert store.leases[CHAT_LEASE] is before
