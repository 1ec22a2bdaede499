"""The command changes what belongs to its whole process; here that is the process of the tests."""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING

import pytest
import structlog

from gateway.logs import CHATTY, Redacting

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    before = root.level, sys.excepthook, {name: logging.getLogger(name).level for name in CHATTY}
    yield
    for one in [one for one in root.handlers if isinstance(one.formatter, Redacting)]:
        root.removeHandler(one)
        one.close()
    root.setLevel(before[0])
    sys.excepthook = before[1]
    for name, level in before[2].items():
        logging.getLogger(name).setLevel(level)
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty directory to start goclaw in, in an environment that says nothing about it."""
    for name in os.environ:
        if name.startswith("GOCLAW_") or name in {"NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS"}:
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
