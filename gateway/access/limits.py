"""How much the API bears from one asker. The tests ask for less, so that nobody has to wait."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    body_bytes: int = 1_000_000
    body_s: float = 15.0
    """How long a body may take to arrive."""
    request_s: float = 20.0
    """How long it may take to find out whose request it is."""
    wrong_rate: float = 0.5
    wrong_burst: float = 20
    """Wrong tokens from one address: twenty at once, then one every two seconds."""


USUAL_LIMITS = Limits()
