"""What a person sees: plain lines where there is no terminal, else the conversation above an input line.

Both take one piece after the other and say whether it reached anybody. What costs time to import comes only with a real
terminal, and in its thread.
"""

from __future__ import annotations

import os
import signal
import sys
import termios
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import trio

from gateway.channels.printable import printable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from gateway.channels.prompt import Prompt

PART_S = 0.5  # the terminal's thread has so long to put things back
BOLD, CYAN, DIM, PLAIN = "\x1b[1m", "\x1b[1;36m", "\x1b[2m", "\x1b[0m"


@dataclass(slots=True)
class Piece:
    """Something to be written, and the event that tells it was."""

    kind: str
    """reply, notice or bye."""
    text: str = ""
    name: str = ""
    turn: str = ""
    written: trio.Event = field(default_factory=trio.Event)
    failed: bool = False


class Screen(Protocol):
    def open(self) -> AbstractAsyncContextManager[None]:
        """As long as something may be written."""

    async def put(self, piece: Piece) -> None:
        """Returns when it is written; raises OSError if nobody is there."""


class PlainScreen:
    """A pipe, a file or a dumb terminal: only the replies, exactly."""

    def __init__(self, output_fd: int) -> None:
        self._output_fd = output_fd

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        yield

    async def put(self, piece: Piece) -> None:
        await write(self._output_fd, f"{printable(piece.text)}\n" if piece.kind == "reply" else "")


class RichScreen:
    """A real terminal. ``entered`` gets each line typed, and None when there will be no more."""

    def __init__(
        self,
        input_fd: int,
        output_fd: int,
        *,
        sender: str,
        history: Path | None,
        commands: Mapping[str, str],
        entered: Callable[[str | None], None],
    ) -> None:
        from gateway.channels.live import Live

        self.live = Live()
        self._input_fd = input_fd
        self._output_fd = output_fd
        self._label = f"{sender}>"
        self._history = history
        self._commands = commands
        self._entered = entered
        self._colour = not os.environ.get("NO_COLOR")
        self._prompt: Prompt | None = None
        self._parting = False
        self._begun = trio.Event()
        self._ended = trio.Event()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        before = settings(self._input_fd)
        token = trio.lowlevel.current_trio_token()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._serve, token)
                nursery.start_soon(self._go_on)
                yield
                nursery.cancel_scope.cancel()
        finally:
            self._stop()
            with trio.move_on_after(PART_S, shield=True):
                await self._ended.wait()
            if before is not None and not self._ended.is_set():
                with suppress(termios.error):  # it is stuck: leave at least the keys as they were
                    termios.tcsetattr(self._input_fd, termios.TCSANOW, before)

    def refresh(self) -> None:
        if self._prompt is not None:
            self._prompt.refresh()

    async def put(self, piece: Piece) -> None:
        await self._begun.wait()
        if piece.kind == "bye":
            await self._part()
        text = await trio.to_thread.run_sync(self._render, piece, abandon_on_cancel=True)
        if not await self._above(text, piece.turn if piece.kind == "reply" else None):
            await write(self._output_fd, text)

    def _render(self, piece: Piece) -> str:
        if piece.kind == "reply":
            from gateway.channels.markdown import rendered

            label = f"{printable(piece.name)}>" if piece.name else ""
            return rendered(piece.text, columns(self._output_fd), label=label, colour=self._colour)
        from gateway.channels.live import wrapped

        lines = (line for text in printable(piece.text).split("\n") for line in wrapped(text, columns(self._output_fd)))
        return "".join(f"{DIM}{line}{PLAIN}\n" for line in lines)

    async def _above(self, text: str, turn: str | None) -> bool:
        """False if the prompt is not there to do it, or was gone before it did."""
        if self._prompt is None or self._ended.is_set():
            return False
        done, results = trio.Event(), list[bool]()
        token = trio.lowlevel.current_trio_token()

        def printed(well: bool) -> None:
            results.append(well)
            tell(token, done.set)

        if not self._prompt.print_above(text, turn, printed):
            return False
        async with trio.open_nursery() as nursery:
            nursery.start_soon(until, self._ended, nursery.cancel_scope)
            await done.wait()
            nursery.cancel_scope.cancel()
        return results == [True]

    async def _part(self) -> None:
        self._stop()
        await self._ended.wait()

    def _stop(self) -> None:
        self._parting = True
        if self._prompt is not None:
            self._prompt.stop()

    async def _serve(self, token: trio.lowlevel.TrioToken) -> None:
        await trio.to_thread.run_sync(self._in_thread, token, abandon_on_cancel=True, limiter=trio.CapacityLimiter(1))

    async def _go_on(self) -> None:
        with trio.open_signal_receiver(signal.SIGCONT) as signals:
            async for _ in signals:
                if self._prompt is not None:
                    self._prompt.resume()

    def _in_thread(self, token: trio.lowlevel.TrioToken) -> None:
        try:
            from gateway.channels.prompt import Prompt

            prompt = self._prompt = Prompt(
                self._input_fd,
                self._output_fd,
                label=self._label,
                live=self.live,
                history=self._history,
                commands=self._commands,
                entered=lambda line: tell(token, lambda: self._entered(line)),
                echo=self._echo,
                in_main=partial(tell, token),
            )
            if not self._parting:
                prompt.run(lambda: tell(token, self._begun.set))
        finally:
            tell(token, self._over)

    def _over(self) -> None:
        self._ended.set()
        self._begun.set()

    def _echo(self, line: str) -> str:
        start = f"{CYAN if self._colour else BOLD}{self._label}{PLAIN} "
        return start + printable(line).replace("\n", "\n" + " " * (len(self._label) + 1)) + "\n"


def tell(token: trio.lowlevel.TrioToken, what: Callable[[], object]) -> None:
    """From the terminal's thread; the gateway may be gone already."""
    with suppress(trio.RunFinishedError):
        token.run_sync_soon(what)


async def until(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


async def write(fd: int, text: str) -> None:
    # Abandoned when we leave: a terminal that is held back must not keep the process.
    await trio.to_thread.run_sync(write_all, fd, text, abandon_on_cancel=True)


def write_all(fd: int, text: str) -> None:
    data = text.encode("utf-8", errors="replace")
    while data:
        data = data[os.write(fd, data) :]


def is_terminal(fd: int) -> bool:
    try:
        return os.isatty(fd) and os.environ.get("TERM", "dumb") != "dumb" and sys.platform != "win32"
    except OSError:
        return False


def columns(fd: int) -> int:
    try:
        return os.get_terminal_size(fd).columns or 80
    except OSError:
        return 80


def settings(fd: int) -> list[Any] | None:
    try:
        return termios.tcgetattr(fd)
    except termios.error:
        return None
