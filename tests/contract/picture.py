"""Everything that can be read from a store without changing it, as one value: equal pictures, equal stores."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from store.records import CHAT_LEASE, DEFAULT_TENANT, Lease, Message, Receipt, Reply, Tenant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from store.protocols import MessageStore, Store
    from store.records import Session

    Picture = dict[str, object]

ALL = 10_000
FEW = 3
"""So many are read one by one too, which must agree with the list."""
PLACES = (("fake", "bot"), ("fake", "other"))
WORKERS = ("w1", "w2")
TENANTS = (DEFAULT_TENANT, "t")
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


async def picture(
    whole: Store,
    store: MessageStore,
    *,
    places: Sequence[tuple[str, str]] = PLACES,
    workers: Sequence[str] = WORKERS,
    leases: Sequence[str] = (CHAT_LEASE, "other"),
) -> Picture:
    """``store`` must hold the lease. Which messages run cannot be read; a second delivery asks for one of them."""
    tenants = await whole.tenants()
    kept = [session for tenant in tenants for session in await whole.sessions(tenant.id, limit=ALL)]
    return {
        "tenants": tenants,
        "sessions": kept,
        "transcripts": [await transcript(whole, session) for session in kept],
        "tokens": [await whole.tokens(tenant.id) for tenant in tenants],
        "pairings": [await whole.pairings(tenant.id) for tenant in tenants],
        "knocks": await whole.knocks(),
        "workers": await whole.workers(),
        "beats": [await whole.beats(worker, ALL) for worker in workers],
        "readings": await whole.readings(ALL),
        "leases": [await whole.lease(name) for name in leases],
        "cursors": [await store.cursor(*place) for place in places],
        "waiting": await store.waiting(),
        "outbox": await store.outbox(ALL),
        **await cron_picture(whole, [tenant.id for tenant in tenants], workers),
    }


async def cron_picture(whole: Store, tenants: Sequence[str] = TENANTS, workers: Sequence[str] = WORKERS) -> Picture:
    """What can be read of jobs."""
    cron = whole.cron
    jobs = [job for tenant in tenants for job in await cron.jobs(tenant, limit=ALL)]
    runs = [run for tenant in tenants for run in await cron.runs(tenant, limit=ALL)]
    triggers = [trigger for job in jobs for trigger in await cron.triggers(*job.key, limit=ALL)]
    assert [await cron.job(*job.key) for job in jobs[:FEW]] == jobs[:FEW]
    assert [await cron.trigger(one.tenant, one.id) for one in triggers[:FEW]] == triggers[:FEW]
    assert [await cron.run(one.tenant, one.id) for one in runs[:FEW]] == runs[:FEW]
    return {
        "jobs": jobs,
        "triggers": triggers,
        "runs": runs,
        "outputs": [await cron.output(run.tenant, run.id) for run in runs],
        "news": [await cron.notifications(tenant, limit=ALL) for tenant in tenants],
        "counts": [await cron.counts(tenant) for tenant in {job.tenant: None for job in jobs}],
        "unplanned": await cron.unplanned(ALL),
        "held": [await cron.held(worker) for worker in workers],
        "next due": await cron.next_due(),
    }


async def transcript(whole: Store, session: Session) -> object:
    """Read in both directions, which must agree."""
    lines = await whole.transcript(session.key, limit=ALL)
    assert await whole.newest(session.key, ALL) == lines
    return lines


def normal(value: object) -> object:
    """The same for any two stores that hold the same: each numbers in its own way, so only the order of ids counts."""
    messages: dict[int, int] = {}
    replies: dict[int, int] = {}
    renumbered(value, lambda number: messages.setdefault(number, 0), lambda number: replies.setdefault(number, 0))
    return renumbered(value, ranks(messages).__getitem__, ranks(replies).__getitem__)


def ranks(ids: Iterable[int]) -> dict[int, int]:
    return {number: rank for rank, number in enumerate(sorted(ids), start=1)}


def renumbered(
    value: object,
    message: Callable[[int], int],
    reply: Callable[[int], int],
    token: Callable[[Lease], int] | None = None,
) -> object:
    """The same value under other numbers. When `default` was made is each store's own business."""

    def again(inner: object) -> object:
        return renumbered(inner, message, reply, token)

    match value:
        case Message():
            return replace(value, id=message(value.id))
        case Receipt():
            row = None if value.message is None else replace(value.message, id=message(value.message.id))
            return replace(value, id=message(value.id), message=row)
        case Reply():
            return replace(value, id=reply(value.id), answers=tuple(message(number) for number in value.answers))
        case Lease():
            return replace(value, token=0 if token is None else token(value))
        case Tenant(id=str(known)) if known == DEFAULT_TENANT:
            return replace(value, created_at=LONG_AGO)
        case dict():
            return {key: again(inner) for key, inner in value.items()}
        case list() | tuple() if type(value) in (list, tuple):
            return [again(inner) for inner in value]
        case _:
            return value
