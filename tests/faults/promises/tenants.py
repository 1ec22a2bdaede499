"""Tenants, each with its tokens and its policy, are as the last verb about them has left them; a worker is listed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from store.records import DEFAULT_TENANT
from tests.faults.told import ALONE, Ask, Round

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults.found import Found, Household


@dataclass(frozen=True, slots=True)
class Known:
    """None for ``enabled``: there is no such tenant, and nothing that it could own."""

    enabled: bool | None = None
    tokens: frozenset[tuple[str, bool]] = frozenset()
    """Each with whether it was revoked."""
    cap: int | None = None


def known(now: Household) -> Known:
    tokens = frozenset((token.new.id, token.revoked_at is not None) for token in now.tokens)
    return Known(now.enabled, tokens, now.kept.standing.policy.cap if now.kept else None)


def after(tenant: Known, ask: Ask) -> Known:
    token = ask.fields.get("token", "")
    match ask.verb:
        case "create_tenant":
            return Known(enabled=True)
        case "set_policy":
            return replace(tenant, cap=ask.fields["cap"])
        case "add_token":
            return replace(tenant, tokens=tenant.tokens | {(token, False)})
        case "revoke_token":
            return replace(tenant, tokens=tenant.tokens - {(token, False)} | {(token, True)})
        case "enable_tenant":
            return replace(tenant, enabled=False)
        case _:
            return Known()


class Tenants:
    def __init__(self) -> None:
        self.known: dict[str, Known] = {}
        self.workers: set[str] = set()

    def judge(self, heard: Round, found: Found) -> Iterator[str]:
        for tenant in touched(heard):
            possible = [Known()]
            for ask in about(heard, tenant):
                last = possible[-1]
                possible = [last, after(last, ask)] if ask.open else [after(last, ask)]
            now = known(found.households[tenant])
            if now not in possible:
                yield f"{tenant} is {now}, expected one of {possible}"
            self.known[tenant] = now
        there = {tenant for tenant, state in self.known.items() if state.enabled is not None}
        if found.tenants != there | {DEFAULT_TENANT}:
            yield f"tenants are {sorted(found.tenants)}, expected {sorted(there)} and the default"
        for tenant, now_ in found.households.items():
            if known(now_) != self.known[tenant]:
                yield f"{tenant} was {self.known[tenant]} and is {known(now_)}"
        yield from self.crew(heard, found)

    def crew(self, heard: Round, found: Found) -> Iterator[str]:
        beats = heard.of("beat")
        self.workers |= {ask.fields["worker"] for ask in beats if not ask.open}
        if not self.workers <= found.workers <= self.workers | {ask.fields["worker"] for ask in beats}:
            yield f"workers are {sorted(found.workers)}, expected {sorted(self.workers)}"
        self.workers = set(found.workers)


def touched(heard: Round) -> list[str]:
    return [ask.fields["tenant"] for ask in heard.of("create_tenant")]


def about(heard: Round, tenant: str) -> list[Ask]:
    session = str(replace(ALONE, tenant=tenant))
    verbs = [ask for ask in heard.asks if ask.verb != "set_policy" and ask.fields.get("tenant") == tenant]
    policies = [ask for ask in heard.of("set_policy") if ask.fields["session"] == session]
    return sorted(verbs + policies, key=lambda ask: ask.asked)
