"""Retries inside one occurrence: how many, and how far apart."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cron.retry import delay, should_retry

BASE, MOST = timedelta(seconds=2), timedelta(seconds=30)


@pytest.mark.parametrize(("attempt", "seconds"), [(0, 2), (1, 4), (2, 8), (3, 16), (4, 30), (5, 30), (1000, 30)])
def test_the_wait_doubles_up_to_its_limit(attempt: int, seconds: int) -> None:
    """Two seconds, four, eight, and never past thirty, with chance in the middle. (L16)"""
    assert delay(attempt, base=BASE, most=MOST, random=0.5) == timedelta(seconds=seconds)


@pytest.mark.parametrize(("random", "seconds"), [(0.0, 1.5), (0.25, 1.75), (0.5, 2.0), (1.0, 2.5)])
def test_chance_moves_the_wait_by_a_quarter_at_most(random: float, seconds: float) -> None:
    """The caller draws the number, so the same draw gives the same wait. (L16)"""
    assert delay(0, base=BASE, most=MOST, random=random) == timedelta(seconds=seconds)


def test_the_quarter_is_added_after_the_limit() -> None:
    """The formula clamps first, so the longest wait is a quarter over the limit. (L16)"""
    assert delay(9, base=BASE, most=MOST, random=1.0) == timedelta(seconds=37.5)


@given(
    st.integers(min_value=0, max_value=10**30),
    st.timedeltas(min_value=timedelta(microseconds=1), max_value=timedelta(days=365)),
    st.timedeltas(min_value=timedelta(microseconds=1), max_value=timedelta(days=365)),
    st.floats(min_value=0, max_value=1),
)
def test_no_attempt_is_too_many(attempt: int, base: timedelta, most: timedelta, random: float) -> None:
    """However long it went on, the wait can be computed and keeps its bounds. (L16)"""
    wait = delay(attempt, base=base, most=most, random=random)
    rounding = timedelta(microseconds=1)
    assert min(base, most) * 0.75 - rounding <= wait <= most * 1.25 + rounding


def test_a_first_wait_longer_than_the_limit_is_the_limit() -> None:
    """The limit holds from the first attempt on. (L16)"""
    assert delay(0, base=timedelta(minutes=5), most=MOST, random=0.5) == MOST


@pytest.mark.parametrize(("attempt", "again"), [(1, True), (2, True), (3, True), (4, False), (5, False)])
def test_three_retries_make_four_attempts(attempt: int, again: bool) -> None:
    """The first attempt is no retry. (L16)"""
    assert should_retry(attempt, 3, permanent=False) is again


def test_no_retries_means_one_attempt() -> None:
    """Zero is a setting like any other. (L16)"""
    assert not should_retry(1, 0, permanent=False)


def test_a_permanent_error_is_not_tried_again() -> None:
    """Trying again would not help, however many retries are left. (design 8)"""
    assert not should_retry(1, 3, permanent=True)
