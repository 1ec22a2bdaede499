"""Pairing codes: what they look like, how they are read, and how often a wrong one is looked at. (S1)"""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime, timedelta
from math import log2
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.access.pairing import (
    ALPHABET,
    LENGTH,
    MOST_WRONG,
    WRONG_WITHIN,
    Pairings,
    TooManyTries,
    Tries,
    id_of,
    is_id,
    new_code,
    read_code,
)
from store.memory import MemoryStore
from store.pairing import CODE_LASTS, MOST_PENDING, PairingState, Sender
from tests.contract.backends import Wall

if TYPE_CHECKING:
    from store.pairing import Pairing

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
codes = st.text(ALPHABET, min_size=LENGTH, max_size=LENGTH)
texts = st.text(max_size=12)


def test_a_code_has_forty_bits() -> None:
    """Eight signs of 32, none of them twice in the alphabet, and no two codes alike."""
    assert LENGTH == 8
    assert LENGTH * log2(len(set(ALPHABET))) >= 40
    assert len({new_code() for _ in range(1_000)}) == 1_000
    assert {sign for _ in range(1_000) for sign in new_code()} == set(ALPHABET)


@given(codes, st.lists(st.sampled_from(" -_"), max_size=3))
def test_a_code_is_read_however_it_is_typed(code: str, between: list[str]) -> None:
    """In small letters, with gaps, and with signs that look like others."""
    assert read_code(code) == code
    typed = code.lower().replace("0", "o").replace("1", "l")
    assert read_code("".join(between) + typed[:4] + "".join(between) + typed[4:]) == code


@given(texts)
def test_what_is_no_code_is_not_taken_for_one(text: str) -> None:
    """Whatever is read has the form of a code."""
    read = read_code(text)
    assert read is None or (len(read) == LENGTH and set(read) <= set(ALPHABET))
    assert not (read is not None and is_id(text))


@pytest.mark.parametrize(
    "text", ["", "ABCDEFG", "ABCDEFGHJ", "ABCDEFGU", "ÀBCDEFGH", "٣BCDEFGH", "ABCDEFG\n", "ßBCDEFGH"]
)
def test_other_signs_make_no_code(text: str) -> None:
    """Too short, too long, or with a sign that no code has."""
    assert read_code(text) is None


@given(st.builds(Sender, texts, texts, texts), st.builds(Sender, texts, texts, texts))
def test_an_id_is_one_sender(one: Sender, other: Sender) -> None:
    """The same for the same one, another for another, and fit for an address."""
    if not any("\ud800" <= sign <= "\udfff" for sign in "".join((*one, *other))):
        assert (id_of(one) == id_of(other)) is (one == other)
        assert is_id(id_of(one))


steps = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 40), st.booleans()), max_size=60)


@given(steps)
def test_in_no_hour_more_than_five_wrong_tries(history: list[tuple[str, int, bool]]) -> None:
    """Of each asker alone, however they are spread; a right one does not count; a wait is as long as it must be."""
    tries, now = Tries(), NOON
    wrong: dict[str, deque[datetime]] = {"a": deque(), "b": deque()}
    for asker, minutes, right in history:
        now += timedelta(minutes=minutes)
        lately = [at for at in wrong[asker] if at > now - WRONG_WITHIN]
        wait = tries.take(asker, now)
        assert (wait == timedelta()) is (len(lately) < MOST_WRONG)
        if wait:
            assert wait == lately[-MOST_WRONG] + WRONG_WITHIN - now
        elif right:
            tries.give_back(asker, now)
        else:
            wrong[asker].append(now)


# ── with a store ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def wall() -> Wall:
    return Wall()


@pytest.fixture
def store(wall: Wall) -> MemoryStore:
    return MemoryStore(wall, ("default", "t"))


@pytest.fixture
def pairings(store: MemoryStore, wall: Wall) -> Pairings:
    return Pairings(store, wall)


async def knocking(pairings: Pairings, sender: str = "7") -> str:
    code = await pairings.knock("telegram", "bot", sender, f"Ann {sender}")
    assert code is not None
    return code


async def test_a_stranger_is_shown_a_code_and_let_in_by_it(pairings: Pairings, store: MemoryStore) -> None:
    """Silence for the second knock; the code is not kept; it leads into the tenant of whoever uses it. (S1)"""
    assert await pairings.allowed("telegram", "bot", "7") is None
    code = await knocking(pairings)
    assert await pairings.knock("telegram", "bot", "7", "Ann") is None
    assert code not in repr(vars(store))
    found = await pairings.approve(code, "t", "the phone", asker="t")
    assert found is not None
    assert (found.who, found.name, found.tenant, found.by) == (("telegram", "bot", "7"), "Ann 7", "t", "the phone")
    assert await pairings.allowed("telegram", "bot", "7") == "t"
    assert await pairings.allowed("telegram", "bot", "8") is None
    assert await pairings.knock("telegram", "bot", "7", "Ann") is None


