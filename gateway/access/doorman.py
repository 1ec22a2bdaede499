"""Who may talk to the gateway through a channel: the people and groups on a list, and those who were let in later.

A sender is known by a number alone: a name can be given up and taken by somebody else. A group is let in by its own
number, for all its members; that one of them may talk to the gateway alone gives nothing in a group.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from store.records import DEFAULT_TENANT

if TYPE_CHECKING:
    from collections.abc import Iterator

EXPECTED: Final = "numbers of people and groups, separated by commas, for instance 7654321,-1001234567890"


class Doorman(Protocol):
    async def allowed(self, channel: str, account: str, sender: str) -> str | None:
        """The tenant whose guest this is; None for a stranger."""

    async def knock(self, channel: str, account: str, sender: str, name: str) -> str | None:
        """A stranger wants to be let in. The code that they are to be told, if there is one for them now."""


def read_allowlist(text: str) -> frozenset[str]:
    """The numbers of a list. A ValueError tells what cannot stand there."""
    return frozenset(_numbers(text))


def _numbers(text: str) -> Iterator[str]:
    for part in filter(None, (part.strip() for part in text.split(","))):
        if part == "*":
            raise ValueError("* would let everybody in, and that is never meant")
        if part.startswith("@") or not re.fullmatch(r"-?[0-9]{1,20}", part):
            raise ValueError("a name can be taken by somebody else, a number cannot")
        yield str(int(part))


@dataclass(frozen=True, slots=True)
class Allowlist:
    """``guests`` are asked about those who are not on it."""

    numbers: frozenset[str]
    guests: Doorman | None = None

    async def allowed(self, channel: str, account: str, sender: str) -> str | None:
        if sender in self.numbers:
            return DEFAULT_TENANT
        return None if self.guests is None else await self.guests.allowed(channel, account, sender)

    async def knock(self, channel: str, account: str, sender: str, name: str) -> str | None:
        return None if self.guests is None else await self.guests.knock(channel, account, sender, name)
