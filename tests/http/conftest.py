from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gateway.clock import utc_now
from store.files import open_json
from store.memory import MemoryStore
from store.postgres import open_postgres

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from store.protocols import Store


@pytest.fixture(params=["memory", "files", "postgres"])
def kind(request: pytest.FixtureRequest) -> str:
    """Each kind of store in turn."""
    name: str = request.param
    if name == "postgres":
        request.getfixturevalue("database")
    return name


@pytest.fixture
async def live(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    """Each store in turn, empty, with the time of the day."""
    if kind == "memory":
        yield MemoryStore(utc_now)
    elif kind == "files":
        async with open_json(tmp_path / "store", utc_now) as files:
            yield files
    else:
        async with open_postgres(request.getfixturevalue("database")) as shared:
            yield shared
