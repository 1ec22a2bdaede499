"""Histories of sessions, tenants, tokens and workers."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from hypothesis import strategies as st
from hypothesis.stateful import rule

from store.records import NewToken, SessionPolicy, WorkerStatus
from tests.contract.machine import StoreMachine
from tests.contract.pools import (
    MOMENT,
    data,
    digests,
    limits,
    policies,
    readings,
    said,
    sessions,
    spans,
    tenants,
    texts,
    workers,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from store.records import Reading, Said, SessionKey


class KeepingRules(StoreMachine):
    @rule(key=sessions, policy=policies)
    def set_policy(self, key: SessionKey, policy: SessionPolicy) -> None:
        self.ask(lambda side: side.whole.set_policy(key, policy))

    @rule(key=sessions, policy=policies, only=st.sets(st.sampled_from([one.name for one in fields(SessionPolicy)])))
    def set_some_of_a_policy(self, key: SessionKey, policy: SessionPolicy, only: set[str]) -> None:
        self.ask(lambda side: side.whole.set_policy(key, policy, only))

    @rule(key=sessions, words=said)
    def remember(self, key: SessionKey, words: Sequence[Said]) -> None:
        self.ask(lambda side: side.whole.remember(key, words))

    @rule(key=sessions, after=st.integers(min_value=0, max_value=8), limit=limits)
    def read(self, key: SessionKey, after: int, limit: int) -> None:
        self.ask(lambda side: side.whole.transcript(key, after=after, limit=limit))
        self.ask(lambda side: side.whole.newest(key, limit))
        self.ask(lambda side: side.whole.session(key))

    @rule(tenant=tenants, limit=limits, after=st.just("") | sessions.map(str))
    def list_sessions(self, tenant: str, limit: int, after: str) -> None:
        self.ask(lambda side: side.whole.sessions(tenant, limit=limit, after=after))

    @rule(key=sessions, upto=st.integers(min_value=0, max_value=8))
    def trim(self, key: SessionKey, upto: int) -> None:
        self.ask(lambda side: side.whole.trim(key, upto))

    @rule(key=sessions)
    def forget(self, key: SessionKey) -> None:
        self.ask(lambda side: side.whole.forget(key))

    # ── tenants and tokens ───────────────────────────────────────────────────────────────────────────────────────────

    @rule(tenant=tenants, name=texts)
    def create_tenant(self, tenant: str, name: str) -> None:
        self.ask(lambda side: side.whole.create_tenant(tenant, name))

    @rule(tenant=tenants, enabled=st.booleans())
    def enable_tenant(self, tenant: str, enabled: bool) -> None:
        self.ask(lambda side: side.whole.enable_tenant(tenant, enabled))

    @rule(tenant=tenants)
    def delete_tenant(self, tenant: str) -> None:
        self.ask(lambda side: side.whole.delete_tenant(tenant))

    @rule(
        name=st.sampled_from(["k1", "k2"]),
        tenant=tenants,
        digest=digests,
        scopes=st.lists(texts, max_size=2).map(tuple),
        lasts=st.none() | spans,
    )
    def add_token(self, name: str, tenant: str, digest: str, scopes: tuple[str, ...], lasts: timedelta | None) -> None:
        expires = None if lasts is None else self.wall() + lasts
        self.ask(lambda side: side.whole.add_token(NewToken(name, tenant, "", digest, scopes, expires)))

    @rule(digest=digests)
    def token_for(self, digest: str) -> None:
        self.ask(lambda side: side.whole.token_for(digest))

    @rule(tenant=tenants, name=st.sampled_from(["k1", "k2"]))
    def revoke_token(self, tenant: str, name: str) -> None:
        self.ask(lambda side: side.whole.revoke_token(tenant, name))

    @rule(tenant=tenants, digest=digests, lasts=spans, early=st.booleans(), enabled=st.booleans())
    def outlive_a_token(self, tenant: str, digest: str, lasts: timedelta, early: bool, enabled: bool) -> None:
        """It is tried at once, and at the moment of its end or just before; its tenant may be switched off."""
        token = NewToken("k3", tenant, "", digest, (), self.wall() + lasts)
        self.ask(lambda side: side.whole.add_token(token))
        self.ask(lambda side: side.whole.enable_tenant(tenant, enabled))
        self.ask(lambda side: side.whole.token_for(digest))
        self.wall.pass_by(lasts - early * MOMENT)
        self.ask(lambda side: side.whole.token_for(digest))

    # ── workers ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @rule(worker=workers, status=st.sampled_from(WorkerStatus), run=texts, context=st.none() | data)
    def beat(self, worker: str, status: WorkerStatus, run: str, context: dict[str, object] | None) -> None:
        self.ask(lambda side: side.whole.beat(worker, status, run=run, context=context))

    @rule(worker=workers)
    def leave(self, worker: str) -> None:
        self.ask(lambda side: side.whole.leave(worker))

    @rule(reading=readings)
    def record(self, reading: Reading) -> None:
        self.ask(lambda side: side.whole.record(reading))
