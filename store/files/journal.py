"""Changes made whole and kept for good: one transaction is one line of a file, on the disk before anybody hears of it.

    do(act) ──▶ act changes the tables ──▶ its line is collected ──▶ write + sync ──▶ the caller goes on
                      ▲                                                   │
                      └────────── undone, newest first ◀── failed ────────┘

A change is in memory at once and durable a little later; while one batch of lines is being synced the next collects.
Nobody is told of anything before it is durable: every verb, also one that only looks, waits for all that it could have
seen. When a write fails, that batch and everything collected behind it is undone and all who wait are told.

A file whose sync has failed is not trusted again (the kernel may have dropped what it held). The next batch goes to a
new one, whose first line says after which transaction it begins; what the old file has beyond that does not count.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import trio

from store.files.disk import closed, discard, unavailable
from store.files.frames import pack
from store.protocols import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from store.files.disk import Disk
    from store.files.tables import Change, Tables

T = TypeVar("T")

SCHEMA = 3
"""How rows are written. A step up needs its function in `store.files.recovery.MIGRATIONS`."""


def journal_name(generation: int) -> str:
    return f"journal-{generation}.jsonl"


class JournalFile:
    """The file at the end of the journal. Its verbs block, and one thread at a time calls them."""

    def __init__(self, disk: Disk, place: Path, generation: int) -> None:
        self.disk = disk
        self.place = place
        self.generation = generation
        self.size = 0
        """How much of it is good."""
        self.after = 0
        """It holds what came after this transaction."""
        self.trusted = False
        self.suspect = False
        """An older file was given up: what memory holds should be written down anew."""
        self._file: int | None = None

    @property
    def path(self) -> Path:
        return self.place / journal_name(self.generation)

    def go_on(self, size: int) -> None:
        """Append to the file that is there, of which so much is good."""
        self._file = self.disk.append_to(self.path)
        if self.disk.size(self._file) != size:
            self.disk.truncate(self._file, size)
            self.disk.sync(self._file)
        self.size, self.trusted = size, True

    def begin(self, after: int) -> None:
        """A new file, for what comes after that transaction.

        From the moment it may be found on the disk nothing more may be added to the old one: it would not count. So the
        old one is given up first, and an attempt that fails is followed by one with the next number.
        """
        self.trusted = False
        self.generation += 1
        file = self.disk.create(self.path)
        try:
            header = pack({"journal": self.generation, "schema": SCHEMA, "after": after})
            self.disk.write(file, header)
            self.disk.sync(file)
            self.disk.sync_directory(self.place)
        except OSError:
            self.disk.let_go(file)
            discard(self.disk, self.path)
            raise
        self.close()
        self._file, self.size, self.after, self.trusted = file, len(header), after, True

    def append(self, lines: bytes, after: int) -> None:
        """The lines are on the disk when this returns; when it raises the file ends where it did."""
        if not self.trusted or self._file is None:
            self.suspect = True
            self.begin(after)
        assert self._file is not None  # noqa: S101 - `begin` has opened it or raised
        try:
            self.disk.write(self._file, lines)
        except OSError:
            self.trusted = self._cut(self._file)
            raise
        try:
            self.disk.sync(self._file)
        except OSError:
            self.trusted = False
            self._cut(self._file)
            raise
        self.size += len(lines)

    def close(self) -> None:
        if self._file is not None:
            self.disk.let_go(self._file)
            self._file = None

    def _cut(self, file: int) -> bool:
        with suppress(OSError):
            self.disk.truncate(file, self.size)
            return True
        return False


class Mark(NamedTuple):
    """Where the tables stood."""

    seq: int
    next_id: int


class Batch:
    """Transactions that reach the disk together or not at all."""

    __slots__ = ("before", "changes", "done", "error", "lines")

    def __init__(self, before: Mark) -> None:
        self.before = before
        self.lines: list[bytes] = []
        self.changes: list[Change] = []
        self.done = trio.Event()
        self.error: OSError | None = None


class Journal:
    def __init__(self, tables: Tables, file: JournalFile) -> None:
        self.tables = tables
        self.file = file
        self.failures = 0
        """How often changes had to be undone."""
        self.after_commit: Callable[[], None] = lambda: None
        self._collecting = Batch(self._mark())
        self._writing: Batch | None = None
        self._turn: trio.Event | None = None
        self._turn_error: OSError | None = None
        self._wake = trio.Event()
        self._closed = False
        self._one_thread = trio.CapacityLimiter(1)

    # ── for the verbs ────────────────────────────────────────────────────────────────────────────────────────────────

    async def do(self, act: Callable[[], T]) -> T:
        """Carry out ``act``, which may change the tables: all of it is kept when this returns, or nothing has changed.

        A caller who is cancelled while it waits does not know which; half of it is never kept.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        try:
            result = self._apply(act)
        except (StoreError, ValueError):
            await self.settled()
            raise
        await self.settled()
        return result

    async def do_each(self, acts: Iterable[Callable[[], T]]) -> list[T]:
        """Like `do` for each, in a step of its own, so that many hold nobody up; they wait for the disk together.

        Each is kept whole or not at all. When this raises, some of them may have been kept.
        """
        answers: list[T] = []
        waiting: dict[Batch, None] = {}
        for act in acts:
            await trio.lowlevel.checkpoint()
            try:
                answers.append(self._apply(act))
            except (StoreError, ValueError):
                await self.settled()
                raise
            if (batch := self._newest()) is not None:
                waiting[batch] = None
        for batch in waiting:
            await self._kept(batch)
        return answers

    async def settled(self) -> None:
        """Wait until everything that can be seen now is on the disk."""
        batch = self._newest()
        if batch is None:
            await trio.lowlevel.checkpoint()
        else:
            await self._kept(batch)

    def _newest(self) -> Batch | None:
        """The last of the batches that are not on the disk yet."""
        return self._collecting if self._collecting.lines else self._writing

    async def _kept(self, batch: Batch) -> None:
        await batch.done.wait()
        if batch.error is not None:
            raise unavailable(batch.error, self.file.path)

    def _apply(self, act: Callable[[], T]) -> T:
        if self._closed:
            raise closed(self.file.place)
        before = self._mark()
        try:
            result = act()
            if self.tables.log:
                self._collect()
        except BaseException:
            self._take_back(self.tables.log, before)
            self.tables.log = []
            raise
        return result

    def _collect(self) -> None:
        tables = self.tables
        rows = [(change.table.name, change.key, change.new) for change in tables.log]
        self._collecting.lines.append(pack({"seq": tables.seq + 1, "next": tables.next_id, "rows": rows}))
        self._collecting.changes += tables.log
        tables.log = []
        tables.seq += 1
        self._wake.set()

    # ── the one task that writes ─────────────────────────────────────────────────────────────────────────────────────

    async def run(self) -> None:
        """Write what is collected, until closed. Shielded: changes are made during a shutdown too."""
        try:
            with trio.CancelScope(shield=True):
                while not self._closed or self._collecting.lines:
                    await self._wake.wait()
                    self._wake = trio.Event()
                    if self._turn is not None:
                        await self._begin_file(self._turn)
                    if self._collecting.lines:
                        await self._commit()
        finally:
            self._leave_nobody_waiting()

    async def turn(self) -> tuple[int, int]:
        """What is collected from now on goes to a new file; its generation, and the change after which it begins."""
        turn = self._turn = self._turn or trio.Event()
        self._wake.set()
        await turn.wait()
        if self._turn_error is not None:
            raise unavailable(self._turn_error, self.file.path)
        return self.file.generation, self.file.after

    async def close(self) -> None:
        """Write what is left, then refuse everything."""
        with suppress(StoreError):
            await self.settled()
        self._closed = True
        self._wake.set()

    async def _begin_file(self, turn: trio.Event) -> None:
        self._turn_error = None
        try:
            await trio.to_thread.run_sync(self.file.begin, self._collecting.before.seq, limiter=self._one_thread)
        except OSError as error:
            self._turn_error = error
        self._turn = None
        turn.set()

    async def _commit(self) -> None:
        batch = self._writing = self._collecting
        self._collecting = Batch(self._mark())
        try:
            lines = b"".join(batch.lines)
            await trio.to_thread.run_sync(self.file.append, lines, batch.before.seq, limiter=self._one_thread)
        except OSError as error:
            self._fail(batch, error)
        else:
            self.after_commit()
        self._writing = None
        batch.done.set()

    def _fail(self, batch: Batch, error: OSError) -> None:
        """What was collected meanwhile has seen what is now undone: it goes too."""
        behind = self._collecting
        self._take_back(batch.changes + behind.changes, batch.before)
        self._collecting = Batch(self._mark())
        self.failures += 1
        batch.error = behind.error = error
        behind.done.set()

    def _leave_nobody_waiting(self) -> None:
        """Whatever has ended the task: who waits is told that nobody will ever write this."""
        self._closed = True
        for batch in (self._writing, self._collecting):
            if batch is not None and batch.lines:
                batch.error = OSError("the store has ended")
                batch.done.set()

    def _mark(self) -> Mark:
        return Mark(self.tables.seq, self.tables.next_id)

    def _take_back(self, changes: list[Change], before: Mark) -> None:
        self.tables.undo(changes)
        self.tables.seq, self.tables.next_id = before
