"""How it looks to people: pictures, tables and moments, in a terminal and in a narrow one."""

from __future__ import annotations

import io
import re
import signal
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from gateway.cli.picture import picture
from gateway.cli.tables import relative, rough
from tests.cli.world import Cli, open_gateway
from tests.flow.process import in_terminal

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


def lane(name: str, active: int, limit: int, **more: int) -> dict[str, Any]:
    return {"name": name, "active": active, "limit": limit, "waiting": 0, "parked": 0, "stuck": 0, **more}


STATUS: dict[str, Any] = {
    "version": "1.2.3",
    "mode": "standalone",
    "state": "running",
    "started_at": "2030-01-01T08:30:00Z",
    "now": "2030-01-01T12:00:00Z",
    "lanes": [lane("main", 1, 2), lane("cron", 1, 1, waiting=3, stuck=1), lane("delegate", 1, 100)],
    "running": [
        {"session": f"default:main:http::{n}::0", "of": "message", "agent": "main", "since": "2030-01-01T11:59:00Z"}
        for n in range(20)
    ],
    "next": [
        {"id": 7, "name": "", "message": "what is \x1b[2Jnew?", "words": "At 09:00", "next_at": "2030-01-01T12:05:00Z"},
        {"id": 8, "name": "late", "message": "", "words": "Every hour", "next_at": "2030-01-01T11:00:00Z"},
    ],
    "schedules": {"active": 2, "paused": 1, "pending": 2, "executing": 0},
    "services": [
        {"name": "outbound", "state": "resting", "since": "2030-01-01T11:59:30Z", "restarts": 3, "error": "no route"}
    ],
}


def drawn(found: dict[str, Any], width: int, **more: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(picture(found, NOW, **more))
    return out.getvalue()


def test_the_picture_tells_what_matters() -> None:
    """State, gauges, what runs since when, what is next, what rests and why."""
    text = drawn(STATUS, 80)
    assert text.startswith("goclaw works, for 3 h 30 min (1.2.3, standalone)\n")
    assert re.search(r"main +█████····· +1/2 +0", text)
    assert re.search(r"cron +██████████ +1/1 +3 +1 stuck", text)
    assert re.search(r"delegate +█········· +1/100", text)
    assert re.search(r"default:main:http::0::0 +message +main +1 min", text)
    assert "and 8 more" in text
    assert re.search(r"in 5 min +#7 what is \[2Jnew\? +At 09:00", text)
    assert re.search(r"due now +#8 late +Every hour", text)
    assert "schedules: 2 active, 1 paused" in text
    assert "outbound resting, 30 s ago: no route" in text
    assert "\x1b" not in text


@pytest.mark.parametrize("width", [30, 44, 80, 200])
def test_the_picture_fits(width: int) -> None:
    """No line is wider than the window, and nothing that is to be recognised is cut."""
    text = drawn(STATUS, width, shown=3)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "outbound" in text
    assert "#7" in text


def test_a_gateway_with_nothing_to_do_is_drawn_too() -> None:
    """Nothing runs, nothing is planned, nothing rests."""
    empty = {**STATUS, "running": [], "next": [], "services": [], "schedules": {}, "state": "stopped"}
    text = drawn(empty, 80)
    assert text.startswith("goclaw does not run here (1.2.3, standalone)\n")
    assert "schedules: none" in text


@pytest.mark.parametrize(
    ("span", "words"),
    [
        (timedelta(0), "0 s"),
        (timedelta(milliseconds=400), "0 s"),
        (timedelta(seconds=59), "59 s"),
        (timedelta(seconds=61), "1 min 1 s"),
        (timedelta(hours=1), "1 h"),
        (timedelta(hours=25, minutes=3), "1 d 1 h"),
        (timedelta(days=400), "400 d"),
    ],
)
def test_spans_are_told_by_their_two_largest_units(span: timedelta, words: str) -> None:
    """As people say them; past and future differ by a word."""
    assert rough(span) == words
    if words != "0 s":
        assert relative((NOW + span).isoformat(), NOW) == f"in {words}"
        assert relative((NOW - span).isoformat(), NOW) == f"{words} ago"


def test_top_finds_the_gateway_watches_it_and_leaves(tmp_path: Path) -> None:
    """It looks for a gateway, draws it every second, says when it goes away; q and Ctrl-C leave without a word."""
    with in_terminal(tmp_path, "top") as top, in_terminal(tmp_path, "top") as other:
        before = top.terminal_settings()
        for each in (top, other):
            each.expect("No gateway runs on this machine")
        with open_gateway(tmp_path) as gateway:
            for each in (top, other):
                each.expect("goclaw works, for")
            top.expect(re.escape(gateway.busy()[:20]))
            other.type("\x03")
            other.ends_with(0)
            gateway.process.signal(signal.SIGTERM)
            top.expect("Looking for")
        top.type("q")
        top.ends_with(0)
        assert top.terminal_settings() == before


def test_a_person_is_asked_before_something_is_gone(tmp_path: Path) -> None:
    """With what it means; no is the answer to anything but a yes."""
    cli = Cli(data_dir=tmp_path / "data")
    cli("tenant", "add", "acme")
    cli("token", "create", "door", "--tenant", "acme")
    for answer, code, left in (("\n", 1, 2), ("y\n", 0, 1)):
        with in_terminal(tmp_path, "tenant", "rm", "acme") as asked:
            asked.expect("This deletes tenant acme for good: 1 token")
            asked.expect(r"Do it\? \[y/N\]:")
            asked.type(answer)
            asked.ends_with(code)
        assert len(cli("tenant", "list", "--json").json()["items"]) == left


def test_an_answer_grows_in_a_terminal(tmp_path: Path) -> None:
    """What is being answered is shown as it comes, and the answer stays."""
    with in_terminal(tmp_path, "send", "count to 3", port=0, queue_debounce=0) as sending:
        sending.expect("1 2")
        sending.expect("I counted to 3.")
        sending.ends_with(0)
