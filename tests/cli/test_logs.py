"""`goclaw logs`: everything that was written down, by time, in words; followed over a file that begins anew."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import pytest

from gateway.cli.logs import Followed, in_words, newest
from gateway.loading import load_settings
from gateway.logs import configure
from gateway.private_file import PrivateFile
from tests.cli.world import Cli

if TYPE_CHECKING:
    from pathlib import Path

CANARY = "canary-canary-canary"


def write(path: Path, *lines: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.writelines(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)


def logged(at: str, event: str, level: str = "info", **more: Any) -> dict[str, Any]:
    return {"timestamp": at, "level": level, "event": event, "logger": "goclaw.test", **more}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    logs = tmp_path / "data" / "logs"
    write(
        logs / "goclaw.log", logged("2030-01-01T10:00:01Z", "first"), "torn {", logged("2030-01-01T10:00:04Z", "last")
    )
    write(
        logs / "scheduler.log",
        {
            "timestamp": "2030-01-01T10:00:02Z",
            "level": "warning",
            "event": "run_failed",
            "schedule_id": 7,
            "trigger_id": "t",
            "trace_id": "x",
            "error": "no \x1b[31mluck",
        },
    )
    trace = {"trace": "x", "kind": "chat", "session": "default:main:http::main::0", "at": "2030-01-01T10:00:03Z"}
    write(logs / "traces.jsonl", {**trace, "status": "done", "took_s": 75.4, "spans": []})
    return logs


def test_all_files_are_read_as_one_by_time(directory: Path, tmp_path: Path) -> None:
    """A line each, in words, harmless for a terminal; what a crash has torn is passed over."""
    lines = Cli(data_dir=tmp_path / "data")("logs").out.splitlines()
    assert [line[15:] for line in lines] == [
        "info    test: first",
        "warning cron: run failed (job #7): error no [31mluck",
        "info    chat: done in 1 min 15 s, default:main:http::main::0",
        "info    test: last",
    ]


def test_what_is_asked_for_is_shown(directory: Path, tmp_path: Path) -> None:
    """The last so many, and those that are severe enough; as JSON every fact of them."""
    cli = Cli(data_dir=tmp_path / "data")
    assert [line[23:] for line in cli("logs", "-n", "1").out.splitlines()] == ["test: last"]
    assert len(cli("logs", "--level", "warning").out.splitlines()) == 1
    facts = [json.loads(line) for line in cli("logs", "--json").out.splitlines()]
    assert [one["source"] for one in facts] == ["goclaw", "scheduler", "traces", "goclaw"]
    assert facts[2]["facts"]["spans"] == []


def test_nothing_to_read_is_said(tmp_path: Path) -> None:
    """A sentence, where it would be, and what writes it."""
    ended = Cli(data_dir=tmp_path / "data")("logs")
    assert ended.out == ""
    assert "There is nothing to read in" in ended.err
    assert "goclaw run" in ended.err


def test_following_goes_on_over_a_file_that_begins_anew(tmp_path: Path) -> None:
    """Every line once and in order, whatever is written between two looks, however often the file makes room."""
    path = tmp_path / "logs" / "goclaw.log"
    file = PrivateFile(path, largest=2_000)
    seen: list[int] = []
    followed = Followed(path)
    assert newest([followed], 10, "info") == []
    for number in range(200):
        file.write(json.dumps(logged("2030-01-01T10:00:00Z", "said", number=number)))
        if number % 7 == 0:  # less than what makes room, as often as it is looked
            seen += [entry.facts["number"] for entry in followed.more()]
    seen += [entry.facts["number"] for entry in followed.more()]
    followed.close()
    file.close()
    assert seen == list(range(200))
    assert path.with_name("goclaw.log.1").exists()


def test_half_a_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    """What is being written right now is not taken for a torn line."""
    path = tmp_path / "logs" / "goclaw.log"
    whole = json.dumps(logged("2030-01-01T10:00:00Z", "said"))
    write(path, logged("2030-01-01T10:00:00Z", "before"))
    followed = Followed(path)
    assert len(followed.last(10, "info")) == 1
    with path.open("a") as file:
        file.write(whole[:20])
        file.flush()
        assert list(followed.more()) == []
        file.write(whole[20:] + "\n")
    assert [entry.facts["event"] for entry in followed.more()] == ["said"]
    followed.close()


def test_what_a_gateway_logs_is_kept_in_a_file_without_secrets(tmp_path: Path, capsys: Any) -> None:
    """From information on, as an object a line, for its owner alone; the terminal hears what the settings want."""
    settings = load_settings({"GOCLAW_ANTHROPIC_API_KEY": CANARY}, None).settings
    logs = tmp_path / "data" / "logs"
    configure(settings, directory=logs)
    logging.getLogger("goclaw.test").info("a story with %s", CANARY)
    try:
        raise RuntimeError(f"failed with {CANARY}")
    except RuntimeError:
        logging.getLogger("goclaw.test").exception("it failed")
    path = logs / "goclaw.log"
    assert path.stat().st_mode & 0o777 == 0o600
    story, failure = [json.loads(line) for line in path.read_text().splitlines()]
    assert (story["event"], story["level"]) == ("a story with ***", "info")
    assert "RuntimeError: failed with ***" in failure["exception"]
    said = capsys.readouterr().err
    assert "a story" not in said
    assert "it failed" in said
    followed = Followed(path)
    shown = "\n".join(in_words(entry) for entry in followed.last(10, "info"))
    followed.close()
    assert "test: it failed\n    Traceback" in shown
    assert CANARY not in shown + said