async def test_a_name_is_made_harmless(pairings: Pairings) -> None:
    """Whatever a stranger calls themselves does not move a cursor, fill a screen, or break the store."""
    assert await pairings.knock("telegram", "bot", "7", f"A\x1b[2J\n\ud800nn{'x' * 500}") is not None
    (row,) = await pairings.knocks()
    assert row.name.startswith("A[2J nnxxx")
    assert len(row.name) == 64


async def test_a_crowd_of_strangers_is_met_with_silence(pairings: Pairings, wall: Wall) -> None:
    """Three are shown a code, and three more in the next hour. (S1)"""
    for _ in range(2):
        shown = [await pairings.knock("telegram", "bot", str(number), "") for number in range(50)]
        assert sum(code is not None for code in shown) == MOST_PENDING
        wall.pass_by(CODE_LASTS)


async def test_five_wrong_codes_an_hour_are_looked_at(pairings: Pairings, wall: Wall) -> None:
    """Then not even the right one is, but only for that tenant; right ones do not count. (S1)"""
    begun = wall.time
    for number in range(10):
        wall.pass_by(timedelta(seconds=1))
        code = await knocking(pairings, f"a{number}")
        assert await pairings.approve(code, "default", "me", asker="default")
    for number in range(MOST_WRONG):
        wall.pass_by(timedelta(minutes=1))
        if number % 2:
            assert await pairings.deny("WR0NGC0D", "me", asker="t") is None
        else:
            assert await pairings.approve("WR0NGC0D", "t", "me", asker="t") is None
    code = await knocking(pairings)
    with pytest.raises(TooManyTries):
        await pairings.deny(code, "me", asker="t")
    with pytest.raises(TooManyTries, match="5 codes were wrong in the last hour") as refused:
        await pairings.approve(code, "t", "me", asker="t")
    assert refused.value.wait == begun + timedelta(seconds=10, minutes=1) + WRONG_WITHIN - wall.time
    assert await pairings.allowed("telegram", "bot", "7") is None
    wall.pass_by(refused.value.wait - timedelta(microseconds=1))
    with pytest.raises(TooManyTries):
        await pairings.approve("WR0NGC0D", "t", "me", asker="t")
    assert await pairings.approve(code, "default", "me", asker="default")
    wall.pass_by(timedelta(microseconds=1))
    assert await pairings.approve("WR0NGC0D", "t", "me", asker="t") is None
    with pytest.raises(TooManyTries):
        await pairings.approve("WR0NGC0D", "t", "me", asker="t")


async def test_whom_the_list_shows_can_be_turned_away(pairings: Pairings, wall: Wall) -> None:
    """By the id or by the code; they are met with silence for a day, unless that is taken back."""
    codes = [await knocking(pairings, sender) for sender in "12"]
    ids = [id_of(one.who) for one in await pairings.knocks()]
    gone: list[Pairing | None] = [
        await pairings.deny_known(ids[0], "me"),
        await pairings.deny(codes[1], "me", asker="default"),
    ]
    assert [one and one.state for one in gone] == [PairingState.DENIED] * 2
    assert [one.who.sender for one in await pairings.knocks()] == ["1", "2"]
    assert await pairings.deny_known("0" * 16, "me") is None
    assert [await pairings.approve(code, "default", "me", asker="default") for code in codes] == [None, None]
    wall.pass_by(timedelta(hours=23))
    assert await pairings.knock("telegram", "bot", "1", "") is None
    assert await pairings.dismiss_knock(ids[0])
    assert not await pairings.dismiss_knock(ids[0])
    assert not await pairings.dismiss("default", ids[1])
    assert await pairings.knock("telegram", "bot", "1", "") is not None


async def test_who_was_let_in_is_let_out_by_their_tenant(pairings: Pairings) -> None:
    """And by nobody else; after that they are a stranger again. (P11)"""
    found = await pairings.approve(await knocking(pairings), "t", "me", asker="t")
    assert found is not None
    assert await pairings.of_tenant("default") == ()
    assert not await pairings.dismiss("default", id_of(found.who))
    assert not await pairings.dismiss_knock(id_of(found.who))
    assert await pairings.of_tenant("t") == (found,)
    assert await pairings.dismiss("t", id_of(found.who))
    assert await pairings.allowed("telegram", "bot", "7") is None
    assert await pairings.knock("telegram", "bot", "7", "") is not None
