"""The system itself refuses to write: told, nothing lost, and it goes on when there is room."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from store.files import read_json

if TYPE_CHECKING:
    from collections.abc import Mapping


def run_on_a_small_disk(place: Path) -> Mapping[str, object]:
    command = [sys.executable, "-m", "tests.faults.small_disk", str(place)]
    root = Path(__file__).parents[2]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=root)
    assert ended.returncode == 0, ended.stderr
    told: Mapping[str, object] = json.loads(ended.stdout)
    return told


def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    """A real failing write, in the middle of a line: the file ends where it did, and later lines follow. (R9)"""
    told = run_on_a_small_disk(tmp_path)
    assert told["kept"]
    assert told["readable"] == told["kept"]
    assert told["after"] == len(read_json(tmp_path).tables.messages.rows)
    assert told["after"] == int(str(told["kept"])) + 1
    refused = told["refused"]
    assert isinstance(refused, list)
    assert len(refused) == 3
    assert all(os.strerror(errno.EFBIG) in text and "Free some space" in text for text in refused)
    assert read_json(tmp_path).findings == ()
