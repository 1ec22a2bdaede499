"""Everything that a store holds for people, as one value: equal before and after, nothing was changed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.protocols import Store

ALL = 10_000


async def everything(store: Store, tenants: Sequence[str] | None = None) -> dict[str, Any]:
    """By tenant. When a token was last used is left out: to be refused is a use too."""
    known = [tenant.id for tenant in await store.tenants()]
    return {tenant: await of_tenant(store, tenant) for tenant in (known if tenants is None else tenants)}


async def of_tenant(store: Store, tenant: str) -> dict[str, Any]:
    cron = store.cron
    sessions = await store.sessions(tenant, limit=ALL)
    jobs = await cron.jobs(tenant, limit=ALL)
    runs = await cron.runs(tenant, limit=ALL)
    return {
        "tenant": await store.tenant(tenant),
        "tokens": [replace(token, last_used_at=None) for token in await store.tokens(tenant)],
        "pairings": await store.pairings(tenant),
        "sessions": sessions,
        "transcripts": [await store.transcript(session.key, limit=ALL) for session in sessions],
        "jobs": jobs,
        "triggers": [await cron.triggers(tenant, job.id, limit=ALL) for job in jobs],
        "runs": runs,
        "outputs": [await cron.output(tenant, run.id) for run in runs],
        "news": await cron.notifications(tenant, limit=ALL),
        "counts": await cron.counts(tenant),
        "waiting": [one for one in await store.messages(None).waiting() if one.session.tenant == tenant],
    }


def rows(found: dict[str, Any]) -> int:
    """How many things there are of what a tenant can own."""
    lists = ("tokens", "sessions", "jobs", "runs", "news", "waiting")
    return sum(len(found[name]) for name in lists) + sum(len(one) for one in found["triggers"] + found["transcripts"])
