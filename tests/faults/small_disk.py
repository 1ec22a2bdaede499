"""A process whose files may not grow beyond a limit: the system itself refuses the write, in the middle of a line.

Run as a child, for the limit holds for the whole process. Prints what it saw as one line of JSON.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from store.files import open_json
from store.protocols import StoreUnavailable
from tests.contract.backends import Wall
from tests.contract.rows import accepted

if TYPE_CHECKING:
    from store.protocols import MessageStore

LONG = "x" * 3000
"""More than is left after a message of this size was refused."""


def allow(size: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))


async def live(place: Path) -> dict[str, object]:
    """Fill the file, be refused, ask again in vain, then go on with more room."""
    async with open_json(place, Wall()) as store:
        chat = store.messages(None)
        allow(store.journal.file.size + 10_000)
        kept = await fill(chat)
        refused = [await refusal(chat) for _ in range(3)]
        readable = len(store.tables.messages.rows)
        allow(resource.RLIM_INFINITY)
        await accepted(chat, LONG)
        return {"kept": kept, "refused": refused, "readable": readable, "after": len(store.tables.messages.rows)}


async def fill(chat: MessageStore) -> int:
    """Until the system refuses; how many were kept."""
    for number in range(1_000_000):
        try:
            await accepted(chat, f"{number} {LONG}")
        except StoreUnavailable:
            return number
    raise AssertionError("there was no limit")


async def refusal(chat: MessageStore) -> str:
    try:
        await accepted(chat, LONG)
    except StoreUnavailable as error:
        return str(error)
    raise AssertionError("it was taken")


if __name__ == "__main__":
    sys.stdout.write(json.dumps(trio.run(live, Path(sys.argv[1]))))
