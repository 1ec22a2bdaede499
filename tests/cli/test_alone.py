"""Without a gateway the same commands work on the store, in their own process."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from gateway.settings import Settings
from gateway.variables import variables
from tests.cli.world import Cli, strangers

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(data_dir=tmp_path / "data", port=0, queue_debounce=0)


def test_a_phrase_is_explained_without_a_gateway_and_without_a_store(tmp_path: Path) -> None:
    """`cron next` tells the next times, and makes nothing; not even a directory that cannot be used stops it."""
    (tmp_path / "file").write_text("")
    cli = Cli(data_dir=tmp_path / "file")
    ended = cli("cron", "next", "every weekday at 9am", "--tz", "Europe/Berlin", "--count", "5")
    lines = ended.out.splitlines()
    assert lines[0] == "At 09:00, Monday to Friday (Europe/Berlin)"
    assert len(lines) == 2 + 5
    assert all(" 09:00  CE" in line for line in lines[2:])
    assert ended.err == ""
    found = cli("cron", "next", "every weekday at 9am", "--tz", "Europe/Berlin", "-n", "3", "--json").json()
    assert (found["kind"], found["zone"], found["recurring"], len(found["next_fires"])) == (
        "cron",
        "Europe/Berlin",
        True,
        3,
    )
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_schedule_from_its_making_to_its_end(cli: Cli) -> None:
    """Made, found, explained, changed, paused, resumed, fired and deleted; a gateway's absence is said."""
    made = cli("cron", "add", "every weekday at 9am", "what is new?", "--tz", "Europe/Berlin", "--name", "news")
    assert made.out.startswith("Scheduled #1: At 09:00, Monday to Friday (Europe/Berlin)\nNext: ")
    assert "`goclaw cron rm 1` takes it back" in made.err
    assert "goclaw run" in made.err
    assert "news" in cli("cron", "list").out
    cli("cron", "edit", "1", "--when", "every day at 8am", "--retries", "0", "--min", "1h")
    changed = cli("cron", "show", "1", "--json").json()
    assert (changed["words"], changed["zone"]) == ("At 08:00 every day (Europe/Berlin)", "Europe/Berlin")
    assert (changed["rules"]["max_retries"], changed["rules"]["min_interval"]) == (0, "1 hour")
    assert "never sooner than  1 hour after" in cli("cron", "show", "1").out
    assert re.search(
        r"paused until \S+ \S+ \S+ \(holidays\)", cli("cron", "pause", "1", "--until", "2d", "--reason", "holidays").out
    )
    assert "active" in cli("cron", "resume", "1").out
    assert "as soon as a gateway does" in cli("cron", "run", "1").out
    assert "Next run:" in cli("cron", "why", "#1").out
    assert cli("cron", "runs").err == "Nothing has run yet.\n"
    assert cli("cron", "rm", "1").out == "Deleted #1: news\n"
    assert "Nothing is scheduled." in cli("cron", "list").err
    assert cli("cron", "list", "--json").json() == {"items": [], "next": None}
    assert [job["status"] for job in cli("cron", "list", "--all", "--json").json()["items"]] == ["cancelled"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("every day at 9am: hello",), "At 09:00 every day"),
        (("at 23:59", "hello"), "Once, on"),
        (("hello", "--every", "90s"), "Every 1 minute 30 seconds"),
        (("hello", "--cron", "0 9 * * 1-5"), "At 09:00, Monday to Friday"),
        (("hello", "--at", "2090-06-01 12:00", "--tz", "Asia/Tokyo"), "Once, on Thursday 2090-06-01 at 12:00"),
        (("hello", "--at", "2090-06-01T12:00:30Z"), "Once, on Thursday 2090-06-01 at 12:00:30"),
        (("hello", "--webhook"), ""),
    ],
)
def test_every_way_to_say_when(cli: Cli, arguments: tuple[str, ...], words: str) -> None:
    """A phrase, a phrase with its message in one, a span, an expression, an instant with and without a zone, a call."""
    made = cli("cron", "add", *arguments, "--json").json()
    assert words in made["words"]
    assert made["message"] == "hello"


def test_adding_again_with_the_same_key_changes_nothing(cli: Cli) -> None:
    """A script that is run twice makes one schedule."""
    first = cli("cron", "add", "every day: hello", "--key", "once", "--json").json()
    again = cli("cron", "add", "every day: hello", "--key", "once", "--json").json()
    assert first["id"] == again["id"]


def test_a_message_is_read_from_stdin(cli: Cli) -> None:
    """`-` is all that comes in."""
    assert cli("cron", "add", "every day", "-", "--json", stdin="one\ntwo\n").json()["message"] == "one\ntwo"


def test_a_message_is_answered_by_a_gateway_for_the_occasion(cli: Cli, tmp_path: Path) -> None:
    """`send` alone on stdout says the answer, ends with how it ended, and leaves a directory that is free."""
    ended = cli("send", "count to 1")
    assert (ended.out, ended.err) == ("I counted to 1.\n", "")
    assert "fail" in cli("send", "fail", code=1).out
    last = cli("send", "count to 1", "--json", "--chat", "other").json()
    assert (last["state"], last["answer"], last["session"]) == (
        "done",
        "I counted to 1.",
        "default:main:http::other::0",
    )
    assert not (tmp_path / "data" / "gateway.json").exists()


