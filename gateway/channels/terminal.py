"""A chat in the terminal: lines in, replies out, work in progress that ends when the answer comes.

Output is written by one task, in order, in a thread: a terminal that is held back holds back nothing else. Without a
terminal (a pipe, a file) there is no prompt and no work in progress, only the replies.
"""

from __future__ import annotations

import math
from itertools import count
from typing import TYPE_CHECKING
from uuid import uuid4

import trio

from gateway.channels.lines import LineReader, LineTooLong
from gateway.channels.screen import Piece, PlainScreen, RichScreen, is_terminal
from gateway.protocols import ChannelError, Pace
from store.records import DeliveryKey, Incoming, SessionKey

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gateway.protocols import Delivery, Intake

SESSION = SessionKey("default", "main", "terminal", "", "local")
WELCOME = "goclaw: hello. Write something, or /help for commands. Ctrl-C stops what runs, Ctrl-D leaves."


class Terminal:
    name = "terminal"
    pace = Pace()

    def __init__(
        self,
        input_fd: int = 0,
        output_fd: int = 1,
        *,
        sender: str = "you",
        history: Path | None = None,
        commands: Mapping[str, str] | None = None,
    ) -> None:
        self._sender = sender
        self._chat = uuid4().hex
        self._numbers = count(1)
        self._put, self._take = trio.open_memory_channel[Piece](math.inf)
        self._reading = trio.CancelScope()
        self._rich: RichScreen | None = None
        self._lines: LineReader | TypedLines = LineReader(input_fd)
        if is_terminal(input_fd) and is_terminal(output_fd):
            self._lines = typed = TypedLines()
            self._rich = RichScreen(
                input_fd, output_fd, sender=sender, history=history, commands=commands or {}, entered=typed.add
            )
        self._screen = self._rich or PlainScreen(output_fd)

    async def send(self, delivery: Delivery) -> str:
        piece = Piece("reply", delivery.text, delivery.session.agent, delivery.turn)
        self._put.send_nowait(piece)
        await piece.written.wait()
        if piece.failed:
            raise ChannelError("the terminal is gone", retriable=False)
        return ""

    def show(self, session: SessionKey, turn: str, text: str) -> None:
        if self._rich is not None:
            self._rich.live.show(turn, session.agent, text)
            self._rich.refresh()

    def clear(self, session: SessionKey, turn: str) -> None:
        if self._rich is not None:
            self._rich.live.clear(turn)
            self._rich.refresh()

    def hint(self, session: SessionKey, text: str) -> None:
        if self._rich is not None:
            self._rich.live.hint(text)
            self._rich.refresh()

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
                await self.say(intake, *(line for line in lines if line.strip()))
            await intake.drained()

    async def closed_unsaid(self) -> None:
        """Wait until a person closes the input with nothing typed that waits to be read. A pipe waits for its turn."""
        if isinstance(self._lines, TypedLines):
            await self._lines.closed_empty.wait()
        else:
            await trio.sleep_forever()

    def tell(self, text: str) -> None:
        """Say something that is not part of the conversation, to a person at a terminal only."""
        self._put.send_nowait(Piece("notice", text))

    async def say(self, intake: Intake, *texts: str) -> None:
        """Hand in what was typed, all at once: a stop among it is seen first."""
        if texts:
            await intake.receive([self._incoming(text) for text in texts])

    async def write(self) -> None:
        async with self._screen.open():
            async for piece in self._take:
                try:
                    await self._screen.put(piece)
                except OSError:  # nobody is there to read it
                    piece.failed = True
                piece.written.set()

    async def flush(self) -> None:
        """Wait until everything said so far has been written; the terminal is then as it was before."""
        piece = Piece("bye", "Bye.")
        self._put.send_nowait(piece)
        await piece.written.wait()

    def _incoming(self, text: str) -> Incoming:
        key = DeliveryKey(self.name, "", f"{self._chat}:{next(self._numbers)}")
        return Incoming(key, SESSION, self._sender, text)


class TypedLines:
    """Lines from the input line of a real terminal, all that are there at a time."""

    def __init__(self) -> None:
        self._put, self._take = trio.open_memory_channel[str](math.inf)
        self.closed_empty = trio.Event()

    def add(self, line: str | None) -> None:
        if line is None:
            if not self._put.statistics().current_buffer_used:
                self.closed_empty.set()
            self._put.close()
        else:
            self._put.send_nowait(line)

    async def read(self) -> list[str] | None:
        lines: list[str] = []
        try:
            lines.append(await self._take.receive())
            while True:
                lines.append(self._take.receive_nowait())
        except (trio.WouldBlock, trio.EndOfChannel):
            return lines or None
