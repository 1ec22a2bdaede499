"""Trying again inside one occurrence: how often, and how long to wait in between. Pure.

An occurrence has one attempt and then its retries. Only when they are used up does the job's own count of failures
rise, and with it the distance that the governor keeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import timedelta

ENOUGH_DOUBLINGS = 100
"""Past these every span there is has reached every limit there is."""


def delay(attempt: int, *, base: timedelta, most: timedelta, random: float) -> timedelta:
    """How long to wait after attempt number ``attempt``, counted from 0: min(base x 2^attempt, most) +/- 25 %.

    ``random`` is drawn by the caller, from 0 (a quarter less) to 1 (a quarter more).
    """
    factor = 2 ** min(attempt, ENOUGH_DOUBLINGS)
    # Divided, not multiplied: the product may be longer than any timedelta.
    span = base * factor if base <= most // factor else most
    return span * (0.75 + 0.5 * random)


def should_retry(attempt_number: int, max_retries: int, permanent: bool) -> bool:
    """Whether another attempt follows the one numbered ``attempt_number``, counted from 1, that has just failed."""
    return not permanent and attempt_number <= max_retries
