"""How cron tells what it does: an event, the claim it is about, and facts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from store.jobs import Claim

Level = Literal["debug", "info", "warning", "error"]


class Tell(Protocol):
    def __call__(self, event: str, *, level: Level = "info", claim: Claim | None = None, **facts: object) -> None:
        """Never waits and never raises."""


def tell_nobody(event: str, *, level: Level = "info", claim: Claim | None = None, **facts: object) -> None:
    """For where nobody listens."""
