"""What a directory holds, whatever has happened to it: the newest whole snapshot and all journals after it.

    snapshot-3   journal-3   journal-4        recover: look only, change nothing
        │            │           │
        └── rows ────┴── lines ──┴──▶ tables, findings, and what `store.files.directory` is to do about them

A torn last line is what a crash leaves: it was never acknowledged and is dropped. Anything else that does not fit is
damage: the file is to be set aside, what is good in it counts (every line holds whole rows), and it is said what may be
missing. A directory that was written by a newer goclaw is refused before anything is touched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from store.files.disk import TEMPORARY, Disk
from store.files.frames import unpack
from store.files.journal import SCHEMA
from store.files.snapshots import NewerSchema, NotWhole, Snapshot, check_schema, read_snapshot
from store.files.tables import Tables
from store.protocols import CannotOpen

if TYPE_CHECKING:
    from pathlib import Path

NAME = re.compile(r"(?P<kind>snapshot|journal)-(?P<generation>[0-9]+)\.jsonl?")

Row = Sequence[Any]
"""Table, key, row: as they are written."""

MIGRATIONS: dict[int, Callable[[Row], Iterable[Row]]] = {}
"""By schema: what a row of that schema becomes in the next one."""


@dataclass(slots=True)
class JournalContent:
    """What one journal file holds."""

    name: str
    generation: int
    header: dict[str, Any] | None = None
    lines: list[dict[str, Any]] = field(default_factory=list)
    good: int = 0
    """So many bytes from the start are whole lines."""
    torn: int = 0
    """So many bytes behind them are not."""
    bad: int = 0
    """Lines that are damaged and have good ones behind them."""

    @property
    def schema(self) -> int:
        return SCHEMA if self.header is None else int(self.header["schema"])

    @property
    def unused(self) -> bool:
        """It was only just begun."""
        return self.header is None and not self.lines and self.torn < 200


@dataclass(slots=True)
class Recovered:
    tables: Tables
    findings: list[str] = field(default_factory=list)
    newest: int = 0
    """The highest generation that any file has."""
    journal: JournalContent | None = None
    """The one to go on with."""
    aside: list[str] = field(default_factory=list)
    """Damaged files."""
    remove: list[str] = field(default_factory=list)
    """Files that hold nothing."""
    renew: bool = False
    """A new generation is to be written before anything else."""


def recover(disk: Disk, place: Path) -> Recovered:
    """The state that was last acknowledged. Reads only; an `OSError` means that the files could not be read."""
    return _Recovery(disk, place).run()


def read_journal(name: str, generation: int, content: bytes) -> JournalContent:
    """The lines of a file, good and bad ones told apart."""
    found = JournalContent(name, generation)
    *lines, rest = content.split(b"\n")
    bad = 0
    offset = 0
    for place, line in enumerate(lines):
        offset += len(line) + 1
        value = unpack(line)
        if not isinstance(value, dict):
            bad += 1
            continue
        if place == 0 and "journal" in value:
            found.header = value
        else:
            found.lines.append(value)
        found.bad, found.good = bad, offset
    found.torn = offset + len(rest) - found.good
    return found


def migrated(rows: Iterable[Row], schema: int) -> Iterable[Row]:
    """Rows of an older schema as this one has them."""
    for step in range(schema, SCHEMA):
        if step not in MIGRATIONS:
            raise NotWhole(f"schema {step} is not known")
        change = MIGRATIONS[step]
        rows = [new for row in rows for new in change(row)]
    return rows


class _Recovery:
    def __init__(self, disk: Disk, place: Path) -> None:
        self.disk = disk
        self.place = place
        self.found = Recovered(Tables())

    def run(self) -> Recovered:
        snapshots, journals = self._sort_names()
        base = self._base(snapshots)
        used = [self._read_journal(generation) for generation in journals if generation >= base]
        used = self._without_unused(used)
        self._check_start(base, used, any_snapshot=bool(snapshots))
        for place, journal in enumerate(used):
            later = [int(one.header["after"]) for one in used[place + 1 :] if one.header is not None]
            self._replay(journal, min(later, default=None))
        self._go_on_with(used, base)
        return self.found

    def _sort_names(self) -> tuple[list[int], list[int]]:
        generations: dict[str, list[int]] = {"snapshot": [], "journal": []}
        for name in self.disk.names(self.place):
            if name.endswith(TEMPORARY):
                self.found.remove.append(name)
                self._say(f"{name} was not finished when goclaw ended: it is removed, nothing was lost by it")
            elif match := NAME.fullmatch(name):
                generations[match["kind"]].append(int(match["generation"]))
        self.found.newest = max((*generations["snapshot"], *generations["journal"]), default=0)
        return sorted(generations["snapshot"], reverse=True), sorted(generations["journal"])

    # ── snapshots ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _base(self, generations: list[int]) -> int:
        """Take in the newest snapshot that is whole; its generation, 0 if there is none."""
        for generation in generations:
            name = f"snapshot-{generation}.json"
            try:
                self._take_in(read_snapshot(self.disk.read(self.place / name)))
            except NewerSchema as error:
                raise self._newer(name, error) from None
            except NotWhole as error:
                self._damaged(name, f"{name} is damaged ({error}): it is set aside, and what was before it is used")
            else:
                return generation
        return 0

    def _take_in(self, snapshot: Snapshot) -> None:
        tables = Tables()
        try:
            tables.take_in(migrated(snapshot.rows, snapshot.schema))
        except (ValueError, KeyError, TypeError) as error:
            raise NotWhole(f"a row cannot be read: {error!r}") from None
        tables.seq, tables.next_id = snapshot.seq, snapshot.next_id
        self.found.tables = tables
        if snapshot.schema < SCHEMA:
            self.found.renew = True

    # ── journals ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _read_journal(self, generation: int) -> JournalContent:
        name = f"journal-{generation}.jsonl"
        content = read_journal(name, generation, self.disk.read(self.place / name))
        try:
            check_schema(content.schema)
        except NewerSchema as error:
            raise self._newer(name, error) from None
        return content

    def _without_unused(self, journals: list[JournalContent]) -> list[JournalContent]:
        for journal in journals:
            if journal.unused:
                self.found.remove.append(journal.name)
                self._say(f"{journal.name} was only just begun when goclaw ended: it held nothing and is removed")
        return [journal for journal in journals if not journal.unused]

    def _check_start(self, base: int, journals: list[JournalContent], *, any_snapshot: bool) -> None:
        """Is there something before what is there?"""
        if base:
            if not journals or journals[0].generation != base:
                self._damaged(None, f"journal-{base}.jsonl is missing: what was written after the snapshot is lost")
            return
        first = journals[0] if journals else None
        whole = first is not None and first.header is not None and first.header["after"] == 0
        if any_snapshot and first is None:
            self._damaged(None, "NOTHING that was kept here can be read: goclaw starts empty, beside what is set aside")
        elif first is not None and not whole and not (first.lines and first.lines[0].get("seq") == 1):
            self._damaged(None, f"everything before {first.name} is LOST: there is no snapshot that can be read")

    def _replay(self, journal: JournalContent, last: int | None) -> None:
        """Take in the lines up to the last that counts: what is behind it was undone, and its callers were told."""
        bad = journal.bad + (journal.header is None)
        if journal.header is not None:
            self._follow(journal, int(journal.header["after"]) + 1)
        for line in journal.lines:
            try:
                if last is not None and line["seq"] > last:
                    break
                self._take_in_line(journal, line)
            except (ValueError, KeyError, TypeError, NotWhole):
                bad += 1
        if bad:
            self._damaged(
                journal.name,
                f"{journal.name} is damaged ({bad} of its lines cannot be read): it is set aside, the good ones count; "
                "changes of that time may be missing",
            )
        if journal.schema < SCHEMA:
            self.found.renew = True

    def _take_in_line(self, journal: JournalContent, line: dict[str, Any]) -> None:
        tables = self.found.tables
        seq, next_id = int(line["seq"]), int(line["next"])
        tables.take_in(migrated(line["rows"], journal.schema))
        self._follow(journal, seq)
        tables.seq, tables.next_id = max(seq, tables.seq), max(next_id, tables.next_id)

    def _follow(self, journal: JournalContent, seq: int) -> None:
        """Every change has the number after the one before it."""
        tables = self.found.tables
        if seq > tables.seq + 1:
            if tables.seq:
                self._damaged(None, f"changes {tables.seq + 1} to {seq - 1} are MISSING where {journal.name} goes on")
            tables.seq = seq - 1

    def _go_on_with(self, journals: list[JournalContent], base: int) -> None:
        if not journals or self.found.renew:
            self.found.renew = self.found.renew or bool(base)
            return
        last = self.found.journal = journals[-1]
        if last.torn:
            self._say(
                f"the end of {last.name} was torn ({last.torn} bytes), as a crash or a power failure leaves it: "
                "it is dropped, nobody had been told that it was kept"
            )

    def _say(self, finding: str) -> None:
        self.found.findings.append(finding)

    def _damaged(self, name: str | None, finding: str) -> None:
        self._say(finding)
        self.found.renew = True
        if name is not None:
            self.found.aside.append(name)

    def _newer(self, name: str, error: NewerSchema) -> CannotOpen:
        return CannotOpen(
            f"{self.place / name} was written by a newer goclaw ({error}): install that one again, or set "
            "GOCLAW_DATA_DIR to another directory. Nothing was changed.",
            path=str(self.place),
        )
