"""What a directory holds, whatever has happened to it: the newest whole snapshot and all journals after it.

    snapshot-3   journal-3   journal-4        recover: look only, change nothing
        │            │           │
        └── rows ────┴── lines ──┴──▶ tables, findings, and what `store.files.directory` is to do about them

One line that was begun and not finished at the very end is what a crash leaves: it is dropped. Anything else that does
not fit may be damage: the file is to be set aside, what is good in it counts (every line holds whole rows), and it is
said what may be missing. A row that is whole and cannot be understood is left out alone, be it of any table in a
snapshot or of cron in a journal; other changes of messages count with all their rows or not at all. Only what goclaw
itself has begun and what holds nothing is ever removed. A directory that was written by a newer goclaw is refused
before anything is touched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from store.files.cron_keeping import mend
from store.files.disk import TEMPORARY, Disk
from store.files.export import JOBS, SESSIONS
from store.files.frames import unpack
from store.files.journal import SCHEMA
from store.files.snapshots import NewerSchema, NotWhole, Snapshot, check_schema, read_snapshot
from store.files.tables import Tables
from store.protocols import CannotOpen

if TYPE_CHECKING:
    from pathlib import Path

NAME = re.compile(
    r"(?P<kind>snapshot(?=-[0-9]+\.json\Z)|journal(?=-[0-9]+\.jsonl\Z))-(?P<generation>[1-9][0-9]*)\.jsonl?"
)
UNFINISHED = re.compile(r"(snapshot-[1-9][0-9]*|sessions|jobs)\.json" + re.escape(TEMPORARY))
"""What goclaw calls a file that it has not finished. Other people's files may have the same ending."""
PAST = re.compile(r"sessions|(sessions|jobs)\.json|(snapshot|journal)-[0-9]+\.jsonl?\.corrupt-.*")
"""Names that appear only after the first journal is on the disk: where they are, there was one."""

LINE_START = re.compile(rb"[0-9a-f]{0,8}|[0-9a-f]{8} (?P<json>[^\x00-\x1f]*)")
HEADER_SHAPE = b'{"journal":0,"schema":0,"after":0}'
CHANGE_SHAPE = b'{"seq":'
ANOTHER_CHANGE = re.compile(rb'[0-9a-f]{8} {"seq":')
"""Quotes within a text are escaped, so this is the start of a line wherever it is."""

SHOWN = 10
"""So many rows that cannot be understood are named."""

Row = Sequence[Any]
"""Table, key, row: as they are written."""

MIGRATIONS: dict[int, Callable[[Row], Iterable[Row]]] = {1: lambda row: [row], 2: lambda row: [row]}
"""By schema: what a row of that schema becomes in the next one.

1   knows nothing of cron; its rows are still written so, but for the run that a note may name
2   knows nobody who was let in
"""


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
    """So many bytes behind them are the beginning of one more."""
    spoilt: int = 0
    """So many bytes behind them are something else."""
    bad: int = 0
    """Lines that are damaged and have good ones behind them."""
    unused: bool = False
    """It was only just begun: there is nothing in it, or the beginning of its header."""

    @property
    def schema(self) -> int:
        return SCHEMA if self.header is None else int(self.header["schema"])


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
    *lines, _ = content.split(b"\n")
    bad = 0
    offset = 0
    for place, line in enumerate(lines):
        offset += len(line) + 1
        value = unpack(line)
        if not isinstance(value, dict):
            bad += 1
            continue
        if place == 0 and "journal" in value:
            if not _is_header(value):
                bad += 1
                continue
            found.header = value
        else:
            found.lines.append(value)
        found.bad, found.good = bad, offset
    _judge_end(found, content[found.good :])
    return found


def _is_header(value: dict[str, Any]) -> bool:
    return all(type(value.get(name)) is int and value[name] >= 0 for name in ("journal", "schema", "after"))


def _judge_end(found: JournalContent, end: bytes) -> None:
    """What is behind the last good line: what a crash leaves, or something else?"""
    if found.good == 0 and _begins_header(end):
        found.unused = True
    elif found.good and _begins_change(end):
        found.torn = len(end)
    else:
        found.spoilt = len(end)


