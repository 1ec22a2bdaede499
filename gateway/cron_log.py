"""What cron does, line by line, in `logs/scheduler.log`: one JSON object each, so that programs can read it too.

    {"timestamp": …, "level": …, "event": …, "trigger_id": …, "schedule_id": …, "trace_id": …, more facts}

Nothing is made before there is something to write. A line that cannot be written is dropped and counted, and that is
said once; cron itself never notices. What needs attention goes to the ordinary log as well.
"""

from __future__ import annotations

import json
import logging
import os
from contextlib import suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from io import TextIOWrapper
    from types import TracebackType
    from typing import Self

    from cron.telling import Level
    from store.jobs import Claim

logger = logging.getLogger("goclaw.cron")

LARGEST = 10_000_000
"""Bytes of one file."""
OLD_FILES = 5
NAME = "scheduler.log"
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class CronLog:
    """Implements `cron.telling.Tell`."""

    def __init__(self, directory: Path, now: Callable[[], datetime], *, largest: int = LARGEST) -> None:
        self._file = PrivateFile(directory / NAME, largest)
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
        self._file.write(json.dumps(line, default=str))
        if level in ("warning", "error"):
            logger.log(LEVELS[level], "%s", words(event, line))


def words(event: str, line: dict[str, object]) -> str:
    """The same for people: what it is about, then the rest."""
    job = "" if line["schedule_id"] is None else f" (job #{line['schedule_id']})"
    hidden = {"timestamp", "level", "event", "trigger_id", "schedule_id", "trace_id", "tenant"}
    told = {name: fact for name, fact in line.items() if name not in hidden and fact not in ("", None)}
    facts = ", ".join(f"{fact}" if name == "error" else f"{name} {fact}" for name, fact in told.items())
    return f"{event.replace('_', ' ')}{job}{': ' if facts else ''}{facts}"


class PrivateFile(RotatingFileHandler):
    """A file that only its owner can read, made with its directory at the first line."""

    def __init__(self, path: Path, largest: int) -> None:
        super().__init__(path, maxBytes=largest, backupCount=OLD_FILES, encoding="utf-8", delay=True)
        self.dropped = 0

    def write(self, line: str) -> None:
        # `emit` catches everything that goes wrong with the file, and calls `handleError`.
        self.handle(logging.makeLogRecord({"msg": line}))

    def handleError(self, record: logging.LogRecord) -> None:
        self.dropped += 1
        self._give_up_stream()
        if self.dropped == 1:
            logger.warning("%s cannot be written; its lines are dropped until it can be", self.baseFilename)

    def close(self) -> None:
        self._give_up_stream()
        super().close()

    def _give_up_stream(self) -> None:
        """What a full disk did not take is not written later, in the middle of something else."""
        stream, self.stream = self.stream, None  # opened again by the next line
        if stream is not None:
            with suppress(OSError, ValueError):
                stream.close()

    def _open(self) -> TextIOWrapper:
        path = Path(self.baseFilename)
        path.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return os.fdopen(descriptor, "a", encoding="utf-8")
