from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contract.backends import BACKENDS, Backend, Wall

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from store.protocols import MessageStore


@pytest.fixture
def wall() -> Wall:
    return Wall()


@pytest.fixture(params=BACKENDS, ids=lambda backend: backend.__name__)
async def store(request: pytest.FixtureRequest, wall: Wall, tmp_path: Path) -> AsyncIterator[MessageStore]:
    """Each store of the list in turn, open and empty."""
    backend: Backend = request.param
    async with backend(wall, tmp_path) as opened:
        yield opened
