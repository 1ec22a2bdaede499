"""The chat in a real terminal, typed into like a person does, and looked at like a person does."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import sys
import termios
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.channels.device import KeyReader
from tests.flow.process import DEADLINE_S, IN_TERMINAL, Process, close, started
from tests.unit.gateway import echo_chat
from tests.unit.gateway.glass import Glass

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

PROGRAM = Path(echo_chat.__file__)
UP, DOWN, PASTE, PASTED = "\x1b[A", "\x1b[B", "\x1b[200~", "\x1b[201~"
CTRL_C, CTRL_D, CTRL_R, CTRL_U = "\x03", "\x04", "\x12", "\x15"


class Person(Process):
    """A process in a terminal, and what is to be seen there."""

    def __init__(self, popen: subprocess.Popen[bytes], master: int, columns: int) -> None:
        super().__init__(popen, master, master)
        self.master = master
        self.glass = Glass(columns)
        self._looked = 0

    def sees(self, what: Callable[[list[str]], object]) -> list[str]:
        """Wait until that is so."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            self.glass.feed(self.output[self._looked :])
            self._looked = len(self.output)
            lines = [line for line in self.glass.lines if line]
            if what(lines):
                return lines
            assert not self._ended, f"ended:\n{self.output}"
            assert self._read(deadline), "\n".join(["never seen; there is:", *lines])

    def ends_seeing(self, *end: str) -> list[str]:
        return self.sees(lambda lines: lines[-len(end) :] == [*end])

    def enters(self, line: str, *end: str) -> list[str]:
        self.type(f"{line}\r")
        return self.ends_seeing(*end)


@contextmanager
def chat(place: Path, *, columns: int = 80, history: str = "") -> Iterator[Person]:
    master, slave = pty.openpty()
    resize(master, columns)
    command = [sys.executable, "-c", IN_TERMINAL, sys.executable, str(PROGRAM), *filter(None, [history])]
    with started(command, slave, os.dup(slave), place, {}) as popen:
        try:
            person = Person(popen, master, columns)
            person.sees(lambda lines: lines[-1:] == ["you>"] and "leaves." in "".join(lines))
            yield person
        finally:
            close(master)


def resize(fd: int, columns: int) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))


def test_a_first_exchange(tmp_path: Path) -> None:
    """What was said stays above the input line, with who said it; wide characters take their room; Ctrl-D leaves."""
    with chat(tmp_path) as person:
        person.enters("hello 中文", "you> hello 中文", "main> echo 'hello 中文'", "you>")
        person.type(CTRL_D)
        person.expect("Bye.")
        person.ends_with(0)


def test_what_is_typed_stays_while_others_speak(tmp_path: Path) -> None:
    """An answer appears above the input line; typing goes on where it was."""
    with chat(tmp_path) as person:
        person.type("half a 中")
        person.ends_seeing("you> half a 中")
        person.signal(signal.SIGUSR1)
        person.ends_seeing("main> meanwhile", "you> half a 中")
        person.enters("文 line", "you> half a 中文 line", "main> echo 'half a 中文 line'", "you>")


def test_work_grows_and_makes_room_for_the_answer(tmp_path: Path) -> None:
    """Work in progress is between the conversation and the input line, and nothing of it is left after the answer."""
    with chat(tmp_path) as person:
        person.type("work\r")
        person.sees(lambda lines: lines[-2:] == ["working", "you>"] and " main " in lines[-3])
        person.type("more\r")
        person.sees(lambda lines: lines[-2:] == ["working more", "you>"])
        person.type("hint\r")
        person.sees(lambda lines: lines[-3:] == ["working more", "Queued, 2 before you", "you>"])
        lines = person.enters("done", "main> Done.", "you>")
        assert not [line for line in lines if "working" in line or "Queued" in line]


def test_ctrl_c_clears_stops_and_leaves(tmp_path: Path) -> None:
    """With text typed it clears the line; with an empty one it stops what runs; with nothing running it leaves. (P7)"""
    with chat(tmp_path) as person:
        person.type("work\r")
        person.sees(lambda lines: lines[-2:] == ["working", "you>"])
        person.type("oops")
        person.ends_seeing("working", "you> oops")
        person.type(CTRL_C)
        person.ends_seeing("working", "you>")
        person.type(CTRL_C)
        person.ends_seeing("main> Stopped.", "you>")
        person.type(CTRL_C)
        person.expect("Bye.")
        person.ends_with(0)


def test_history_lasts_from_chat_to_chat(tmp_path: Path) -> None:
    """Up and Ctrl-R bring back what was typed, in the next chat too, but nothing that began with a blank."""
    with chat(tmp_path, history="typed") as person:
        person.enters("first", "main> echo 'first'", "you>")
        person.enters("second", "main> echo 'second'", "you>")
        person.enters(" hidden", "main> echo ' hidden'", "you>")
        person.type(CTRL_D)
        person.ends_with(0)
    assert (tmp_path / "typed").stat().st_mode & 0o777 == 0o600
    with chat(tmp_path, history="typed") as person:
        person.type(UP)
        person.ends_seeing("you> second")
        person.type(UP)
        person.ends_seeing("you> first")
        person.type(DOWN)
        person.ends_seeing("you> second")
        person.type(f"{CTRL_U}{CTRL_R}fir")
        person.sees(lambda lines: lines[-2] == "you> first")
        person.type("\r")
        person.ends_seeing("you> first")
        person.enters("", "main> echo 'first'", "you>")


