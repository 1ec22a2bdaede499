"""Sharing a call: everybody gets their own answer, and nobody suffers for another's mistake."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from cron.together import Together
from store.protocols import RuleBroken, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence


class Verb:
    """Doubles numbers, when it is let; refuses a batch with 13 in it, and is away when told so."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.gate = trio.Event()
        self.away = False

    async def __call__(self, items: Sequence[int]) -> list[int]:
        self.batches.append(list(items))
        await self.gate.wait()
        if self.away:
            raise StoreUnavailable("away")
        if 13 in items:
            raise RuleBroken("13")
        return [2 * item for item in items]


async def ask(together: Together[int, int], item: int, answers: dict[int, object]) -> None:
    try:
        answers[item] = await together(item)
    except (RuleBroken, StoreUnavailable) as error:
        answers[item] = type(error)


async def test_who_comes_during_a_call_shares_the_next() -> None:
    """Three calls for ten callers: the first alone, then as many as may go together."""
    verb, answers = Verb(), dict[int, object]()
    together: Together[int, int] = Together(verb, most=5)
    async with trio.open_nursery() as nursery:
        for item in range(10):
            nursery.start_soon(ask, together, item, answers)
            await wait_all_tasks_blocked()
        verb.gate.set()
    assert answers == {item: 2 * item for item in range(10)}
    assert [len(batch) for batch in verb.batches] == [1, 5, 4]


async def test_a_mistake_of_one_is_nobody_elses() -> None:
    """A batch that is refused as a whole is asked for one by one."""
    verb, answers = Verb(), dict[int, object]()
    together: Together[int, int] = Together(verb)
    async with trio.open_nursery() as nursery:
        for item in (1, 12, 13, 14):
            nursery.start_soon(ask, together, item, answers)
            await wait_all_tasks_blocked()
        verb.gate.set()
    assert answers == {1: 2, 12: 24, 13: RuleBroken, 14: 28}


async def test_a_store_that_is_away_is_told_to_all() -> None:
    """Each of them tries again in its own way."""
    verb, answers = Verb(), dict[int, object]()
    together: Together[int, int] = Together(verb)
    verb.away = True
    async with trio.open_nursery() as nursery:
        for item in (1, 2, 3):
            nursery.start_soon(ask, together, item, answers)
            await wait_all_tasks_blocked()
        verb.gate.set()
    assert answers == dict.fromkeys((1, 2, 3), StoreUnavailable)
    verb.away = False
    assert await together(4) == 8


@pytest.mark.parametrize("victim", [1, 2, 3])
async def test_a_cancelled_caller_takes_nobody_along(victim: int) -> None:
    """Whoever asks for all may be cancelled over it; the others ask again."""
    verb, answers = Verb(), dict[int, object]()
    together: Together[int, int] = Together(verb)
    scopes = {item: trio.CancelScope() for item in (1, 2, 3)}

    async def ask_inside(item: int) -> None:
        with scopes[item]:
            await ask(together, item, answers)

    async with trio.open_nursery() as nursery:
        for item in scopes:
            nursery.start_soon(ask_inside, item)
            await wait_all_tasks_blocked()
        scopes[victim].cancel()
        await wait_all_tasks_blocked()
        verb.gate.set()
    assert answers == {item: 2 * item for item in (1, 2, 3) if item != victim}
    assert await together(5) == 10
