"""Listening: the first word is to look for oneself, and one may stop at any time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from store.protocols import POLL

if TYPE_CHECKING:
    from store.protocols import Store


async def test_a_listener_first_hears_to_look_for_itself(whole: Store) -> None:
    """Before that nothing is heard, so nothing can be missed; several may listen."""
    with trio.fail_after(30):
        async with whole.listen() as one, whole.listen() as other:
            assert [await anext(one), await anext(other)] == [POLL, POLL]


async def test_a_listener_may_stop_at_any_time(whole: Store) -> None:
    """Waiting for the next word is cancelled like anything else, and one may listen again."""
    with trio.fail_after(30):
        async with whole.listen() as words:
            assert await anext(words) == POLL
            with trio.move_on_after(0.01) as waiting:
                while True:
                    await anext(words)
            assert waiting.cancelled_caught
        async with whole.listen() as words:
            assert await anext(words) == POLL
