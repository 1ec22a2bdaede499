"""Every file that a killed process leaves behind can be read as what it is, and none was ever set aside as corrupt."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults.store_child import Engine


def broken_files(engine: Engine) -> list[str]:
    """What is wrong with the directory, one sentence each; a server has no files of ours."""
    return list(broken_in(Path(engine.place))) if engine.kind == "json" else []


def broken_in(place: Path) -> Iterator[str]:
    for path in sorted(place.rglob("*")):
        name = path.name
        if ".corrupt-" in name:
            yield f"{name} was set aside"
        elif name.endswith(".json"):
            yield from document(path)
        elif name.endswith(".jsonl"):
            yield from lines(path)


def document(path: Path) -> Iterator[str]:
    """A file that is only ever there as a whole."""
    try:
        orjson.loads(path.read_bytes())
    except ValueError as error:
        yield f"{path.name} is no JSON document: {error}"


def lines(path: Path) -> Iterator[str]:
    """A file that grows by lines, each with its checksum; only the last can be torn."""
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True), start=1):
        if line.endswith(b"\n") and not whole(line):
            yield f"{path.name} line {number} cannot be read: {line[:100]!r}"


def whole(line: bytes) -> bool:
    try:
        checksum, text = int(line[:8], 16), line[9:-1]
        orjson.loads(text)
    except ValueError:
        return False
    return line[8:9] == b" " and zlib.crc32(text) == checksum
