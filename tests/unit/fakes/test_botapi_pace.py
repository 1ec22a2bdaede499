"""Telegram's limits on how much a bot may write are kept, by a clock that is handed in, and counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from telegram.error import RetryAfter

from tests.fakes.botapi import Limits, most_within
from tests.fakes.telegram.errors import Failure
from tests.fakes.telegram.pace import Pace
from tests.unit.fakes.telegram_bot import TEAM, here

if TYPE_CHECKING:
    from collections.abc import Callable

GROUP = -1


@dataclass(slots=True)
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def taken(pace: Pace, chat: int, *, group: bool = False) -> int:
    """How long it has to wait, 0 if it was taken."""
    try:
        pace.take(chat, group=group)
    except Failure as failure:
        return int(failure.parameters["retry_after"])
    return 0


def test_a_chat_takes_one_a_second_after_a_few_at_once(clock: Clock) -> None:
    """What is refused does not count; another chat is not concerned."""
    pace = Pace(Limits(), clock)
    assert [taken(pace, 7) for _ in range(5)] == [0, 0, 0, 1, 1]
    assert taken(pace, 8) == 0
    clock.now += 1
    assert [taken(pace, 7) for _ in range(2)] == [0, 1]
    assert (len(pace.sent[7]), pace.hits[7], pace.hits[8]) == (4, 3, 0)
    assert pace.most_within(7, 1.0) == 3


def test_an_album_comes_in_at_once_and_is_paid_for(clock: Clock) -> None:
    """However long it is; afterwards the chat waits until all of it is paid."""
    pace = Pace(Limits(), clock)
    pace.take(7, group=False, number=10)
    assert taken(pace, 7) == 8
    clock.now += 8
    assert taken(pace, 7) == 0


def test_a_group_takes_twenty_a_minute(clock: Clock) -> None:
    """However they are spread over it."""
    pace = Pace(Limits(), clock)
    for _ in range(20):
        assert taken(pace, GROUP, group=True) == 0
        clock.now += 2
    assert taken(pace, GROUP, group=True) == 20
    clock.now += 19.9
    assert taken(pace, GROUP, group=True) == 1
    clock.now += 0.2
    assert taken(pace, GROUP, group=True) == 0


def test_all_together_take_thirty_a_second(clock: Clock) -> None:
    pace = Pace(Limits(), clock)
    assert [taken(pace, chat) for chat in range(1, 32)] == [0] * 30 + [1]
    clock.now += 1.01
    assert taken(pace, 31) == 0
    assert pace.most_within(None, 1.0) == 30


def test_who_does_not_wait_goes_on_waiting(clock: Clock) -> None:
    """Until the time that was told has passed, even where the limit alone would let it in."""
    pace = Pace(Limits(burst=1, chat_s=10), clock)
    assert [taken(pace, 7), taken(pace, 7)] == [0, 10]
    pace.limits = Limits(burst=1, chat_s=10)
    assert taken(pace, 7) == 0
    clock.now += 4
    assert taken(pace, 7) == 6


def test_time_may_pass_more_quickly_for_the_limits(clock: Clock) -> None:
    """Ten times: ten a second. The wait is told in whole seconds of the clock, as Telegram does."""
    pace = Pace(Limits(burst=1, speed=10), clock)
    assert [taken(pace, 7), taken(pace, 7)] == [0, 1]
    clock.now += 0.11
    assert taken(pace, 7) == 0


@pytest.mark.parametrize(("times", "most"), [([], 0), ([1.0], 1), ([1.0, 1.5, 2.0, 2.1], 3), ([1.0, 3.0, 5.0], 1)])
def test_the_most_within_a_time_is_found(times: list[float], most: int) -> None:
    assert most_within(times, 1.0) == most


async def test_edits_and_sends_share_what_may_be_written() -> None:
    """The library raises RetryAfter with the wait; nothing of the refused is seen; actions are free."""
    clock = Clock()
    async with here(limits=Limits(), now=clock) as place:
        sent = await place.bot.send_message(7, "0")
        for number in (1, 2):
            await place.bot.edit_message_text(str(number), 7, sent.message_id)
        attempts: list[Callable[[], object]] = [
            lambda: place.bot.edit_message_text("3", 7, sent.message_id),
            lambda: place.bot.send_message(7, "3"),
            lambda: place.bot.send_document(7, b"3"),
        ]
        for attempt in attempts:
            with pytest.raises(RetryAfter) as raised:
                await attempt()  # type: ignore[misc]
            assert raised.value._retry_after.total_seconds() == 1
        assert place.chat.texts == ["2"]
        await place.bot.send_chat_action(7, "typing")
        await place.bot.delete_message(7, sent.message_id)
        assert place.api.pace.hits[7] == place.api.statistics()["limit_hits"] == 3
        clock.now += 1
        await place.bot.send_message(7, "3")
        assert place.chat.texts == ["3"]


async def test_a_group_is_limited_over_the_wire() -> None:
    """In real time: twenty go through, and the next is told to wait for the first of them to be a minute old."""
    async with here(limits=Limits(chat_s=0)) as place:
        for number in range(20):
            await place.bot.send_message(TEAM, str(number))
        with pytest.raises(RetryAfter) as raised:
            await place.bot.send_message(TEAM, "20")
        assert 30 < raised.value._retry_after.total_seconds() <= 60
        assert place.team.texts == [str(number) for number in range(20)]