def test_pasted_lines_are_one_message(tmp_path: Path) -> None:
    """They wait for Enter, and are handed in together."""
    with chat(tmp_path) as person:
        person.type(f"{PASTE}one\rtwo{PASTED}")
        person.ends_seeing("you> one", "     two")
        person.enters("", r"main> echo 'one\ntwo'", "you>")


def test_commands_are_completed(tmp_path: Path) -> None:
    """Those that fit are listed with what they do; Tab takes the next."""
    with chat(tmp_path) as person:
        person.type("/stopa")
        person.sees(
            lambda lines: lines[-2] == "you> /stopa" and lines[-1].split() == ["/stopall", "stop", "everything"]
        )
        person.type("\t")
        person.sees(lambda lines: "you> /stopall" in lines)


def test_nothing_said_harms_the_terminal(tmp_path: Path) -> None:
    """No title, no clearing, no reversed writing: what comes from an agent is text."""
    with chat(tmp_path) as person:
        before = len(person.output)
        person.type("evil\r")
        person.sees(lambda lines: any("evil x" in line for line in lines) and lines[-1] == "you>")
        for harm in ["\x1b]", "\x07", "\x1b[2J", "\x9b", "\x85", "\u202e"]:
            assert harm not in person.output[before:]


def test_a_resized_terminal_is_drawn_anew(tmp_path: Path) -> None:
    """What is typed and what is said next fit into the new width."""
    with chat(tmp_path) as person:
        person.enters("hello", "main> echo 'hello'", "you>")
        resize(person.master, 40)
        person.glass.columns = 40
        person.enters("x" * 38, "you> " + "x" * 35, "xxx", "main> echo", "'" + "x" * 38 + "'", "you>")


def test_the_terminal_is_left_as_it_was(tmp_path: Path) -> None:
    """After leaving, after a signal and after a crash its settings are those from before."""
    for key in [CTRL_D, None]:
        with chat(tmp_path) as person:
            during = person.terminal_settings()
            if key:
                person.type(key)
            else:
                person.signal(signal.SIGTERM)
            person.expect("Bye.")
            assert person.terminal_settings()[3] & termios.ECHO
            assert not during[3] & termios.ECHO
            person.ends_with(0)
    with chat(tmp_path) as person:
        person.type("crash\r")
        person.expect("asked to crash")
        assert person.terminal_settings()[3] & termios.ECHO
        assert person.popen.wait(DEADLINE_S) == 1


def test_a_stopped_chat_goes_on(tmp_path: Path) -> None:
    """Whatever the shell did to the terminal meanwhile, it is taken back and what was typed is there."""
    with chat(tmp_path) as person:
        person.type("half")
        person.ends_seeing("you> half")
        raw = person.terminal_settings()
        person.signal(signal.SIGSTOP)
        cooked = [*raw[:3], raw[3] | termios.ECHO | termios.ICANON, *raw[4:]]
        termios.tcsetattr(person.master, termios.TCSANOW, cooked)
        person.signal(signal.SIGCONT)
        person.sees(lambda lines: person.terminal_settings()[3] == raw[3] and lines[-1] == "you> half")
        person.enters(" line", "main> echo 'half line'", "you>")


def test_a_terminal_that_is_gone_ends_the_chat(tmp_path: Path) -> None:
    """Its other side closed: the process ends, without the signal too, and does not ask for keys for ever."""
    master, slave = pty.openpty()
    with started([sys.executable, str(PROGRAM)], slave, os.dup(slave), tmp_path, {}) as popen:  # not its own terminal
        person = Person(popen, master, 80)
        person.ends_seeing("you>")
        close(master)
        assert popen.wait(DEADLINE_S) == 0


def test_keys_that_cannot_be_read_have_ended(tmp_path: Path) -> None:
    """Reading that fails is the end, not a reason to try again for ever."""
    place = os.open(tmp_path, os.O_RDONLY)  # ready to be read, and never is
    try:
        reader = KeyReader(place)
        assert not reader.closed
        assert reader.read() == ""
        assert reader.closed
    finally:
        close(place)


def test_a_terminal_that_is_held_back_does_not_keep_the_process(tmp_path: Path) -> None:
    """Nobody reads what it says: asked twice to leave, it leaves, and the keys are as they were."""
    with chat(tmp_path) as person:
        person.type("flood\r")
        person.expect("flood flood flood")  # and read no more of it
        person.signal(signal.SIGTERM)
        person.signal(signal.SIGINT)  # two equal signals at once could count as one
        assert person.popen.wait(DEADLINE_S) == 0
        assert person.terminal_settings()[3] & termios.ECHO
