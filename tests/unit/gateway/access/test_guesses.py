"""Wrong tokens: guessing is slowed down, and whoever has a right one is not."""

from __future__ import annotations

import pytest

from gateway.access.guesses import MOST_KNOWN, Guesses, asker
from gateway.access.tokens import digest_of, new_secret
from gateway.local import new_token

CHOSEN = "correct-horse-battery"


def flooded(address: str = "10.0.0.1") -> Guesses:
    """Somebody at that address has used all of its tries."""
    guesses = Guesses(0.5, 3)
    assert [guesses.was_wrong(address, 0) for _ in range(5)] == [0, 0, 0, 2, 2]
    return guesses


def test_what_we_made_is_always_looked_at() -> None:
    """It cannot be guessed, so it waits for nobody's guesses."""
    guesses = flooded()
    for secret in (new_secret(), new_token()):
        assert guesses.wait_s("10.0.0.1", secret, digest_of(secret), 0) == 0


@pytest.mark.parametrize("secret", [CHOSEN, "gck_", "gck_short", "gck_" + "x" * 44, "x" + "gck_" + "x" * 43, ""])
def test_what_people_chose_waits(secret: str) -> None:
    """As long as a guess does; from elsewhere it does not."""
    guesses = flooded()
    assert guesses.wait_s("10.0.0.1", secret, digest_of(secret), 0) == 2
    assert guesses.wait_s("10.0.0.1", secret, digest_of(secret), 1) == 1
    assert guesses.wait_s("10.0.0.1", secret, digest_of(secret), 2) == 0
    assert guesses.wait_s("10.0.0.2", secret, digest_of(secret), 0) == 0


def test_what_was_right_there_before_does_not_wait() -> None:
    """The same token from the same address, and no other of the two."""
    guesses = flooded()
    guesses.was_right("10.0.0.1", digest_of(CHOSEN))
    assert guesses.wait_s("10.0.0.1", CHOSEN, digest_of(CHOSEN), 0) == 0
    assert guesses.wait_s("10.0.0.1", CHOSEN + "x", digest_of(CHOSEN + "x"), 0) > 0
    for _ in range(5):
        guesses.was_wrong("10.0.0.2", 0)
    assert guesses.wait_s("10.0.0.2", CHOSEN, digest_of(CHOSEN), 0) > 0


def test_only_so_many_are_remembered() -> None:
    """Whoever was right the longest ago is forgotten first; memory does not grow."""
    guesses = flooded()
    for number in range(MOST_KNOWN + 1):
        guesses.was_right("10.0.0.1", str(number))
    assert guesses.wait_s("10.0.0.1", CHOSEN, "0", 0) > 0
    assert guesses.wait_s("10.0.0.1", CHOSEN, "1", 0) == 0


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("10.0.0.1", "10.0.0.2", False),
        ("10.0.0.1", "::ffff:10.0.0.1", True),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:DB8:0:0::2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%eth0", "fe80::1%eth1", True),
        ("", "", True),
        ("unix", "", False),
    ],
)
def test_one_household_is_one_asker(one: str, other: str, same: bool) -> None:
    """Whoever has a network of IPv6 to choose from has no more tries for that."""
    assert (asker(one) == asker(other)) is same
