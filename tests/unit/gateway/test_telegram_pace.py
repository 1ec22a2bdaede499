"""What may be written on Telegram, and when: never more than it takes, whoever asks for how much."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.channels.telegram_pace import Budget
from tests.fakes.botapi import most_within

GAPS = st.lists(st.floats(0, 20), min_size=1, max_size=200)


def written(budget: Budget, chat: int, gaps: list[float]) -> list[float]:
    """When each was written, if somebody wants to write after each of these gaps."""
    now, times = 0.0, []
    for gap in gaps:
        now += gap
        now += budget.wait_s(chat, now)
        budget.take(chat, now)
        times.append(now)
    return times


@given(GAPS)
def test_a_group_never_gets_more_than_twenty_in_a_minute(gaps: list[float]) -> None:
    """However it is asked for, no minute holds more than Telegram takes."""
    assert most_within(written(Budget(), -500, gaps), 60.0) <= 20


@given(GAPS)
def test_a_private_chat_gets_one_a_second_after_a_few(gaps: list[float]) -> None:
    """Three may come at once; over ten seconds it is one a second."""
    assert most_within(written(Budget(), 7, gaps), 10.0) <= 3 + 9


def test_what_is_only_nice_to_have_leaves_room() -> None:
    """With one more to spare an edit waits where a reply does not, and a rest holds for both."""
    budget = Budget()
    for _ in range(2):
        budget.take(7, 0.0)
    assert budget.wait_s(7, 0.0) == 0.0
    assert budget.wait_s(7, 0.0, spare=1) > 0.0
    budget.rest(7, 0.0, 30.0)
    assert budget.wait_s(7, 10.0) == 20.0
    assert budget.wait_s(8, 10.0) == 0.0
