"""What the store holds after a kill, as the next process to open it sees it.

Everything is looked at before anything is written. The last look is a second delivery of each message: it shows a row
whatever its state, and what was never kept is taken now, as it would be when a channel delivers again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from store.records import CHAT_LEASE
from tests.faults.hard_work import SPAN
from tests.faults.told import ACCOUNTS, ALONE, CHANNEL, SESSIONS, incoming

if TYPE_CHECKING:
    from collections.abc import Iterable

    from store.protocols import MessageStore, Store
    from store.records import ApiToken, Line, Message, Receipt, Reply, Session, SessionKey

MANY = 1_000_000


@dataclass(frozen=True, slots=True)
class Conversation:
    kept: Session | None
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Household:
    """A tenant with what it owns; ``enabled`` is None if there is no such tenant."""

    enabled: bool | None
    tokens: tuple[ApiToken, ...]
    kept: Session | None


@dataclass(frozen=True, slots=True)
class Found:
    token: int
    waiting: tuple[Message, ...]
    outbox: tuple[Reply, ...]
    cursors: dict[str, int | None]
    sessions: dict[str, Conversation]
    tenants: frozenset[str]
    households: dict[str, Household]
    workers: frozenset[str]
    receipts: dict[str, Receipt]


async def look(store: Store, owner: str, names: Iterable[str], tenants: Iterable[str]) -> Found:
    """Take the lease under the dead one's name and look at everything, at these messages and tenants closely."""
    lease = await store.acquire(CHAT_LEASE, owner, SPAN)
    assert lease is not None, "the lease of the dead one was not given to its successor"
    messages = store.messages(lease)
    return Found(
        token=lease.token,
        waiting=await messages.waiting(),
        outbox=await messages.outbox(MANY),
        cursors={account: await messages.cursor(CHANNEL, account) for account in ACCOUNTS},
        sessions={str(key): await conversation(store, key) for key in (*SESSIONS, ALONE)},
        tenants=frozenset(tenant.id for tenant in await store.tenants()),
        households={tenant: await household(store, tenant) for tenant in tenants},
        workers=frozenset(worker.id for worker in await store.workers()),
        receipts=await deliver_again(messages, list(names)),
    )


async def conversation(store: Store, key: SessionKey) -> Conversation:
    return Conversation(await store.session(key), await store.transcript(key, limit=MANY))


async def household(store: Store, tenant: str) -> Household:
    known = await store.tenant(tenant)
    kept = await store.session(replace(ALONE, tenant=tenant))
    return Household(None if known is None else known.enabled, await store.tokens(tenant), kept)


async def deliver_again(messages: MessageStore, names: list[str]) -> dict[str, Receipt]:
    receipts: dict[str, Receipt] = {}
    for start in range(0, len(names), 500):
        some = names[start : start + 500]
        answer = await messages.accept([incoming(name) for name in some])
        assert answer is not None
        receipts.update(zip(some, answer, strict=True))
    return receipts
