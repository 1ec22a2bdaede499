"""`goclaw top` at a terminal: one picture a second, until Ctrl-C or q. A gateway that goes away is looked for again."""

from __future__ import annotations

import os
import signal
import sys
import termios
import tty
from contextlib import contextmanager
from typing import TYPE_CHECKING

import trio

from gateway.cli.picture import picture
from gateway.cli.reach import Api, Gone, Refused, elsewhere
from gateway.cli.shell import console
from gateway.clock import utc_now

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType
    from rich.live import Live

    from gateway.settings import Settings

EVERY_S = 1.0
SMALLEST = 3
"""So many runs are shown however low the window is."""
REST = 18
"""Lines that are not about runs."""


async def watch(settings: Settings) -> None:
    from rich.live import Live

    screen = console()
    with Live(
        "Looking for a gateway …", console=screen, screen=True, auto_refresh=False, vertical_overflow="crop"
    ) as live:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(leave_on_signal, nursery.cancel_scope)
            if sys.stdin.isatty():
                nursery.start_soon(leave_on_key, nursery.cancel_scope)
            while True:
                await follow(settings, live)
                await trio.sleep(EVERY_S)


async def follow(settings: Settings, live: Live) -> None:
    """Pictures of the gateway that there is, for as long as it answers."""
    async with elsewhere(settings) as api:
        if api is None:
            draw(live, "No gateway runs on this machine. Looking for one; goclaw run starts one.\n\nq leaves.")
            return
        try:
            while True:
                draw(live, await taken(api, live.console.height))
                await trio.sleep(EVERY_S)
        except Gone:
            draw(live, "The gateway has gone away. Looking for it; goclaw run starts one.\n\nq leaves.")
        except Refused as refused:
            draw(live, f"The gateway does not answer well: {refused}. Asking again.\n\nq leaves.")


async def taken(api: Api, height: int) -> RenderableType:
    found = await api.get("/v1/status")
    return picture(found, utc_now(), shown=max(height - REST, SMALLEST))


def draw(live: Live, what: RenderableType) -> None:
    live.update(what, refresh=True)


async def leave_on_signal(scope: trio.CancelScope) -> None:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()


async def leave_on_key(scope: trio.CancelScope) -> None:
    with single_keys(sys.stdin.fileno()) as keyboard:
        while True:
            await trio.lowlevel.wait_readable(keyboard)
            pressed = os.read(keyboard, 100)
            if not pressed or pressed[:1] in (b"q", b"Q", b"\x04"):
                scope.cancel()


@contextmanager
def single_keys(terminal: int) -> Iterator[int]:
    """Keys come one by one and are not shown; Ctrl-C is a signal still. The terminal is left as it was."""
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)
    try:
        yield terminal
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
