"""Workers, machines and leases of the JSON store."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from store.files.verbs import Verbs
from store.records import Beat, Lease, MachineSnapshot, Worker
from store.rules import check_status, check_words, plain_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

    from store.records import Reading, WorkerStatus


class JsonWorkers(Verbs):
    async def beat(
        self, worker: str, status: WorkerStatus, *, run: str = "", context: Mapping[str, object] | None = None
    ) -> None:
        await self.journal.do(lambda: self._beat(worker, status, run, context or {}))

    async def leave(self, worker: str) -> bool:
        return await self.journal.do(lambda: self.tables.drop(self.tables.workers, worker) is not None)

    async def workers(self) -> tuple[Worker, ...]:
        rows = self.tables.workers.rows
        return await self.journal.do(lambda: tuple(rows[worker] for worker in sorted(rows)))

    async def beats(self, worker: str, limit: int = 10) -> tuple[Beat, ...]:
        rows, of = self.tables.beats.rows, self.tables.beats_of
        return await self.journal.do(lambda: tuple([rows[key] for key in newest(of[worker], limit)]))

    async def record(self, reading: Reading) -> None:
        await self.journal.do(lambda: self._record(reading))

    async def readings(self, limit: int = 60) -> tuple[MachineSnapshot, ...]:
        rows, order = self.tables.machines.rows, self.tables.machines_in_order
        return await self.journal.do(lambda: tuple([rows[key] for key in newest(order[""], limit)]))

    async def acquire(self, name: str, owner: str, span: timedelta) -> Lease | None:
        return await self.journal.do(lambda: self._acquire(name, owner, span))

    async def renew(self, lease: Lease, span: timedelta) -> Lease | None:
        return await self.journal.do(lambda: self._renew(lease, span))

    async def release(self, lease: Lease) -> bool:
        return await self.journal.do(lambda: self._release(lease))

    async def lease(self, name: str) -> Lease | None:
        return await self.journal.do(lambda: self._lease(name))

    # ── each in one step ─────────────────────────────────────────────────────────────────────────────────────────────

    def _beat(self, worker: str, status: WorkerStatus, run: str, context: Mapping[str, object]) -> None:
        check_words(worker, run)
        check_status(status)
        tables, now = self.tables, self.now()
        known = tables.workers.rows.get(worker)
        tables.put(tables.workers, worker, Worker(worker, status, known.started_at if known else now, now))
        tables.put(tables.beats, tables.seq + 1, Beat(worker, status, run, plain_json(context), now))

    def _record(self, reading: Reading) -> None:
        check_words(reading.worker)
        row = MachineSnapshot(replace(reading, context=plain_json(reading.context)), self.now())
        self.tables.put(self.tables.machines, self.tables.seq + 1, row)

    def _acquire(self, name: str, owner: str, span: timedelta) -> Lease | None:
        check_words(name, owner)
        now, held = self.now(), self.tables.leases.rows.get(name)
        if held is not None and held.until > now and held.owner != owner:
            return None
        token = 1 if held is None else held.token + 1
        return self.tables.put(self.tables.leases, name, Lease(name, owner, token, now + span))

    def _renew(self, lease: Lease, span: timedelta) -> Lease | None:
        if not self.holds(lease):
            return None
        return self.tables.put(self.tables.leases, lease.name, replace(lease, until=self.now() + span))

    def _release(self, lease: Lease) -> bool:
        if not self.holds(lease):
            return False
        self.tables.put(self.tables.leases, lease.name, replace(lease, until=self.now()))
        return True

    def _lease(self, name: str) -> Lease | None:
        held = self.tables.leases.rows.get(name)
        return held if held is not None and held.until > self.now() else None


def newest(keys: list[int], limit: int) -> list[int]:
    """The last ones, last first."""
    return keys[-1 : -limit - 1 : -1] if limit > 0 else []
