"""Tenants: each owns what is its own, and takes all of it along and nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import trio

from store.protocols import RuleBroken
from store.records import MessageState, NewToken, Note, Role, Said, SessionPolicy, Standing, Tenant
from tests.contract.picture import picture
from tests.contract.rows import HERE, accepted, delivered, running, sent, waiting_replies

if TYPE_CHECKING:
    from store.protocols import MessageStore, Store
    from tests.contract.backends import Wall

THEIRS = replace(HERE, tenant="t")


async def fill(whole: Store, store: MessageStore, tenant: str) -> None:
    """Something of everything that a tenant can own."""
    session = replace(HERE, tenant=tenant)
    for name in ("waits", "runs", "ended"):
        await accepted(store, f"{tenant} {name}", session=session)
    (_, runs, ended) = [one.id for one in await store.waiting() if one.session == session]
    await store.begin(f"{tenant} turn", [runs, ended])
    said = [Said(Role.USER, "hello")]
    await store.settle(f"{tenant} turn", [ended], MessageState.DONE, [Note(session, f"to {tenant}")], said, 0.5)
    await whole.set_policy(session, SessionPolicy(cap=2))
    await whole.add_token(NewToken("k", tenant, "key", f"digest of {tenant}", ("chat",)))


async def test_default_is_always_there(whole: Store) -> None:
    """A fresh store has one tenant, enabled."""
    (default,) = await whole.tenants()
    assert (default.id, default.name, default.zone, default.enabled) == ("default", "", "UTC", True)
    assert await whole.tenant("default") == default
    assert await whole.tenant("nobody") is None


async def test_a_tenant_is_created_once(whole: Store, wall: Wall) -> None:
    """The second time changes nothing, whatever it says."""
    assert await whole.create_tenant("t", "Tea", "Europe/Berlin")
    expected = Tenant("t", "Tea", "Europe/Berlin", True, wall.time)
    wall.pass_by(timedelta(days=1))
    assert not await whole.create_tenant("t", "Other", "UTC")
    assert not await whole.create_tenant("default", "Other")
    assert await whole.tenant("t") == expected


async def test_tenants_are_listed_by_id(whole: Store) -> None:
    """In the order of the characters' numbers."""
    names = ["b", "a", "Z", "é", "_", "a b", "🦀", ""]
    for name in names:
        assert await whole.create_tenant(name)
    assert [tenant.id for tenant in await whole.tenants()] == sorted([*names, "default"])


async def test_a_tenant_created_by_many_is_created_by_one(whole: Store) -> None:
    """Exactly one of them is told so."""
    made: list[bool] = []

    async def create() -> None:
        made.append(await whole.create_tenant("t"))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(create)
    assert sorted(made) == [False, False, False, False, True]


async def test_a_tenant_is_switched_off_and_on(whole: Store) -> None:
    """Only this one, with nothing else of it changed; there may be none to switch."""
    await whole.create_tenant("t", "Tea")
    before = await whole.tenant("t")
    assert before is not None
    for enabled in (False, False, True):
        assert await whole.enable_tenant("t", enabled)
        assert await whole.tenant("t") == replace(before, enabled=enabled)
    assert not await whole.enable_tenant("nobody", True)
    default = await whole.tenant("default")
    assert default is not None
    assert default.enabled


async def test_a_tenant_that_is_off_still_gets_its_messages(whole: Store, store: MessageStore) -> None:
    """Who may hand in what is decided before the store: nothing that arrives is lost. (P1)"""
    await whole.create_tenant("t")
    await whole.enable_tenant("t", False)
    assert (await delivered(store, sent("a", THEIRS)))[0].fresh


async def test_a_deleted_tenant_takes_everything_along(whole: Store, store: MessageStore) -> None:
    """Messages in every state, replies, sessions, transcripts and tokens are gone; its deliveries are new. (P11)"""
    await whole.create_tenant("t")
    await fill(whole, store, "t")
    assert await whole.delete_tenant("t")
    assert await whole.tenant("t") is None
    assert await store.waiting() == await store.resume() == ()
    assert await waiting_replies(store) == []
    assert await whole.session(THEIRS) is None
    assert not [*await whole.transcript(THEIRS), *await whole.sessions("t"), *await whole.tokens("t")]
    assert await whole.token_for("digest of t") is None
    await whole.create_tenant("t")
    assert await store.standings([THEIRS]) == {THEIRS: Standing()}
    receipts = await delivered(store, *(sent(f"t {name}", THEIRS) for name in ("waits", "runs", "ended")))
    assert [one.fresh for one in receipts] == [True, True, True]
    assert await whole.remember(THEIRS, [Said(Role.USER, "again")]) == 1
    assert await whole.add_token(NewToken("k", "t", "key", "digest of t"))


async def test_a_deleted_tenant_takes_nothing_of_others(whole: Store, store: MessageStore) -> None:
    """Whoever else is there, also under a name that begins alike, has everything as before. (P11)"""
    await whole.create_tenant("t2")
    for tenant in ("default", "t2"):
        await fill(whole, store, tenant)
    before = await picture(whole, store)
    await whole.create_tenant("t")
    await fill(whole, store, "t")
    assert await whole.delete_tenant("t")
    assert await picture(whole, store) == before
    ids = [(one.id, one.text) for one in await store.resume()]
    assert [text for _, text in sorted(ids)] == ["default waits", "default runs", "t2 waits", "t2 runs"]


async def test_work_of_a_deleted_tenant_ends_in_nothing(whole: Store, store: MessageStore) -> None:
    """A turn that was running when its tenant went finds nothing to settle, and brings nothing back."""
    await whole.create_tenant("t")
    ids = await running(store, "a", session=THEIRS)
    await whole.delete_tenant("t")
    assert not await store.settle("turn", ids, MessageState.DONE, [Note(THEIRS, "late")], [Said(Role.USER, "a")], 0.5)
    assert await store.begin("next", ids) == ()
    assert await whole.tenants() == (await whole.tenant("default"),)


async def test_deleting_whom_nobody_knows_is_no_trouble(whole: Store) -> None:
    """False, as often as it is tried."""
    await whole.create_tenant("t")
    assert [await whole.delete_tenant("t") for _ in range(3)] == [True, False, False]


async def test_default_cannot_be_deleted(whole: Store, store: MessageStore) -> None:
    """It says why, and everything of it is still there."""
    await fill(whole, store, "default")
    before = await picture(whole, store)
    with pytest.raises(RuleBroken, match="'default' cannot be deleted"):
        await whole.delete_tenant("default")
    assert await picture(whole, store) == before


async def test_a_tenant_is_called_something_else(whole: Store) -> None:
    """What is named changes, the rest stays; somebody unknown is not made by it."""
    assert await whole.create_tenant("t", "Tea", "Europe/Berlin")
    before = await whole.tenant("t")
    assert before is not None
    assert await whole.edit_tenant("t", name="Coffee")
    assert await whole.tenant("t") == replace(before, name="Coffee")
    assert await whole.enable_tenant("t", False)
    assert await whole.edit_tenant("t", zone="Asia/Tokyo")
    assert await whole.tenant("t") == replace(before, name="Coffee", zone="Asia/Tokyo", enabled=False)
    assert await whole.edit_tenant("t", name="")
    assert (await whole.tenants())[1].name == ""
    assert not await whole.edit_tenant("nobody", name="x")
    with pytest.raises(RuleBroken):
        await whole.edit_tenant("t", name="\ud800")
    assert [one.id for one in await whole.tenants()] == ["default", "t"]
