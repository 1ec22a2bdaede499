"""A chat in this terminal: with the gateway that runs on this machine, or with one of its own beside the terminal.

Ctrl-C stops what runs, and leaves when nothing does. SIGTERM leaves. Asking twice to leave ends everything at once.
While another gateway has the chat, nothing was taken in yet: whoever leaves then leaves at once.
"""

from __future__ import annotations

import signal
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from gateway.app import LAST_WORDS_S
from gateway.channels.terminal import WELCOME, Terminal
from gateway.collector import paced_collector
from gateway.commands import COMMANDS
from gateway.plain import counted
from gateway.remote import Remote, found
from gateway.stores import data_directory, open_store
from gateway.work import Setup, working
from store.protocols import InUse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx2

    from gateway.app import Gateway
    from gateway.stores import Opened
    from store.records import Lease


async def chat(setup: Setup) -> None:
    """What was said is kept; what was not answered is answered next time."""
    if await chat_elsewhere(setup):
        return
    try:
        await chat_here(setup)
    except InUse:
        if not await chat_elsewhere(setup):  # a gateway that was just starting
            raise


async def chat_elsewhere(setup: Setup) -> bool:
    """With the gateway that runs on this machine; False if there is none."""
    async with found(data_directory(setup.settings)) as client:
        if client is None:
            return False
        async with at_the_terminal(setup) as (terminal, door):
            await work_elsewhere(setup, client, terminal, door)
        return True


async def chat_here(setup: Setup) -> None:
    async with open_store(setup.settings) as opened:
        with paced_collector():
            async with at_the_terminal(setup) as (terminal, door):
                await work(setup, opened, terminal, door)


@asynccontextmanager
async def at_the_terminal(setup: Setup) -> AsyncIterator[tuple[Terminal, Door]]:
    async with trio.open_nursery() as nursery:
        terminal = Terminal(history=data_directory(setup.settings) / "chat_history", commands=COMMANDS)
        door = Door(terminal, nursery.cancel_scope)
        await nursery.start(watch_signals, door)
        nursery.start_soon(terminal.write)
        terminal.tell(WELCOME)
        with door.coming_in:
            yield terminal, door
        with trio.move_on_after(LAST_WORDS_S):  # nobody may be reading any more
            await terminal.flush()
        nursery.cancel_scope.cancel()


async def work_elsewhere(setup: Setup, client: httpx2.AsyncClient, terminal: Terminal, door: Door) -> None:
    """Serve the terminal from the gateway that runs on this machine already."""
    terminal.tell(f"The gateway at {str(client.base_url).rstrip('/')} answers here.")
    async with trio.open_nursery() as nursery:
        door.gateway = remote = Remote(client, terminal, nursery, data_directory(setup.settings))
        await terminal.read(remote)
        nursery.cancel_scope.cancel()


async def work(setup: Setup, opened: Opened, terminal: Terminal, door: Door) -> None:
    """Serve the terminal for as long as this process may work on the messages."""
    async with (
        left_early(door),
        working(setup, opened, [terminal], lambda holder: terminal.tell(waiting_text(holder))) as at_work,
    ):
        if at_work.gateway.taken_up:
            terminal.tell(f"Going on with {counted(at_work.gateway.taken_up, 'message')} from before.")
        door.gateway = at_work.gateway
        await terminal.read(at_work.gateway)


def waiting_text(holder: Lease) -> str:
    return f"Another gateway ({holder.owner}) works on this store; waiting until it has ended. Ctrl-C leaves."


class Door:
    """How a chat is left: at once as long as there is no gateway, then well, and at once when asked twice."""

    def __init__(self, terminal: Terminal, everything: trio.CancelScope) -> None:
        self.terminal = terminal
        self.gateway: Gateway | Remote | None = None
        self.coming_in = trio.CancelScope()
        self._everything = everything

    async def interrupt(self) -> None:
        if self.gateway is not None and self.gateway.busy and not self.terminal.leaving:
            await self.terminal.say(self.gateway, "/stop")
        else:
            self.leave()

    def leave(self) -> None:
        first = self.terminal.leave()
        if not first:
            self._everything.cancel()
        elif self.gateway is None:
            self.coming_in.cancel()


@asynccontextmanager
async def left_early(door: Door) -> AsyncIterator[None]:
    """Whoever closes the input before anything could be taken in, and has typed nothing, has left."""

    async def watch() -> None:
        await door.terminal.closed_unsaid()
        if door.gateway is None:
            door.leave()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        yield
        nursery.cancel_scope.cancel()


async def watch_signals(door: Door, task_status: trio.TaskStatus[None]) -> None:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async with trio.open_nursery() as stops:
            await heed(signals, door, stops)


async def heed(signals: AsyncIterator[int], door: Door, stops: trio.Nursery) -> None:
    """A stop that is not taken in yet holds up nobody who wants to leave."""
    async for number in signals:
        if number == signal.SIGINT:
            stops.start_soon(door.interrupt)
        else:
            door.leave()
