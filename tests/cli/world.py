"""What tests of the command line start from: the command in this process, and a gateway in another one."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import httpx2
import trio
from typer.main import get_command
from typer.testing import CliRunner

from gateway.access.pairing import Pairings
from gateway.cli.app import app
from gateway.clock import utc_now
from gateway.local import find
from store.files import open_json
from tests.flow.process import DEADLINE_S, over_pipes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.flow.process import Process

NUMBERS = count(1)


@dataclass(frozen=True)
class Ended:
    """What a command has said, and how it ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


class Cli:
    """`goclaw` in this process: everything is real but the start of a process, which is what takes long."""

    def __init__(self, **variables: object) -> None:
        self._environ = {f"GOCLAW_{name.upper()}": str(value) for name, value in variables.items()}
        self._runner = CliRunner()

    def __call__(self, *arguments: str, code: int | None = 0, stdin: str | bytes | None = None) -> Ended:
        result = self._runner.invoke(app, list(arguments), env=self._environ, input=stdin)
        said = f"goclaw {' '.join(arguments)}\n{result.stdout}\n{result.stderr}"
        assert result.exception is None or isinstance(result.exception, SystemExit), said
        assert "Traceback" not in result.stderr, said
        assert code is None or result.exit_code == code, f"{result.exit_code}, expected {code}: {said}"
        return Ended(result.exit_code, result.stdout, result.stderr)


class Gateway:
    """`goclaw run` in a process of its own, asked directly."""

    def __init__(self, place: Path, process: Process) -> None:
        self.place = place
        self.process = process
        process.expect(r"goclaw listens on \S+")
        known = find(place / "data")
        assert known is not None
        headers = {"Authorization": f"Bearer {known.token}"}
        self.client = httpx2.Client(base_url=known.url, headers=headers, timeout=DEADLINE_S, trust_env=False)
        self.cli = Cli(data_dir=place / "data")
        self.codes: list[str] = []
        """Of strangers who knock."""

    def get(self, path: str, **query: Any) -> Any:
        return self.client.get(path, params=query).raise_for_status().json()

    def post(self, path: str, body: Any = None) -> Any:
        return self.client.post(path, json=body).raise_for_status().json()

    def job(self, **more: Any) -> dict[str, Any]:
        """A schedule that does not fire by itself while anybody looks."""
        name = f"job-{next(NUMBERS)}"
        wanted = {"when": "every day at 9am", "message": "what is new?", "zone": "Europe/Berlin", "name": name}
        made: dict[str, Any] = self.post("/v1/schedules", {**wanted, **more})
        return made

    def token(self) -> dict[str, Any]:
        made: dict[str, Any] = self.post("/v1/tokens", {"name": f"token-{next(NUMBERS)}"})
        return made

    def tenant(self) -> str:
        name = f"tenant-{next(NUMBERS)}"
        self.post("/v1/tenants", {"id": name})
        return name

    def stranger(self) -> str:
        """The code of one who knocks."""
        return self.codes.pop()

    def let_in(self) -> str:
        """The id of one who was let in."""
        return str(self.post("/v1/pairings/approve", {"code": self.stranger()})["id"])

    def session(self) -> str:
        """A conversation in which something was said and answered."""
        body = {"text": "hello", "chat": f"chat-{next(NUMBERS)}", "wait": 30}
        return str(self.post("/v1/messages", body)["session"])

    def busy(self) -> str:
        """A conversation in which something runs for longer than any test."""
        body = {"text": "count to 900", "chat": f"busy-{next(NUMBERS)}"}
        key = str(self.post("/v1/messages", body)["session"])
        self.until(lambda: key in {one["session"] for one in self.get("/v1/status")["running"]})
        return key

    def ran(self) -> dict[str, Any]:
        """A schedule that has run once."""
        job = self.job()
        self.post(f"/v1/schedules/{job['id']}/run")
        self.until(lambda: self.get(f"/v1/schedules/{job['id']}")["last_state"] == "succeeded")
        return job

    def until(self, happened: Any) -> None:
        poll(happened, self.process)


def poll(happened: Any, process: Process) -> None:
    """Look until it has happened, reading what the process says meanwhile."""
    for _ in range(int(DEADLINE_S / 0.02)):
        if happened():
            return
        process.read_for(0.02)
    raise AssertionError(f"it has not happened in {DEADLINE_S:g} s: {process.output}")


def strangers(place: Path, number: int) -> list[str]:
    """So many have knocked before the gateway starts, each at an account of their own; their codes."""

    async def knock() -> list[str]:
        async with open_json(place / "data", utc_now) as store:
            pairings = Pairings(store, utc_now)
            return [await pairings.knock("telegram", f"bot{one}", f"4{one}", "Ann") or "" for one in range(number)]

    return trio.run(knock)


@contextmanager
def open_gateway(place: Path, **variables: object) -> Iterator[Gateway]:
    usual: dict[str, Any] = {"port": 0, "queue_debounce": 0, "shutdown_grace": 0, "http_rate": 100_000, "lane_main": 50}
    with over_pipes(place, "run", **{**usual, **variables}) as process:
        gateway = Gateway(place, process)
        with gateway.client:
            yield gateway


def commands() -> dict[str, Any]:
    """Every command that there is, by its words; a group that does something alone is one too."""
    found: dict[str, Any] = {}

    def walk(command: Any, words: tuple[str, ...]) -> None:
        inside = getattr(command, "commands", None)
        if inside is None or (words and command.invoke_without_command):
            found[" ".join(words)] = command
        for name, one in (inside or {}).items():
            walk(one, (*words, name))

    walk(get_command(app), ())
    return found


def sentences(text: str) -> list[str]:
    """The lines of stderr that say what went wrong."""
    return [line for line in text.splitlines() if re.match(r"(error|Error): ", line)]
