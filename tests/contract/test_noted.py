"""Keys of requests: each means what it was first used for, inside its tenant, for as long as it is remembered."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio

from store.protocols import RuleBroken
from store.records import REMEMBER_KEYS

if TYPE_CHECKING:
    from store.protocols import Store
    from tests.contract.backends import Wall


async def test_a_key_means_what_it_was_first_used_for(whole: Store) -> None:
    """Whatever comes later is told that, and changes nothing."""
    assert await whole.note_key("default", "k", "first") == "first"
    for later in ("second", "first", ""):
        assert await whole.note_key("default", "k", later) == "first"
    assert await whole.note_key("default", "K", "another") == "another"
    assert await whole.note_key("default", "nul\0 🦀 \ue000", "\ue001\0") == "\ue001\0"


async def test_a_key_belongs_to_its_tenant(whole: Store) -> None:
    """The same key of another tenant means something else; it goes with its tenant, and nobody else's does."""
    assert await whole.create_tenant("t")
    assert await whole.note_key("t", "k", "theirs") == "theirs"
    assert await whole.note_key("default", "k", "ours") == "ours"
    with pytest.raises(RuleBroken):
        await whole.note_key("nobody", "k", "no")
    assert await whole.delete_tenant("t")
    assert await whole.create_tenant("t")
    assert await whole.note_key("t", "k", "anew") == "anew"
    assert await whole.note_key("default", "k", "again") == "ours"


async def test_of_many_at_once_one_is_first(whole: Store) -> None:
    """All are told the same meaning."""
    told: list[str] = []

    async def note(meaning: str) -> None:
        told.append(await whole.note_key("default", "k", meaning))

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(partial(note, str(number)))
    assert len(told) == 20
    assert len(set(told)) == 1


async def test_a_key_is_forgotten_after_a_week(whole: Store, wall: Wall) -> None:
    """Not a moment before; then it may mean something else."""
    await whole.note_key("default", "old", "first")
    wall.pass_by(REMEMBER_KEYS - timedelta(microseconds=1))
    await whole.note_key("default", "young", "first")
    assert not any(await whole.tidy())
    assert await whole.note_key("default", "old", "second") == "first"
    wall.pass_by(timedelta(microseconds=1))
    assert (await whole.tidy()).keys == 1
    assert await whole.note_key("default", "old", "second") == "second"
    assert await whole.note_key("default", "young", "second") == "first"
