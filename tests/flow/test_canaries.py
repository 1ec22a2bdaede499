"""Keys and the password of the database, planted as canaries: whatever happens, nothing that goclaw leaves shows them.

Everything is looked through: what it prints, logs at its most talkative, keeps in files or tables, sends to a model's
server as words, shows in the list of processes and gives to the programs it starts. Looked for are the values as they
are, percent-encoded, in base64 at any offset, in hexadecimal, and any eight characters in a row.
"""

from __future__ import annotations

import json
import re
import sys
import time
from base64 import b64encode
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus, urlsplit, urlunsplit

import psutil
import pytest
import trio

from tests.fakes.beside import Beside, model_beside
from tests.fakes.script import CallTool, Disconnect, Say, Status
from tests.flow.process import DEADLINE_S, over_pipes
from tests.postgres.databases import ask
from tests.postgres.server import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fakes.script import Asked, Steps
    from tests.flow.process import Process

ANTHROPIC, OPENAI, OTHER = "Zq7-anKanari/1+XbW3vTa", "Yr8-opKanari/2+HcM4uSb", "Wp5-otKanari/3+JdN6tRc"
PASSWORD = "Vk9/pgKanari:4@GeP2s"  # noqa: S105
CANARIES = (ANTHROPIC, OPENAI, OTHER, PASSWORD)
PART = 8
CRASHING = (sys.executable, "-m", "tests.flow.crashing")


def leaks(data: str) -> list[str]:
    return [form for canary in CANARIES for form in forms(canary) if form in data]


def forms(secret: str) -> set[str]:
    octets = secret.encode()
    shifted = (b64encode(b"\0" * offset + octets)[4 if offset else 0 : -4].decode() for offset in range(3))
    parts = {secret[start : start + PART] for start in range(len(secret) - PART + 1)}
    return {*parts, quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1], octets.hex(), *shifted}


def told_by(key: str) -> str:
    """A server's message that repeats the key in every way it can."""
    return (
        f"bad header Bearer {key} ({quote(key, safe='')}, {b64encode(key.encode()).decode()}, {key[:8]}***{key[-4:]})"
    )


def indiscreet(key: str) -> dict[str, Steps]:
    return {
        "good": [Say("All is well. ", chunk=3), Say("Good.")],
        "401": [Status(401, message=f"Incorrect API key provided: {key[:8]}***{key[-4:]}")],
        "400": [Status(400, message=told_by(key))],
        "within": [Say("It begins "), Status(500, message=told_by(key))],
        "drop": [Say("It begins "), Disconnect(reset=True)],
        "delegate": [CallTool("delegate", {"agent": "other", "task": "400"})],
        "program": [CallTool("delegate", {"agent": "program", "task": "env"})],
        "failing": [CallTool("delegate", {"agent": "failing", "task": "env"})],
    }


def script(asked: Asked) -> Steps:
    key = OTHER if asked.model == "other" else ANTHROPIC if asked.model == "a" else OPENAI
    if asked.last.role == "tool":
        return [Say(f"It said: {asked.last.all_text}")]
    if asked.last_user == "429" and asked.attempt == 1:
        return [Status(429, message=told_by(key))]
    return indiscreet(key).get(asked.last_user, [Say("All is well. Good.")])


def agents(place: Path, model: Beside) -> None:
    """One of the settings' key, one with a key of its own, and programs that tell what they are given."""
    programs = [
        f"[agent.{name}]\nbackend = 'command'\ncommand = {['/bin/sh', '-c', line]!r}\n"
        for name, line in (
            ("program", f"env; until [ -e {place}/go ]; do sleep 0.05; done"),
            ("failing", "env >&2; exit 3"),
        )
    ]
    main = model.agents_toml(model="a" if model.backend == "anthropic" else "o")
    main = main.replace(f"base_url = {model.server.base_url!r}\n", "delegates = ['other', 'program', 'failing']\n")
    other = model.agents_toml("other", model="other", api_key_env="OTHER_KEY")
    (place / "agents.toml").write_text("\n".join([main, other, *programs]))


def planted(model: Beside, dsn: str | None) -> dict[str, Any]:
    given: dict[str, Any] = {
        "anthropic_api_key": ANTHROPIC,
        "openai_api_key": OPENAI,
        f"{model.backend}_base_url": model.server.base_url,
        "queue_debounce": 0,
        "log_level": "debug",
        "environ": {"OTHER_KEY": OTHER, "OPENAI_LOG": "debug", "ANTHROPIC_LOG": "debug"},
    }
    return given | ({"postgres_dsn": with_password(dsn)} if dsn else {})


