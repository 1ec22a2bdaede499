"""A directory with a story in it, to be damaged, and ways to look at what became of it."""

from __future__ import annotations

import shutil
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from store.files import JsonStore, Look, open_json, read_json
from store.files.transcripts import Transcripts
from tests.contract.backends import Wall
from tests.contract.rows import accepted
from tests.faults.disk_story import STORY, chat_of, content

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


async def write_story(place: Path, *, upto: int = len(STORY), compact_after: tuple[int, ...] = ()) -> list[object]:
    """Live the story there; what the directory said after each change, from the empty store on."""
    told: list[object] = []
    async with open_json(place, Wall()) as store:
        chat = await chat_of(store)
        told.append(content(read_json(place)))
        for number, step in enumerate(STORY[:upto]):
            await step(store, chat)
            told.append(content(read_json(place)))
            if number in compact_after:
                await store.keeper.compact()
    return told


@asynccontextmanager
async def opened(place: Path) -> AsyncIterator[tuple[JsonStore, object]]:
    """The store as it was recovered, and what it says."""
    async with open_json(place, Wall()) as store:
        yield store, content(Look(store.tables, (), Transcripts(store.keeper.disk, place)))


def copy(place: Path, name: str) -> Path:
    return shutil.copytree(place, place.parent / name)


def newest(place: Path, pattern: str) -> Path:
    return max(place.glob(pattern), key=lambda path: int(path.stem.split("-")[1]))


def found(place: Path, pattern: str) -> list[Path]:
    return sorted(place.rglob(pattern))


def files(place: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in found(place, "*") if path.is_file()}


def set_aside(place: Path) -> list[str]:
    return sorted(path.name.split(".corrupt-")[0] for path in found(place, "*.corrupt-*"))


def flipped(data: bytes, offset: int) -> bytes:
    return data[:offset] + bytes([data[offset] ^ 0x10]) + data[offset + 1 :]


async def one_by_one(place: Path, texts: str) -> Path:
    """The journal of a store that has accepted these, and never made a snapshot."""
    async with open_json(place, Wall()) as store:
        for text in texts:
            await accepted(store.messages(None), text)
    return newest(place, "journal-*.jsonl")
