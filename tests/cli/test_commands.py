"""Every command, on what it says to people and on its JSON, with a gateway that runs.

The table names every command that there is: one without an entry fails the first test.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gateway.http import shapes
from tests.cli.world import Ended, Gateway, commands, open_gateway, strangers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pydantic import BaseModel

    Words = Callable[[Gateway], tuple[str, ...]]

NO_JSON = {
    "chat": "a conversation, see tests/flow/test_process.py",
    "run": "it serves until it is ended, see tests/cli/test_beside.py",
    "config example": "it prints a file, see tests/cli/test_config.py",
}
"""Commands whose output is no answer to anything."""


@dataclass(frozen=True)
class Case:
    words: Words
    """The command line, after what it needs has been made."""
    says: str
    """A pattern for what people read on stdout."""
    shape: type[BaseModel] | set[str]
    """What its JSON holds: exactly the fields of a shape of the API, or at least these."""
    page: bool = False
    code: int = 0


def words(text: str) -> Words:
    return lambda gateway: tuple(text.split())


def about(text: str) -> Words:
    """About a schedule of its own."""
    return lambda gateway: tuple(text.replace("JOB", str(gateway.job()["id"])).split())


def ran(text: str) -> Words:
    return lambda gateway: tuple(text.replace("JOB", str(gateway.ran()["id"])).split())


CASES: dict[str, Case] = {
    "send": Case(lambda gateway: ("send", "hello", "--chat", "sent"), "I am the demo agent", shapes.MessageOut),
    "status": Case(words("status"), r"goclaw works, for .*\n(?s:.*)main +\S+ +\d+/50", shapes.Status),
    "top": Case(words("top --once"), r"goclaw works, for .*\n(?s:.*)main +\S+ +\d+/50", shapes.Status),
    "stop": Case(lambda gateway: ("stop", gateway.busy()), "Stopped: default:main:http::busy-", {"items", "next"}),
    "cron add": Case(
        lambda gateway: ("cron", "add", "every weekday at 9am: what is new?", "--tz", "Europe/Berlin"),
        r"Scheduled #\d+: At 09:00, Monday to Friday \(Europe/Berlin\)\nNext: .*, .*, .* \(Europe/Berlin\)\nMess",
        shapes.Schedule,
    ),
    "cron list": Case(about("cron list"), r"id +what +when +status +next +last\n(?s:.*)job-\d+ +At 09:00 every day",
                      shapes.Schedule, page=True),
    "cron show": Case(about("cron show #JOB"), r"schedule +#\d+ job-\d+\nwhen +At 09:00(?s:.*)\nmessage +what is new",
                      shapes.Schedule),
    "cron edit": Case(about("cron edit JOB --name other --every 2h"), r"#\d+ Every 2 hours: active\nNext: ",
                      shapes.Schedule),
    "cron pause": Case(about("cron pause JOB --reason holidays"), r"#\d+ .*: paused \(holidays\)", shapes.Schedule),
    "cron resume": Case(about("cron resume JOB"), r"#\d+ .*: active\nNext: ", shapes.Schedule),
    "cron run": Case(about("cron run JOB"), r"#\d+ runs now\.", shapes.Trigger_),
    "cron rm": Case(about("cron rm JOB --purge --yes"), r"Deleted #\d+: job-\d+", shapes.Deleted),
    "cron next": Case(about("cron next JOB -n 7"), r"At 09:00 .*\nnext\n(.* 09:00  CES?T  in .*\n){7}", shapes.Preview),
    "cron runs": Case(ran("cron runs JOB"), r"run +id +started +state +took +late +what it said\n\S+ +#\d+ .*succeeded",
                      shapes.Run_, page=True),
    "cron why": Case(ran("cron why JOB"), r"Job #\d+ \(job-\d+\): At(?s:.*)somebody asked for it", shapes.Why),
    "sessions": Case(lambda gateway: (gateway.session() and "sessions",), r"session +lines .*\n(?s:.*)http::chat-\d+",
                     shapes.SessionOut, page=True),
    "sessions list": Case(lambda gateway: (gateway.session() and "sessions", "list"), r"(?s:.*)http::chat-\d+",
                          shapes.SessionOut, page=True),
    "sessions show": Case(lambda gateway: ("sessions", "show", gateway.session()),
                          r"session +default:main(?s:.*)user:\n  hello\n(?s:.*)assistant:\n  I am the demo",
                          {"key", "policy", "transcript"}),
    "sessions clear": Case(lambda gateway: ("sessions", "clear", gateway.session(), "--yes"), r"default:.* is empty\.",
                           shapes.Deleted),
    "lanes": Case(words("lanes"), r"lane +running +limit .*\nmain +\d+ +50", shapes.LaneOut, page=True),
    "lanes list": Case(words("lanes list"), r"lane +running +limit .*\nmain +\d+ +50", shapes.LaneOut, page=True),
    "lanes set": Case(words("lanes set heartbeat 3"), r"heartbeat: 0 of 3 running, 0 waiting", shapes.LaneOut),
    "logs": Case(lambda gateway: (str(gateway.ran() and "logs"),),
                 r"(?s:.*)\d\d:\d\d:\d\d info +cron: run succeeded \(job #\d+\)", {"at", "level", "source", "facts"}),
    "pair list": Case(words("pair list"), r"id +state +channel +sender +name +tenant +since\n(?s:.*)pending +telegram",
                      shapes.PairingOut, page=True),
    "pair approve": Case(lambda gateway: ("pair", "approve", gateway.stranger()),
                         r"Ann \(telegram 4\d+\) may write now and belongs to default\.", shapes.PairingOut),
    "pair deny": Case(lambda gateway: ("pair", "deny", gateway.stranger()),
                      r"Ann \(telegram 4\d+\) is turned away for a day\.", shapes.PairingOut),
    "pair rm": Case(lambda gateway: ("pair", "rm", gateway.let_in()), r"[0-9a-f]{16} is a stranger again\.",
                    shapes.Deleted),
    "token create": Case(words("token create phone --scope read,chat --expires 30d"), r"gck_\S+\n\Z",
                         shapes.NewTokenOut),
    "token list": Case(lambda gateway: (str(gateway.token() and "token"), "list"), r"id +name +state(?s:.*)\ngck_.{8} ",
                       shapes.TokenOut, page=True),
    "token revoke": Case(lambda gateway: ("token", "revoke", gateway.token()["id"]), "Token gck_.{8} opens nothing",
                         shapes.Deleted),
    "tenant add": Case(lambda gateway: ("tenant", "add", f"{gateway.tenant()}x", "--tz", "Europe/Berlin"),
                       r"Tenant tenant-\d+x is there, in Europe/Berlin\.", shapes.TenantOut),
    "tenant list": Case(words("tenant list"), r"tenant +name +zone +state +made\n(?s:.*)default +UTC +active",
                        shapes.TenantOut, page=True),
    "tenant disable": Case(lambda gateway: ("tenant", "disable", gateway.tenant()), r"Tenant \S+ is switched off\.",
                           shapes.TenantOut),
    "tenant enable": Case(lambda gateway: ("tenant", "enable", gateway.tenant()), r"Tenant \S+ is switched on\.",
                          shapes.TenantOut),
    "tenant rm": Case(lambda gateway: ("tenant", "rm", gateway.tenant(), "--yes"), r"Tenant \S+ is gone\.",
                      shapes.Deleted),
    "config show": Case(words("config show"), r"variable +value +unit\nGOCLAW_LANE_MAIN", {"variable", "origin"}),
    "config check": Case(words("config check"), r"ok: \d+ settings, 1 set", {"ok", "settings", "set", "agents"}),
    "db status": Case(words("db status"), r"\S+/data: \d+ sessions?; messages: ", {"mode", "where", "ready", "counts"}),
    "db upgrade": Case(words("db upgrade"), r"\Z", set(), code=69),
    "migrate json-to-postgres": Case(words("migrate json-to-postgres"), r"\Z", set(), code=69),
}  # fmt: skip


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    place = tmp_path_factory.mktemp("gateway")
    codes = strangers(place, 12)
    with open_gateway(place) as gateway:
        gateway.codes = codes
        yield gateway


def test_every_command_has_its_tests() -> None:
    """A command that nobody has described here fails; so does an entry for one that is not there."""
    assert set(commands()) == set(CASES) | set(NO_JSON)


@pytest.mark.parametrize("command", CASES)
def test_what_it_says(gateway: Gateway, command: str) -> None:
    """People read on stdout what was asked for, and nothing else is written there."""
    case = CASES[command]
    ended = gateway.cli(*case.words(gateway), code=case.code)
    assert re.match(case.says, ended.out), ended.out
    assert "\x1b" not in ended.out + ended.err


@pytest.mark.parametrize("command", CASES)
def test_its_json(gateway: Gateway, command: str) -> None:
    """Programs read on stdout one JSON value, in the shape that the API has for it."""
    case = CASES[command]
    ended = gateway.cli(*case.words(gateway), "--json", code=case.code)
    if case.code:
        assert ended.out == ""
        return
    data = first_line(ended) if command == "logs" else ended.json()
    if case.page:
        assert set(data) == {"items", "next"}
    for one in things(data, page=case.page):
        fields = case.shape if isinstance(case.shape, set) else set(case.shape.model_fields)
        assert set(one) == fields if not isinstance(case.shape, set) else fields <= set(one), one


def first_line(ended: Ended) -> Any:
    """Where one line is one value."""
    lines = ended.out.splitlines()
    return Ended(0, lines[0], "").json()


def things(data: Any, *, page: bool) -> list[Any]:
    found = data["items"] if page else data if isinstance(data, list) else [data]
    assert found
    return list(found)


@pytest.mark.parametrize("command", [*CASES, *NO_JSON])
def test_its_help(gateway: Gateway, command: str) -> None:
    """Every command says in a sentence what it does and shows how it is used, and offers --json if it has it."""
    text = gateway.cli(*command.split(), "--help").out
    assert re.search(rf"\n  (\S.*\| )?goclaw {command.split()[0]}", text), text
    assert re.match(r"Usage: \S.*\n\n  [A-Z].*[.:]", text), text
    assert ("--json" in text) is (command not in NO_JSON)


def test_the_page_about_the_command_line_names_every_command() -> None:
    """And none that there is not."""
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    named = set(re.findall(r"(?<=[|,] )`goclaw ([a-z -]+)`", page))
    assert named == set(commands())