def with_password(dsn: str) -> str:
    parts = urlsplit(dsn)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{parts.username or ''}:{quote(PASSWORD, safe='')}@{host}"))


def provoke(process: Process, model: Beside, place: Path) -> str:
    """Everything that can go wrong with a model, and what can be asked; gives what was seen of other processes."""
    for text, answer in {
        "good": "Good",
        "401": "refuses the key",
        "400": "refuses the request",
        "429": "Good",
        "within": "broke off",
        "drop": "broke off",
        "delegate": "It said:",
        "failing": "It said:",
        "/status": "Lanes:",
        "/whoami": "You are",
        "/schedule every 1s: 400": "Scheduled #1",
    }.items():
        process.type(f"{text}\n")
        process.expect(answer)
    asked = len(model.requests)
    model.until(lambda: len(model.requests) > asked + 1)
    process.type("/cron why 1\n/cron\n/cron cancel 1\n")
    process.expect("Cancelled #1")
    process.type("program\n")
    seen = watch(process.popen.pid)
    (place / "go").touch()
    process.expect(r"(?s)It said: .*PATH=")
    return seen


def watch(pid: int) -> str:
    """The list of processes with goclaw's program in it, and what that was given."""
    deadline = time.monotonic() + DEADLINE_S
    while not (programs := [child for child in psutil.Process(pid).children() if is_program(child)]):
        assert time.monotonic() < deadline, "the program was never started"
    listed = [str(one.info["cmdline"]) for one in psutil.process_iter(["cmdline"])]
    return "\n".join([*listed, *(str(program.environ()) for program in programs)])


def is_program(child: psutil.Process) -> bool:
    """Until it is one it is a copy of goclaw, with all that goclaw has; and it may be gone again."""
    try:
        return child.cmdline()[:1] == ["/bin/sh"]
    except psutil.Error:
        return False


def files(place: Path) -> str:
    return "\n".join(path.read_bytes().decode("latin-1") for path in place.rglob("*") if path.is_file())


async def rows(dsn: str) -> str:
    """Every row of every table."""
    tables = await ask(
        dsn,
        "SELECT format('%I.%I', table_schema, table_name) FROM information_schema.tables"
        " WHERE table_schema NOT IN ('pg_catalog', 'information_schema')",
    )
    return "\n".join([str(await ask(dsn, f"SELECT t::text FROM {name} t")) for (name,) in tables])  # noqa: S608


@pytest.mark.parametrize(("backend", "form"), [("openai", "json"), ("anthropic", "console")])
@pytest.mark.parametrize("kept", ["files", "database"])
def test_nothing_that_happens_in_a_chat_shows_a_secret(
    tmp_path: Path, request: pytest.FixtureRequest, backend: str, form: str, kept: str
) -> None:
    """Good answers, refused keys, indiscreet servers, broken streams, programs that tell what they were given. (S15)"""
    dsn = request.getfixturevalue("database") if kept == "database" else None
    with model_beside(backend, script) as model:
        agents(tmp_path, model)
        with over_pipes(tmp_path, **planted(model, dsn), log_format=form) as process:
            seen = provoke(process, model, tmp_path)
            process.end_input()
            output = process.rest()
        asked = str([received.body for received in model.requests])
        assert {received.key for received in model.requests} == {OTHER, ANTHROPIC if backend == "anthropic" else OPENAI}
    assert "It said:" in output
    assert not leaks(output)
    assert not leaks(seen)
    assert not leaks(asked)
    assert not leaks(files(tmp_path / "data"))
    assert dsn is None or not leaks(trio.run(rows, dsn))


@pytest.mark.parametrize("form", ["json", "console"])
def test_a_crash_shows_no_secret(tmp_path: Path, form: str) -> None:
    """A mistake that has every secret in its text and in its variables is told in the log, without them. (S21)"""
    with model_beside("openai", script) as model:
        variables = planted(model, None) | {"log_format": form, "environ": {"PYTHONPATH": str(PROJECT)}}
        with over_pipes(tmp_path, command=CRASHING, **variables) as process:
            process.type("hello\n")
            output = process.rest()
    assert process.popen.wait() == 1
    assert "a mistake with" in output
    assert "RuntimeError" in output
    assert not leaks(output)
    assert not leaks(files(tmp_path))


