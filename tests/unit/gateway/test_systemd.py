"""What systemd hears over a real socket, of a gateway in a process of its own too."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest
import trio

from gateway.systemd import Systemd
from tests.flow.process import COMMAND

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DEADLINE_S = 60.0


@contextmanager
def listening(address: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as door:
        door.bind("\0" + address[1:] if address.startswith("@") else address)
        door.settimeout(DEADLINE_S)
        yield door


def hear(door: socket.socket) -> list[str]:
    return door.recv(4096).decode().splitlines()


def drain(door: socket.socket) -> None:
    """Take what was said before."""
    door.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            hear(door)


@pytest.mark.parametrize("kind", ["path", "abstract"])
async def test_signs_of_life_come_twice_as_often_as_wanted(tmp_path: Path, kind: str) -> None:
    """Half of what systemd waits, said by the event loop, also in a socket without a file."""
    address = str(tmp_path / "notify") if kind == "path" else f"@{tmp_path}"
    environ = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "100000", "WATCHDOG_PID": str(os.getpid())}
    systemd = Systemd(environ, os.getpid())
    assert systemd.every_s == 0.05
    with listening(address) as door:
        systemd.working()
        assert hear(door)[0] == "READY=1"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(systemd.keep_alive)
            for _ in range(3):
                assert await trio.to_thread.run_sync(hear, door) == ["WATCHDOG=1"]
            nursery.cancel_scope.cancel()
        systemd.stopping()
        heard = hear(door)
        while heard == ["WATCHDOG=1"]:
            heard = hear(door)
        assert heard[0] == "STOPPING=1"


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"WATCHDOG_USEC": "1000"},
        {"NOTIFY_SOCKET": "/nowhere/at/all"},
        {"NOTIFY_SOCKET": "/nowhere/at/all", "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"},
        {"NOTIFY_SOCKET": "/nowhere/at/all", "WATCHDOG_USEC": "soon"},
    ],
)
async def test_where_nobody_wants_to_know_nothing_is_done(environ: dict[str, str]) -> None:
    """Without a socket, with one that is not there, or with a watchdog that is meant for another process."""
    systemd = Systemd(environ, os.getpid())
    systemd.waiting()
    systemd.working()
    systemd.stopping()
    with trio.fail_after(DEADLINE_S):
        await systemd.keep_alive()


def test_a_whole_gateway_says_how_it_goes(tmp_path: Path) -> None:
    """`goclaw run` is ready when it works, gives signs of life, and says that it stops when it is told to. (R21)"""
    address = str(tmp_path / "notify")
    environ = {
        **os.environ,
        "NOTIFY_SOCKET": address,
        "WATCHDOG_USEC": "200000",
        "GOCLAW_DATA_DIR": str(tmp_path / "data"),
        "GOCLAW_PORT": "0",
    }
    with (
        listening(address) as door,
        subprocess.Popen([COMMAND, "run"], cwd=tmp_path, env=environ, stderr=subprocess.PIPE) as process,
    ):
        try:
            heard = [hear(door)]
            while heard[-1][0] != "READY=1":
                heard.append(hear(door))
            assert heard[-1][1] == "STATUS=works on messages"
            assert hear(door) == ["WATCHDOG=1"]
            process.send_signal(signal.SIGTERM)
            while heard[-1][0] != "STOPPING=1":
                heard.append(hear(door))
            assert process.wait(DEADLINE_S) == 0
        finally:
            process.kill()


def test_a_gateway_that_stands_still_gives_no_sign(tmp_path: Path) -> None:
    """While the process does not get on nothing is said, so systemd starts it anew; then it goes on saying it. (R21)"""
    address = str(tmp_path / "notify")
    environ = {**os.environ, "NOTIFY_SOCKET": address, "WATCHDOG_USEC": "200000"}
    environ |= {"GOCLAW_DATA_DIR": str(tmp_path / "data"), "GOCLAW_PORT": "0"}
    with (
        listening(address) as door,
        subprocess.Popen([COMMAND, "run"], cwd=tmp_path, env=environ, stderr=subprocess.PIPE) as process,
    ):
        try:
            while hear(door)[0] != "READY=1":
                pass
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
            drain(door)
            door.settimeout(1.0)
            with pytest.raises(TimeoutError):
                hear(door)
            process.send_signal(signal.SIGCONT)
            door.settimeout(DEADLINE_S)
            assert hear(door) == ["WATCHDOG=1"]
        finally:
            process.kill()
