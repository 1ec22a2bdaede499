"""Every statement lives in a file below `store/postgres/sql` under a name; this reads them.

A file is a list of statements, each after a line `-- name: x`. Other lines that begin with `--` are for the reader.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from importlib.resources import files

SQL = files("store.postgres") / "sql"
NAMED = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
REMARK = re.compile(r"^\s*--.*\n?", re.MULTILINE)
NUMBERED = re.compile(r"(\d{4})_(\w+)\.sql")


def load(file: str) -> dict[str, str]:
    """The statements of ``store/postgres/sql/<file>.sql`` by name."""
    _, *parts = NAMED.split((SQL / f"{file}.sql").read_text())
    return {name: REMARK.sub("", text).strip() for name, text in zip(parts[::2], parts[1::2], strict=True)}


@dataclass(frozen=True, slots=True)
class Migration:
    """One step from a schema to the next. What was applied once is never edited: its checksum is remembered."""

    version: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


def migrations() -> tuple[Migration, ...]:
    """All that there are, in order."""
    found = [(NUMBERED.fullmatch(file.name), file) for file in (SQL / "migrations").iterdir()]
    known = [Migration(int(name[1]), name[2], file.read_text()) for name, file in found if name]
    return tuple(sorted(known, key=lambda migration: migration.version))
