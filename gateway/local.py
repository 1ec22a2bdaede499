"""How programs of the same user on this machine find the running gateway: a file that only they can read.

It holds the address and a token that the gateway made up at its start, so being on this machine is not enough. (S9)
"""

from __future__ import annotations

import json
import os
import secrets
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = "gateway.json"
LARGEST = 10_000


@dataclass(frozen=True, slots=True)
class Local:
    url: str
    token: str
    pid: int


def new_token() -> str:
    return f"local_{secrets.token_urlsafe(32)}"


def find(directory: Path) -> Local | None:
    """The gateway that has left its address there; it may be gone meanwhile."""
    try:
        with (directory / NAME).open("rb") as file:
            found = json.loads(file.read(LARGEST))
        return Local(str(found["url"]), str(found["token"]), int(found["pid"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


@contextmanager
def announced(directory: Path, local: Local) -> Iterator[None]:
    """The file is there for as long as the block, unless somebody else has taken its place."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    path, fresh = directory / NAME, directory / f"{NAME}.{os.getpid()}"
    with suppress(FileNotFoundError):
        fresh.unlink()
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(asdict(local), file)
    fresh.replace(path)
    try:
        yield
    finally:
        if find(directory) == local:
            with suppress(OSError):
                path.unlink()
