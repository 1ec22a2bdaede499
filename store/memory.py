"""The store without a disk: the plainest implementation of every verb, for fast tests and as the measure of the others.

Each verb does its work between two checkpoints, so it is atomic; it looks before it writes, so it is whole. Nothing is
indexed. What has ended shrinks to its delivery key.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

import trio

from store.hearing import Ears
from store.memory_cron import CronTables, MemoryCron
from store.memory_messages import MemoryMessages
from store.memory_pairings import MemoryPairings
from store.records import (
    DEFAULT_TENANT,
    KEEP_BEATS,
    KEEP_READINGS,
    REMEMBER_KEYS,
    USED_LATELY,
    ApiToken,
    Beat,
    Lease,
    Line,
    MachineSnapshot,
    Message,
    NewToken,
    Noted,
    OwnKey,
    Reading,
    Reply,
    Said,
    Seen,
    Session,
    SessionKey,
    SessionPolicy,
    Standing,
    Tenant,
    Tidied,
    Worker,
    WorkerStatus,
)
from store.rules import (
    at_most,
    check_session,
    check_status,
    check_words,
    copied,
    default_stays,
    plain_json,
    renamed,
    unknown_tenant,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
    from datetime import datetime, timedelta

    from store.pairing import Pairing, Sender


class MemoryStore(MemoryPairings):
    def __init__(self, now: Callable[[], datetime], tenants: Iterable[str] = (DEFAULT_TENANT,)) -> None:
        self.now = now
        self.ids = count(1)
        self.open: dict[int, Message] = {}
        self.seen: dict[OwnKey, Seen] = {}
        self.outbox: dict[int, Reply] = {}
        self.cursors: dict[tuple[str, str], int] = {}
        self.kept: dict[SessionKey, Session] = {}
        self.said: dict[SessionKey, list[Line]] = {}
        self.people = {tenant: Tenant(tenant, "", "UTC", True, now()) for tenant in tenants}
        self.keys: dict[tuple[str, str], ApiToken] = {}
        self.noted: dict[tuple[str, str], Noted] = {}
        self.paired: dict[Sender, Pairing] = {}
        self.crew: dict[str, Worker] = {}
        self.signs: list[Beat] = []
        self.machines: list[MachineSnapshot] = []
        self.leases: dict[str, Lease] = {}
        self.ears = Ears()
        self.cron = MemoryCron(self, CronTables.empty())

    def messages(self, lease: Lease | None) -> MemoryMessages:
        return MemoryMessages(self, lease)

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[AsyncIterator[str]]:
        """Nobody else works on this store: only news of cron is heard."""
        with self.ears.listening() as heard:
            yield heard

    async def tidy(self) -> Tidied:
        await trio.lowlevel.checkpoint()
        now = self.now()
        old = [key for key, seen in self.seen.items() if seen.at <= now - REMEMBER_KEYS]
        for key in old:
            del self.seen[key]
        noted = {key: one for key, one in self.noted.items() if one.at > now - REMEMBER_KEYS}
        signs = [beat for beat in self.signs if beat.at > now - KEEP_BEATS]
        machines = [one for one in self.machines if one.at > now - KEEP_READINGS]
        cron = self.cron.tidy(now)
        went = len(old) + len(self.noted) - len(noted)
        paired = self.tidy_pairings(now)
        tidied = Tidied(went, len(self.signs) - len(signs), len(self.machines) - len(machines), cron, paired)
        self.signs, self.machines, self.noted = signs, machines, noted
        return tidied

    # ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def session(self, key: SessionKey) -> Session | None:
        await trio.lowlevel.checkpoint()
        return self.kept.get(key)

    async def sessions(self, tenant: str, *, limit: int = 100, after: str = "") -> tuple[Session, ...]:
        await trio.lowlevel.checkpoint()
        texts = {str(key): kept for key, kept in self.kept.items() if key.tenant == tenant}
        return tuple(texts[text] for text in sorted(texts) if text > after)[: at_most(limit)]

    async def set_policy(self, key: SessionKey, policy: SessionPolicy, only: Collection[str] | None = None) -> Session:
        await trio.lowlevel.checkpoint()
        kept = self.keep(key)
        after = kept.standing.policy.changed(policy, only)
        return self.put_session(replace(kept, standing=replace(kept.standing, policy=after)))

    async def remember(self, key: SessionKey, said: Sequence[Said]) -> int:
        await trio.lowlevel.checkpoint()
        return self.write_down(self.keep(key), copied(said)).lines

    async def transcript(self, key: SessionKey, *, after: int = 0, limit: int = 100) -> tuple[Line, ...]:
        await trio.lowlevel.checkpoint()
        return tuple(line for line in self.said.get(key, ()) if line.number > after)[: at_most(limit)]

    async def newest(self, key: SessionKey, limit: int) -> tuple[Line, ...]:
        await trio.lowlevel.checkpoint()
        return tuple(self.said.get(key, ()))[-limit:] if limit > 0 else ()

    async def trim(self, key: SessionKey, upto: int) -> int:
        await trio.lowlevel.checkpoint()
        kept = self.kept.get(key)
        upto = min(upto, 0 if kept is None else kept.lines)
        if kept is None or upto <= kept.trimmed:
            return 0
        self.said[key] = [line for line in self.said[key] if line.number > upto]
        self.put_session(replace(kept, trimmed=upto))
        return upto - kept.trimmed

    async def forget(self, key: SessionKey) -> bool:
        await trio.lowlevel.checkpoint()
        self.said.pop(key, None)
        return self.kept.pop(key, None) is not None

    def keep(self, key: SessionKey) -> Session:
        self.check_tenants([key])
        return self.kept.get(key) or Session(key, Standing(), 0, 0, self.now())

    def put_session(self, session: Session) -> Session:
        self.kept[session.key] = replace(session, updated_at=self.now())
        return self.kept[session.key]

    def write_down(self, kept: Session, said: Sequence[Said]) -> Session:
        lines = [Line(kept.lines + place, self.now(), one) for place, one in enumerate(said, start=1)]
        self.said.setdefault(kept.key, []).extend(lines)
        return self.put_session(replace(kept, lines=kept.lines + len(lines)))

    # ── tenants and tokens ───────────────────────────────────────────────────────────────────────────────────────────

    def check_tenants(self, sessions: Iterable[SessionKey]) -> None:
        for session in sessions:
            check_session(session)
            if session.tenant not in self.people:
                raise unknown_tenant(session.tenant)

    async def create_tenant(self, tenant: str, name: str = "", zone: str = "UTC") -> bool:
        await trio.lowlevel.checkpoint()
        check_words(tenant, name, zone)
        if tenant in self.people:
            return False
        self.people[tenant] = Tenant(tenant, name, zone, True, self.now())
        return True

    async def tenant(self, tenant: str) -> Tenant | None:
        await trio.lowlevel.checkpoint()
        return self.people.get(tenant)

    async def tenants(self) -> tuple[Tenant, ...]:
        await trio.lowlevel.checkpoint()
        return tuple(self.people[tenant] for tenant in sorted(self.people))

    async def enable_tenant(self, tenant: str, enabled: bool) -> bool:
        await trio.lowlevel.checkpoint()
        if tenant not in self.people:
            return False
        self.people[tenant] = replace(self.people[tenant], enabled=enabled)
        return True

    async def edit_tenant(self, tenant: str, *, name: str | None = None, zone: str | None = None) -> bool:
        await trio.lowlevel.checkpoint()
        check_words(name or "", zone or "")
        known = self.people.get(tenant)
        if known is None:
            return False
        self.people[tenant] = renamed(known, name, zone)
        return True

    async def delete_tenant(self, tenant: str) -> bool:
        await trio.lowlevel.checkpoint()
        if tenant == DEFAULT_TENANT:
            raise default_stays()
        if tenant not in self.people:
            return False
        del self.people[tenant]
        self.open = {number: one for number, one in self.open.items() if one.session.tenant != tenant}
        self.seen = {key: one for key, one in self.seen.items() if key.tenant != tenant}
        self.outbox = {number: one for number, one in self.outbox.items() if one.note.session.tenant != tenant}
        self.kept = {key: one for key, one in self.kept.items() if key.tenant != tenant}
        self.said = {key: lines for key, lines in self.said.items() if key.tenant != tenant}
        self.keys = {key: one for key, one in self.keys.items() if key[0] != tenant}
        self.noted = {key: one for key, one in self.noted.items() if key[0] != tenant}
        self.paired = {who: one for who, one in self.paired.items() if one.tenant != tenant}
        self.cron.forget_tenant(tenant)
        return True

    async def add_token(self, token: NewToken) -> bool:
        await trio.lowlevel.checkpoint()
        check_words(token.id, token.name, token.digest, *token.scopes)
        if token.tenant not in self.people:
            raise unknown_tenant(token.tenant)
        digests = {one.new.digest for one in self.keys.values()}
        if (token.tenant, token.id) in self.keys or token.digest in digests:
            return False
        self.keys[token.tenant, token.id] = ApiToken(token, self.now())
        return True

    async def token_for(self, digest: str) -> ApiToken | None:
        await trio.lowlevel.checkpoint()
        now = self.now()
        for key, token in self.keys.items():
            if token.new.digest == digest and token.opens_at(now) and self.people[token.new.tenant].enabled:
                if token.last_used_at is None or token.last_used_at <= now - USED_LATELY:
                    self.keys[key] = replace(token, last_used_at=now)
                return self.keys[key]
        return None

    async def tokens(self, tenant: str) -> tuple[ApiToken, ...]:
        await trio.lowlevel.checkpoint()
        return tuple(self.keys[key] for key in sorted(self.keys) if key[0] == tenant)

    async def revoke_token(self, tenant: str, token: str) -> bool:
        await trio.lowlevel.checkpoint()
        found = self.keys.get((tenant, token))
        if found is None or found.revoked_at is not None:
            return False
        self.keys[tenant, token] = replace(found, revoked_at=self.now())
        return True

    async def note_key(self, tenant: str, key: str, meaning: str) -> str:
        await trio.lowlevel.checkpoint()
        check_words(key, meaning)
        if tenant not in self.people:
            raise unknown_tenant(tenant)
        return self.noted.setdefault((tenant, key), Noted(meaning, self.now())).meaning

    # ── workers ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def beat(
        self, worker: str, status: WorkerStatus, *, run: str = "", context: Mapping[str, object] | None = None
    ) -> None:
        await trio.lowlevel.checkpoint()
        check_words(worker, run)
        check_status(status)
        about = plain_json(context or {})
        now = self.now()
        known = self.crew.get(worker)
        self.crew[worker] = Worker(worker, status, known.started_at if known else now, now)
        self.signs.append(Beat(worker, status, run, about, now))

    async def leave(self, worker: str) -> bool:
        await trio.lowlevel.checkpoint()
        return self.crew.pop(worker, None) is not None

    async def workers(self) -> tuple[Worker, ...]:
        await trio.lowlevel.checkpoint()
        return tuple(self.crew[worker] for worker in sorted(self.crew))

    async def beats(self, worker: str, limit: int = 10) -> tuple[Beat, ...]:
        await trio.lowlevel.checkpoint()
        return tuple(beat for beat in reversed(self.signs) if beat.worker == worker)[: at_most(limit)]

    async def record(self, reading: Reading) -> None:
        await trio.lowlevel.checkpoint()
        check_words(reading.worker)
        self.machines.append(MachineSnapshot(replace(reading, context=plain_json(reading.context)), self.now()))

    async def readings(self, limit: int = 60) -> tuple[MachineSnapshot, ...]:
        await trio.lowlevel.checkpoint()
        return tuple(reversed(self.machines))[: at_most(limit)]

    async def acquire(self, name: str, owner: str, span: timedelta) -> Lease | None:
        await trio.lowlevel.checkpoint()
        check_words(name, owner)
        return self.grant(name, owner, span)

    def grant(self, name: str, owner: str, span: timedelta) -> Lease | None:
        now, held = self.now(), self.leases.get(name)
        if held is not None and held.until > now and held.owner != owner:
            return None
        token = 1 if held is None else held.token + 1
        self.leases[name] = Lease(name, owner, token, now + span)
        return self.leases[name]

    async def renew(self, lease: Lease, span: timedelta) -> Lease | None:
        await trio.lowlevel.checkpoint()
        if not self.holds(lease):
            return None
        self.leases[lease.name] = replace(lease, until=self.now() + span)
        return self.leases[lease.name]

    async def release(self, lease: Lease) -> bool:
        await trio.lowlevel.checkpoint()
        if not self.holds(lease):
            return False
        self.leases[lease.name] = replace(lease, until=self.now())
        return True

    async def lease(self, name: str) -> Lease | None:
        await trio.lowlevel.checkpoint()
        held = self.leases.get(name)
        return held if held is not None and held.until > self.now() else None

    def holds(self, lease: Lease | None) -> bool:
        held = None if lease is None else self.leases.get(lease.name)
        return lease is not None and held is not None and held.token == lease.token and held.until > self.now()
