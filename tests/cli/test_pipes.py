"""The real command in a shell: pipes that close, disks that are full, Ctrl-C, and how fast it begins."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.world import Cli, open_gateway, poll
from tests.flow.process import COMMAND, DEADLINE_S, environment, over_pipes

if TYPE_CHECKING:
    from pathlib import Path


def shell(place: Path, line: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """A line as somebody types it in bash, where any command of a pipe that fails is a failure."""
    environ = environment(place, {"PATH": f"{COMMAND.parent}:/usr/bin:/bin"})
    ended = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        capture_output=True,
        text=True,
        check=False,
        cwd=place,
        env=environ,
        timeout=DEADLINE_S,
    )
    assert ended.returncode == code, (line, ended)
    assert "Traceback" not in ended.stderr
    assert "Exception ignored" not in ended.stderr
    return ended


def test_what_is_not_read_or_cannot_be_written_ends_quietly(tmp_path: Path) -> None:
    """A reader that has read enough is no failure and is not talked about; a full disk is one, in a sentence."""
    lines = "\n".join(json.dumps({"timestamp": "2030", "event": "e" * 500, "level": "info"}) for _ in range(3_000))
    (tmp_path / "data" / "logs").mkdir(parents=True)
    (tmp_path / "data" / "logs" / "goclaw.log").write_text(lines + "\n")
    enough = shell(tmp_path, "goclaw logs -n 3000 --json | head -1")
    assert (len(enough.stdout.splitlines()), enough.stderr) == (1, "")
    full = shell(tmp_path, "goclaw logs > /dev/full", 1)
    assert full.stderr == "error: the output cannot be written: No space left on device\n"
    assert shell(tmp_path, "goclaw --help > /dev/full", 1).stderr == full.stderr
    shell(tmp_path, "goclaw logs -n 1 >&-")


def test_nothing_heavy_is_loaded_before_it_is_needed(tmp_path: Path) -> None:
    """`goclaw --version` and a phrase's meaning load no server, no client, no driver and no model's SDK."""
    heavy = ("fastapi", "hypercorn", "httpx2", "asyncpg", "anthropic", "openai", "prompt_toolkit", "rich", "pydantic")
    for arguments, loads in ((["--version"], ()), (["cron", "next", "every day"], ("rich", "pydantic"))):
        told = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "gateway", *arguments],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
            env=environment(tmp_path),
        ).stderr
        loaded = {line.rpartition("|")[2].strip() for line in told.splitlines() if line.startswith("import time:")}
        assert {name for name in heavy if name in loaded} == set(loads)
        assert "gateway.cli.app" in loaded


def test_completion_is_offered(tmp_path: Path) -> None:
    """A script for the shell, and what could come next; where no gateway answers, no numbers and no error."""
    assert "_GOCLAW_COMPLETE=complete_bash" in shell(tmp_path, "goclaw --show-completion bash").stdout
    ask = "COMP_WORDS='goclaw {words}' COMP_CWORD={place} _GOCLAW_COMPLETE=complete_bash goclaw"
    assert shell(tmp_path, ask.format(words="ten", place=1)).stdout.split() == ["tenant"]
    ended = shell(tmp_path, ask.format(words="cron show ", place=3))
    assert (ended.stdout.strip(), ended.stderr) == ("", "")
    with open_gateway(tmp_path) as gateway:
        job = gateway.job()
        assert shell(tmp_path, ask.format(words="cron show ", place=3)).stdout.split() == [str(job["id"])]


@pytest.mark.parametrize("served", [True, False], ids=["at a gateway", "with one of its own"])
def test_ctrl_c_leaves_a_message_that_is_kept(tmp_path: Path, served: bool) -> None:
    """One line says that it is kept and how it is stopped; the exit code is that of an interruption."""
    if served:
        with open_gateway(tmp_path) as gateway:
            leave(tmp_path)
            assert gateway.get("/v1/status")["running"]
            assert gateway.cli("stop").out == "Stopped: default:main:http::main::0\n"
    else:
        leave(tmp_path)
        assert "waiting" in Cli(data_dir=tmp_path / "data")("db", "status").out


def leave(place: Path) -> None:
    with over_pipes(place, "send", "count to 900", port=0, queue_debounce=0) as process:
        traces = place / "data" / "gateway.json"
        poll(lambda: traces.exists() and running(place), process)
        process.signal(signal.SIGINT)
        said = process.ends_with(130)
    assert said.count("\n") == 1
    assert "is kept and will be answered" in said
    assert "`goclaw stop default:main:http::main::0` stops it" in said


def running(place: Path) -> bool:
    """Whether the gateway that has announced itself says that something runs."""
    status = Cli(data_dir=place / "data")("top", "--json", code=None)
    return status.code == 0 and bool(status.json()["running"])


def test_the_log_is_followed_until_ctrl_c(tmp_path: Path) -> None:
    """What a gateway writes appears while it works; Ctrl-C is a good end."""
    with over_pipes(tmp_path, "logs", "-f") as process, open_gateway(tmp_path) as gateway:
        process.expect("Nothing yet in .*; waiting")
        gateway.session()
        process.expect("message: done")
        process.signal(signal.SIGINT)
        process.ends_with(0)
