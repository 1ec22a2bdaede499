"""Two stores side by side that are asked the same: each numbers in its own way, and the answers must still be equal."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from store.jobs import Claim
from store.records import CHAT_LEASE, Lease, Message, Receipt, Reply
from tests.contract.picture import renumbered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.protocols import MessageStore, Store

UNKNOWN = 10**9
"""An id that no store has given to anything yet."""


@dataclass(slots=True)
class Side:
    """One of the two, with what it has given out, oldest first. A pick counts back from the newest."""

    whole: Store
    messages: list[int] = field(default_factory=list)
    replies: list[int] = field(default_factory=list)
    leases: list[Lease] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)

    def message(self, pick: int) -> int:
        return self.messages[-1 - pick] if pick < len(self.messages) else UNKNOWN + pick

    def those(self, picks: Sequence[int]) -> list[int]:
        return [self.message(pick) for pick in picks]

    def reply(self, pick: int) -> int:
        return self.replies[-1 - pick] if pick < len(self.replies) else UNKNOWN + pick

    def lease(self, pick: int) -> Lease | None:
        return self.leases[-1 - pick] if pick < len(self.leases) else None

    def claimed(self, picks: Sequence[int]) -> list[Claim]:
        return [self.claims[-1 - pick] for pick in picks if pick < len(self.claims)]

    def view(self, pick: int | str | None) -> MessageStore:
        """Inbox and outbox under the newest chat lease, an older one, one with another name, or none."""
        if pick is None:
            return self.whole.messages(None)
        fitting = [one for one in self.leases if (one.name == CHAT_LEASE) == (pick != "other")]
        back = 0 if isinstance(pick, str) else pick
        return self.whole.messages(fitting[-1 - back] if back < len(fitting) else None)


@dataclass(slots=True)
class Sides:
    """The model and the store that is held against it."""

    model: Side
    tried: Side

    def learn(self, expected: object, found: object) -> None:
        """Whatever appears for the first time, and at the same place of both answers, is the same thing."""
        match expected, found:
            case Receipt(fresh=True), Receipt(fresh=True):
                assert all(found.id > known for known in self.tried.messages[-1:]), "ids must rise"
                self._pair("messages", expected.id, found.id)
            case Reply(), Reply():
                self._pair("replies", expected.id, found.id)
            case Lease(), Lease() if expected not in self.model.leases and found not in self.tried.leases:
                self.model.leases.append(expected)
                self.tried.leases.append(found)
            case Claim(), Claim() if expected not in self.model.claims and found not in self.tried.claims:
                self.model.claims.append(expected)
                self.tried.claims.append(found)
            case dict(), dict():
                self.learn(list(expected.values()), list(found.values()))
            case ((list() | tuple()), (list() | tuple())) if not isinstance(expected, (Receipt, Reply, Lease, Message)):
                for one, other in zip(expected, found, strict=False):
                    self.learn(one, other)

    def _pair(self, what: str, expected: int, found: int) -> None:
        ours, theirs = getattr(self.model, what), getattr(self.tried, what)
        if expected not in ours and found not in theirs:
            ours.append(expected)
            theirs.append(found)

    def translated(self, found: object) -> object:
        """The answer of the store as the model would number it; what it cannot know stays recognisably wrong."""
        messages = dict(zip(self.tried.messages, self.model.messages, strict=True))
        replies = dict(zip(self.tried.replies, self.model.replies, strict=True))
        tokens = {
            (theirs.name, theirs.token): ours.token
            for ours, theirs in zip(self.model.leases, self.tried.leases, strict=True)
        }
        return renumbered(
            found,
            lambda number: messages.get(number, -number),
            lambda number: replies.get(number, -number),
            lambda lease: tokens.get((lease.name, lease.token), -lease.token),
        )


def as_it_is(value: object) -> object:
    """The model's answer in the form that translated answers have."""
    return renumbered(value, lambda number: number, lambda number: number, lambda lease: lease.token)
