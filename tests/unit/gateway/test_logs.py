"""The log: readable by people or by programs, with the trace of the run, and without secrets."""

from __future__ import annotations

import io
import json
import logging
import sys
import warnings
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from gateway.loading import load_settings
from gateway.logs import CHATTY, Redacting, configure
from gateway.traces import Trace, current_trace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.redaction import Redactor

CANARY = "canary/Canary:CANARY"


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    """What `configure` changes belongs to the whole process."""
    root = logging.getLogger()
    before = root.level, sys.excepthook, {name: logging.getLogger(name).level for name in CHATTY}
    yield
    root.handlers = [one for one in root.handlers if not isinstance(one.formatter, Redacting)]
    root.setLevel(before[0])
    sys.excepthook = before[1]
    for name, level in before[2].items():
        logging.getLogger(name).setLevel(level)
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()


class Log:
    """A configured log, and what it has written."""

    def __init__(self, **variables: str) -> None:
        environ = {
            "GOCLAW_OPENAI_API_KEY": CANARY,
            **{f"GOCLAW_{name.upper()}": value for name, value in variables.items()},
        }
        self.stream = io.StringIO()
        self.redactor: Redactor = configure(load_settings(environ, None).settings, stream=self.stream)

    @property
    def text(self) -> str:
        return self.stream.getvalue()

    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]


def test_a_line_for_people() -> None:
    """Level, what happened, who says it; no colours where nobody sees them."""
    log = Log(log_level="info")
    logging.getLogger("goclaw.x").info("%d messages", 3)
    assert "info" in log.text
    assert "3 messages" in log.text
    assert "goclaw.x" in log.text
    assert "\x1b" not in log.text
    assert len(log.text.splitlines()) == 1


def test_an_object_for_programs() -> None:
    """One per line, tracebacks inside; what was given beside the words too."""
    log = Log(log_format="json")
    try:
        raise RuntimeError("it\nbroke")
    except RuntimeError:
        logging.getLogger("goclaw.x").exception("trouble", extra={"chat": "dm"})
    structlog.get_logger("goclaw.y").warning("told", number=3)
    first, second = log.objects()
    assert (first["event"], first["level"], first["logger"], first["chat"]) == ("trouble", "error", "goclaw.x", "dm")
    assert "RuntimeError: it\nbroke" in first["exception"]
    assert first["timestamp"].endswith("Z")
    assert (second["event"], second["number"]) == ("told", 3)


def test_only_what_is_severe_enough_is_written() -> None:
    """The level is the settings'."""
    log = Log()
    logging.getLogger("goclaw.x").info("calm")
    logging.getLogger("goclaw.x").warning("alarm")
    assert "calm" not in log.text
    assert "alarm" in log.text


def test_libraries_are_heard_from_warnings_on() -> None:
    """Also where we are heard in full."""
    log = Log(log_level="debug")
    for name in CHATTY:
        logging.getLogger(name).info("chatter")
        logging.getLogger(f"{name}.deeper").debug("chatter")
        logging.getLogger(name).warning("alarm")
    assert "chatter" not in log.text
    assert log.text.count("alarm") == len(CHATTY)
    Log(log_level="error")
    assert not logging.getLogger("httpx").isEnabledFor(logging.WARNING)


@pytest.mark.parametrize("form", ["console", "json"])
def test_a_line_carries_its_run(form: str) -> None:
    """Lines outside of runs carry none."""
    log = Log(log_format=form)
    token = current_trace.set(
        Trace("0123abcd", "s", "main", "chat", datetime(2026, 3, 1, tzinfo=UTC), clock=lambda: 0.0)
    )
    logging.getLogger("goclaw.x").warning("inside")
    current_trace.reset(token)
    logging.getLogger("goclaw.x").warning("outside")
    inside, outside = log.text.splitlines()
    assert "0123abcd" in inside
    assert "trace" not in outside


def leak(how: str, secret: str) -> None:
    log = logging.getLogger("goclaw.x")
    if how == "words":
        log.warning("the key is %s", secret)
    elif how == "extra":
        log.warning("a key", extra={"key": {"deep": [secret]}})
    elif how == "name":
        logging.getLogger(f"goclaw.{secret}").warning("hello")
    elif how == "structlog":
        structlog.get_logger().warning("a key", key=secret)
    elif how == "warning":
        warnings.warn(f"do not use {secret}", stacklevel=1)
    else:
        try:
            local = {"Authorization": secret}
            raise KeyError(local)
        except KeyError as error:
            if how == "traceback":
                log.exception("trouble")
            elif how == "group":
                log.warning("trouble", exc_info=ExceptionGroup("several", [error]))
            else:
                sys.excepthook(KeyError, error, error.__traceback__)


@pytest.mark.parametrize("form", ["console", "json"])
@pytest.mark.parametrize("how", ["words", "extra", "name", "structlog", "warning", "traceback", "group", "crash"])
@pytest.mark.filterwarnings("default")
def test_no_secret_is_ever_written(form: str, how: str) -> None:
    """Whoever writes it, wherever it stands, also one that became known later. (P12, S15)"""
    log = Log(log_format=form)
    log.redactor.add('later canary "quoted" \\ ü')
    leak(how, CANARY)
    leak(how, 'later canary "quoted" \\ ü')
    assert "***" in log.text
    assert "anary" not in log.text.replace("test_", "")


def test_configuring_again_replaces_what_was() -> None:
    """A line is written once."""
    Log()
    log = Log()
    logging.getLogger("goclaw.x").warning("once")
    assert log.text.count("once") == 1
    assert len([one for one in logging.getLogger().handlers if isinstance(one.formatter, Redacting)]) == 1


def test_an_odd_line_is_no_trouble() -> None:
    """Arguments that do not fit are told by logging itself, values that are no JSON are written as text."""
    log = Log(log_format="json")
    logging.getLogger("goclaw.x").warning("odd", extra={"what": object(), "half": "\ud800"})
    (line,) = log.objects()
    assert line["what"].startswith("<object")


def test_ctrl_c_is_no_crash(capsys: pytest.CaptureFixture[str]) -> None:
    """It is shown the way Python shows it."""
    log = Log()
    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert log.text == ""
    assert "KeyboardInterrupt" in capsys.readouterr().err
