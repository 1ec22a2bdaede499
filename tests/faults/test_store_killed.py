"""A process that works on the store as hard as it can is killed with SIGKILL, again and again on the same store.

Nothing that it was told is missing, nothing is half there, nothing has come from nowhere, and every file can be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults.killing import play
from tests.faults.store_child import Engine

if TYPE_CHECKING:
    from pathlib import Path


async def test_files_keep_every_promise_when_killed(tmp_path: Path) -> None:
    """Twenty lives on one directory."""
    assert await play(Engine("json", str(tmp_path / "store")), tmp_path, seed=1, rounds=20) > 500


@pytest.mark.faults
async def test_files_keep_every_promise_when_killed_for_long(tmp_path: Path) -> None:
    """Two hundred lives on one directory."""
    assert await play(Engine("json", str(tmp_path / "store")), tmp_path, seed=2, rounds=200) > 5000


async def test_a_server_keeps_every_promise_when_killed(database: str, tmp_path: Path) -> None:
    """Five lives on one database."""
    assert await play(Engine("postgres", database), tmp_path, seed=3, rounds=5) > 500


@pytest.mark.faults
async def test_a_server_keeps_every_promise_when_killed_for_long(database: str, tmp_path: Path) -> None:
    """Forty lives on one database."""
    assert await play(Engine("postgres", database), tmp_path, seed=4, rounds=40) > 5000
