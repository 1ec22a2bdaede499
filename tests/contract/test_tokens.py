"""Tokens: a digest opens one tenant's door, while it is good, and nobody else's."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import trio

from store.protocols import RuleBroken
from store.records import USED_LATELY, ApiToken, NewToken

if TYPE_CHECKING:
    from store.protocols import Store
    from tests.contract.backends import Wall

KEY = NewToken("k1", "default", "laptop", "d1", ("chat", "cron:write"))
MOMENT = timedelta(microseconds=1)


async def test_a_token_is_kept_whole(whole: Store, wall: Wall) -> None:
    """Everything of it comes back, with the time of its making; it was never used."""
    expires = replace(KEY, id="k2", digest="d2", scopes=(), expires_at=wall.time + timedelta(days=1, microseconds=3))
    assert await whole.add_token(KEY)
    assert await whole.add_token(expires)
    assert await whole.tokens("default") == (ApiToken(KEY, wall.time), ApiToken(expires, wall.time))


async def test_a_token_opens_by_its_digest(whole: Store, wall: Wall) -> None:
    """Its use is told and noted; another digest finds nothing, nor does the token's id or name."""
    await whole.add_token(KEY)
    wall.pass_by(timedelta(hours=1))
    found = await whole.token_for("d1")
    assert found == ApiToken(KEY, wall.time - timedelta(hours=1), last_used_at=wall.time)
    assert await whole.tokens("default") == (found,)
    for other in ("d", "d11", "D1", "k1", "laptop", "", "%"):
        assert await whole.token_for(other) is None


async def test_the_last_use_is_noted_to_the_minute(whole: Store, wall: Wall) -> None:
    """A second use within the minute writes nothing, one a full minute later does."""
    await whole.add_token(KEY)
    first = wall.time
    for passed, noted in ((timedelta(), first), (USED_LATELY - MOMENT, first), (MOMENT, first + USED_LATELY)):
        wall.pass_by(passed)
        found = await whole.token_for("d1")
        assert found is not None
        assert found.last_used_at == noted
        assert await whole.tokens("default") == (found,)


async def test_a_token_ends_when_it_expires(whole: Store, wall: Wall) -> None:
    """Good until the moment before; it stays in the list, its use not noted any more."""
    token = replace(KEY, expires_at=wall.time + timedelta(hours=1))
    await whole.add_token(token)
    wall.pass_by(timedelta(hours=1) - MOMENT)
    found = await whole.token_for("d1")
    assert found is not None
    wall.pass_by(MOMENT)
    assert await whole.token_for("d1") is None
    assert await whole.tokens("default") == (found,)


async def test_a_revoked_token_opens_nothing(whole: Store, wall: Wall) -> None:
    """From that moment on, for ever; the list tells when."""
    await whole.add_token(KEY)
    wall.pass_by(timedelta(seconds=5))
    assert await whole.revoke_token("default", "k1")
    assert await whole.token_for("d1") is None
    (token,) = await whole.tokens("default")
    assert (token.revoked_at, token.last_used_at) == (wall.time, None)


async def test_a_token_is_revoked_once(whole: Store, wall: Wall) -> None:
    """The second time is told and changes nothing; an unknown one cannot be revoked."""
    await whole.add_token(KEY)
    await whole.revoke_token("default", "k1")
    before = await whole.tokens("default")
    wall.pass_by(timedelta(seconds=5))
    assert not await whole.revoke_token("default", "k1")
    assert not await whole.revoke_token("default", "d1")
    assert not await whole.revoke_token("nobody", "k1")
    assert await whole.tokens("default") == before


async def test_a_tenant_that_is_off_has_its_doors_shut(whole: Store) -> None:
    """Its tokens open nothing while it is off, and do again afterwards; no use was noted meanwhile."""
    await whole.create_tenant("t")
    await whole.add_token(replace(KEY, tenant="t"))
    await whole.enable_tenant("t", False)
    assert await whole.token_for("d1") is None
    assert [token.last_used_at for token in await whole.tokens("t")] == [None]
    await whole.enable_tenant("t", True)
    assert await whole.token_for("d1") is not None


async def test_another_tenants_token_is_not_found(whole: Store) -> None:
    """Nobody lists or revokes what is not theirs; equal ids of two tenants are two tokens. (P11)"""
    await whole.create_tenant("t")
    await whole.add_token(replace(KEY, tenant="t"))
    assert await whole.tokens("default") == ()
    assert not await whole.revoke_token("default", "k1")
    assert await whole.add_token(replace(KEY, digest="d2"))
    assert await whole.revoke_token("default", "k1")
    found = await whole.token_for("d1")
    assert found is not None
    assert found.new.tenant == "t"


@pytest.mark.parametrize(
    "second",
    [replace(KEY, digest="d2"), replace(KEY, id="k2"), replace(KEY, id="k2", tenant="t")],
    ids=["the id", "the digest", "the digest of another tenant"],
)
async def test_what_is_taken_is_not_given_twice(whole: Store, second: NewToken) -> None:
    """An id is unique in its tenant, a digest everywhere: False, and nothing is kept. (P11)"""
    await whole.create_tenant("t")
    await whole.add_token(KEY)
    before = [await whole.tokens(tenant) for tenant in ("default", "t")]
    assert not await whole.add_token(second)
    assert [await whole.tokens(tenant) for tenant in ("default", "t")] == before


async def test_a_revoked_tokens_id_and_digest_stay_taken(whole: Store) -> None:
    """A revoked secret never opens a door again under another name."""
    await whole.add_token(KEY)
    await whole.revoke_token("default", "k1")
    assert not await whole.add_token(replace(KEY, id="k2"))
    assert not await whole.add_token(replace(KEY, digest="d2"))


async def test_tokens_are_listed_by_id(whole: Store) -> None:
    """In the order of the characters' numbers."""
    names = ["b", "a", "Z", "é", "_", "10", "9", "🦀"]
    for name in names:
        await whole.add_token(replace(KEY, id=name, digest=f"digest {name}"))
    assert [token.new.id for token in await whole.tokens("default")] == sorted(names)


async def test_a_token_needs_its_tenant(whole: Store) -> None:
    """Nothing is kept for whom nobody knows."""
    with pytest.raises(RuleBroken, match="there is no tenant 'nobody'"):
        await whole.add_token(replace(KEY, tenant="nobody"))
    assert await whole.add_token(KEY)


async def test_a_token_added_by_many_is_added_by_one(whole: Store) -> None:
    """Whoever loses the race is told so, whether the id or the digest was the same."""
    added: list[bool] = []

    async def add(token: NewToken) -> None:
        added.append(await whole.add_token(token))

    async with trio.open_nursery() as nursery:
        for number in range(4):
            nursery.start_soon(add, replace(KEY, id=f"k{number}"))
            nursery.start_soon(add, replace(KEY, id="k", digest=f"other {number}"))
    assert sum(added) == 2
    assert len(await whole.tokens("default")) == 2
