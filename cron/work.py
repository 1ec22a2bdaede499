"""What a run is given to do: the job's message, and an item from a work source if the job names one.

    next(run) ──▶ an item, this run's alone ──▶ done(run) | failed(run) | release(run): somebody else may have it

A source knows a taken item by the run that took it, so whoever finds out that a run was lost can release its item.
"""

from __future__ import annotations

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
    async def next(self, run: str) -> WorkItem | None:
        """An item that nobody else works on, this run's from now on; None if there is nothing to do."""

    async def done(self, run: str) -> None:
        """The run's item is finished."""

    async def failed(self, run: str, error: str) -> None:
        """The run's item could not be done, and no further attempt is made."""

    async def release(self, run: str) -> None:
        """The run's item, if it has one, waits again."""


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

    A file that is taken is moved to `in-progress/<run>--<name>`, and from there to `done` or `failed`, or back.
    Moving is what decides between two who want the same one.
    """

    folder: Path

    async def next(self, run: str) -> WorkItem | None:
        return await trio.to_thread.run_sync(self._take, run)

    async def done(self, run: str) -> None:
        await trio.to_thread.run_sync(self._move, run, DONE)

    async def failed(self, run: str, error: str) -> None:
        await trio.to_thread.run_sync(self._move, run, FAILED)

    async def release(self, run: str) -> None:
        await trio.to_thread.run_sync(self._move, run, "")

    def _take(self, run: str) -> WorkItem | None:
        try:
            names = sorted(one.name for one in self.folder.iterdir() if one.is_file() and not one.name.startswith("."))
        except OSError as error:
            raise PermanentFailure(
                f"the work folder {self.folder} cannot be read: {error.strerror}. Make it, or edit the job.",
                folder=str(self.folder),
            ) from error
        (self.folder / IN_PROGRESS).mkdir(exist_ok=True)
        for name in names:
            taken = self.folder / IN_PROGRESS / f"{run}--{name}"
            try:
                (self.folder / name).rename(taken)
            except FileNotFoundError:  # somebody else was first
                continue
            return WorkItem(name, "folder", str(self.folder / name), body_of(taken))
        return None

    def _move(self, run: str, where: str) -> None:
        """To that folder below, or back; a name that is taken there gets a number."""
        for taken in (self.folder / IN_PROGRESS).glob(f"{run}--*"):
            target = self.folder / where
            target.mkdir(exist_ok=True)
            taken.rename(free_name(target, taken.name.removeprefix(f"{run}--")))


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
