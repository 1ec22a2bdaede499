"""A gateway at work as the command line sees it: what is stopped, what is not well, what answers are made of."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import trio

from gateway.local import Local, announced
from store.files.disk import Disk
from tests.cli.world import open_gateway
from tests.flow.process import COMMAND, environment, over_pipes
from tests.http.world import DEADLINE_S, open_served

if TYPE_CHECKING:
    from pathlib import Path


def test_one_of_several_is_stopped_and_all_of_them_are(tmp_path: Path) -> None:
    """What is meant must be clear; a job's run is stopped like a message; --all leaves nothing."""
    with open_gateway(tmp_path) as gateway:
        first, second = gateway.busy(), gateway.busy()
        job = gateway.job(message="count to 900")
        gateway.post(f"/v1/schedules/{job['id']}/run")
        gateway.until(lambda: len(gateway.get("/v1/status")["running"]) == 3)
        unclear = gateway.cli("stop", code=2)
        assert "3 sessions are busy" in unclear.err
        assert f"goclaw stop '{first}'" in unclear.err
        assert "could be any of these" in gateway.cli("stop", "busy", code=2).err
        assert gateway.cli("stop", f"cron::{job['id']}:").out.startswith("Stopped: default:main:cron::")
        gateway.until(lambda: gateway.get("/v1/runs")["items"][0]["state"] == "cancelled")
        assert gateway.cli("stop", first.removeprefix("default:")).out == f"Stopped: {first}\n"
        assert gateway.cli("stop", "--all", "--json").json()["items"][0]["session"] == second
        assert gateway.get("/v1/status")["running"] == []
        assert "Nothing runs" in gateway.cli("stop", "--all").err


def test_all_that_a_run_said_is_printed(tmp_path: Path) -> None:
    """By its id, alone on stdout."""
    with open_gateway(tmp_path) as gateway:
        job = gateway.ran()
        (run,) = gateway.cli("cron", "runs", str(job["id"]), "--since", "1h", "--json").json()["items"]
        assert gateway.cli("cron", "runs", "--output", run["id"]).out.startswith("You said: what is new?\n")
        found = gateway.cli("cron", "runs", "--output", run["id"], "--json").json()
        assert (found["id"], found["output"].partition("\n")[0]) == (run["id"], "You said: what is new?")


async def test_status_tells_what_is_not_well(tmp_path: Path) -> None:
    """A service that rests: exit code 3, which one, why, and where to read on. All well again: 0."""
    async with open_served(place=tmp_path / "data") as served:
        assert (await status(tmp_path)).returncode == 0
        gateway = served.office.gateway
        assert gateway is not None
        gateway.supervisor.start("ill", fail)
        with trio.fail_after(DEADLINE_S):
            while not any(one.state == "resting" for one in gateway.health()):  # noqa: ASYNC110 - it has no event
                await trio.sleep(0.01)
        ended = await status(tmp_path)
        assert ended.returncode == 3
        assert b"unhealthy: ill rests after a failure" in ended.stderr
        assert b"no luck today" in ended.stderr
        assert b"goclaw logs -f" in ended.stderr
        assert [one["state"] for one in json.loads(ended.stdout)["services"] if one["name"] == "ill"] == ["resting"]


async def fail() -> None:
    await trio.lowlevel.checkpoint()
    raise RuntimeError("no luck today")


async def status(place: Path) -> Any:
    return await trio.run_process(
        [str(COMMAND), "status", "--json"],
        capture_stdout=True,
        capture_stderr=True,
        check=False,
        env=environment(place),
        cwd=place,
    )


async def test_a_chat_looks_again_for_a_gateway_that_is_just_starting(tmp_path: Path) -> None:
    """Nobody answers and the directory is in use; when somebody answers, the chat goes there."""
    disk, data = Disk(), tmp_path / "data"
    data.mkdir()
    lock = disk.lock(data / "LOCK")
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    silent = Local(f"http://127.0.0.1:{listener.socket.getsockname()[1]}", "none", 1)
    try:
        with trio.fail_after(DEADLINE_S), announced(data, silent), over_pipes(tmp_path) as chat:
            looked = await listener.accept()
            async with open_served(place=data):
                await looked.aclose()
                chat.type("hello\n")
                await trio.to_thread.run_sync(chat.expect, "demo agent")
                chat.end_input()
                await trio.to_thread.run_sync(chat.ends_with, 0)
    finally:
        await listener.aclose()
        disk.let_go(lock)
