"""The real command in a process of its own, over pipes or in a terminal, with deadlines instead of patience."""

from __future__ import annotations

import codecs
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import signal
    from collections.abc import Iterator, Mapping, Sequence

DEADLINE_S = 30.0
COMMAND = Path(sys.executable).with_name("goclaw")

# Makes standard input the controlling terminal of the new session, so that its Ctrl-C reaches the command.
IN_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)

PROMPT = "you> "
# Work in progress as it is drawn first, and its next number: only what changes is drawn again.
COUNTING = r"main \d+ s\n1\n"
COUNTED_2, COUNTED_3, COUNTED_9 = " 2\n", " 3\n", " 9\n"

ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[=>78]|\r")
HALF_AN_ESCAPE = re.compile(r"\x1b(\[[0-?]*[ -/]*)?\Z")


def without_escapes(text: str) -> tuple[str, str]:
    """What is written there, wherever and however, and the half of a sequence at the end that is not whole yet."""
    half = HALF_AN_ESCAPE.search(text)
    whole = text[: half.start()] if half else text
    return ESCAPES.sub("", whole), text[len(whole) :]


class Process:
    """A running goclaw and all that it has written so far; from a terminal's ``face`` only the words."""

    def __init__(self, popen: subprocess.Popen[bytes], reading: int, writing: int, *, face: bool = False) -> None:
        self.popen = popen
        self.output = ""
        self._face = face
        self._half = ""
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._reading = reading
        self._writing = writing
        self._ended = False
        self._seen = 0  # how much of the output was expected already

    def type(self, text: str) -> None:
        os.write(self._writing, text.encode())

    def end_input(self) -> None:
        os.close(self._writing)

    def expect(self, pattern: str) -> str:
        """Wait until the output that was not expected yet matches, and give the match."""
        deadline = time.monotonic() + DEADLINE_S
        while not (found := re.search(pattern, self.output[self._seen :])):
            assert not self._ended, f"ended without {pattern!r}:\n{self.output}"
            assert self._read(deadline), f"no {pattern!r} in {DEADLINE_S:g} s:\n{self.output}"
        self._seen += found.end()
        return found.group()

    def expect_status(self, pattern: str) -> str:
        """Ask for the status until it matches."""
        while True:
            self.type("/status\n")
            if re.search(pattern, lanes := self.expect(r"(?s)Lanes:.*?heartbeat +\d+ of \d+ running")):
                return lanes

    def ends_with(self, code: int) -> str:
        """Wait for the end, check how it ended and that there was no traceback, and give all output."""
        deadline = time.monotonic() + DEADLINE_S
        while not self._ended:
            assert self._read(deadline), f"still running:\n{self.output}"
        assert self.popen.wait(DEADLINE_S) == code, self.output
        assert "Traceback" not in self.output
        assert "Error" not in self.output
        return self.output

    def read_for(self, seconds: float) -> None:
        """Take in what is said for so long, or until the end."""
        deadline = time.monotonic() + seconds
        while not self._ended and self._read(deadline):
            continue

    def rest(self) -> str:
        """All output, when the process is gone."""
        while not self._ended:
            self._read(time.monotonic() + DEADLINE_S)
        return self.output

    def kill(self) -> None:
        """SIGKILL; it is gone when this returns."""
        self.popen.kill()
        self.popen.wait()

    def signal(self, number: signal.Signals) -> None:
        self.popen.send_signal(number)

    def terminal_settings(self) -> list[Any]:
        return termios.tcgetattr(self._reading)

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._reading], [], [], max(0, deadline - time.monotonic()))
        if ready:
            try:
                chunk = os.read(self._reading, 65_536)
            except OSError:  # the terminal has nobody left on its other side
                chunk = b""
            self._ended = not chunk
            self._take(self._decode(chunk))
        return bool(ready)

    def _take(self, text: str) -> None:
        if self._face:
            text, self._half = without_escapes(self._half + text)
        self.output += text


@contextmanager
def over_pipes(
    place: Path, *arguments: str, command: Sequence[str] = (str(COMMAND),), **variables: object
) -> Iterator[Process]:
    """The command with pipes for input and output; what it says on stderr is part of the output."""
    (stdin, writing), (reading, stdout) = os.pipe(), os.pipe()
    with started([*command, *arguments], stdin, stdout, place, variables) as popen:
        process = Process(popen, reading, writing)
        try:
            yield process
        finally:
            close(reading, writing)


@contextmanager
def in_terminal(place: Path, *arguments: str, **variables: object) -> Iterator[Process]:
    """The command in a terminal of its own, as a person has it."""
    master, slave = pty.openpty()
    command = [sys.executable, "-c", IN_TERMINAL, str(COMMAND), *arguments]
    with started(command, slave, os.dup(slave), place, variables) as popen:
        try:
            yield Process(popen, master, master, face=True)
        finally:
            close(master)


def environment(place: Path, environ: Mapping[str, str] | None = None, **variables: object) -> dict[str, str]:
    """All that the command is told: nothing of the person's own, whose chats are not to be touched.

    ``environ`` is given to it as it is, the other variables as settings.
    """
    usual = {"PATH": os.environ["PATH"], "TERM": "xterm", "LANG": "C.UTF-8", "HOME": str(place), **(environ or {})}
    given = {"data_dir": place / "data", "port": 0, **variables}
    return usual | {f"GOCLAW_{name.upper()}": str(value) for name, value in given.items()}


@contextmanager
def started(
    command: list[str], stdin: int, stdout: int, place: Path, variables: dict[str, Any]
) -> Iterator[subprocess.Popen[bytes]]:
    popen = subprocess.Popen(
        command,
        stdin=stdin,
        stdout=stdout,
        stderr=stdout,
        cwd=place,
        env=environment(place, **variables),
        start_new_session=True,
    )
    close(stdin, stdout)
    try:
        yield popen
    finally:
        popen.kill()
        popen.wait()


def close(*descriptors: int) -> None:
    for descriptor in descriptors:
        try:
            os.close(descriptor)
        except OSError:
            continue
