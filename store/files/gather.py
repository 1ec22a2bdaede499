"""Everything that a directory holds, packed for another store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.copying import Everything

if TYPE_CHECKING:
    from store.files.store import JsonStore

ALL_LINES = 1 << 62


async def gather(files: JsonStore) -> Everything:
    """All of it, but for leases: they are about processes, not about what is kept."""
    tables, cron = files.tables, files.tables.cron
    sessions = [
        (kept.session, await files.transcript(key, limit=ALL_LINES)) for key, kept in list(tables.sessions.rows.items())
    ]
    times = [
        *(message.accepted_at for message in tables.messages.rows.values()),
        *(seen.at for seen in tables.seen.rows.values()),
        *(beat.at for beat in tables.beats.rows.values()),
        *(machine.at for machine in tables.machines.rows.values()),
        *(job.updated_at for job in cron.jobs.rows.values()),
        *(trigger.created_at for trigger in cron.triggers.rows.values()),
        *(run.ended_at or run.started_at for run in cron.runs.rows.values()),
        *(told.at for told in cron.news.rows.values()),
        *(pairing.changed_at for pairing in tables.paired.rows.values()),
    ]
    counted = sorted({*cron.numbers.rows, *cron.told.rows})
    return Everything(
        source=files.identity,
        id=tables.next_id - 1,
        change=tables.seq,
        newest=max(times, default=files.now()),
        tenants=tuple(tables.tenants.rows.values()),
        tokens=tuple(tables.tokens.rows.values()),
        sessions=tuple(sessions),
        messages=tuple(tables.messages.rows.values()),
        ended=tuple(tables.seen.rows.items()),
        replies=tuple(tables.replies.rows.values()),
        cursors=tuple((*place, position) for place, position in tables.cursors.rows.items()),
        workers=tuple(tables.workers.rows.values()),
        beats=tuple(tables.beats.rows.items()),
        readings=tuple(tables.machines.rows.items()),
        jobs=tuple(cron.jobs.rows.values()),
        triggers=tuple(cron.triggers.rows.values()),
        runs=tuple(cron.runs.rows.values()),
        outputs=tuple((tenant, run, text) for (tenant, run), text in cron.outputs.rows.items()),
        news=tuple((tenant, told) for (tenant, _), told in cron.news.rows.items()),
        pairings=tuple(tables.paired.rows.values()),
        numbers=tuple((one, cron.numbers.rows.get(one, 0), cron.told.rows.get(one, 0)) for one in counted),
    )
