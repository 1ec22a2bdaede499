"""Records: a policy holds only what can be meant, a token tells when it is good, and a turn's id is its own."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from store.records import MOST, Address, ApiToken, NewToken, SessionKey, SessionPolicy, turn_id

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TOKEN = ApiToken(NewToken("k", "default", "laptop", "digest", expires_at=NOON), NOON - timedelta(days=1))


@pytest.mark.parametrize(
    "policy",
    [
        {},
        {"mode": "queue"},
        {"mode": "interrupt", "drop": "new"},
        {"cap": 1, "debounce_ms": 0, "max_concurrent": 1},
        {"cap": MOST, "debounce_ms": MOST, "max_concurrent": MOST},
    ],
)
def test_what_can_be_meant_is_a_policy(policy: dict[str, Any]) -> None:
    """What is named is kept, everything else follows the settings."""
    made = SessionPolicy(**policy)
    assert {name: getattr(made, name) for name in SessionPolicy.__slots__} == {
        **dict.fromkeys(SessionPolicy.__slots__),
        **policy,
    }


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("mode", "fast", "expected one of queue, followup, collect, steer, interrupt"),
        ("mode", "", "expected one of"),
        ("drop", "both", "expected one of old, new"),
        ("cap", 0, "expected a whole number from 1 to 1000000"),
        ("cap", MOST + 1, "expected a whole number"),
        ("cap", True, "expected a whole number"),
        ("cap", 1.0, "expected a whole number"),
        ("cap", "3", "expected a whole number"),
        ("debounce_ms", -1, "expected a whole number from 0 to 1000000"),
        ("max_concurrent", 0, "expected a whole number from 1 to 1000000"),
    ],
)
def test_what_cannot_be_meant_is_refused(field: str, value: object, expected: str) -> None:
    """The error names the part, repeats the value and says what was expected."""
    with pytest.raises(ValueError, match=expected) as caught:
        SessionPolicy(**{field: value})  # type: ignore[arg-type]
    assert str(caught.value).startswith(f"{field} {value!r}: ")


def test_a_token_is_good_until_it_expires_or_is_revoked() -> None:
    """The moment of expiry is the first at which it opens nothing; without one it is good for ever."""
    assert TOKEN.opens_at(NOON - timedelta(microseconds=1))
    assert not TOKEN.opens_at(NOON)
    lasting = replace(TOKEN, new=replace(TOKEN.new, expires_at=None))
    assert lasting.opens_at(NOON + timedelta(days=36_500))
    assert not replace(lasting, revoked_at=NOON).opens_at(NOON - timedelta(days=1))


def test_an_address_is_where_and_not_who() -> None:
    """Sessions of other tenants, agents and epochs share it; another thread does not."""
    session = SessionKey("t", "a", "fake", "bot", "chat", "7", 2)
    assert session.address == Address("fake", "bot", "chat", "7")
    assert replace(session, tenant="t2", agent="b", epoch=3).address == session.address
    assert replace(session, thread="").address != session.address


def test_no_two_runs_share_a_turn() -> None:
    """Process and run both count."""
    turns = {turn_id(process, run) for process in ("a", "b", "1") for run in range(20)}
    assert len(turns) == 60
