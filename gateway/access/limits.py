"""How much the API bears, and how long it waits. The tests ask for less, so that nobody has to wait."""

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
    connections: int = 2_000
    per_address: int = 1_200
    idle_s: float = 10.0
    """For the head of a request, and between two of them."""
    send_s: float = 10.0
    """For a peer to take something of what was sent to it."""
    grace_s: float = 1.0
    """For what is under way when the server ends."""


USUAL_LIMITS = Limits()
