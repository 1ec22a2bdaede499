"""How often somebody may ask: a burst, then steadily; nobody pays for another."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from gateway.access.rates import MOST_KNOWN, Rates


def test_a_burst_and_then_steadily() -> None:
    """What is left over is not lost, what is refused does not count."""
    rates = Rates(2, 3)
    assert [rates.take("a", 10) for _ in range(3)] == [0, 0, 0]
    assert [rates.take("a", 10) for _ in range(3)] == [0.5, 0.5, 0.5]
    assert rates.wait_s("a", 10.25) == 0.25
    assert [rates.take("a", 10.5), rates.take("a", 10.5)] == [0, 0.5]
    assert rates.take("b", 10) == 0


def test_a_clock_that_goes_back_gives_nothing() -> None:
    """And takes nothing."""
    rates = Rates(1, 1)
    assert [rates.take("a", 10), rates.take("a", 5), rates.take("a", 6)] == [0, 1, 0]


def test_only_so_many_askers_are_remembered() -> None:
    """The one that was quiet the longest begins anew."""
    rates = Rates(0.001, 1)
    for number in range(MOST_KNOWN + 1):
        assert rates.take(str(number), 0) == 0
    assert rates.take(str(MOST_KNOWN), 0) > 0
    assert rates.take("0", 0) == 0


@given(some.lists(some.floats(0, 5), max_size=60), some.integers(1, 10), some.integers(1, 10))
def test_in_no_span_more_than_the_burst_and_the_rate(steps: list[float], rate: int, burst: int) -> None:
    """Whenever somebody asks, and however often."""
    rates, now, passed = Rates(rate, burst), 0.0, []
    for step in steps:
        now += step
        if not rates.take("a", now):
            passed.append(now)
    for first, begin in enumerate(passed):
        for last, end in enumerate(passed[first:], start=first):
            assert last - first + 1 <= burst + (end - begin) * rate + 1e-6
