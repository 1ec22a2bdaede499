"""Nonsense ends in one clear sentence on stderr and an exit code that means it; nothing is changed, nothing hangs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.world import Cli, sentences

if TYPE_CHECKING:
    from pathlib import Path

FAILED, USAGE, UNAVAILABLE, CONFIG = 1, 2, 69, 78
LONG = "x" * 20_000


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    return Cli(data_dir=tmp_path_factory.mktemp("nonsense") / "data", port=0)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("cron", "add"), USAGE, "say when"),
        (("cron", "add", ""), USAGE, "there is no message"),
        (("cron", "add", "every wekday at 9am: hello"), USAGE, "wekday"),
        (("cron", "add", "every day", ""), USAGE, "the message is empty"),
        (("cron", "add", "every day", "   "), USAGE, "the message is empty"),
        (("cron", "add", "every day", LONG), USAGE, "20,000 characters"),
        (("cron", "add", "every day at 9am"), USAGE, "no message"),
        (("cron", "add", "every day", "hello", "--every", "5m"), USAGE, "more than once when"),
        (("cron", "add", "hello", "--every", "5m", "--cron", "* * * * *"), USAGE, "more than once when"),
        (("cron", "add", "hello", "--every", "soon"), USAGE, "soon"),
        (("cron", "add", "hello", "--cron", "99 * * * *"), USAGE, "99"),
        (("cron", "add", "hello", "--at", "2001-01-01 12:00"), USAGE, "past"),
        (("cron", "add", "hello", "--at", "never"), USAGE, "'never' is no time"),
        (("cron", "add", "every day", "hello", "--tz", "Europe/Berln"), USAGE, "did you mean Europe/Berlin?"),
        (("cron", "add", "every day", "hello", "--agent", "nobody"), USAGE, 'there is no agent "nobody"'),
        (("cron", "add", "every day", "hello", "--retries", "many"), USAGE, "retries"),
        (("cron", "add", "every day", "hello", "--overlap", "maybe"), USAGE, "skip"),
        (("cron", "add", "every day", "hello", "--deliver-to", "nowhere"), FAILED, "no session"),
        (("cron", "next", "someday"), USAGE, "unrecognised schedule phrase"),
        (("cron", "next", "every day", "--tz", "Nowhere/City"), USAGE, "no time zone"),
        (("cron", "next", "every day", "--count", "0"), USAGE, "count"),
        (("cron", "next", "99"), FAILED, "there is no schedule 99"),
        (("cron", "show", "abc"), USAGE, "'abc' is no number of a schedule"),
        (("cron", "show", "0"), USAGE, "no number"),
        (("cron", "show", "99999999999999999999"), USAGE, "no number"),
        (("cron", "show", "99"), FAILED, "there is no schedule 99"),
        (("cron", "edit", "99", "--name", "x"), FAILED, "there is no schedule 99"),
        (("cron", "edit", "99"), USAGE, "nothing to change"),
        (("cron", "pause", "99"), FAILED, "there is no schedule 99"),
        (("cron", "pause", "99", "--until", "2001-01-01"), USAGE, "past"),
        (("cron", "resume", "99"), FAILED, "there is no schedule 99"),
        (("cron", "run", "99"), FAILED, "there is no schedule 99"),
        (("cron", "rm", "99", "--yes"), FAILED, "there is no schedule 99"),
        (("cron", "rm"), USAGE, "Missing argument"),
        (("cron", "why", "99"), FAILED, "there is no schedule 99"),
        (("cron", "runs", "99"), FAILED, "there is no schedule 99"),
        (("cron", "runs", "--since", "yesterday"), USAGE, "no time"),
        (("cron", "runs", "--output", "nothing"), FAILED, "no run"),
        (("send", ""), USAGE, "the message is empty"),
        (("send", "x" * 200_000), USAGE, "200,000 characters"),
        (("send", "hello", "--agent", "nobody"), USAGE, 'there is no agent "nobody"'),
        (("send", "hello", "--wait", "soon"), USAGE, "wait"),
        (("stop", "nowhere"), FAILED, "no session"),
        (("stop", "x", "--all"), USAGE, "--all"),
        (("sessions", "show", "nowhere"), FAILED, "no session"),
        (("sessions", "show", "default:main:http::new::0"), FAILED, "no session"),
        (("sessions", "clear", "nowhere", "--yes"), FAILED, "no session"),
        (("lanes", "set", "nowhere", "3"), FAILED, "no lane"),
        (("lanes", "set", "main", "0"), USAGE, "limit"),
        (("token", "create", ""), USAGE, "the name is empty"),
        (("token", "create", "x", "--scope", "everything"), USAGE, '"everything" is no scope'),
        (("token", "create", "x", "--expires", "2001-01-01"), USAGE, "past"),
        (("token", "create", "x", "--tenant", "nobody"), FAILED, "no tenant"),
        (("token", "revoke", "gck_nothing/../x"), FAILED, "nothing of this name"),
        (("token", "revoke", "gck_nothing"), FAILED, "no token"),
        (("pair", "approve", "hello"), USAGE, "no pairing code"),
        (("pair", "approve", "N0TH1NGX"), FAILED, "no stranger with this code"),
        (("pair", "approve", "N0TH1NGX", "--tenant", "nobody"), FAILED, "no tenant"),
        (("pair", "deny", "N0TH1NGX"), FAILED, "no stranger with this code"),
        (("pair", "deny", "0123456789abcdef"), FAILED, "no stranger"),
        (("pair", "rm", "0123456789abcdef"), FAILED, "no pairing"),
        (("tenant", "add", "A B"), USAGE, "no id of a tenant"),
        (("tenant", "add", "default"), FAILED, "already"),
        (("tenant", "add", "acme", "--tz", "Nowhere"), USAGE, "no time zone"),
        (("tenant", "disable", "nobody"), FAILED, "no tenant"),
        (("tenant", "rm", "nobody", "--yes"), FAILED, "no tenant"),
        (("tenant", "rm", "default", "--yes"), FAILED, "default"),
        (("logs", "--level", "loud"), USAGE, "level"),
        (("db", "upgrade"), UNAVAILABLE, "GOCLAW_POSTGRES_DSN"),
        (("send", "half \udcff a word"), USAGE, "no text"),
        (("send", "hello", "--chat", "\udcff"), USAGE, "no text"),
        (("cron", "add", "every day at 9am: \udcff"), USAGE, "no text"),
        (("cron", "add", "every day", "hello", "--key", "täglich"), USAGE, "Idempotency-Key"),
        (("token", "revoke", "\udcff"), USAGE, "no text"),
        (("statu",), USAGE, "Did you mean 'status'?"),
        (("cron", "lst"), USAGE, "Did you mean 'list'?"),
    ],
    ids=lambda one: " ".join(one)[:60] if isinstance(one, tuple) else "",
)
def test_nonsense_ends_in_a_sentence(cli: Cli, arguments: tuple[str, ...], code: int, says: str) -> None:
    """What was wrong, once; nothing on stdout; exit code 2 for what was typed, 1 for what is not there."""
    ended = cli(*arguments, code=code)
    assert ended.out == ""
    (sentence,) = sentences(ended.err)
    assert says in sentence
    assert len(sentence) < 300


def test_what_is_read_and_no_text_is_refused(cli: Cli) -> None:
    """A picture in a pipe, say: a sentence instead of a crash, and nothing is handed in."""
    assert "no text" in cli("send", "-", stdin=b"\x89PNG\xff\xfe", code=USAGE).err


def test_a_bad_phrase_is_answered_with_those_that_would_do(cli: Cli) -> None:
    """In a request to the API as in one that needs none."""
    for arguments in (("cron", "next", "someday"), ("cron", "add", "someday", "hello")):
        assert "every weekday [at HH:MM]" in cli(*arguments, code=USAGE).err


def test_bad_settings_end_every_command(tmp_path: Path) -> None:
    """Exit code 78, whatever was asked for."""
    cli = Cli(lane_main="zero")
    for arguments in (("status",), ("cron", "list"), ("send", "hello"), ("logs",), ("cron", "next", "every day")):
        assert "GOCLAW_LANE_MAIN" in cli(*arguments, code=CONFIG).err


def test_bad_agents_end_every_command(tmp_path: Path) -> None:
    """Exit code 78 and the line."""
    (tmp_path / "agents.toml").write_text("[agents.main]\nbackend = 'none'\n")
    assert "agents.toml" in Cli(data_dir=tmp_path / "data")("cron", "list", code=CONFIG).err


def test_a_directory_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    """Exit code 69, and which variable names another one."""
    (tmp_path / "file").write_text("")
    assert "GOCLAW_DATA_DIR" in Cli(data_dir=tmp_path / "file")("cron", "list", code=UNAVAILABLE).err


def test_a_database_that_is_not_there_is_said(tmp_path: Path) -> None:
    """Exit code 69, without the password."""
    dsn = "postgresql://goclaw:hunter2@127.0.0.1:1/goclaw"
    ended = Cli(data_dir=tmp_path / "data", postgres_dsn=dsn)("cron", "list", code=UNAVAILABLE)
    assert "127.0.0.1" in ended.err
    assert "hunter2" not in ended.err