def test_a_message_is_only_handed_in_or_waited_for_no_longer(cli: Cli) -> None:
    """--no-wait keeps it, --wait leaves it; the next gateway answers both."""
    kept = cli("send", "count to 1", "--no-wait")
    assert kept.out.startswith("Taken in as message ")
    assert "goclaw run" in kept.err
    assert cli("send", "count to 1", "--wait", "0", "--json").json()["state"] == "accepted"
    late = cli("send", "count to 900", "--chat", "long", "--wait", "0.2", code=1)
    assert late.out == ""
    assert "is kept and will be answered" in late.err
    assert "goclaw stop default:main:http::long::0" in late.err
    assert "Told to stop: default:main:http::long::0" in cli("stop", "default:main:http::long::0").out
    assert cli("send", "count to 1").out == "I counted to 1.\n"
    found = cli("sessions", "show", "http::main", "--json").json()
    assert [line["text"] for line in found["transcript"] if line["role"] == "assistant"] == ["I counted to 1."] * 3


def test_status_tells_that_nothing_runs(cli: Cli) -> None:
    """Exit code 3, what that means, and what to do; the data are there all the same."""
    ended = cli("status", code=3)
    assert ended.out.startswith("goclaw does not run here")
    assert "unhealthy: no gateway runs" in ended.err
    assert "`goclaw run` starts one" in ended.err
    assert cli("status", "--json", code=3).json()["state"] == "stopped"
    assert "no gateway runs on this machine" in cli("stop", code=1).err
    assert "goclaw run" in cli("lanes", "set", "main", "3", code=1).err


def test_tokens_and_tenants_are_looked_after_on_the_store(cli: Cli) -> None:
    """A secret is alone on stdout and nowhere else; another tenant's tokens are its own; what is gone is gone."""
    made = cli("token", "create", "phone", "--scope", "read", "--scope", "chat", "--expires", "30d")
    secret = made.out.strip()
    assert secret.startswith("gck_")
    assert secret not in made.err
    assert "may read, chat, until" in made.err
    listed = cli("token", "list")
    assert secret not in listed.out
    assert secret[:12] in listed.out
    assert "secret" not in json.dumps(cli("token", "list", "--json").json())
    cli("token", "revoke", secret[:12])
    assert cli("token", "list", "--json").json()["items"][0]["state"] == "revoked"
    cli("tenant", "add", "acme", "--tz", "America/New_York")
    theirs = cli("token", "create", "door", "--tenant", "acme", "--json").json()
    assert theirs["tenant"] == "acme"
    assert len(cli("token", "list", "--tenant", "acme", "--json").json()["items"]) == 1
    refused = cli("tenant", "rm", "acme", code=2)
    assert "1 token" in refused.err
    assert "--yes" in refused.err
    cli("tenant", "rm", "acme", "--yes")
    assert [one["id"] for one in cli("tenant", "list", "--json").json()["items"]] == ["default"]


def test_strangers_are_let_in_on_the_store(cli: Cli, tmp_path: Path) -> None:
    """Without a gateway too: the code lets in, the list does not tell it, and everything can be taken back."""
    codes = strangers(tmp_path, 3)
    cli("tenant", "add", "acme")
    listed = cli("pair", "list")
    assert not any(code in listed.out + listed.err for code in codes)
    assert listed.out.count("pending") == 3
    assert "have them tell you their code" in listed.err
    typed = f"{codes[0][:4]} {codes[0][4:]}".lower()
    let_in = cli("pair", "approve", typed, "--tenant", "acme", "--json").json()
    assert (let_in["tenant"], let_in["state"], let_in["sender"]) == ("acme", "approved", "40")
    cli("pair", "approve", codes[0], code=1)
    denied = cli("pair", "deny", codes[1], "--json").json()
    known = cli("pair", "list", "--json").json()["items"][-1]["id"]
    assert cli("pair", "deny", known, "--json").json()["state"] == "denied"
    assert [one["sender"] for one in cli("pair", "list", "--tenant", "acme", "--json").json()["items"]] == [
        "41",
        "42",
        "40",
    ]
    for id, options in ((let_in["id"], ("--tenant", "acme")), (denied["id"], ()), (known, ())):
        cli("pair", "rm", id, *options)
        assert "no pairing" in cli("pair", "rm", id, *options, code=1).err
    assert "Nobody knocks" in cli("pair", "list").err


def test_what_cannot_be_undone_is_not_done_unasked(cli: Cli) -> None:
    """Where nobody can be asked, --yes is needed: exit code 2, and everything is as it was."""
    cli("cron", "add", "every day: hello")
    cli("send", "hello")
    for command in (("cron", "rm", "1", "--purge"), ("sessions", "clear", "http"), ("tenant", "rm", "default")):
        refused = cli(*command, code=2)
        assert "add --yes" in refused.err
        assert refused.out == ""
    assert len(cli("cron", "list", "--json").json()["items"]) == 1
    assert cli("sessions", "list", "--json").json()["items"][0]["lines"] == 2


def test_the_origin_of_a_setting_is_shown_where_it_is_asked_for(cli: Cli) -> None:
    """--origin adds a column; the JSON always has it."""
    assert cli("config", "show").out.splitlines()[0].split() == ["variable", "value", "unit"]
    assert cli("config", "show", "--origin").out.splitlines()[0].split() == ["variable", "value", "unit", "origin"]
    assert len(cli("config", "show", "--json").json()) == len(variables(Settings))
