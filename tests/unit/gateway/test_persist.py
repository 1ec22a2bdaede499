"""Trying again: slower each time, for as long as it may help, and never longer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from gateway.persist import LONGEST_DELAY_S, insist, persist
from gateway.protocols import ChannelError
from store.protocols import StoreError

if TYPE_CHECKING:
    from trio.testing import MockClock


class Stumbling:
    """Fails as often as told, then works; remembers when it was called."""

    def __init__(self, failures: int, error: Exception) -> None:
        self.failures = failures
        self.error = error
        self.called_at: list[float] = []

    async def __call__(self) -> str:
        self.called_at.append(trio.current_time())
        await trio.lowlevel.checkpoint()
        if len(self.called_at) <= self.failures:
            raise self.error
        return "done"


async def test_what_works_is_asked_once(autojump_clock: MockClock) -> None:
    """No failure, no delay, no second call."""
    verb = Stumbling(0, StoreError("down"))
    start = trio.current_time()
    assert await persist(verb) == "done"
    assert verb.called_at == [start]
    assert trio.current_time() == start


async def test_a_failing_store_is_asked_again_more_slowly(autojump_clock: MockClock) -> None:
    """The pauses double from a tenth of a second up to five seconds, and the answer comes through in the end."""
    verb = Stumbling(9, StoreError("down"))
    assert await persist(verb) == "done"
    pauses = [later - earlier for earlier, later in zip(verb.called_at, verb.called_at[1:], strict=False)]
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5])
    assert LONGEST_DELAY_S == 5


@pytest.mark.parametrize("error", [StoreError("gone", retriable=False), ValueError("a mistake"), ChannelError("other")])
async def test_what_cannot_help_is_not_repeated(autojump_clock: MockClock, error: Exception) -> None:
    """A final refusal, a mistake and somebody else's error come out at once."""
    verb = Stumbling(1, error)
    with pytest.raises(type(error)):
        await persist(verb)
    assert len(verb.called_at) == 1


async def test_a_channel_is_insisted_on_in_the_same_way(autojump_clock: MockClock) -> None:
    """Retriable errors of a channel are repeated, final ones raised."""
    assert await insist(Stumbling(3, ChannelError("busy")), ChannelError) == "done"
    with pytest.raises(ChannelError):
        await insist(Stumbling(1, ChannelError("blocked", retriable=False)), ChannelError)


async def test_cancelling_ends_the_trying(autojump_clock: MockClock) -> None:
    """Nobody is held up by a store that never comes back, once they are cancelled."""
    verb = Stumbling(10_000, StoreError("down"))
    with trio.move_on_after(60) as scope:
        await persist(verb)
    assert scope.cancelled_caught
    assert trio.current_time() - verb.called_at[0] == pytest.approx(60)
