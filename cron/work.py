"""What a run is given to do: the job's message, and an item from a work source if the job names one.

    next(key) ──▶ an item, this one's alone ──▶ done(key) | failed(key) | release(key): somebody else may have it

A source knows a taken item by a key, that of the trigger it is worked on for. One owner at a time has a trigger, so
whoever has it next can release what an owner that died had taken, whether its run was written down or not.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import trio

from cron.errors import BadInput, PermanentFailure

if TYPE_CHECKING:
    from collections.abc import Callable

LARGEST_ITEM = 1 << 20
"""Bytes of a file that is handed to an agent."""
IN_PROGRESS, DONE, FAILED = "in-progress", "done", "failed"
NOTHING = "Execute scheduled task."


@dataclass(frozen=True, slots=True)
class WorkItem:
    title: str
    source: str
    id: str
    body: str = ""
    priority: str = ""
    labels: tuple[str, ...] = ()
    url: str = ""


class WorkSource(Protocol):
    async def next(self, key: str) -> WorkItem | None:
        """An item that nobody else works on, taken under this key; None if there is nothing to do."""

    async def done(self, key: str) -> None:
        """The item under this key is finished."""

    async def failed(self, key: str, error: str) -> None:
        """It could not be done, and no further attempt is made."""

    async def release(self, key: str) -> None:
        """What was taken under this key, if anything, waits again."""


def prompt(message: str, item: WorkItem | None) -> str:
    """What the agent reads."""
    if item is None:
        return message or NOTHING
    facts = {
        "Source": item.source,
        "ID": item.id,
        "Priority": item.priority,
        "Labels": ", ".join(item.labels),
        "URL": item.url,
    }
    lines = [f"## Work Item: {item.title}", "", *(f"- {name}: {fact}" for name, fact in facts.items() if fact)]
    body = ["", item.body] if item.body else []
    return "\n".join([*([message, ""] if message else []), *lines, *body])


@dataclass(frozen=True, slots=True)
class FolderSource:
    """Each file in a folder is an item, in the order of their names. Hidden files and folders are none.

    A file that is taken is moved to `in-progress/<key>/`, and from there to `done` or `failed`, or back. Moving is what
    decides between two who want the same one. One that cannot be moved is in nobody's way.
    """

    folder: Path

    async def next(self, key: str) -> WorkItem | None:
        return await trio.to_thread.run_sync(self._take, key)

    async def done(self, key: str) -> None:
        await trio.to_thread.run_sync(self._move, key, DONE)

    async def failed(self, key: str, error: str) -> None:
        await trio.to_thread.run_sync(self._move, key, FAILED)

    async def release(self, key: str) -> None:
        await trio.to_thread.run_sync(self._move, key, "")

    def _take(self, key: str) -> WorkItem | None:
        try:
            names = sorted(one.name for one in self.folder.iterdir() if one.is_file() and not one.name.startswith("."))
        except OSError as error:
            raise PermanentFailure(
                f"the work folder {self.folder} cannot be read: {error.strerror}. Make it, or edit the job.",
                folder=str(self.folder),
            ) from error
        place = self.folder / IN_PROGRESS / key
        place.mkdir(parents=True, exist_ok=True)
        for name in names:
            taken = place / name
            try:
                (self.folder / name).rename(taken)
                return WorkItem(name, "folder", str(self.folder / name), body_of(taken))
            except OSError:  # somebody else was first, or nobody can have it
                continue
        place.rmdir()
        return None

    def _move(self, key: str, where: str) -> None:
        """To that folder below, or back; a name that is taken there gets a number."""
        place = self.folder / IN_PROGRESS / key
        for taken in place.iterdir() if place.is_dir() else ():
            target = self.folder / where
            target.mkdir(exist_ok=True)
            taken.rename(free_name(target, taken.name))
        with suppress(OSError):
            place.rmdir()


def body_of(path: Path) -> str:
    with path.open("rb") as file:
        content = file.read(LARGEST_ITEM + 1)
    text = content[:LARGEST_ITEM].decode(errors="replace")
    return text + "\n…[truncated]" if len(content) > LARGEST_ITEM else text


def free_name(folder: Path, name: str) -> Path:
    place, number = folder / name, 1
    while place.exists():
        number += 1
        place = folder / f"{Path(name).stem}-{number}{Path(name).suffix}"
    return place


def open_source(text: str) -> WorkSource:
    """The source that a job names, for instance `folder:/srv/inbox`."""
    kind, _, rest = text.partition(":")
    opener: Callable[[str], WorkSource] | None = SOURCES.get(kind)
    if opener is None or not rest.strip():
        raise BadInput(
            f'unknown work source "{text[:100]}": expected folder:<path>, for instance folder:/srv/inbox',
            field="work_source",
            value=text,
            example="folder:/srv/inbox",
        )
    return opener(rest.strip())


SOURCES: dict[str, Callable[[str], WorkSource]] = {"folder": lambda path: FolderSource(Path(path).expanduser())}
