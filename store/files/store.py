"""The store in files: `GOCLAW_MODE=standalone`. One directory, one process; what is acknowledged is on the disk.

LOCK                          held while open: a second process is refused
snapshot-<n>.json             everything at one moment; `store.files.snapshots`
journal-<n>.jsonl             every change since, one line each; `store.files.journal`
sessions/<hash>.jsonl         transcripts; `store.files.transcripts`
sessions.json, jobs.json      for people to read, never read back; `store.files.export`
*.corrupt-<time>              damaged files that were set aside; `store.files.recovery` goes on with what is good
"""

from __future__ import annotations

import logging
import uuid
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import trio

from store.files.cron import JsonCron
from store.files.cron_keeping import tidy as tidy_cron
from store.files.directory import open_directory
from store.files.disk import Disk, cannot_open
from store.files.journal import Journal
from store.files.keeping import Keeper
from store.files.messages import JsonMessages
from store.files.pairings import JsonPairings
from store.files.recovery import recover
from store.files.tenants import JsonTenants
from store.files.transcripts import Transcripts
from store.files.workers import JsonWorkers
from store.records import DEFAULT_TENANT, KEEP_BEATS, KEEP_READINGS, REMEMBER_KEYS, MessageState, Tenant, Tidied

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from datetime import datetime
    from pathlib import Path

    from store.files.tables import Tables
    from store.records import Lease, Line, SessionKey

CLOSING_S = 60.0
TIDY = 500
"""So many rows of each kind are removed in one step."""
IDENTITY = "identity"

log = logging.getLogger("goclaw.store")


class JsonStore(JsonTenants, JsonPairings, JsonWorkers):
    def __init__(self, journal: Journal, now: Callable[[], datetime], keeper: Keeper, findings: list[str]) -> None:
        super().__init__(journal, now, keeper)
        self.cron = JsonCron(journal, now)
        self._findings = findings

    @property
    def identity(self) -> str:
        """The name of this directory, the same for ever: a lease that it held before a crash is its own at once."""
        return self.tables.meta.rows[IDENTITY]

    @property
    def findings(self) -> tuple[str, ...]:
        """What was found damaged and what was done about it, a sentence for each."""
        return tuple(self._findings)

    def messages(self, lease: Lease | None) -> JsonMessages:
        return JsonMessages(self.journal, self.now, lease)

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[AsyncIterator[str]]:
        """Nobody else works on this store: only news of cron is heard."""
        with self.cron.ears.listening() as heard:
            yield heard

    async def tidy(self) -> Tidied:
        return await self.journal.do(self._tidy)

    def _tidy(self) -> Tidied:
        tables, now = self.tables, self.now()
        keys = tables.seen_by_age.pop_until(now - REMEMBER_KEYS, TIDY)
        noted = tables.noted_by_age.pop_until(now - REMEMBER_KEYS, TIDY)
        beats = tables.beats_by_age.pop_until(now - KEEP_BEATS, TIDY)
        readings = tables.machines_by_age.pop_until(now - KEEP_READINGS, TIDY)
        knocks = tables.knocks_by_age.pop_until(now, TIDY)
        for key in keys:
            tables.drop(tables.seen, key)
        for one in noted:
            tables.drop(tables.noted, one)
        for beat in beats:
            tables.drop(tables.beats, beat)
        for reading in readings:
            tables.drop(tables.machines, reading)
        for who in knocks:
            tables.drop(tables.paired, who)
        cron = tidy_cron(tables, now, TIDY)
        return Tidied(len(keys) + len(noted), len(beats), len(readings), cron, len(knocks))

    async def prepare(self) -> None:
        """What every store has: a name of its own and the tenant `default`."""
        await self.journal.do(self._prepare)

    def _prepare(self) -> None:
        tables = self.tables
        if IDENTITY not in tables.meta.rows:
            tables.put(tables.meta, IDENTITY, uuid.uuid4().hex)
        if DEFAULT_TENANT not in tables.tenants.rows:
            tables.put(tables.tenants, DEFAULT_TENANT, Tenant(DEFAULT_TENANT, "", "UTC", True, self.now()))


@asynccontextmanager
async def open_json(
    place: Path, now: Callable[[], datetime], *, disk: Disk | None = None, compact_at: int = 8 << 20
) -> AsyncIterator[JsonStore]:
    """The store in this directory, made if it is missing; `CannotOpen` if it cannot be used; then nothing is changed.

    It works until the block is left, also while that is being cancelled: a shutdown has things to write.
    """
    disk = disk or Disk()
    opened = await trio.to_thread.run_sync(open_directory, disk, place, now())
    findings = list(opened.findings)

    def report(finding: str) -> None:
        findings.append(finding)
        log.warning("%s: %s", place, finding)

    journal = Journal(opened.tables, opened.file)
    keeper = Keeper(journal, Transcripts(disk, place), now, compact_at, report)
    failed: BaseException | None = None
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(journal.run)
            nursery.start_soon(keeper.run)
            store = JsonStore(journal, now, keeper, findings)
            try:
                await store.prepare()
                yield store
            except BaseException as error:  # noqa: BLE001 - raised again below, so that no group is made of it
                failed = error
            await _close(journal, keeper)
    finally:
        opened.file.close()
        disk.let_go(opened.lock)
    if failed is not None:
        raise failed


async def _close(journal: Journal, keeper: Keeper) -> None:
    with trio.move_on_after(CLOSING_S, shield=True):
        await keeper.close()
    with trio.CancelScope(shield=True):
        await journal.close()


@dataclass(frozen=True, slots=True)
class Look:
    """What a directory holds, as it would be recovered."""

    tables: Tables
    findings: tuple[str, ...]
    transcripts: Transcripts

    def counts(self) -> dict[str, int]:
        """What a person asks first."""
        running = sum(message.state is MessageState.RUNNING for message in self.tables.messages.rows.values())
        return {
            "sessions": len(self.tables.sessions.rows),
            "waiting": len(self.tables.messages.rows) - running,
            "running": running,
            "unsent": len(self.tables.replies.rows),
            "jobs": self.tables.cron.living.total(),
        }

    def lines(self, key: SessionKey) -> tuple[Line, ...]:
        """The whole transcript of a session, as far as it can be read."""
        kept = self.tables.sessions.rows.get(key)
        filed: list[Line] = []
        if kept is not None and kept.file:
            with suppress(FileNotFoundError):
                filed = self.transcripts.read(kept, 0, kept.filed).lines
        return (*filed, *(self.tables.lines.rows[key, number] for number in self.tables.lines_of[key]))


def read_json(place: Path, disk: Disk | None = None) -> Look:
    """Look without a lock and without changing anything. Blocks. A goclaw that is at work may be a little ahead."""
    disk = disk or Disk()
    for attempts_left in (2, 1, 0):
        try:
            found = recover(disk, place)
        except OSError as error:
            # A compaction removes older files while they are being read: the next look finds the newer ones.
            if not isinstance(error, FileNotFoundError) or attempts_left == 0 or not place.is_dir():
                raise cannot_open(error, place) from error
        else:
            return Look(found.tables, tuple(found.findings), Transcripts(disk, place))
    raise AssertionError("the last attempt returns or raises")
