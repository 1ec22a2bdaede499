"""A small chat for tests in a real terminal: `python -m tests.unit.gateway.echo_chat [history file]`.

What is typed comes back; `work` begins to grow, `more` goes on and `done` answers; `md` is an answer in Markdown,
`evil` one that tries to harm the terminal, `flood` one that fills it; `hint`, `notice` and `crash` are what they say.
As in the gateway, Ctrl-C stops work if there is some and leaves otherwise.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from gateway.channels.terminal import SESSION, WELCOME, Terminal
from gateway.protocols import Delivery

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.records import Cursor, Incoming

COMMANDS = {"stop": "stop what runs", "stopall": "stop everything", "help": "this list"}
EVIL = "\x1b]0;owned\x07 \x1b[2J \x9b31m &#x202e; &#13; \x85 \u202e evil [x](http://a.b/\x1b[2J) `\x1b[1m`"
MARKDOWN = "# Title\n- one **bold**\n- `two`\n\n```python\nprint('hi')\n```\nSee [docs](https://example.org)."


class Echo:
    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.busy = False
        self.turns = 0

    async def receive(self, batch: Sequence[Incoming], cursor: Cursor | None = None) -> None:
        for incoming in batch:
            await self._answer(incoming.text)

    async def drained(self) -> None:
        await trio.lowlevel.checkpoint()

    async def _answer(self, text: str) -> None:
        turn = f"turn {self.turns}"
        if text == "crash":
            raise RuntimeError("asked to crash")
        if text == "hint":
            self.terminal.hint(SESSION, "Queued, 2 before you")
        elif text == "notice":
            self.terminal.tell("a notice")
        elif text == "work":
            self.busy = True
            self.turns += 1
            self.terminal.show(SESSION, f"turn {self.turns}", "working ")
        elif text == "more":
            self.terminal.show(SESSION, turn, "more\n")
        elif text == "/stop":
            self.busy = False
            self.terminal.clear(SESSION, turn)
            await self.say("Stopped.", "")
        elif text == "done":
            self.busy = False
            await self.say("Done.", turn)
        else:
            await self.say({"md": MARKDOWN, "evil": EVIL, "flood": "flood " * 100_000}.get(text, f"echo {text!r}"), "")

    async def say(self, text: str, turn: str) -> None:
        await self.terminal.send(Delivery(SESSION, text, turn, 0, "", progress))


async def progress(parts: int, live: str) -> None:
    await trio.lowlevel.checkpoint()


async def watch(terminal: Terminal, echo: Echo, everything: trio.CancelScope) -> None:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for number in signals:
            if number == signal.SIGINT and echo.busy and not terminal.leaving:
                await terminal.say(echo, "/stop")
            elif not terminal.leave():
                everything.cancel()


async def later(terminal: Terminal, echo: Echo) -> None:
    """Says something whenever it gets SIGUSR1, whatever is being typed."""
    with trio.open_signal_receiver(signal.SIGUSR1) as signals:
        async for _ in signals:
            await echo.say("meanwhile", "")


async def main(history: Path | None) -> None:
    async with trio.open_nursery() as nursery:
        terminal = Terminal(history=history, commands=COMMANDS)
        echo = Echo(terminal)
        nursery.start_soon(terminal.write)
        nursery.start_soon(watch, terminal, echo, nursery.cancel_scope)
        nursery.start_soon(later, terminal, echo)
        terminal.tell(WELCOME)
        await terminal.read(echo)
        with trio.move_on_after(5):
            await terminal.flush()
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]) if sys.argv[1:] else None)
