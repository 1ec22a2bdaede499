"""Leases: one holder at a time, every grant under a higher token, and what is over stays over."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import trio

from store.protocols import RuleBroken
from store.records import Lease

if TYPE_CHECKING:
    from store.protocols import Store
    from tests.contract.backends import Wall

MINUTE = timedelta(minutes=1)
MOMENT = timedelta(microseconds=1)


async def granted(whole: Store, owner: str = "ann", name: str = "work", span: timedelta = MINUTE) -> Lease:
    lease = await whole.acquire(name, owner, span)
    assert lease is not None
    return lease


async def test_a_free_lease_is_granted(whole: Store, wall: Wall) -> None:
    """To whoever asks first, until the moment they asked for."""
    assert await whole.lease("work") is None
    lease = await granted(whole)
    assert (lease.name, lease.owner, lease.until) == ("work", "ann", wall.time + MINUTE)
    assert await whole.lease("work") == lease


async def test_a_held_lease_is_refused_to_others(whole: Store, wall: Wall) -> None:
    """Until its very end nobody else has it, and asking does not change it."""
    lease = await granted(whole)
    wall.pass_by(MINUTE - MOMENT)
    assert await whole.acquire("work", "bob", MINUTE) is None
    assert await whole.lease("work") == lease


async def test_a_lease_ends_by_itself(whole: Store, wall: Wall) -> None:
    """At its end nobody holds it, and the next one gets it under a higher token."""
    lease = await granted(whole)
    wall.pass_by(MINUTE)
    assert await whole.lease("work") is None
    after = await granted(whole, "bob")
    assert after.token > lease.token
    assert await whole.lease("work") == after


async def test_an_owner_who_asks_again_ends_its_own_older_lease(whole: Store, wall: Wall) -> None:
    """After a crash a process need not wait for itself; what it held before is over."""
    first = await granted(whole)
    wall.pass_by(timedelta(seconds=1))
    second = await granted(whole)
    assert second.token > first.token
    assert second.until == wall.time + MINUTE
    assert await whole.renew(first, MINUTE) is None
    assert not await whole.release(first)
    assert await whole.lease("work") == second


async def test_a_renewed_lease_keeps_its_token(whole: Store, wall: Wall) -> None:
    """The same lease, for longer from now on; it can be renewed from any older copy of it."""
    lease = await granted(whole)
    wall.pass_by(timedelta(seconds=50))
    renewed = await whole.renew(lease, MINUTE)
    assert renewed == replace(lease, until=wall.time + MINUTE) == await whole.lease("work")
    wall.pass_by(timedelta(seconds=50))
    assert await whole.renew(lease, MINUTE) == replace(lease, until=wall.time + MINUTE)


async def test_what_is_over_cannot_be_renewed(whole: Store, wall: Wall) -> None:
    """Neither at its end nor later, whether or not somebody else has it now: it stays over."""
    lease = await granted(whole)
    wall.pass_by(MINUTE)
    assert await whole.renew(lease, MINUTE) is None
    assert await whole.lease("work") is None
    other = await granted(whole, "bob")
    assert await whole.renew(lease, MINUTE) is None
    assert await whole.lease("work") == other
    assert await whole.renew(Lease("unknown", "ann", 1, wall.time + MINUTE), MINUTE) is None


async def test_a_released_lease_is_free_at_once(whole: Store) -> None:
    """Who lets go has let go for ever; the next one has a higher token."""
    lease = await granted(whole)
    assert await whole.release(lease)
    assert await whole.lease("work") is None
    assert not await whole.release(lease)
    assert await whole.renew(lease, MINUTE) is None
    assert (await granted(whole, "bob")).token > lease.token


async def test_only_the_holder_releases(whole: Store, wall: Wall) -> None:
    """An older lease, or one that is over, frees nothing."""
    old = await granted(whole)
    wall.pass_by(MINUTE)
    assert not await whole.release(old)
    current = await granted(whole, "bob")
    assert not await whole.release(old)
    assert not await whole.release(Lease("unknown", "bob", current.token, current.until))
    assert await whole.lease("work") == current


async def test_tokens_rise_with_every_grant(whole: Store, wall: Wall) -> None:
    """However a lease ended, the next token is higher; nobody can be taken for somebody earlier."""
    tokens = []
    for number in range(6):
        lease = await granted(whole, f"owner {number % 3}")
        tokens.append(lease.token)
        if number % 2:
            wall.pass_by(MINUTE)
        else:
            await whole.release(lease)
    assert tokens == sorted(set(tokens))


async def test_leases_of_other_names_are_others(whole: Store) -> None:
    """One name says nothing about another."""
    work = await granted(whole)
    play = await granted(whole, "bob", "play")
    await whole.release(work)
    assert await whole.lease("play") == play
    assert await whole.lease("work") is None


async def test_a_lease_asked_for_by_many_is_granted_to_one(whole: Store) -> None:
    """Ten who ask at once: one has it, nine do not."""
    got: list[Lease | None] = []

    async def ask(owner: str) -> None:
        got.append(await whole.acquire("work", owner, MINUTE))

    async with trio.open_nursery() as nursery:
        for number in range(10):
            nursery.start_soon(ask, f"owner {number}")
    (winner,) = [lease for lease in got if lease is not None]
    assert await whole.lease("work") == winner


async def test_an_owner_that_cannot_be_written_gets_nothing(whole: Store) -> None:
    """Half a character is refused in name and owner."""
    for name, owner in (("work", "\ud800"), ("\ud800", "ann")):
        with pytest.raises(RuleBroken, match="half a character"):
            await whole.acquire(name, owner, MINUTE)
    assert await whole.lease("work") is None
