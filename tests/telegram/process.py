"""`goclaw run` in a process of its own, reading a Telegram that outlives it."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

import trio

from tests.flow.process import COMMAND
from tests.telegram.world import CANARY, TEAM

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fakes.botapi import BotApi


async def started(nursery: trio.Nursery, api: BotApi, place: Path, **variables: object) -> trio.Process:
    """It runs until it is killed or the nursery ends; what it says is in ``place``."""
    await trio.Path(place).mkdir(exist_ok=True)
    given = {
        "data_dir": place,
        "port": 0,
        "queue_debounce": 0,
        "queue_cap": 1000,
        "shutdown_grace": 0,
        "telegram_token": CANARY,
        "telegram_api_url": api.address,
        "telegram_allow": f"7,{TEAM}",
        "log_level": "info",
        **variables,
    }
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GOCLAW_")}
    environ = inherited | {f"GOCLAW_{name.upper()}": str(value) for name, value in given.items()}
    said = (place / "said.log").open("ab")
    run: Any = partial(
        trio.run_process, [str(COMMAND), "run"], cwd=place, env=environ, stdout=said, stderr=said, check=False
    )
    with said:
        process: trio.Process = await nursery.start(run)
    return process


async def killed(process: trio.Process) -> None:
    process.kill()
    await process.wait()


def said(place: Path) -> str:
    """All that it has written anywhere, as one text."""
    files = [path for path in place.rglob("*") if path.is_file() and path.suffix in (".log", ".jsonl", ".json")]
    return "".join(path.read_text(encoding="utf-8", errors="replace") for path in files)
