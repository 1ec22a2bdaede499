"""What the JSON store does beside its verbs: transcripts move into their files, the journal is folded into snapshots.

One task does all of it, one thing after the other, while the verbs go on. It changes rows only through the journal like
everybody else, and looks again before it does: a session may have been trimmed or forgotten meanwhile. When the disk
fails it says so and leaves everything as it was; what it wanted to do is done later.

    compaction   lines into files ──▶ new journal file ──▶ rows into a snapshot ──▶ older generations are removed
"""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import trio

from store.files.disk import discard, why
from store.files.export import export
from store.files.recovery import NAME
from store.files.snapshots import SnapshotFile, fill
from store.files.transcripts import file_name
from store.protocols import StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from store.files.decode import Kept
    from store.files.disk import Disk
    from store.files.journal import Journal
    from store.files.transcripts import Transcripts
    from store.records import Line, SessionKey

WORTH = 4
"""A snapshot may cost so many times the journal that it folds: the more is kept, the less often it is written."""
SESSIONS_AT_ONCE = 8
LINES_AT_ONCE = 200
"""So many lines are moved in one transaction."""

log = logging.getLogger("goclaw.store")


class Keeper:
    def __init__(
        self,
        journal: Journal,
        transcripts: Transcripts,
        now: Callable[[], datetime],
        compact_at: int,
        report: Callable[[str], None],
    ) -> None:
        self.journal = journal
        self.tables = journal.tables
        self.disk: Disk = journal.file.disk
        self.place: Path = journal.file.place
        self.transcripts = transcripts
        self.now = now
        self.compact_at = compact_at
        self.report = report
        self.damaged: dict[SessionKey, None] = {}
        """Sessions whose file was found to be damaged."""
        self.compactions = 0
        self._try_at = compact_at
        self._failed = False
        self._alone = trio.Lock()
        self._wake = trio.Event()
        self._scope = trio.CancelScope()
        self._ended = trio.Event()
        journal.after_commit = self.look

    def look(self) -> None:
        """Is there something to do?"""
        if self.damaged or self.tables.trash.rows or self._due():
            self._wake.set()

    def found_damaged(self, key: SessionKey) -> None:
        self.damaged[key] = None
        self._wake.set()

    def _due(self) -> bool:
        file = self.journal.file
        return file.size >= self._try_at or (file.suspect and not self._failed)

    async def run(self) -> None:
        try:
            with self._scope:
                while True:
                    await self._wake.wait()
                    self._wake = trio.Event()
                    await self._calmly(self._work)
        finally:
            self._ended.set()

    async def close(self) -> None:
        """End in good order: every line in its file, the export written."""
        self._scope.cancel()
        await self._ended.wait()
        await self._calmly(self._file_lines)
        await self._calmly(self._export)

    async def _calmly(self, work: Callable[[], Awaitable[None]]) -> None:
        """What fails here is lost to nobody: it stays in the journal and is tried again."""
        try:
            await work()
        except OSError as error:
            log.warning("%s: could not tidy up: %s; it is tried again later", self.place, why(error))
        except StoreError as error:
            log.warning("%s: could not tidy up: %s", self.place, error)

    async def _work(self) -> None:
        async with self._alone:
            await self._mend()
            await self._empty_trash()
            if self._due():
                self._try_at, self._failed = self.journal.file.size + self.compact_at // 8 + 1, True
                await self._compact()

    async def compact(self) -> None:
        """Fold the journal into a snapshot now; an `OSError` or a `StoreError` if that fails, which harms nobody."""
        async with self._alone:
            await self._compact()

    # ── transcripts ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def _file_lines(self) -> None:
        """Every line that is a row now goes into its session's file; what is mostly trimmed is written anew.

        Some sessions at a time, so that they share the journal's syncs. Lines that come meanwhile have time until the
        next compaction: otherwise it would not end while people write.
        """
        sessions = iter(dict.fromkeys([*self.tables.mostly_trimmed, *self.tables.lines_of.of]))
        failed: list[OSError | StoreError] = []
        async with trio.open_nursery() as nursery:
            for _ in range(SESSIONS_AT_ONCE):
                nursery.start_soon(self._file_some, sessions, failed)
        if failed:
            raise failed[0]
        await self._empty_trash()

    async def _file_some(self, sessions: Iterator[SessionKey], failed: list[OSError | StoreError]) -> None:
        try:
            for key in sessions:
                await self._file_known_lines(key)
        except (OSError, StoreError) as error:
            failed.append(error)

    async def _file_known_lines(self, key: SessionKey) -> None:
        lines = self.tables.lines_of[key]
        last = lines[-1] if lines else 0
        while (kept := await self._durable(key)) and (kept.mostly_trimmed or self._first_line(key) <= last):
            await self._file_session(kept)

    def _first_line(self, key: SessionKey) -> float:
        return next(iter(self.tables.lines_of[key]), math.inf)

    async def _durable(self, key: SessionKey) -> Kept | None:
        """A row of the session that nothing can undo any more: only then may a file follow what it says."""
        kept = self.tables.sessions.rows.get(key)
        await self.journal.settled()
        return kept if key in self.tables.sessions.rows else None

    async def _file_session(self, kept: Kept) -> None:
        key = kept.session.key
        numbers = self.tables.lines_of[key][:LINES_AT_ONCE]
        lines = [self.tables.lines.rows[key, number] for number in numbers]
        if kept.file and not kept.mostly_trimmed:
            try:
                size = await trio.to_thread.run_sync(self.transcripts.add, kept.file, kept.size, lines)
            except (FileNotFoundError, EOFError):
                await self._mend_session(key)
            else:
                await self.journal.do(lambda: self._filed(kept, replace(kept, size=size), lines))
        else:
            await self._write_anew(kept, lines)

    async def _write_anew(self, kept: Kept, lines: Sequence[Line]) -> None:
        """What is left of the old file, and these lines, in a new one; none if nothing is left."""
        old, whole = await self._good_lines(kept)
        if not whole:
            await self._mend_session(kept.session.key)
            return
        left = [*old, *lines]
        new = await self._new_file(kept, left) if left else replace(kept, file="", size=0, first=kept.filed + 1)
        await self.journal.do(lambda: self._filed(kept, new, lines))

    async def _good_lines(self, kept: Kept) -> tuple[Sequence[Line], bool]:
        """What can be read of a file, and whether that is all of it."""
        if not kept.file:
            return (), True
        try:
            found = await trio.to_thread.run_sync(self.transcripts.read, kept, 0, kept.filed)
        except FileNotFoundError:
            return (), False
        return found.lines, not found.damaged

    async def _new_file(self, kept: Kept, lines: Sequence[Line]) -> Kept:
        name = await self._reserve(kept)
        size, moved = await trio.to_thread.run_sync(self.transcripts.create, name, lines, self.now())
        if moved is not None:
            self.report(f"sessions/{name} was there and nobody knew of it: it is set aside as {moved}")
        return replace(kept, file=name, size=size, first=lines[0].number)

    async def _reserve(self, kept: Kept) -> str:
        """A name for a file that nobody needs until a session says so."""
        name = file_name(kept.session.key, {kept.file, *self.tables.trash.rows})
        await self.journal.do(lambda: self.tables.put(self.tables.trash, name, True))
        return name

    def _filed(self, old: Kept, new: Kept, lines: Sequence[Line], *, removes: bool = True) -> None:
        """The file has them: the rows go, unless something has happened to the session meanwhile."""
        tables, key = self.tables, old.session.key
        now = tables.sessions.rows.get(key)
        same = now is not None and (now.file, now.size, now.first) == (old.file, old.size, old.first)
        if now is None or not same or any(tables.lines.rows.get((key, line.number)) is not line for line in lines):
            return
        filed = lines[-1].number if lines else old.filed
        tables.put(tables.sessions, key, replace(new, session=now.session, filed=filed))
        for line in lines:
            tables.drop(tables.lines, (key, line.number))
        if new.file != old.file:
            tables.drop(tables.trash, new.file)
            if old.file and removes:
                tables.put(tables.trash, old.file, True)

    async def _mend(self) -> None:
        """See to the transcripts that were found to be damaged."""
        while self.damaged:
            key = next(iter(self.damaged))
            await self._mend_session(key)
            del self.damaged[key]

    async def _mend_session(self, key: SessionKey) -> None:
        """The good lines are written to a new file, the old one is set aside: in this order, lest a crash lose them."""
        kept = await self._durable(key)
        if kept is None or not kept.file:
            return
        good, whole = await self._good_lines(kept)
        if whole:
            return
        nothing = replace(kept, file="", size=0, first=kept.filed + 1)
        mended = await self._new_file(kept, good) if good else nothing
        await self.journal.do(lambda: self._filed(kept, mended, (), removes=False))
        await trio.to_thread.run_sync(self.transcripts.set_aside, kept.file, self.now())
        missing = kept.filed - max(kept.session.trimmed, kept.first - 1) - len(good)
        self.report(
            f"sessions/{kept.file} was damaged: it is set aside, {len(good)} lines of {key} are kept, {missing} lost"
        )

    async def _empty_trash(self) -> None:
        """Remove the files that nobody needs."""
        names = list(self.tables.trash.rows)
        if names:
            await self.journal.settled()  # what threw them away is on the disk, or names nothing any more
            names = [name for name in names if name in self.tables.trash.rows]
            await trio.to_thread.run_sync(self.transcripts.remove, names)
            await self.journal.do(lambda: [self.tables.drop(self.tables.trash, name) for name in names])

    # ── snapshots ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _compact(self) -> None:
        """Fold the journal into a snapshot. The verbs go on meanwhile, and nothing is removed before it is durable."""
        await self._file_lines()
        failures = self.journal.failures
        generation, after = await self.journal.turn()
        size = await self._write_snapshot(generation, after, failures)
        if size is None:
            return
        self.journal.file.suspect = self._failed = False
        self._try_at = max(self.compact_at, size // WORTH)
        self.compactions += 1
        await trio.to_thread.run_sync(self._remove_older)
        await self._export()

    async def _write_snapshot(self, generation: int, after: int, failures: int) -> int | None:
        """Its size; None if changes were undone meanwhile: it may have seen them, so it is thrown away."""
        snapshot = await trio.to_thread.run_sync(SnapshotFile, self.disk, self.place, generation, after)
        finished = False
        try:
            await fill(snapshot, self.tables)
            next_id = self.tables.next_id
            await self.journal.settled()
            if self.journal.failures == failures:
                await trio.to_thread.run_sync(snapshot.finish, next_id)
                finished = True
        finally:
            snapshot.close()
            if not finished:
                snapshot.abandon()
        return snapshot.size if finished else None

    def _remove_older(self) -> None:
        """Keep the newest snapshot and the one before it, with all journals since."""
        found = [match for name in self.disk.names(self.place) if (match := NAME.fullmatch(name))]
        snapshots = sorted(int(match["generation"]) for match in found if match["kind"] == "snapshot")
        oldest = snapshots[-2] if len(snapshots) > 1 else 0
        for match in found:
            if int(match["generation"]) < oldest:
                discard(self.disk, self.place / match.string)

    async def _export(self) -> None:
        await export(self.disk, self.place, self.tables, self.now())