@pytest.mark.parametrize("arguments", [(), ("db", "status"), ("config", "show"), ("config", "show", "--json")])
@pytest.mark.parametrize("place", ["127.0.0.1:1/goclaw", "nowhere.invalid/goclaw", "[::1/goclaw", "h:port/goclaw"])
def test_no_command_shows_a_secret(tmp_path: Path, arguments: tuple[str, ...], place: str) -> None:
    """Wrong addresses of a database are complained about, settings are listed, all without the password. (S21)"""
    dsn = f"postgresql://goclaw:{quote(PASSWORD, safe='')}@{place}"
    keys: dict[str, Any] = {
        "anthropic_api_key": ANTHROPIC,
        "openai_api_key": OPENAI,
        "postgres_dsn": dsn,
        "log_level": "debug",
    }
    with over_pipes(tmp_path, *arguments, **keys) as process:
        process.end_input()
        assert not leaks(process.rest())


def test_mistakes_in_the_declared_agents_are_told_without_the_key(tmp_path: Path) -> None:
    """A key where a name should be, under a wrong name, in an address: which line, and never the key. (S21)"""
    (tmp_path / "agents.toml").write_text(
        f"[agent.main]\nbackend = 'openai'\napi_key_env = '{OPENAI}'\napi_key = '{OPENAI}'\n"
        f"[agent.other]\nbackend = 'openai'\nmodel = 'm'\nbase_url = 'http://me:{OTHER}@localhost/v1'\n"
        f"[agent.third]\nbackend = 'openai'\nmodel = 'm'\nbase_url = 'ftp://localhost/?key={OTHER}'\n"
    )
    with over_pipes(tmp_path, "config", "check", openai_api_key=OPENAI) as process:
        output = process.rest()
    assert process.popen.wait() == 78
    assert re.search(r"agents.toml, line \d+: .*api_key_env", output)
    assert not leaks(output)


TELLS = ["[agent.main]", "backend = 'command'", "command = ['/bin/sh', 'tells.sh']", ""]


def tells(place: Path) -> None:
    """A program, beside the file that names it, whose last words are a key that it has found somewhere."""
    workspace = place / "data" / "workspace" / "main"
    workspace.mkdir(parents=True)
    (workspace / "tells.sh").write_text(f"echo 'no luck with {OPENAI}' >&2; exit 3\n")


def test_a_failure_that_names_a_key_is_told_without_it(tmp_path: Path) -> None:
    """In the chat, by a job, in its log and in whatever is kept: that it failed, and not with which key. (S15)"""
    tells(tmp_path)
    (tmp_path / "agents.toml").write_text("\n".join(TELLS))
    variables: dict[str, Any] = {
        "openai_api_key": OPENAI,
        "queue_debounce": 0,
        "cron_max_retries": 0,
        "log_level": "debug",
    }
    with over_pipes(tmp_path, **variables) as process:
        process.type("hello\n")
        process.expect(r'"hello" did not work: the program /bin/sh failed with status 3: no luck with \*\*\*')
        process.type("/schedule in 1 second: hello\n")
        process.expect("Scheduled #1")
        process.expect(r"no luck with \*\*\*")
        process.type("/cron\n/cron why 1\n/status\n")
        process.end_input()
        output = process.rest()
    (tmp_path / "data" / "workspace" / "main" / "tells.sh").unlink()
    assert not leaks(output)
    assert not leaks(files(tmp_path / "data"))


@pytest.mark.parametrize("backend", ["openai", "anthropic"])
def test_a_helper_that_fails_over_a_key_tells_no_model(tmp_path: Path, backend: str) -> None:
    """The model reads that it failed, and neither its server nor the transcript learns the key. (S15)"""
    tells(tmp_path)
    ask = [CallTool("delegate", {"agent": "teller", "task": "go"})]

    def answer(asked: Asked) -> Steps:
        return [Say(f"It said: {asked.last.all_text}")] if asked.last.role == "tool" else ask

    with model_beside(backend, answer) as model:
        teller = (
            "\n".join(TELLS)
            .replace("main", "teller")
            .replace("tells.sh", str(tmp_path / "data/workspace/main/tells.sh"))
        )
        (tmp_path / "agents.toml").write_text(model.agents_toml(delegates=["teller"]) + teller)
        with over_pipes(tmp_path, openai_api_key=OPENAI, anthropic_api_key=ANTHROPIC, queue_debounce=0) as process:
            process.type("hello\n")
            process.expect(r"It said: the helper gave no answer: .*: no luck with \*\*\*")
            process.end_input()
            output = process.rest()
        (tmp_path / "data" / "workspace" / "main" / "tells.sh").unlink()
        assert not leaks(output + str([received.body for received in model.requests]))
        assert not leaks(files(tmp_path / "data"))
