from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults.damage import write_story

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
async def written(tmp_path: Path) -> Path:
    """A directory with two snapshots, journals and transcripts."""
    await write_story(tmp_path / "written", compact_after=(6, 12))
    return tmp_path / "written"
