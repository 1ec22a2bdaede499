"""The command as people start it: a real process over pipes and in a real terminal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.flow.process import (
    COMMAND,
    COUNTED_2,
    COUNTED_3,
    COUNTED_9,
    COUNTING,
    DEADLINE_S,
    PROMPT,
    environment,
    in_terminal,
    over_pipes,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_the_first_answer_over_a_pipe(tmp_path: Path) -> None:
    """A line in, an answer out, nothing else: no prompt, no work in progress; the end of input ends it well. (P6)"""
    with over_pipes(tmp_path, queue_debounce=0) as process:
        process.type("hello\n")
        process.expect("I am the demo agent")
        process.end_input()
        output = process.ends_with(0)
        assert output.startswith("I am the demo agent")
        assert "\x1b" not in output


def test_the_end_of_the_input_waits_for_the_answers(tmp_path: Path) -> None:
    """Whatever was piped in is answered before the process ends, in order, also a last line without its end. (P6)"""
    with over_pipes(tmp_path, queue_debounce=0) as process:
        process.type("count to 2\ncount to 1\nfail")
        process.end_input()
        lines = process.ends_with(0).splitlines()
        assert lines == [
            "I counted to 2.",
            "I counted to 1.",
            '"fail" did not work: the demo agent was asked to fail, and did',
        ]


@pytest.mark.parametrize("input_", ["/dev/null", "closed"])
def test_without_input_there_is_nothing_to_do(tmp_path: Path, input_: str) -> None:
    """Started without anything to read it ends at once and well."""
    redirect = "<&-" if input_ == "closed" else f"<{input_}"
    ended = subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" {redirect}', COMMAND],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


def test_nobody_to_read_the_answers_is_no_crash(tmp_path: Path) -> None:
    """`goclaw | head -1` and a closed output end without a traceback."""
    ended = subprocess.run(
        ["/bin/sh", "-c", 'printf "one\\n" | "$0" >&-', COMMAND],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert ended.returncode == 0
    assert "Traceback" not in ended.stderr


def test_lines_that_are_piped_in_together_are_one_turn(tmp_path: Path) -> None:
    """Quick lines are answered once, with all of them in it; a stop among them is seen first. (L9, L11)"""
    with over_pipes(tmp_path) as process:
        process.type("never\n/stop\none\ntwo\n")
        process.end_input()
        output = process.ends_with(0)
        assert output.startswith("Stopped 1 waiting message.\nYou said: one\n")
        assert "You said: two" in output
        assert "never" not in output


def test_a_number_of_slots_is_taken_from_the_environment(tmp_path: Path) -> None:
    """What is set is what the status shows. (L1)"""
    with over_pipes(tmp_path, lane_main=7) as process:
        process.type("/status\n")
        process.expect(r"main +0 of 7 running")
        process.end_input()
        process.ends_with(0)


@pytest.mark.parametrize("value", ["0", "two"])
def test_a_bad_setting_is_named_and_nothing_starts(tmp_path: Path, value: str) -> None:
    """The variable, its value and what was expected, and the exit code for bad settings. (L1)"""
    with over_pipes(tmp_path, lane_main=value) as process:
        output = process.ends_with(78)
        assert f'GOCLAW_LANE_MAIN="{value}": expected a whole number' in output


def test_a_first_chat_in_a_terminal(tmp_path: Path) -> None:
    """Welcome, prompt, answer, prompt; Ctrl-D at the prompt leaves with a word and a good exit code."""
    with in_terminal(tmp_path, queue_debounce=0) as process:
        process.expect("Ctrl-D leaves.\n" + PROMPT)
        process.type("hello\n")
        process.expect("I am the demo agent")
        process.expect("\n" + PROMPT)
        process.type("\x04")
        process.expect("Bye.\n")
        process.ends_with(0)


def test_ctrl_c_stops_what_runs_and_leaves_when_nothing_does(tmp_path: Path) -> None:
    """The first Ctrl-C ends the count, the next message is answered, Ctrl-C at the prompt leaves. (P7, lesson 21)"""
    with in_terminal(tmp_path, queue_debounce=0) as process:
        process.expect(PROMPT)
        process.type("count to 100\n")
        process.expect(COUNTING)
        process.expect(COUNTED_2)
        process.type("\x03")
        process.expect("Stopped 1 run.\n" + PROMPT)
        process.type("count to 1\n")
        process.expect("I counted to 1.\n" + PROMPT)
        process.type("\x03")
        process.expect("Bye.\n")
        output = process.ends_with(0)
        assert "I counted to 100" not in output
        assert COUNTED_9 not in output


def test_ctrl_c_reaches_what_only_waits(tmp_path: Path) -> None:
    """A line that was just entered and has not started is taken back. (L11, lesson 18)"""
    with in_terminal(tmp_path, queue_debounce=20_000) as process:
        process.expect(r"Ctrl-D\s+leaves")
        process.expect(PROMPT)
        process.type("hello\n")
        process.expect("hello\n" + PROMPT)
        process.type("\x03")
        process.expect("Stopped 1 waiting message.")
        process.type("\x03")
        process.ends_with(0)


def test_helpers_are_stopped_with_the_run_they_work_for(tmp_path: Path) -> None:
    """Ctrl-C while two helpers work ends all three. (lesson 22)"""
    with in_terminal(tmp_path, queue_debounce=0) as process:
        process.expect(PROMPT)
        process.type("ask helpers about tea\n")
        process.expect("asking two helpers")
        process.type("\x03")
        process.expect("Stopped 1 run and 2 helpers.")
        process.type("\x04")
        process.ends_with(0)


def test_a_stop_typed_while_it_counts_is_answered_in_between(tmp_path: Path) -> None:
    """/stop works while the only slot is taken. (Q2, P7)"""
    with in_terminal(tmp_path, queue_debounce=0, lane_main=1) as process:
        process.expect(PROMPT)
        process.type("count to 100\n")
        process.expect(COUNTING)
        process.type("/STOP \n")
        process.expect("Stopped 1 run.")
        process.type("\x04")
        process.ends_with(0)


def test_a_term_signal_leaves_within_the_grace(tmp_path: Path) -> None:
    """A service manager's stop gives the run its grace and no more, and is a good end."""
    with in_terminal(tmp_path, queue_debounce=0, shutdown_grace=1) as process:
        process.expect(PROMPT)
        process.type("count to 1000\n")
        process.expect(COUNTING)
        process.signal(signal.SIGTERM)
        process.expect("Bye.\n")
        output = process.ends_with(0)
        assert COUNTED_9 not in output


