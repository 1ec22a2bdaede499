"""Who knocks, who is let in and who is turned away: one code each, few at a time, for an hour, into one tenant. (S1)"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import trio

from store.pairing import CODE_LASTS, DENIED_FOR, MOST_PENDING, Knock, Pairing, PairingState, Sender
from store.protocols import RuleBroken

if TYPE_CHECKING:
    from store.protocols import Store
    from tests.contract.backends import Wall

MOMENT = timedelta(microseconds=1)
ANN = Sender("fake", "bot", "1")
BOB = Sender("fake", "bot", "2")


def knock(who: Sender, code: str) -> Knock:
    return Knock(who, f"name of {who.sender}", code)


async def let_in(whole: Store, who: Sender, tenant: str = "default", code: str = "") -> Pairing:
    digest = code or f"code of {who}"
    assert await whole.knock(knock(who, digest))
    row = await whole.approve(digest, tenant, "me")
    assert row is not None
    return row


async def test_whoever_has_a_code_is_let_in_by_it(whole: Store, wall: Wall) -> None:
    """Before that they knock and belong to nobody; after that they are their tenant's, and no one else is."""
    assert await whole.create_tenant("t")
    asked_at = wall.time
    assert await whole.allowed(ANN) is None
    assert await whole.knock(Knock(ANN, "Ann \0 🦀", "a"))
    knocking = Pairing(ANN, "Ann \0 🦀", "a", asked_at)
    assert await whole.knocks() == (knocking,)
    assert await whole.allowed(ANN) is None
    wall.pass_by(timedelta(minutes=5))
    row = await whole.approve("a", "t", "the phone")
    assert row == replace(knocking, state=PairingState.APPROVED, tenant="t", by="the phone", decided_at=wall.time)
    assert await whole.allowed(ANN) == "t"
    for other in (BOB, Sender("fake", "other", "1"), Sender("other", "bot", "1"), Sender("fake", "bot", "01")):
        assert await whole.allowed(other) is None
    assert await whole.knocks() == await whole.pairings("default") == ()
    assert await whole.pairings("t") == (row,)
    wall.pass_by(100 * DENIED_FOR)
    assert await whole.allowed(ANN) == "t"


async def test_a_sender_has_one_code_an_hour(whole: Store, wall: Wall) -> None:
    """A second knock is not heard until the first code is over; the very same one is the same. (S1)"""
    assert await whole.knock(knock(ANN, "a"))
    assert await whole.knock(knock(ANN, "a"))
    for _ in range(2):
        assert not await whole.knock(knock(ANN, "b"))
        wall.pass_by((CODE_LASTS - 2 * MOMENT) / 2)
    assert not await whole.knock(knock(ANN, "b"))
    assert [one.digest for one in await whole.knocks()] == ["a"]
    wall.pass_by(2 * MOMENT)
    assert await whole.knocks() == ()
    assert await whole.knock(knock(ANN, "b"))
    assert [one.digest for one in await whole.knocks()] == ["b"]


async def test_a_code_lives_an_hour(whole: Store, wall: Wall) -> None:
    """It opens until the moment before, and nothing from then on; nobody can be turned away then either. (S1)"""
    for who, code, waits, opens in ((ANN, "a", CODE_LASTS - MOMENT, True), (BOB, "b", CODE_LASTS, False)):
        assert await whole.knock(knock(who, code))
        wall.pass_by(waits)
        assert opens or not await whole.deny(who, "me")
        assert (await whole.approve(code, "default", "me") is not None) is opens
        assert (await whole.allowed(who) is not None) is opens


async def test_a_code_is_spent_by_its_use(whole: Store, wall: Wall) -> None:
    """It lets one person into one tenant; whoever used it is told the same again, and nobody else is. (S1)"""
    assert await whole.create_tenant("t")
    row = await let_in(whole, ANN, "t", "a")
    wall.pass_by(MOMENT)
    assert await whole.approve("a", "t", "again") == row
    assert await whole.approve("a", "default", "me") is None
    assert not await whole.knock(knock(BOB, "a"))
    assert not await whole.knock(knock(ANN, "b"))
    assert await whole.allowed(ANN) == "t"
    wall.pass_by(CODE_LASTS)
    assert await whole.approve("a", "t", "late") == row
    assert await whole.dismiss("t", ANN)
    assert await whole.approve("a", "t", "me") is None
    assert await whole.allowed(ANN) is None


