"""Histories of sessions, tenants, tokens and workers."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from hypothesis import strategies as st
from hypothesis.stateful import rule

from store.pairing import Knock
from store.records import NewToken, SessionPolicy, WorkerStatus
from tests.contract.machine import StoreMachine
from tests.contract.pools import (
    MOMENT,
    code_spans,
    codes,
    data,
    digests,
    limits,
    people,
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

    from store.pairing import Sender
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

    # ── who was let in ───────────────────────────────────────────────────────────────────────────────────────────────

    @rule(who=people, name=texts, code=codes)
    def knock(self, who: Sender, name: str, code: str) -> None:
        self.ask(lambda side: side.whole.knock(Knock(who, name, code)))

    @rule(crowd=st.lists(people, min_size=3, max_size=6), span=code_spans)
    def many_knock(self, crowd: Sequence[Sender], span: timedelta) -> None:
        """Each with a code of their own; then time goes by, and they knock again."""
        for again in ("", "again"):
            for place, who in enumerate(crowd):
                self.knock(who, "", f"{place}{again}")
            self.ask(lambda side: side.whole.knocks())
            self.wall.pass_by(span)

    @rule(code=codes, tenant=tenants, by=texts)
    def approve(self, code: str, tenant: str, by: str) -> None:
        self.ask(lambda side: side.whole.approve(code, tenant, by))

    @rule(who=people, by=texts)
    def deny(self, who: Sender, by: str) -> None:
        self.ask(lambda side: side.whole.deny(who, by))

    @rule(who=people, tenant=st.none() | tenants)
    def dismiss(self, who: Sender, tenant: str | None) -> None:
        self.ask(lambda side: side.whole.dismiss(tenant, who))

    @rule(who=people, code=codes, tenant=tenants)
    def let_in(self, who: Sender, code: str, tenant: str) -> None:
        """As it usually goes."""
        self.ask(lambda side: side.whole.knock(Knock(who, "", code)))
        self.ask(lambda side: side.whole.approve(code, tenant, "me"))
        self.ask(lambda side: side.whole.allowed(who))

    @rule(who=people)
    def ask_for(self, who: Sender) -> None:
        self.ask(lambda side: side.whole.allowed(who))

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
