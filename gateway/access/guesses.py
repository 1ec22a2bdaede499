"""Wrong tokens: who guesses is slowed down, and nobody who has a right one is locked out by that. Pure.

Everybody on one machine, or behind one proxy, comes from the same address. So an address that has sent too many wrong
tokens is not refused as a whole:

    made by us        256 random bits cannot be guessed: always looked up, so a right one always opens
    chosen by people  looked at only if this very token was right from this address before

Whatever is wrong meanwhile is told to wait, and so is a chosen token that is new there: its guesses go on at the rate.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from ipaddress import IPv6Address, ip_address, ip_network

from gateway.access.rates import Rates

MOST_KNOWN = 10_000
OWN_NETWORK = 64
"""Bits of an IPv6 address that one household has for itself: all below it is one asker."""
_MADE_BY_US = re.compile(r"(gck_|local_)[A-Za-z0-9_-]{43}")


class Guesses:
    """``rate`` wrong tokens a second from one address, and ``burst`` at once."""

    def __init__(self, rate: float, burst: float) -> None:
        self._wrong = Rates(rate, burst)
        self._right: OrderedDict[tuple[str, str], None] = OrderedDict()

    def wait_s(self, address: str, secret: str, digest: str, now: float) -> float:
        """0 if this token may be looked at; else the seconds until it may be tried."""
        if _MADE_BY_US.fullmatch(secret) or (asker(address), digest) in self._right:
            return 0.0
        return self._wrong.wait_s(asker(address), now)

    def was_wrong(self, address: str, now: float) -> float:
        """0 if that may happen; else the seconds until it may happen again."""
        return self._wrong.take(asker(address), now)

    def was_right(self, address: str, digest: str) -> None:
        key = asker(address), digest
        self._right[key] = None
        self._right.move_to_end(key)
        if len(self._right) > MOST_KNOWN:
            self._right.popitem(last=False)


def asker(address: str) -> str:
    """Who is meant by an address: the same one in both its forms, and a whole network of IPv6."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ip_network((parsed, OWN_NETWORK), strict=False))
