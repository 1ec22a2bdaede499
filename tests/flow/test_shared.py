"""The real command on a real database: what was accepted outlives the process, one gateway at a time works on it."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.flow.process import COUNTED_2, COUNTING, PROMPT, in_terminal, over_pipes

if TYPE_CHECKING:
    from pathlib import Path

LEASE_S = 3
LONG_LEASE_S = 8  # a start on a busy machine takes less


def said(place: Path, *arguments: str, code: int = 0, **variables: Any) -> str:
    """What a command says, on one line."""
    with over_pipes(place, *arguments, **variables) as process:
        return " ".join(process.ends_with(code).split())


def test_a_chat_on_a_database_survives_its_process(tmp_path: Path, database: str) -> None:
    """Killed in the middle, the next start waits out the dead one's lease, says so, and goes on. (P1)"""
    with in_terminal(tmp_path, queue_debounce=0, postgres_dsn=database, postgres_lease=LONG_LEASE_S) as process:
        process.expect(PROMPT)
        process.type("count to 2\n")
        process.expect(COUNTING)
        process.kill()
    with in_terminal(tmp_path, queue_debounce=0, postgres_dsn=database, postgres_lease=LONG_LEASE_S) as process:
        process.expect(r"Another gateway \(.*\) works on this store; waiting until it has\s+ended")
        process.expect("Going on with 1 message from before.")
        process.expect("I counted to 2.")
        process.type("\x04")
        process.ends_with(0)
    # Files hold only what this machine is told by: no message is kept there.
    assert {path.name for path in (tmp_path / "data").iterdir()} <= {"logs", "chat_history"}


def test_a_job_on_a_database_survives_its_process(tmp_path: Path, database: str) -> None:
    """Killed, the next gateway goes on with it as soon as it holds the lease; its log is in the data directory."""
    variables = {"queue_debounce": 0, "postgres_dsn": database, "postgres_lease": LEASE_S, "cron_lease": 10}
    with in_terminal(tmp_path, **variables) as process:
        process.expect(PROMPT)
        process.type("/schedule every 1s: count to 1\n")
        process.expect("Scheduled #1: Every second")
        process.expect("I counted to 1.")
        process.kill()
    with in_terminal(tmp_path, **variables) as process:
        process.expect("I counted to 1.")
        process.type("/cron cancel 1\n")
        process.expect("Cancelled #1")
        process.type("\x04")
        process.ends_with(0)
    assert "run_succeeded" in (tmp_path / "data" / "logs" / "scheduler.log").read_text()


def test_a_gateway_that_waits_for_the_chat_runs_jobs(tmp_path: Path, database: str) -> None:
    """The one that has the chat is busy with a long job; the other runs the next, and the first says the answer."""
    variables = {"queue_debounce": 0, "postgres_dsn": database, "postgres_lease": LONG_LEASE_S, "cron_poll": 1}
    with in_terminal(tmp_path, **variables) as first:
        first.expect(PROMPT)
        first.type("/schedule every 1 hour: count to 100\n")
        first.expect("Scheduled #1")
        first.type("/cron run 1\n")
        first.expect("Job #1 runs")
        with in_terminal(tmp_path, **variables, data_dir=tmp_path / "elsewhere") as waits:
            waits.expect(r"waiting until it has\s+ended")
            first.type("/schedule every 1s: count to 2\n")
            first.expect("Scheduled #2")
            first.expect("I counted to 2.")
            waits.kill()
        first.kill()


def test_what_a_waiting_gateway_runs_is_seen_and_stopped(tmp_path: Path, database: str) -> None:
    """Its lanes are in `status` while it waits for the chat, and `stop` ends the job that it runs. (P7)"""
    variables: dict[str, Any] = {
        "queue_debounce": 0,
        "postgres_dsn": database,
        "postgres_lease": LONG_LEASE_S,
        "cron_poll": 1,
    }
    elsewhere = {**variables, "data_dir": tmp_path / "elsewhere"}
    with in_terminal(tmp_path, **variables) as first:
        first.expect(PROMPT)
        first.type("/schedule every 1 hour: count to 100\n")
        first.expect("Scheduled #1")
        first.type("/cron run 1\n")
        first.expect("Job #1 runs")
        with over_pipes(tmp_path, "run", **elsewhere) as waits:
            waits.expect("this one waits, and runs jobs meanwhile")
            first.type("/schedule every 1 hour: count to 200\n")
            first.expect("Scheduled #2")
            first.type("/cron run 2\n")
            while not (found := json.loads(said(tmp_path, "top", "--json", **elsewhere)))["running"]:
                assert found["state"] == "waiting"
            assert [lane["active"] for lane in found["lanes"] if lane["name"] == "cron"] == [1]
            assert "Stopped" in said(tmp_path, "stop", "--all", **elsewhere)
            assert json.loads(said(tmp_path, "top", "--json", **elsewhere))["running"] == []
            waits.kill()
        first.kill()


def test_a_gateway_that_ends_well_is_not_waited_for(tmp_path: Path, database: str) -> None:
    """Its lease ends with it: the next one begins at once."""
    for text in ("one", "two"):
        with over_pipes(tmp_path, postgres_dsn=database, postgres_lease=300, queue_debounce=0) as process:
            process.type(f"{text}\n")
            process.expect(f"You said: {text}")
            process.end_input()
            assert "waiting until" not in process.ends_with(0)


