"""The log: lines for people or an object per line for programs, on standard error, without a secret in them.

A gateway writes the same to a file too, always as objects, and there also what is not worth a line at the terminal.

The code writes with the standard library's loggers; structlog renders. What is rendered goes through the redactor as a
whole, tracebacks included, so that nothing depends on who wrote it. A line that belongs to a run carries its trace.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, TextIO

import structlog

from gateway.private_file import PrivateFile
from gateway.redaction import Redactor, secrets_of
from gateway.traces import current_trace

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from structlog.typing import EventDict, Processor, WrappedLogger

    from gateway.settings import LogFormat, Settings

logger = logging.getLogger("goclaw")

NAME = "goclaw.log"
CHATTY = ("asyncio", "anthropic", "openai", "httpx", "httpx2", "httpcore", "httpcore2", "hypercorn", "telegram")
"""Libraries that tell every request; they are heard from warnings on."""


def configure(
    settings: Settings, redactor: Redactor | None = None, *, stream: TextIO | None = None, directory: Path | None = None
) -> Redactor:
    """Log as the settings want it from now on. The redactor knows their secrets; more can be added to it.

    ``directory`` is where a file of it is kept.
    """
    redactor = redactor or Redactor()
    redactor.add(*secrets_of(settings))
    stream = stream or sys.stderr
    handler = logging.StreamHandler(stream)
    handler.setFormatter(Redacting(redactor, settings.log.format, colors=stream.isatty()))
    level = logging.getLevelNamesMapping()[settings.log.level.upper()]
    handler.setLevel(level)
    root = logging.getLogger()
    for old in [one for one in root.handlers if isinstance(one.formatter, Redacting)]:
        root.removeHandler(old)
        if isinstance(old, PrivateFile):
            old.close()
    root.addHandler(handler)
    root.setLevel(level)
    if directory is not None:
        file = PrivateFile(directory / NAME)
        file.setFormatter(Redacting(redactor, "json", colors=False))
        root.addHandler(file)
        root.setLevel(min(level, logging.INFO))
    for name in CHATTY:
        logging.getLogger(name).setLevel(max(logging.WARNING, level))
    structlog.configure(
        processors=[*before(), structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    logging.captureWarnings(capture=True)
    sys.excepthook = crashed
    return redactor


class Redacting(structlog.stdlib.ProcessorFormatter):
    """Renders a line, then takes the secrets out of it."""

    def __init__(self, redactor: Redactor, form: LogFormat, *, colors: bool) -> None:
        remove = structlog.stdlib.ProcessorFormatter.remove_processors_meta
        super().__init__(foreign_pre_chain=before(), processors=[remove, *rendering(form, colors=colors)])
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        return self._redactor(super().format(record))


def before() -> list[Processor]:
    """What every line is given, whoever writes it."""
    return [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        add_trace,
        structlog.stdlib.ExtraAdder(),
        drop_echo,
    ]


def add_trace(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    trace = current_trace.get()
    if trace is not None:
        event["trace"] = trace.id
    return event


def drop_echo(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """What another handler has left on the record is nothing that anybody said."""
    event.pop("message", None)
    event.pop("asctime", None)
    return event


def rendering(form: LogFormat, *, colors: bool) -> list[Processor]:
    if form == "json":
        # Tracebacks as text: as objects they would hold every local variable.
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=str)]
    plain = structlog.dev.plain_traceback
    return [structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plain, pad_event_to=0)]


def crashed(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """What nobody caught is a line of the log too; the interpreter's own would have its secrets in it."""
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, traceback)
    else:
        logger.critical("goclaw has crashed", exc_info=(kind, error, traceback))