def test_asking_twice_ends_at_once(tmp_path: Path) -> None:
    """The second request to leave does not wait for the grace; still no traceback."""
    with in_terminal(tmp_path, queue_debounce=0, shutdown_grace=600) as process:
        process.expect(PROMPT)
        process.type("count to 1000\n")
        process.expect(COUNTING)
        process.signal(signal.SIGTERM)
        process.expect(COUNTED_3)  # it goes on for now
        process.signal(signal.SIGTERM)
        process.ends_with(0)


def test_a_reader_that_stopped_reading_does_not_keep_the_process(tmp_path: Path) -> None:
    """Asked twice to leave while its output is stuck (a full pipe, Ctrl-S), it leaves."""
    with over_pipes(tmp_path, queue_debounce=300, shutdown_grace=1) as process:  # one long answer
        for _ in range(6):
            process.type("x" * 50_000 + "\n")
        process.expect("x")  # and read no more of it
        process.signal(signal.SIGTERM)
        process.signal(signal.SIGINT)  # two equal signals at once could count as one
        assert process.popen.wait(DEADLINE_S) == 0


def test_the_terminal_is_left_as_it_was(tmp_path: Path) -> None:
    """Echo, line editing and signals of the terminal are the same before and after."""
    with in_terminal(tmp_path, queue_debounce=0) as process:
        before = process.terminal_settings()
        process.expect(PROMPT)
        process.type("count to 100\n")
        process.expect(COUNTING)
        process.type("\x03")
        process.expect("Stopped")
        process.type("\x03")
        process.expect("Bye")
        assert process.terminal_settings() == before
        process.ends_with(0)


def test_odd_input_is_answered_like_any_other(tmp_path: Path) -> None:
    """Broken UTF-8, NULs, escape sequences and an endless line neither crash it nor reach the screen. (P6)"""
    with over_pipes(tmp_path, queue_debounce=0) as process:
        os.write(process._writing, b"caf\xe9 \x00 \x1b[2J\n")
        process.expect("You said: caf\ufffd")
        for _ in range(40):
            process.type("y" * 50_000)
        process.type("\nhello\n")
        process.expect("a line of more than 1,000,000 characters was skipped")
        process.expect("I am the demo agent")
        process.end_input()
        assert "\x1b" not in process.ends_with(0)


def test_a_job_answers_at_the_prompt_and_outlives_a_kill(tmp_path: Path) -> None:
    """Its answers come while nobody types; killed and started again it goes on; cancelled it is gone. (L14, A1)"""
    with in_terminal(tmp_path, queue_debounce=0) as process:
        process.expect(PROMPT)
        process.type("/schedule every 1s: count to 1\n")
        process.expect("Scheduled #1: Every second")
        process.expect("I counted to 1.\n" + PROMPT)
        process.expect("I counted to 1.\n" + PROMPT)
        process.kill()
    with in_terminal(tmp_path, queue_debounce=0) as process:
        process.expect("I counted to 1.\n" + PROMPT)
        process.type("/cron\n")
        process.expect("#1 Every second; ")
        process.type("/cron cancel 1\n")
        process.expect("Cancelled #1")
        process.type("/cron\n")
        process.expect("Nothing is scheduled.")
        process.type("\x04")
        process.ends_with(0)
    log = tmp_path / "data" / "logs" / "scheduler.log"
    events = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert {"run_started", "run_succeeded"} <= set(events)
    assert log.stat().st_mode & 0o777 == 0o600


def test_leaving_with_jobs_pending_is_at_once(tmp_path: Path) -> None:
    """The end of the input ends it although something is scheduled, which is there the next time."""
    with over_pipes(tmp_path) as process:
        process.type("/schedule in 1 hour: tea\n")
        process.end_input()
        assert process.ends_with(0).startswith("Scheduled #1: Once, on ")
    with over_pipes(tmp_path) as process:
        process.type("/cron\n")
        process.end_input()
        assert process.ends_with(0).startswith("#1 Once, on ")


def test_ctrl_c_at_the_prompt_leaves_while_a_job_runs(tmp_path: Path) -> None:
    """A run of a job is not the chat's: nothing of the chat is to be stopped, so Ctrl-C leaves, and the job stays."""
    with in_terminal(tmp_path, queue_debounce=0, shutdown_grace=0, cron_lease=10) as process:
        process.expect(PROMPT)
        process.type("/schedule every 1s: count to 1000\n")
        process.expect("takes it back.")
        process.expect_status(r"cron +1 of 1 running")
        process.type("\x03")
        process.expect("Bye.\n")
        output = process.ends_with(0)
        assert "Stopped" not in output
    assert "#1 Every second" in said_by(tmp_path, "/cron\n")


def said_by(place: Path, text: str) -> str:
    with over_pipes(place, shutdown_grace=0) as process:
        process.type(text)
        process.end_input()
        return process.ends_with(0)
