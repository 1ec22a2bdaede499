"""Trouble that a test asks for: for a method, in a chat, so many times, after so many that go well."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import trio

from tests.fakes.telegram.errors import Failure, flood

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.fakes.telegram.request import Request


@dataclass(frozen=True, slots=True)
class Refuse:
    """The API says no; nothing happens."""

    code: int
    description: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def failure(self) -> Failure:
        return Failure(self.code, self.description, **self.parameters)


@dataclass(frozen=True, slots=True)
class Reply:
    """Any other answer; with ``effect`` what was asked for happens nevertheless."""

    status: int
    body: bytes
    content_type: str = "text/html"
    effect: bool = False


@dataclass(frozen=True, slots=True)
class Drop:
    """The connection ends: before anything happened, in the middle of the answer, or with none after all happened."""

    when: Literal["before", "mid", "after"] = "before"
    reset: bool = False


@dataclass(frozen=True, slots=True)
class Hang:
    """Silence until the trouble is released, then the answer; what was asked for happens before or after that."""

    happens: Literal["before", "after"] = "after"


@dataclass(frozen=True, slots=True)
class Slow:
    """The answer comes in small pieces."""

    chunk: int = 4
    pause_s: float = 0.005


Kind: TypeAlias = Refuse | Reply | Drop | Hang | Slow


def flooded(retry_after: int) -> Refuse:
    made = flood(retry_after)
    return Refuse(made.code, made.description, made.parameters)


CANNOT_PARSE = Refuse(400, "Bad Request: can't parse entities: Can't find end of Bold entity at byte offset 0")
UNAUTHORIZED = Refuse(401, "Unauthorized")
BLOCKED = Refuse(403, "Forbidden: bot was blocked by the user")
CONFLICT = Refuse(
    409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
)
INTERNAL = Refuse(500, "Internal Server Error: restart")
HTML_500 = Reply(500, b"<html><head><title>500</title></head><body><h1>Internal Server Error</h1></body></html>")
BAD_GATEWAY = Reply(502, b"<html><head><title>502</title></head><body><center><h1>502 Bad Gateway</h1></center></html>")
BAD_JSON = Reply(200, b'{"ok":true,"result":{"message_id":', "application/json", effect=True)
NAMED: Mapping[str, Kind] = {
    "cannot_parse": CANNOT_PARSE,
    "unauthorized": UNAUTHORIZED,
    "blocked": BLOCKED,
    "conflict": CONFLICT,
    "internal": INTERNAL,
    "html_500": HTML_500,
    "bad_gateway": BAD_GATEWAY,
    "bad_json": BAD_JSON,
    "drop_before": Drop("before"),
    "drop_mid": Drop("mid"),
    "drop_after": Drop("after"),
    "hang": Hang(),
    "slow": Slow(),
}


@dataclass(slots=True, eq=False)
class Trouble:
    """``left`` None: always. ``hit`` are the requests that it came to."""

    kind: Kind
    method: str = "*"
    chat: int | None = None
    left: int | None = 1
    skip: int = 0
    hit: list[Request] = field(default_factory=list)
    released: trio.Event = field(default_factory=trio.Event)

    def release(self) -> None:
        """Those that hang go on, and nobody is met by it any more."""
        self.left = 0
        self.released.set()

    def meets(self, request: Request) -> bool:
        if self.left == 0 or self.method.lower() not in ("*", request.method.lower()):
            return False
        if self.chat is not None and self.chat != request.chat_id:
            return False
        if self.skip:
            self.skip -= 1
            return False
        if self.left is not None:
            self.left -= 1
        self.hit.append(request)
        return True
