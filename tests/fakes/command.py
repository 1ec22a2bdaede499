"""A fake server as a command: its base URL on stdout, what each request asked on stderr, until SIGINT or SIGTERM."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from tests.fakes import words
from tests.fakes.script_file import read_script
from tests.fakes.server import serving

if TYPE_CHECKING:
    from tests.fakes.answer import Received
    from tests.fakes.dialect import Dialect
    from tests.fakes.script import Script

SHOWN = 200


def run(dialect: Dialect, about: str | None) -> int:
    parser = argparse.ArgumentParser(
        prog=f"python -m tests.fakes.{dialect.name}",
        description=f"{about}\n\n{words.__doc__}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one (default)")
    parser.add_argument("--script", type=Path, metavar="FILE.json", help="rules; see tests/fakes/script_file.py")
    parser.add_argument("--key", help="the only API key that is let in")
    arguments = parser.parse_args()
    try:
        script = words.by_hand if arguments.script is None else read_script(arguments.script)
        trio.run(serve, dialect, script, arguments.port, arguments.key)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    return 0


async def serve(dialect: Dialect, script: Script, port: int, key: str | None) -> None:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with serving(dialect, script, port=port, require_key=key, heard=tell) as server:
            sys.stdout.write(f"{server.base_url}\n")
            sys.stdout.flush()
            async for _ in signals:
                return


def tell(received: Received) -> None:
    sys.stderr.write(f"{received.number}: {asked(received) if received.ended is None else outcome(received)}\n")
    sys.stderr.flush()


def asked(received: Received) -> str:
    asked = received.asked
    if not asked.messages:
        return "refused"
    how = "streamed" if asked.stream else "whole"
    tools = f", tools {' '.join(tool.name for tool in asked.tools)}" if asked.tools else ""
    last = asked.last.all_text or " ".join(call.name for call in asked.last.calls)
    return f"{asked.model}, {how}, {len(asked.messages)} messages{tools}, last by {asked.last.role}: {last[:SHOWN]!r}"


def outcome(received: Received) -> str:
    how = "finished" if received.finished else "cut by the client" if received.cut else "not finished"
    took_s = (received.ended or received.started) - received.started
    return f"{how}, status {received.status}, {took_s:.2f} s, {len(''.join(received.said))} characters"
