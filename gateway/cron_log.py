"""What cron does, line by line, in `logs/scheduler.log`: one JSON object each, so that programs can read it too.

    {"timestamp": …, "level": …, "event": …, "trigger_id": …, "schedule_id": …, "trace_id": …, more facts}

Nothing is made before there is something to write. A line that cannot be written is dropped and counted, and that is
said once; cron itself never notices. What needs attention goes to the ordinary log as well.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from gateway.private_file import LARGEST, PrivateFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from cron.telling import Level
    from store.jobs import Claim

logger = logging.getLogger("goclaw.cron")

NAME = "scheduler.log"
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class CronLog:
    """Implements `cron.telling.Tell`."""

    def __init__(
        self,
        directory: Path,
        now: Callable[[], datetime],
        *,
        redact: Callable[[str], str] = str,
        largest: int = LARGEST,
    ) -> None:
        self._file = PrivateFile(directory / NAME, largest)
        self._redact = redact
        self._now = now

    @property
    def dropped(self) -> int:
        """Lines that could not be written."""
        return self._file.dropped

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()

    def __call__(self, event: str, *, level: Level = "info", claim: Claim | None = None, **facts: object) -> None:
        about: dict[str, object] = {"trigger_id": None, "schedule_id": None, "trace_id": None}
        if claim is not None:
            trigger = claim.trigger
            about = {"trigger_id": trigger.id, "schedule_id": trigger.job, "trace_id": trigger.trace}
            facts = {"tenant": trigger.tenant, **facts}
        stamp = self._now().isoformat().replace("+00:00", "Z")
        line = {"timestamp": stamp, "level": level, "event": event, **about, **facts}
        self._file.write(self._redact(json.dumps(line, default=str)))
        if level in ("warning", "error"):
            logger.log(LEVELS[level], "%s", words(event, line))


def words(event: str, line: dict[str, object]) -> str:
    """The same for people: what it is about, then the rest."""
    job = "" if line["schedule_id"] is None else f" (job #{line['schedule_id']})"
    hidden = {"timestamp", "level", "event", "trigger_id", "schedule_id", "trace_id", "tenant"}
    told = {name: fact for name, fact in line.items() if name not in hidden and fact not in ("", None)}
    facts = ", ".join(f"{fact}" if name == "error" else f"{name} {fact}" for name, fact in told.items())
    return f"{event.replace('_', ' ')}{job}{': ' if facts else ''}{facts}"
