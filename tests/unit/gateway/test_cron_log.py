"""The log of cron: one JSON object per line, readable by its owner only, and never a reason for cron to stumble."""

from __future__ import annotations

import json
import logging
import stat
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from gateway.cron_log import CronLog
from gateway.private_file import OLD_FILES
from store.jobs import Claim, Job, NewJob, Timing, Trigger, TriggerKind

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

NOW = datetime(2026, 3, 2, 12, 0, 0, 5, tzinfo=UTC)
SPEC = NewJob("u1", "default", "main", "do it", Timing("every", every=timedelta(hours=1)))
TRIGGER = Trigger("t1", "default", 17, "main", TriggerKind.SCHEDULE, NOW, NOW, NOW, trace="abc")
CLAIM = Claim(TRIGGER, Job(17, SPEC, NOW, NOW), NOW)


def open_log(place: Path, **options: Any) -> CronLog:
    return CronLog(place / "data" / "logs", lambda: NOW, **options)


def lines(place: Path, name: str = "scheduler.log") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (place / "data" / "logs" / name).read_text().splitlines()]


def test_a_line_names_the_event_and_what_it_is_about(tmp_path: Path) -> None:
    """Time, level, event and the three ids, then the facts. (G18, G19)"""
    with open_log(tmp_path) as log:
        log("run_started", claim=CLAIM, run_id="r1", attempt=1)
        log("clock_jumped", level="warning", seconds=3.5)
    started, jumped = lines(tmp_path)
    assert started == {
        "timestamp": "2026-03-02T12:00:00.000005Z",
        "level": "info",
        "event": "run_started",
        "trigger_id": "t1",
        "schedule_id": 17,
        "trace_id": "abc",
        "tenant": "default",
        "run_id": "r1",
        "attempt": 1,
    }
    assert (jumped["trigger_id"], jumped["level"], jumped["seconds"]) == (None, "warning", 3.5)


def test_nothing_is_made_before_there_is_something_to_write(tmp_path: Path) -> None:
    """A gateway that runs no job leaves no trace of a log."""
    with open_log(tmp_path):
        pass
    assert not (tmp_path / "data").exists()


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    """Directories 0700, files 0600: jobs are private."""
    with open_log(tmp_path) as log:
        log("run_started")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "data").rglob("*")}
    assert modes == {"logs": 0o700, "scheduler.log": 0o600}
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700


def test_whatever_is_told_is_one_line(tmp_path: Path) -> None:
    """Line ends, percent signs, half characters and odd values stay inside their line."""
    facts: dict[str, Any] = {"error": "a\nb\r\x85\u2028 100% %s", "half": "\ud800", "when": NOW, "what": object()}
    with open_log(tmp_path) as log:
        log("check_failed", **facts)
    (first,) = lines(tmp_path)
    assert first["error"] == facts["error"]
    assert log.dropped == 0


def test_an_old_file_makes_room(tmp_path: Path) -> None:
    """So many old files are kept and no more; all of them are private."""
    with open_log(tmp_path, largest=500) as log:
        for number in range(100):
            log("run_started", claim=CLAIM, number=number)
    files = sorted((tmp_path / "data" / "logs").iterdir())
    assert len(files) == OLD_FILES + 1
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert all(file.stat().st_size <= 500 for file in files)
    assert lines(tmp_path)[-1]["number"] == 99


def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    """A restart appends."""
    for number in range(2):
        with open_log(tmp_path) as log:
            log("run_started", number=number)
    assert [line["number"] for line in lines(tmp_path)] == [0, 1]


def test_a_log_that_cannot_be_written_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nothing is raised, nothing is printed; the lines are counted, and come again when the disk does."""
    (tmp_path / "data").write_text("a file where the directory should be")
    with open_log(tmp_path) as log:
        for _ in range(3):
            log("run_started")
        assert log.dropped == 3
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert "scheduler.log cannot be written" in caplog.text
        (tmp_path / "data").unlink()
        log("run_started")
        assert (log.dropped, len(lines(tmp_path))) == (3, 1)
    assert capfd.readouterr() == ("", "")


def test_a_full_disk_is_no_trouble_for_cron(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Writing fails after the file was opened: dropped and counted."""
    (tmp_path / "data" / "logs").mkdir(parents=True)
    (tmp_path / "data" / "logs" / "scheduler.log").symlink_to("/dev/full")
    with open_log(tmp_path) as log:
        log("run_started")
        log("run_started")
        assert log.dropped == 2


def test_what_needs_attention_goes_to_the_ordinary_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Warnings and errors, in words, and nothing else."""
    caplog.set_level(logging.DEBUG)
    with open_log(tmp_path) as log:
        log("run_started", claim=CLAIM)
        log("lease_lost", level="warning", claim=CLAIM)
        log("check_failed", level="error", error="100% full", reason="")
    assert [(one.name, one.levelname, one.getMessage()) for one in caplog.records] == [
        ("goclaw.cron", "WARNING", "lease lost (job #17)"),
        ("goclaw.cron", "ERROR", "check failed: 100% full"),
    ]
