"""The real command and its directory: what was accepted outlives the process, what cannot be used is refused."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import pytest

from tests.flow.process import COUNTED_2, COUNTING, PROMPT, in_terminal, over_pipes

if TYPE_CHECKING:
    from pathlib import Path


def test_a_killed_chat_goes_on_with_what_was_asked(tmp_path: Path) -> None:
    """Killed in the middle of an answer, the next start says that it goes on, and answers. (P1)"""
    with in_terminal(tmp_path, queue_debounce=0) as process:
        process.expect(PROMPT)
        process.type("count to 2\n")
        process.expect(COUNTING)
        process.kill()
    with in_terminal(tmp_path, queue_debounce=0) as process:
        process.expect("Going on with 1 message from before.")
        process.expect("I counted to 2.")
        process.type("\x04")
        process.ends_with(0)
    with in_terminal(tmp_path, queue_debounce=0) as process:
        process.expect(PROMPT)
        process.type("\x04")
        output = process.ends_with(0)
        assert "counted" not in output
        assert "Going on" not in output


def test_a_message_that_dies_with_the_process_three_times_is_set_aside(tmp_path: Path) -> None:
    """The fourth start does not try again, and says so; what was behind it is answered. (R16, P6)"""
    with in_terminal(tmp_path, queue_debounce=0) as process:
        process.expect(PROMPT)
        process.type("count to 900\n")
        process.expect(COUNTING)
        process.type("behind it\n")
        process.expect(COUNTED_2)
        process.kill()
    for _ in range(2):
        with in_terminal(tmp_path, queue_debounce=0) as process:
            process.expect(COUNTING)
            process.kill()
    with over_pipes(tmp_path, queue_debounce=0) as process:
        process.end_input()
        output = process.ends_with(0)
        assert 'Set aside after 3 attempts that never finished: "count to 900".' in output
        assert "You said: behind it" in output


def test_a_stopped_message_stays_stopped_after_a_kill(tmp_path: Path) -> None:
    """The answer to the stop was seen, so the next start has nothing to go on with. (P7)"""
    with in_terminal(tmp_path, queue_debounce=0) as process:
        process.expect(PROMPT)
        process.type("count to 900\n")
        process.expect(COUNTING)
        process.type("/stop\n")
        process.expect("Stopped 1 run.")
        process.kill()
    with over_pipes(tmp_path) as process:
        process.end_input()
        assert process.ends_with(0) in ("", "Stopped 1 run.\n")  # at least once


def test_a_directory_in_use_is_refused_and_its_user_named(tmp_path: Path) -> None:
    """A second gateway says who works there and what can be done; the first one does not notice. (J2, S20)"""
    with over_pipes(tmp_path, queue_debounce=0) as first:
        first.type("hello\n")
        first.expect("demo agent")
        with over_pipes(tmp_path, "run") as second:
            said = " ".join(second.ends_with(69).split())
            assert f"is in use by process {first.popen.pid}, started " in said
            assert "GOCLAW_DATA_DIR" in said
        first.type("still there\n")
        first.expect("You said: still there")
        first.end_input()
        first.ends_with(0)


@pytest.mark.parametrize("directory", ["a file", "/proc/goclaw", "~nobody-like-this/data"])
def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path, directory: str) -> None:
    """What is wrong, with which directory, and the variable to change."""
    (tmp_path / "a file").write_text("mine")
    with over_pipes(tmp_path, data_dir=directory) as process:
        said = " ".join(process.ends_with(69).split())
        assert directory in said
        assert "GOCLAW_DATA_DIR" in said
    assert (tmp_path / "a file").read_text() == "mine"


def test_a_directory_of_a_newer_goclaw_is_refused_and_left_alone(tmp_path: Path) -> None:
    """What this version cannot read it does not touch."""
    with over_pipes(tmp_path) as process:
        process.end_input()
        process.ends_with(0)
    (tmp_path / "data" / "snapshot-9.json").write_bytes(future_snapshot())
    files = [path for path in (tmp_path / "data").rglob("*") if path.is_file() and path.name != "LOCK"]
    before = {path: path.read_bytes() for path in files}
    with over_pipes(tmp_path) as process:
        assert "written by a newer goclaw" in " ".join(process.ends_with(69).split())
    assert all(path.read_bytes() == content for path, content in before.items())


def future_snapshot() -> bytes:
    body = b'{"goclaw":"snapshot","schema":999,"generation":9,"seq":0,"rows":[\n],"next":1,"count":0'
    return body + b',"crc":"%08x"}\n' % zlib.crc32(body)
