"""One call of the bot, as a test may want to look at it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.fakes.telegram.parameters import Parameters

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(slots=True, eq=False)
class Request:
    """``at`` and ``ended`` are times of the double's clock, ``status`` 0 until there is an answer.

    ``done``: what was asked for happened. ``cut``: the client left before it had its answer.
    A file that is fetched is asked for by the method `(download)`, with its ``path``.
    """

    number: int
    method: str
    at: float
    given: Parameters = field(default_factory=Parameters)
    status: int = 0
    description: str = ""
    done: bool = False
    cut: bool = False
    ended: float | None = None
    path: str = ""

    def __repr__(self) -> str:
        return f"<{self.number} {self.method} {self.parameters} -> {self.status} {self.description}>"

    @property
    def parameters(self) -> Mapping[str, Any]:
        return self.given.values

    @property
    def chat_id(self) -> int | None:
        value = self.given.get("chat_id")
        return value if isinstance(value, int) else None
