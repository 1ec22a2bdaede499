"""What runs right now, as the events tell it: for people who look, and nothing that anybody relies on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from gateway.events import Event


@dataclass(frozen=True, slots=True)
class Running:
    run: str
    tenant: str
    session: str
    agent: str
    lane: str
    of: str
    """What it is: message, job, helper."""
    since: datetime
    trace: str


class Activity:
    def __init__(self) -> None:
        self._running: dict[str, Running] = {}

    def heard(self, event: Event) -> None:
        if event.kind == "run.started":
            about = event.data
            self._running[event.trace] = Running(
                event.run,
                event.tenant,
                event.session,
                str(about.get("agent", "")),
                str(about.get("lane", "")),
                str(about.get("of", "")),
                event.at,
                event.trace,
            )
        elif event.kind == "run.ended":
            self._running.pop(event.trace, None)

    def running(self, tenant: str | None = None) -> tuple[Running, ...]:
        """What runs, longest first; of one tenant, or of all."""
        return tuple(one for one in self._running.values() if tenant in (None, one.tenant))
