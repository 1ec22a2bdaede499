"""A chat in the terminal: lines in, replies out, work in progress on one line that ends when the answer comes.

Output is written by one task in a worker thread, in order: a terminal that is held back (Ctrl-S) holds back nothing
else. Without a terminal (a pipe, a file) there is no prompt and no work in progress, only the replies.
"""

from __future__ import annotations

import math
import os
import sys
import unicodedata
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING
from uuid import uuid4

import trio

from gateway.channels.lines import LineReader, LineTooLong
from gateway.protocols import ChannelError
from store.records import DeliveryKey, Incoming, SessionKey

if TYPE_CHECKING:
    from gateway.protocols import Intake

PROMPT = "> "
KEPT = "\n\t\u200c\u200d"  # and the two joiners that Persian and emoji are written with
ERASE_LINE = "\r\x1b[K"
SESSION = SessionKey("default", "main", "terminal", "", "local")
WELCOME = "goclaw: hello. Write something, or /help for commands. Ctrl-C stops what runs, Ctrl-D leaves."


@dataclass(slots=True)
class Piece:
    """Something to be written, and the event that tells it was."""

    kind: str
    text: str = ""
    written: trio.Event = field(default_factory=trio.Event)
    failed: bool = False


class Terminal:
    name = "terminal"

    def __init__(self, input_fd: int = 0, output_fd: int = 1, *, sender: str = "you") -> None:
        self._lines = LineReader(input_fd)
        self._output_fd = output_fd
        self._sender = sender
        self._chat = uuid4().hex
        self._numbers = count(1)
        self._put, self._take = trio.open_memory_channel[Piece](math.inf)
        self._screen = Screen(is_terminal(input_fd) and is_terminal(output_fd))
        self._reading = trio.CancelScope()

    async def send(self, session: SessionKey, text: str) -> None:
        piece = Piece("reply", text)
        self._put.send_nowait(piece)
        await piece.written.wait()
        if piece.failed:
            raise ChannelError("the terminal is gone", retriable=False)

    def show(self, session: SessionKey, text: str) -> None:
        self._put.send_nowait(Piece("live", text))

    def clear(self, session: SessionKey) -> None:
        self._put.send_nowait(Piece("clear"))

    @property
    def leaving(self) -> bool:
        return self._reading.cancel_called

    def leave(self) -> bool:
        """Stop reading and waiting. False if that was asked before."""
        first = not self.leaving
        self._reading.cancel()
        return first

    async def read(self, intake: Intake) -> None:
        """Hand lines in until the input ends; then wait until all of them are answered."""
        with self._reading:
            while True:
                try:
                    lines = await self._lines.read()
                except LineTooLong as error:
                    self._put.send_nowait(Piece("reply", f"{error}."))
                    continue
                if lines is None:
                    break
                self._put.send_nowait(Piece("entered"))
                await self.say(intake, *(line for line in lines if line.strip()))
            await intake.drained()

    def tell(self, text: str) -> None:
        """Say something that is not part of the conversation, to a person at a terminal only."""
        self._put.send_nowait(Piece("notice", text))

    async def say(self, intake: Intake, *texts: str) -> None:
        """Hand in what was typed, all at once: a stop among it is seen first."""
        if texts:
            await intake.receive([self._incoming(text) for text in texts])

    async def write(self) -> None:
        async for piece in self._take:
            try:
                text = self._screen.render(piece)
                # Abandoned when we leave: a terminal that is held back must not keep the process.
                await trio.to_thread.run_sync(write_all, self._output_fd, text, abandon_on_cancel=True)
            except OSError:  # nobody is there to read it
                piece.failed = True
            piece.written.set()

    async def flush(self) -> None:
        """Wait until everything said so far has been written."""
        piece = Piece("bye")
        self._put.send_nowait(piece)
        await piece.written.wait()

    def _incoming(self, text: str) -> Incoming:
        key = DeliveryKey(self.name, "", f"{self._chat}:{next(self._numbers)}")
        return Incoming(key, SESSION, self._sender, text)


class Screen:
    """What the bottom line of the terminal shows, so that output and prompt do not run into each other. Pure."""

    def __init__(self, interactive: bool) -> None:
        self._interactive = interactive
        self._bottom = ""  # "", "prompt" or "live"

    def render(self, piece: Piece) -> str:
        if not self._interactive:
            return f"{printable(piece.text)}\n" if piece.kind == "reply" else ""
        return getattr(self, f"_{piece.kind}")(printable(piece.text))  # type: ignore[no-any-return]

    def _notice(self, text: str) -> str:
        return self._reply(text)

    def _entered(self, text: str) -> str:
        self._bottom = "prompt"
        return PROMPT

    def _reply(self, text: str) -> str:
        start = {"": "", "prompt": ERASE_LINE, "live": "\n"}[self._bottom]
        self._bottom = "prompt"
        return f"{start}{text}\n{PROMPT}"

    def _live(self, text: str) -> str:
        start = "" if self._bottom == "live" else f"{ERASE_LINE}… "
        self._bottom = "live"
        return f"{start}{text}"

    def _clear(self, text: str) -> str:
        if self._bottom != "live":
            return ""
        self._bottom = "prompt"
        return f"\n{PROMPT}"

    def _bye(self, text: str) -> str:
        start = ERASE_LINE if self._bottom == "prompt" else "\n"
        self._bottom = ""
        return f"{start}Bye.\n"


def printable(text: str) -> str:
    """Without what would move the cursor or change the terminal; agents repeat what strangers write."""
    return "".join(char for char in text if char in KEPT or char.isprintable() or unicodedata.category(char) == "Zs")


def is_terminal(fd: int) -> bool:
    try:
        return os.isatty(fd) and os.environ.get("TERM") != "dumb" and sys.platform != "win32"
    except OSError:
        return False


def write_all(fd: int, text: str) -> None:
    data = text.encode("utf-8", errors="replace")
    while data:
        data = data[os.write(fd, data) :]
