"""Every store beside the model: random histories of all verbs, with restarts, crashes and failed writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contract.lives import LIVES, Life, Lives
from tests.contract.machine import play

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path


@pytest.fixture(params=LIVES, ids=lambda lives: lives.name)
def living(request: pytest.FixtureRequest, tmp_path: Path) -> AbstractAsyncContextManager[Life]:
    """Each store of the list in turn, ready for its first life."""
    lives: Lives = request.param
    return lives.live(tmp_path, request)


async def test_no_history_tells_a_store_from_the_model(living: AbstractAsyncContextManager[Life]) -> None:
    """The same verbs give the same answers, through restarts, crashes and failed writes. (R27)"""
    async with living as life:
        await play(life, 80, 40, fixed=True)


@pytest.mark.soak
async def test_no_new_history_tells_a_store_from_the_model(living: AbstractAsyncContextManager[Life]) -> None:
    """The same with histories that nobody has seen yet."""
    async with living as life:
        await play(life, 1_000, 80, fixed=False)
