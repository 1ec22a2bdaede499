"""goclaw with a mistake in it: it dies as soon as it works, with its secrets in the error and in the variables."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import trio

from gateway import chat
from gateway.start import main

if TYPE_CHECKING:
    from gateway.channels.terminal import Terminal
    from gateway.chat import Door
    from gateway.stores import Opened
    from gateway.work import Setup


async def work(setup: Setup, opened: Opened, terminal: Terminal, door: Door) -> None:
    await trio.lowlevel.checkpoint()
    secrets = {name: value for name, value in os.environ.items() if "GOCLAW" in name}
    raise RuntimeError(f"a mistake with {secrets} and {setup.settings!r}")


if __name__ == "__main__":
    chat.work = work
    main()