def _begins_header(end: bytes) -> bool:
    match = LINE_START.fullmatch(end)
    return match is not None and HEADER_SHAPE.startswith(re.sub(rb"[0-9]+", b"0", match["json"] or b""))


def _begins_change(end: bytes) -> bool:
    """A line that is whole, or has another one behind it, was not cut off: its line feed has become something else."""
    match = LINE_START.fullmatch(end)
    if match is None or ANOTHER_CHANGE.search(end, 1) or unpack(end[:-1]) is not None:
        return False
    return CHANGE_SHAPE.startswith((match["json"] or b"")[: len(CHANGE_SHAPE)])


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
        self.past: list[str] = []
        """Names that show that something was kept here."""

    def run(self) -> Recovered:
        snapshots, journals = self._sort_names()
        base = self._base(snapshots)
        used = [self._read_journal(generation) for generation in journals if generation >= base]
        used = self._without_unused(used)
        self._check_start(base, used, any_snapshot=bool(snapshots))
        for place, journal in enumerate(used):
            later = [int(one.header["after"]) for one in used[place + 1 :] if one.header is not None]
            self._replay(journal, min(later, default=None))
        for finding in mend(self.found.tables):
            self._damaged(None, finding)
        self._go_on_with(used, base)
        return self.found

    def _sort_names(self) -> tuple[list[int], list[int]]:
        generations: dict[str, list[int]] = {"snapshot": [], "journal": []}
        for name in self.disk.names(self.place):
            if PAST.fullmatch(name):
                self.past.append(name)
            elif UNFINISHED.fullmatch(name) and self.disk.is_file(self.place / name):
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
                left_out = self._take_in(read_snapshot(self.disk.read(self.place / name)))
            except NewerSchema as error:
                raise self._newer(name, error) from None
            except NotWhole as error:
                self._damaged(name, f"{name} is damaged ({error}): it is set aside, and what was before it is used")
            else:
                self._say_left_out(name, left_out)
                return generation
        return 0

    def _take_in(self, snapshot: Snapshot) -> list[str]:
        tables = Tables()
        try:
            left_out = tables.take_in(migrated(snapshot.rows, snapshot.schema), forgive=tables.every)
        except (ValueError, KeyError, TypeError) as error:
            raise NotWhole(f"a row cannot be read: {error!r}") from None
        tables.seq, tables.next_id = snapshot.seq, snapshot.next_id
        self.found.tables = tables
        if snapshot.schema < SCHEMA:
            self.found.renew = True
        return left_out

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
                self._say(f"{journal.name} holds nothing, as when goclaw ends while it begins a file: it is removed")
        return [journal for journal in journals if not journal.unused]

    def _check_start(self, base: int, journals: list[JournalContent], *, any_snapshot: bool) -> None:
        """Is there something before what is there?"""
        if base:
            if not journals or journals[0].generation != base:
                self._damaged(
                    None, f"journal-{base}.jsonl is missing or empty: what was written after the snapshot is LOST"
                )
            return
        first = journals[0] if journals else None
        whole = first is not None and first.header is not None and first.header["after"] == 0
        if any_snapshot and first is None:
            self._damaged(None, "NOTHING that was kept here can be read: goclaw starts empty, beside what is set aside")
        elif first is None and self.past:
            self._damaged(
                None,
                f"there is no journal and no snapshot beside {', '.join(self.past)}: everything that goclaw has kept "
                "here is LOST. It starts empty; if there is a copy, stop goclaw and put the copy back",
            )
        elif first is not None and whole and not any(one.lines for one in journals) and (sign := self._sign()):
            self._damaged(
                first.name,
                f"{first.name} holds nothing, and {sign}: everything that goclaw has kept here is LOST. The file is "
                "set aside; if there is a copy, stop goclaw and put the copy back",
            )
        elif first is not None and not whole and not (first.lines and first.lines[0].get("seq") == 1):
            self._damaged(None, f"everything before {first.name} is LOST: there is no snapshot that can be read")

    def _sign(self) -> str:
        """What shows that there was something. An empty export may be of a store that could not write its first change.

        More is not asked of these files: what they say is never read back.
        """
        for name, what, mark in ((SESSIONS, "sessions", b'"session":'), (JOBS, "jobs", b'"schedule":')):
            if self.disk.is_file(self.place / name) and mark in self.disk.read(self.place / name):
                return f"{name} shows that there were {what}"
        return ""

    def _replay(self, journal: JournalContent, last: int | None) -> None:
        """Take in the lines up to the last that counts: what is behind it was undone, and its callers were told."""
        bad = max(journal.bad, int(journal.header is None))
        left_out: list[str] = []
        if journal.header is not None:
            self._follow(journal, int(journal.header["after"]) + 1)
        for line in journal.lines:
            try:
                if last is not None and line["seq"] > last:
                    break
                left_out += self._take_in_line(journal, line)
            except (ValueError, KeyError, TypeError, NotWhole):
                bad += 1
        self._say_left_out(journal.name, left_out)
        if bad:
            self._damaged(
                journal.name,
                f"{journal.name} is damaged ({bad} of its lines cannot be read): it is set aside, the good ones count; "
                "changes of that time may be missing",
            )
        elif self._ends_badly(journal, last):
            self._damaged(
                journal.name,
                f"the end of {journal.name} ({journal.spoilt or journal.torn} bytes) cannot be read: it may be the "
                "rest of a write that a crash or a power failure has cut off, or damage; what it held is lost. The "
                "file is set aside, the lines before count",
            )
        if journal.schema < SCHEMA:
            self.found.renew = True

    def _ends_badly(self, journal: JournalContent, last: int | None) -> bool:
        """Where another journal goes on, only what that one counts on can be missing."""
        if last is None:
            return journal.spoilt > 0
        return self.found.tables.seq < last and journal.spoilt + journal.torn > 0

    def _take_in_line(self, journal: JournalContent, line: dict[str, Any]) -> list[str]:
        tables = self.found.tables
        seq, next_id = int(line["seq"]), int(line["next"])
        left_out = tables.take_in(migrated(line["rows"], journal.schema), forgive=tables.cron.names)
        self._follow(journal, seq)
        tables.seq, tables.next_id = max(seq, tables.seq), max(next_id, tables.next_id)
        return left_out

    def _follow(self, journal: JournalContent, seq: int) -> None:
        """Every change has the number after the one before it."""
        tables = self.found.tables
        if seq > tables.seq + 1:
            if tables.seq:
                self._damaged(None, f"changes {tables.seq + 1} to {seq - 1} are MISSING where {journal.name} goes on")
            tables.seq = seq - 1

    def _go_on_with(self, journals: list[JournalContent], base: int) -> None:
        if not journals:
            self.found.renew = self.found.renew or bool(base)
            return
        last = self.found.journal = journals[-1]
        if last.torn:
            self._say(
                f"the last line of {last.name} is torn ({last.torn} bytes), as a crash or a power failure leaves it: "
                "it is dropped; of a write that was cut off nobody has been told that it was kept"
            )

    def _say_left_out(self, name: str, rows: list[str]) -> None:
        if rows:
            shown = ", ".join(rows[:SHOWN]) + (f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else "")
            self._damaged(
                name,
                f"{name} has rows that cannot be understood: {shown}. They are left out, everything else counts; the "
                "file is set aside, so that they can be looked at",
            )

    def _say(self, finding: str) -> None:
        self.found.findings.append(finding)

    def _damaged(self, name: str | None, finding: str) -> None:
        self._say(finding)
        self.found.renew = True
        if name is not None and name not in self.found.aside:
            self.found.aside.append(name)

    def _newer(self, name: str, error: NewerSchema) -> CannotOpen:
        return CannotOpen(
            f"{self.place / name} was written by a newer goclaw ({error}): install that one again, or set "
            "GOCLAW_DATA_DIR to another directory. Nothing was changed.",
            path=str(self.place),
        )
