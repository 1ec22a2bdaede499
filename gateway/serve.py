"""`goclaw run`: a gateway without a terminal of its own, until SIGTERM or Ctrl-C; a second one ends it at once."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import trio

from gateway.collector import paced_collector
from gateway.plain import counted
from gateway.stores import open_store
from gateway.systemd import Systemd
from gateway.work import working

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.work import Setup
    from store.records import Lease


async def serve(setup: Setup, tell: Callable[[str], None]) -> None:
    """What was accepted and not answered is answered next time."""
    systemd = Systemd(os.environ, os.getpid())

    def waiting(holder: Lease) -> None:
        tell(f"Another gateway ({holder.owner}) works on the messages; this one waits, and runs jobs meanwhile.")
        systemd.waiting()

    async with open_store(setup.settings) as opened:
        with paced_collector():
            async with trio.open_nursery() as nursery:
                leaving = trio.Event()
                coming_in = trio.CancelScope()
                await nursery.start(watch_signals, leaving, coming_in, nursery.cancel_scope, tell, systemd)
                nursery.start_soon(systemd.keep_alive)
                with coming_in:
                    async with working(
                        setup, opened, [], waiting, serving=lambda url: tell(f"goclaw listens on {url}")
                    ) as at_work:
                        coming_in.shield = True
                        systemd.working()
                        if at_work.gateway.taken_up:
                            tell(f"Going on with {counted(at_work.gateway.taken_up, 'message')} from before.")
                        await leaving.wait()
                nursery.cancel_scope.cancel()


async def watch_signals(
    leaving: trio.Event,
    coming_in: trio.CancelScope,
    everything: trio.CancelScope,
    tell: Callable[[str], None],
    systemd: Systemd,
    task_status: trio.TaskStatus[None],
) -> None:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async for _ in signals:
            if leaving.is_set():
                coming_in.shield = False
                everything.cancel()
                return
            tell("Ending: what runs may finish. Once more ends it at once.")
            leaving.set()
            systemd.stopping()
            if not coming_in.shield:
                coming_in.cancel()