async def test_what_nobody_was_shown_opens_nothing(whole: Store) -> None:
    """Another digest finds nobody, nor does a sender's name or number."""
    assert await whole.knock(knock(ANN, "a"))
    for wrong in ("", "A", "a ", "b", "1", "name of 1", "a\0"):
        assert await whole.approve(wrong, "default", "me") is None
    assert await whole.allowed(ANN) is None


async def test_few_knock_at_once(whole: Store, wall: Wall) -> None:
    """Three at one account; another one is heard when a place is free, and other accounts have their own. (S1)"""
    crowd = [Sender("fake", "bot", str(number)) for number in range(MOST_PENDING + 2)]
    heard = [await whole.knock(knock(who, who.sender)) for who in crowd]
    assert heard == [True] * MOST_PENDING + [False] * 2
    assert await whole.knock(knock(Sender("fake", "other", "4"), "other"))
    assert await whole.knock(knock(Sender("", "bot", "4"), "another"))
    assert await whole.deny(crowd[0], "me")
    assert await whole.knock(knock(crowd[3], "3"))
    assert await whole.approve("1", "default", "me")
    assert await whole.dismiss(None, crowd[2])
    assert [await whole.knock(knock(who, f"{who.sender} again")) for who in crowd] == [False, False, True, False, True]
    wall.pass_by(CODE_LASTS)
    assert [await whole.knock(knock(who, f"late {who.sender}")) for who in crowd[2:]] == [True] * 3


async def test_of_a_crowd_at_once_few_are_heard(whole: Store) -> None:
    """However many knock in the same moment; and of many who use one code, all are told the same."""
    heard: list[bool] = []
    used: list[Pairing | None] = []

    async def knocks(number: int) -> None:
        heard.append(await whole.knock(knock(Sender("fake", "bot", str(number)), str(number))))

    async def approves(code: str, by: str) -> None:
        used.append(await whole.approve(code, "default", by))

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(knocks, number)
    assert sum(heard) == len(await whole.knocks()) == MOST_PENDING
    code = (await whole.knocks())[0].digest
    async with trio.open_nursery() as nursery:
        for number in range(10):
            nursery.start_soon(approves, code, str(number))
    assert len(await whole.pairings("default")) == 1
    assert {*used} == {*await whole.pairings("default")}


async def test_whoever_was_turned_away_is_not_heard_for_a_day(whole: Store, wall: Wall) -> None:
    """Their code opens nothing, another day they may knock; turning away twice is once."""
    assert not await whole.deny(ANN, "me")
    assert await whole.knock(knock(ANN, "a"))
    wall.pass_by(timedelta(minutes=1))
    denied_at = wall.time
    assert await whole.deny(ANN, "the phone")
    (row,) = await whole.knocks()
    assert (row.state, row.by, row.decided_at) == (PairingState.DENIED, "the phone", denied_at)
    assert await whole.approve("a", "default", "me") is None
    wall.pass_by(DENIED_FOR - MOMENT)
    assert await whole.deny(ANN, "again")
    assert await whole.knocks() == (row,)
    assert not await whole.knock(knock(ANN, "b"))
    wall.pass_by(MOMENT)
    assert await whole.knocks() == ()
    assert await whole.knock(knock(ANN, "b"))
    assert await whole.approve("b", "default", "me")
    assert not await whole.deny(ANN, "me")
    assert await whole.allowed(ANN) == "default"


