"""API tokens: how they are made, what is kept of them, and whose a request is.

A secret is shown once, when it is made. Kept is its SHA-256, and its beginning as its name: enough to tell two tokens
apart, far too little to guess one. The secret has 256 random bits, so a digest without salt gives nothing away.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from functools import partial
from hmac import compare_digest
from typing import TYPE_CHECKING

from gateway.access.scopes import SCOPES, Scope
from gateway.persist import persist
from store.records import DEFAULT_TENANT, NewToken

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from store.protocols import TenantStore

PREFIX = "gck_"
ID_LENGTH = len(PREFIX) + 8
LONGEST = 512
_SECRET = re.compile(rf"[!-~]{{1,{LONGEST}}}")


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose request it is."""

    tenant: str
    token: str
    """The id of its token."""
    name: str
    scopes: frozenset[Scope]
    digest: str
    """What the token is found by: whoever keeps a connection open is asked for it again."""

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes


def new_secret() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def digest_of(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def new_token(
    tenant: str, name: str, scopes: tuple[Scope, ...], expires_at: datetime | None = None
) -> tuple[NewToken, str]:
    """What is kept of a new token, and the secret that is shown once."""
    secret = new_secret()
    return NewToken(secret[:ID_LENGTH], tenant, name, digest_of(secret), tuple(scopes), expires_at), secret


class Doorkeeper:
    """Knows callers by their secrets: those of the store, and those that this process was given at its start."""

    def __init__(self, store: TenantStore, given: Mapping[str, str] | None = None) -> None:
        """``given`` maps names to secrets that may do everything, in the tenant `default`."""
        self._store = store
        self._given = [
            Caller(DEFAULT_TENANT, name, name, frozenset(SCOPES), digest_of(secret))
            for name, secret in (given or {}).items()
        ]

    async def caller(self, secret: str) -> Caller | None:
        """Whose secret this is; None if it is nobody's, or good for nothing any more."""
        if not _SECRET.fullmatch(secret):
            return None
        return await self.again(digest_of(secret))

    async def again(self, digest: str) -> Caller | None:
        """Whose token has this digest now: a token may have been revoked since it was last shown."""
        known = None
        for caller in self._given:  # all of them, each in constant time
            if compare_digest(caller.digest, digest):
                known = caller
        if known is not None:
            return known
        token = await persist(partial(self._store.token_for, digest))
        if token is None:
            return None
        scopes = frozenset(scope for scope in SCOPES if scope in token.new.scopes)
        return Caller(token.new.tenant, token.new.id, token.new.name or token.new.id, scopes, digest)
