"""Every store beside the model: random histories of all verbs, with restarts, crashes and failed writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contract.cron_rules import CronRules
from tests.contract.keeping_rules import KeepingRules
from tests.contract.lives import LIVES, Life, Lives
from tests.contract.machine import StoreMachine, play
from tests.contract.message_rules import MessageRules

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path


class AllRules(MessageRules, KeepingRules, CronRules):
    """Everything together: tenants go while their messages and jobs run."""


THEMES = [MessageRules, KeepingRules, CronRules, AllRules]


@pytest.fixture(params=LIVES, ids=lambda lives: lives.name)
def lives(request: pytest.FixtureRequest) -> Lives:
    """Each store of the list in turn."""
    found: Lives = request.param
    return found


@pytest.fixture
def living(lives: Lives, request: pytest.FixtureRequest, tmp_path: Path) -> AbstractAsyncContextManager[Life]:
    """Ready for its first life."""
    return lives.live(tmp_path, request)


@pytest.mark.parametrize("theme", THEMES)
async def test_no_history_tells_a_store_from_the_model(
    lives: Lives, living: AbstractAsyncContextManager[Life], theme: type[StoreMachine]
) -> None:
    """The same verbs give the same answers, through restarts, crashes and failed writes. (R27)"""
    async with living as life:
        await play(theme, life, lives.histories, 80, fixed=True)


@pytest.mark.soak
@pytest.mark.parametrize("theme", THEMES)
async def test_no_new_history_tells_a_store_from_the_model(
    living: AbstractAsyncContextManager[Life], theme: type[StoreMachine]
) -> None:
    """The same with histories that nobody has seen yet."""
    async with living as life:
        await play(theme, life, 500, 100, fixed=False)
