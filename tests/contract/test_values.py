"""Values that make no sense are refused before anything is written, and nothing is kept that could not be read back."""

from __future__ import annotations

from datetime import datetime
from math import inf, nan
from typing import TYPE_CHECKING, Any, cast

import pytest

from store.protocols import RuleBroken
from store.records import MessageState, NewToken, Reading, Role, Said, SessionKey
from tests.contract.rows import NOTE, row, running, waiting_replies

if TYPE_CHECKING:
    from store.protocols import MessageStore, Store


@pytest.mark.parametrize("figure", [nan, inf, -inf, -0.1, 1000.0])
async def test_a_figure_that_is_none_settles_nothing(store: MessageStore, whole: Store, figure: float) -> None:
    """How full the window is cannot be NaN, endless or below nothing."""
    ids = await running(store, "a")
    with pytest.raises(RuleBroken, match="how much of the window"):
        await store.settle("turn", ids, MessageState.DONE, [NOTE], context=figure)
    assert (await row(store, "a")).turn == "turn"
    assert await waiting_replies(store) == []


async def test_a_worker_is_what_workers_are(whole: Store) -> None:
    """A status that nobody knows is refused, and the worker is not introduced by it."""
    with pytest.raises(RuleBroken, match="a worker is not 'zombie': expected one of alive, idle, busy, dead"):
        await whole.beat("w", cast("Any", "zombie"))
    assert await whole.workers() == ()
    assert await whole.beats("w") == ()


@pytest.mark.parametrize("limit", [0, -1, -(2**70), 2**70])
async def test_any_limit_is_answered(store: MessageStore, whole: Store, limit: int) -> None:
    """Less than one is none, and more than there is is all."""
    key = SessionKey("default", "main", "fake", "bot", "here")
    await whole.remember(key, [Said(Role.USER, "a")])
    found = [
        await store.outbox(limit),
        await whole.beats("w", limit),
        await whole.readings(limit),
        await whole.newest(key, limit),
        await whole.transcript(key, limit=limit),
        await whole.sessions("default", limit=limit),
    ]
    assert [len(one) for one in found] == ([0, 0, 0, 1, 1, 1] if limit > 0 else [0] * 6)


def test_records_refuse_what_no_store_can_keep() -> None:
    """A role, an epoch, a time or a figure that makes no sense never reaches a store."""
    with pytest.raises(ValueError, match="role 'robot': expected one of user, assistant, tool, system"):
        Said(cast("Any", "robot"), "hi")
    for epoch in (-1, 2**63, 1.5, True):
        with pytest.raises(ValueError, match="epoch"):
            SessionKey("t", "a", "c", "", "chat", epoch=cast("Any", epoch))
    with pytest.raises(ValueError, match="expected a time with its zone"):
        NewToken("id", "t", "", "digest", expires_at=datetime(2030, 1, 1))  # noqa: DTZ001 - that is the point
    with pytest.raises(ValueError, match="nan is no figure"):
        Reading("w", cpu_percent=nan)
    assert Said(cast("Any", "user"), "hi").role is Role.USER
