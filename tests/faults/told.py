"""What a process that is about to be killed says of itself: each verb before it is asked and after it has answered.

A line leaves in one write, so what is in the pipe when the kill comes has happened, and no line is half there but the
last. A verb that was asked and not told may have had its effect or not; one that was told must have had it.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from store.records import DeliveryKey, Incoming, SessionKey

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

T = TypeVar("T")

CHANNEL = "fault"
SESSIONS = tuple(SessionKey("default", "main", CHANNEL, "bot", f"chat{number}") for number in range(5))
ALONE = SessionKey("default", "main", CHANNEL, "bot", "alone")
"""A session that one task has to itself, so that it may also forget it."""
ACCOUNTS = ("first", "second", "third")
"""Each is read by one task, so its positions are asked for one after the other."""
NEVER = 1 << 60
"""The place in the log of what was never told."""


def session_of(name: str) -> SessionKey:
    return SESSIONS[int(name.split(".")[1])]


def sender_of(name: str) -> str:
    return name.split(".")[2]


def account_of(name: str) -> str:
    return name.split(".")[3]


def incoming(name: str) -> Incoming:
    """The delivery with this name, always the same: ``number.session.sender.account.round``, some of them long."""
    text = f"{name} " * (400 if int(name.split(".")[0]) % 25 == 7 else 4)  # a long one is easily torn
    key = DeliveryKey(CHANNEL, account_of(name), name)
    return Incoming(key, session_of(name), sender_of(name), text, group=True)


@dataclass(slots=True)
class Log:
    """The child's side: writes down what it asks and what it is told."""

    out: int
    count: int = 0

    async def ask(
        self, verb: str, call: Callable[[], Awaitable[T]], tell: Callable[[T], object] = bool, **fields: object
    ) -> T:
        self.count += 1
        number = self.count
        self.write({"n": number, "ask": verb, "with": fields})
        answer = await call()
        self.write({"n": number, "told": tell(answer)})
        return answer

    def write(self, line: dict[str, object]) -> None:
        os.write(self.out, json.dumps(line).encode() + b"\n")


@dataclass(slots=True)
class Ask:
    """One verb as the log has it. ``asked`` and ``told`` are places in the log."""

    verb: str
    fields: dict[str, Any]
    asked: int
    told: int = NEVER
    answer: Any = None

    @property
    def open(self) -> bool:
        """Nobody knows whether it had its effect."""
        return self.told == NEVER


@dataclass(slots=True)
class Round:
    """All that one life of the child has said."""

    number: int
    asks: list[Ask] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    """What was said besides: the child ended by itself."""

    def of(self, *verbs: str) -> list[Ask]:
        return [ask for ask in self.asks if ask.verb in verbs]

    def told(self, *verbs: str) -> list[Ask]:
        return [ask for ask in self.of(*verbs) if not ask.open]


def read(number: int, lines: Iterable[bytes]) -> Round:
    """The log of a life; a torn last line was not said."""
    heard, asks = Round(number), dict[int, Ask]()
    for place, line in enumerate(lines):
        if not line.endswith(b"\n"):
            break
        if not line.startswith(b"{"):
            heard.complaints.append(line.decode(errors="replace"))
            continue
        said = json.loads(line)
        if "ask" in said:
            asks[said["n"]] = Ask(said["ask"], said["with"], place)
        else:
            asks[said["n"]].told, asks[said["n"]].answer = place, said["told"]
    heard.asks = list(asks.values())
    return heard
