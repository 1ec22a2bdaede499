"""Workers, machines and leases in Postgres. Leases go by the server's clock, which all of its users share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.postgres import rows
from store.postgres.queries import load
from store.postgres.text import to_json
from store.rules import check_status, check_words, plain_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime, timedelta

    from store.postgres.database import Database
    from store.records import Beat, Lease, MachineSnapshot, Reading, Worker, WorkerStatus

SQL = load("workers")


class PostgresWorkers:
    db: Database
    now: Callable[[], datetime | None]

    async def beat(
        self, worker: str, status: WorkerStatus, *, run: str = "", context: Mapping[str, object] | None = None
    ) -> None:
        check_words(worker, run)
        check_status(status)
        about = to_json(plain_json(context or {}))
        await self.db.fetch(SQL["beat"], self.now(), worker, status, run, about)

    async def leave(self, worker: str) -> bool:
        return await self.db.first(SQL["leave"], worker) is not None

    async def workers(self) -> tuple[Worker, ...]:
        found = await rows.records(await self.db.fetch(SQL["workers"]), rows.worker)
        return tuple(sorted(found, key=lambda one: one.id))

    async def beats(self, worker: str, limit: int = 10) -> tuple[Beat, ...]:
        found = await self.db.fetch(SQL["beats"], worker, rows.limit_of(limit))
        return await rows.records(found, rows.beat)

    async def record(self, reading: Reading) -> None:
        check_words(reading.worker)
        await self.db.fetch(
            SQL["record"],
            self.now(),
            reading.worker,
            reading.active_workers,
            reading.active_runs,
            reading.cpu_percent,
            reading.memory_mb,
            to_json(plain_json(reading.context)),
        )

    async def readings(self, limit: int = 60) -> tuple[MachineSnapshot, ...]:
        found = await self.db.fetch(SQL["readings"], rows.limit_of(limit))
        return await rows.records(found, rows.snapshot)

    async def acquire(self, name: str, owner: str, span: timedelta) -> Lease | None:
        check_words(name, owner)
        row = await self.db.first(SQL["acquire"], self.now(), name, owner, span)
        return None if row is None else rows.lease(row)

    async def renew(self, lease: Lease, span: timedelta) -> Lease | None:
        row = await self.db.first(SQL["renew"], self.now(), lease.name, rows.fitting(lease.token), span)
        return None if row is None else rows.lease(row)

    async def release(self, lease: Lease) -> bool:
        row = await self.db.first(SQL["release"], self.now(), lease.name, rows.fitting(lease.token))
        return row is not None

    async def lease(self, name: str) -> Lease | None:
        row = await self.db.first(SQL["lease"], self.now(), name)
        return None if row is None else rows.lease(row)
