from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from store.records import CHAT_LEASE
from tests.contract.backends import BACKENDS, Backend, Wall

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from store.cron_protocol import CronStore
    from store.protocols import MessageStore, Store

CENTURY = timedelta(days=36_500)


@pytest.fixture
def wall() -> Wall:
    return Wall()


@pytest.fixture(params=BACKENDS, ids=lambda backend: backend.name)
def opening(request: pytest.FixtureRequest, wall: Wall, tmp_path: Path) -> AbstractAsyncContextManager[Store]:
    """Each store of the list in turn, about to be opened."""
    backend: Backend = request.param
    return backend.open(wall, tmp_path, request)


@pytest.fixture
async def whole(opening: AbstractAsyncContextManager[Store]) -> AsyncIterator[Store]:
    """Each store of the list in turn, open and empty."""
    async with opening as opened:
        yield opened


@pytest.fixture
async def store(whole: Store) -> MessageStore:
    """Its inbox and outbox for somebody who holds the lease as long as any test needs it."""
    lease = await whole.acquire(CHAT_LEASE, "contract", CENTURY)
    assert lease is not None
    return whole.messages(lease)


@pytest.fixture
async def cron(whole: Store) -> CronStore:
    """Its jobs, triggers and runs."""
    return whole.cron