def test_a_frozen_gateway_stops_when_it_wakes(tmp_path: Path, database: str) -> None:
    """Frozen beyond its lease while another took over: it says why, ends, and has answered nothing twice. (R4)"""
    with in_terminal(tmp_path, queue_debounce=0, postgres_dsn=database, postgres_lease=LEASE_S) as frozen:
        frozen.expect(PROMPT)
        frozen.type("count to 4\n")
        frozen.expect(COUNTING)
        frozen.type("hello there\n")
        frozen.expect(COUNTED_2)
        frozen.signal(signal.SIGSTOP)
        with over_pipes(tmp_path, queue_debounce=0, postgres_dsn=database, postgres_lease=LEASE_S) as next_one:
            next_one.expect("You said: hello there")
            frozen.signal(signal.SIGCONT)
            assert "another gateway works on the messages now" in " ".join(frozen.ends_with(69).split())
            next_one.end_input()
            output = frozen.output + next_one.ends_with(0)
    assert output.count("I counted to 4.") == 1
    assert output.count("You said: hello there") == 1


def test_an_empty_database_is_told_upgraded_and_told_again(tmp_path: Path, empty_database: str) -> None:
    """`db status` changes nothing, `db upgrade` makes the tables, and once is enough."""
    assert "empty; the first start makes its tables" in said(tmp_path, "db", "status", postgres_dsn=empty_database)
    assert "empty; the first start makes its tables" in said(tmp_path, "db", "status", postgres_dsn=empty_database)
    assert "was at version 0 and is now at" in said(tmp_path, "db", "upgrade", postgres_dsn=empty_database)
    assert "is up to date: version" in said(tmp_path, "db", "upgrade", postgres_dsn=empty_database)
    found = json.loads(said(tmp_path, "db", "status", "--json", postgres_dsn=empty_database))
    assert (found["mode"], found["ready"], found["problems"]) == ("managed", True, [])
    assert found["counts"]["version"] == found["counts"]["newest"]


def test_the_files_tell_what_they_hold(tmp_path: Path) -> None:
    """`db status` without a database is about the directory; a missing one is no trouble and is not made."""
    assert "nothing there yet" in said(tmp_path, "db", "status")
    assert not (tmp_path / "data").exists()
    with over_pipes(tmp_path) as process:
        process.type("hello\n")
        process.end_input()
        process.ends_with(0)
    assert "1 session; messages: 0 waiting, 0 running; replies: 0 to send" in said(tmp_path, "db", "status")


def test_an_unanswered_message_moves_from_files_to_a_database(tmp_path: Path, database: str) -> None:
    """Killed on files, copied, started on the database: it goes on there, and copying again changes nothing."""
    with in_terminal(tmp_path, queue_debounce=0) as process:
        process.expect(PROMPT)
        process.type("count to 2\n")
        process.expect(COUNTING)
        process.kill()
    assert "messages 1," in said(tmp_path, "migrate", "json-to-postgres", postgres_dsn=database)
    with over_pipes(tmp_path, postgres_dsn=database) as process:
        process.end_input()
        assert "I counted to 2." in process.ends_with(0)
    again = said(tmp_path, "migrate", "json-to-postgres", postgres_dsn=database)
    assert "messages 0, replies 0" in again
    with over_pipes(tmp_path, postgres_dsn=database) as process:
        process.end_input()
        assert process.ends_with(0) == ""


def test_copying_needs_both_sides(tmp_path: Path, database: str) -> None:
    """Without a database, without a directory, or while a gateway works in it: a sentence, and nothing is changed."""
    assert "set GOCLAW_POSTGRES_DSN" in said(tmp_path, "migrate", "json-to-postgres", code=69)
    assert "does not exist" in said(tmp_path, "migrate", "json-to-postgres", code=69, postgres_dsn=database)
    assert not (tmp_path / "data").exists()
    with over_pipes(tmp_path, queue_debounce=0) as process:
        process.type("hello\n")
        process.expect("demo agent")
        told = said(tmp_path, "migrate", "json-to-postgres", code=69, postgres_dsn=database)
        assert f"is in use by process {process.popen.pid}" in told


@pytest.mark.parametrize(
    ("command", "broken"),
    [
        ((), "postgresql://goclaw:hunter2@127.0.0.1:1/goclaw"),
        ((), "hunter2"),
        (("db", "status"), "postgresql://goclaw:hunter2@nowhere.invalid/goclaw"),
        (("db", "upgrade"), "postgresql://goclaw:hunter2@[::1/goclaw"),
    ],
)
def test_a_database_that_is_not_there_is_told_without_the_password(
    tmp_path: Path, command: tuple[str, ...], broken: str
) -> None:
    """What is wrong and what to do, exit code 69, and never the password. (P12)"""
    told = said(tmp_path, *command, code=69, postgres_dsn=broken)
    assert told.startswith("error: ")
    assert "hunter2" not in told


def test_a_database_that_does_not_exist_is_named(tmp_path: Path, database: str) -> None:
    """The name of the database is in the sentence."""
    parts = urlsplit(database)
    missing = urlunsplit(parts._replace(path="/no_such_database"))
    assert "no_such_database" in said(tmp_path, code=69, postgres_dsn=missing)