async def test_a_tenant_sees_and_forgets_its_own(whole: Store) -> None:
    """Whom another one let in, or nobody, is not there for it. (P11)"""
    assert await whole.create_tenant("t")
    theirs, ours = await let_in(whole, ANN, "t"), await let_in(whole, BOB)
    eve = Sender("fake", "bot", "3")
    assert await whole.knock(knock(eve, "c"))
    assert await whole.pairings("t") == (theirs,)
    assert await whole.pairings("default") == (ours,)
    assert await whole.pairings("nobody") == ()
    for tenant, who in (("default", ANN), ("t", BOB), ("t", eve), (None, ANN), ("t", Sender("fake", "bot", "9"))):
        assert not await whole.dismiss(tenant, who)
    assert [await whole.allowed(who) for who in (ANN, BOB)] == ["t", "default"]
    assert await whole.dismiss("t", ANN)
    assert not await whole.dismiss("t", ANN)
    assert await whole.dismiss(None, eve)
    assert [await whole.allowed(who) for who in (ANN, BOB)] == [None, "default"]
    assert [await whole.knock(knock(who, f"{who.sender} again")) for who in (ANN, eve)] == [True, True]


async def test_a_tenant_that_is_off_or_gone_has_nobody_in(whole: Store) -> None:
    """Off, its people are strangers who are not heard; on again they are its own; gone, they may knock. (P11)"""
    assert await whole.create_tenant("t")
    await let_in(whole, ANN, "t")
    await let_in(whole, BOB)
    await whole.enable_tenant("t", False)
    assert await whole.allowed(ANN) is None
    assert not await whole.knock(knock(ANN, "b"))
    await whole.enable_tenant("t", True)
    assert await whole.allowed(ANN) == "t"
    assert await whole.delete_tenant("t")
    assert await whole.allowed(ANN) is None
    assert await whole.create_tenant("t")
    assert await whole.allowed(ANN) is None
    assert await whole.pairings("t") == ()
    assert await whole.allowed(BOB) == "default"
    assert await whole.knock(knock(ANN, "b"))


async def test_nobody_is_let_into_nothing(whole: Store) -> None:
    """A tenant that is not there is refused, and the code is as good as before."""
    assert await whole.knock(knock(ANN, "a"))
    before = await whole.knocks()
    with pytest.raises(RuleBroken, match="there is no tenant 'nobody'"):
        await whole.approve("a", "nobody", "me")
    with pytest.raises(RuleBroken, match="half a character"):
        await whole.knock(Knock(BOB, "\ud800", "b"))
    with pytest.raises(RuleBroken, match="half a character"):
        await whole.approve("a", "default", "\ud800")
    assert await whole.knocks() == before
    assert await whole.approve("a", "default", "me")


async def test_people_are_listed_by_who_they_are(whole: Store) -> None:
    """In the order of the characters' numbers: channel, account, sender."""
    people = [
        Sender(*three) for three in (("b", "a", "1"), ("a", "é", "1"), ("a", "a", "é"), ("Z", "", ""), ("a", "a", "2"))
    ]
    for who in people:
        assert await whole.knock(knock(who, f"{who}"))
    assert [one.who for one in await whole.knocks()] == sorted(people)
    for who in people:
        assert await whole.approve(f"{who}", "default", "me")
    assert [one.who for one in await whole.pairings("default")] == sorted(people)


async def test_what_is_over_is_tidied_away(whole: Store, wall: Wall) -> None:
    """Codes after their hour, who was turned away after a day; who was let in stays for good."""
    await let_in(whole, ANN)
    assert await whole.knock(knock(BOB, "b"))
    assert await whole.deny(BOB, "me")
    assert await whole.knock(knock(Sender("fake", "bot", "3"), "c"))
    wall.pass_by(CODE_LASTS - MOMENT)
    assert not any(await whole.tidy())
    wall.pass_by(MOMENT)
    assert (await whole.tidy()).pairings == 1
    wall.pass_by(DENIED_FOR - CODE_LASTS - MOMENT)
    assert not any(await whole.tidy())
    wall.pass_by(MOMENT)
    assert (await whole.tidy()).pairings == 1
    assert not any(await whole.tidy())
    assert await whole.allowed(ANN) == "default"
    assert await whole.knock(knock(BOB, "b"))
