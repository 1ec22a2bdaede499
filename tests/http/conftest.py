from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gateway.clock import utc_now
from tests.contract.backends import BACKENDS, Backend, Wall

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager
    from datetime import datetime
    from pathlib import Path

    from store.protocols import Store


class RealTime(Wall):
    """There is a whole gateway on the store, so its time goes on."""

    def __call__(self) -> datetime:
        return utc_now()


@pytest.fixture(params=BACKENDS, ids=lambda backend: backend.name)
def opening(request: pytest.FixtureRequest, tmp_path: Path) -> AbstractAsyncContextManager[Store]:
    """Each store of the list in turn, about to be opened."""
    backend: Backend = request.param
    return backend.open(RealTime(), tmp_path / "store", request)


@pytest.fixture
async def whole(opening: AbstractAsyncContextManager[Store]) -> AsyncIterator[Store]:
    """Each store of the list in turn, open and empty."""
    async with opening as opened:
        yield opened
