"""What `/queue` takes, and what it says of the rest."""

import re

import pytest

from gateway.chat_desk import changed
from store.records import SessionPolicy


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("mode", "mode needs a value"),
        ("cap", "cap needs a value"),
        ("cap 5 debounce", "debounce needs a value"),
        ("steer please now", '"steer please now" is not understood'),
        ("cap 10001", "expected a whole number from 1 to 10000"),
        ("debounce 60001", "expected a whole number from 0 to 60000"),
        ("mode loud", "expected queue, followup, collect, steer, interrupt"),
        ("volume 3", '"volume" is not something that can be set'),
    ],
)
def test_what_cannot_be_set_is_told(words: str, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        changed(SessionPolicy(), words.split())


def test_the_limits_are_those_of_the_settings() -> None:
    after = changed(SessionPolicy(), ["cap", "10000", "debounce", "60000", "mode", "steer"])
    assert (after.cap, after.debounce_ms, after.mode) == (10_000, 60_000, "steer")
