"""How a session is treated: policy and figure come with every receipt, and settling writes the figure."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from store.protocols import RuleBroken
from store.records import Line, MessageState, Note, Role, Said, SessionKey, SessionPolicy, Standing
from tests.contract.rows import HERE, NOTE, THERE, accepted, delivered, running, sent, state, stopped, waiting_replies

if TYPE_CHECKING:
    from store.protocols import MessageStore, Store
    from tests.contract.backends import Wall

POLICY = SessionPolicy(mode="steer", cap=3, drop="old", debounce_ms=0, max_concurrent=2, zone="Europe/Berlin")
SAID = [Said(Role.USER, "a"), Said(Role.ASSISTANT, "the answer", {"model": "m", "tokens": 3})]


async def test_a_session_nobody_has_set_follows_the_settings(store: MessageStore) -> None:
    """Without a policy the receipt says so, and nothing is kept of the session yet."""
    (receipt,) = await delivered(store, sent("a"))
    assert receipt.standing == Standing(SessionPolicy(), 0.0)
    assert await store.standings([HERE, THERE]) == {HERE: Standing(), THERE: Standing()}


async def test_every_receipt_tells_how_its_session_is_treated(whole: Store, store: MessageStore) -> None:
    """Fresh or known, open or ended, each receipt of a batch carries its own session's standing."""
    await whole.set_policy(HERE, POLICY)
    fresh, other = await delivered(store, sent("a"), sent("b", THERE))
    assert (fresh.standing, other.standing) == (Standing(POLICY), Standing())
    (again,) = await delivered(store, sent("a"))
    await store.stop(HERE, fresh.id)
    (ended,) = await delivered(store, sent("a"))
    assert again.standing == ended.standing == Standing(POLICY)


async def test_a_known_delivery_tells_the_standing_of_the_session_it_names(whole: Store, store: MessageStore) -> None:
    """What the delivery says now decides which standing it is told."""
    await whole.set_policy(THERE, POLICY)
    await delivered(store, sent("a"))
    (again,) = await delivered(store, sent("a", THERE))
    assert (again.fresh, again.standing) == (False, Standing(POLICY))


async def test_standings_are_asked_for_many_sessions_at_once(whole: Store, store: MessageStore) -> None:
    """Each session asked for is in the answer, set or not, and no other."""
    await whole.set_policy(HERE, POLICY)
    await whole.set_policy(replace(HERE, epoch=1), SessionPolicy(cap=1))
    assert await store.standings({HERE, THERE}) == {HERE: Standing(POLICY), THERE: Standing()}
    assert await store.standings([]) == {}


async def test_settling_writes_figure_and_transcript(whole: Store, store: MessageStore, wall: Wall) -> None:
    """The answer, what was said and how full the window is are one write. (P6)"""
    ids = await running(store, "a")
    wall.pass_by(timedelta(minutes=1))
    assert await store.settle("turn", ids, MessageState.DONE, [NOTE], SAID, context=0.25)
    assert await store.standings([HERE]) == {HERE: Standing(SessionPolicy(), 0.25)}
    session = await whole.session(HERE)
    assert session is not None
    assert (session.lines, session.trimmed, session.updated_at) == (2, 0, wall.time)
    expected = tuple(Line(number, wall.time, said) for number, said in enumerate(SAID, start=1))
    assert await whole.transcript(HERE) == expected


async def test_a_settle_without_a_figure_keeps_the_last_one(whole: Store, store: MessageStore) -> None:
    """None is no news; 0.0 is: the window was emptied."""
    await whole.set_policy(HERE, POLICY)
    for text, context, expected in (("a", 0.5, 0.5), ("b", None, 0.5), ("c", 0.0, 0.0)):
        ids = await running(store, text)
        await store.settle("turn", ids, MessageState.DONE, [], SAID, context)
        assert (await store.standings([HERE]))[HERE] == Standing(POLICY, expected)
    session = await whole.session(HERE)
    assert session is not None
    assert session.lines == 6


async def test_a_settle_with_nothing_to_remember_makes_no_session(whole: Store, store: MessageStore) -> None:
    """A reply alone leaves no trace in the sessions."""
    await store.settle("turn", await running(store, "a"), MessageState.DONE, [NOTE])
    assert await whole.session(HERE) is None


async def test_the_transcript_goes_to_the_session_of_the_messages(whole: Store, store: MessageStore) -> None:
    """Whatever the notes say to others, what was said was said here."""
    await store.settle("turn", await running(store, "a"), MessageState.DONE, [Note(THERE, "by the way")], SAID, 0.1)
    assert await whole.session(THERE) is None
    assert len(await whole.transcript(HERE)) == 2


async def test_a_refused_settle_remembers_nothing(whole: Store, store: MessageStore) -> None:
    """After a stop neither the answer nor the transcript nor the figure is written. (P7)"""
    ids = await running(store, "a")
    await stopped(store, ids[-1])
    assert not await store.settle("turn", ids, MessageState.DONE, [NOTE], SAID, 0.9)
    assert await whole.session(HERE) is None
    assert await whole.transcript(HERE) == ()
    assert await waiting_replies(store) == []


@pytest.mark.parametrize(
    ("note", "said"),
    [
        (Note(SessionKey("nobody", "main", "fake", "bot", "here"), "x"), SAID),
        (Note(HERE, "half a character \ud83e"), SAID),
        (NOTE, [*SAID, Said(Role.TOOL, "half a character \udd80")]),
        (NOTE, [*SAID, Said(Role.TOOL, "x", {"key": "half a character \udd80"})]),
        (NOTE, [*SAID, Said(Role.TOOL, "x", {"key": object()})]),
    ],
    ids=["tenant", "note", "said", "data", "no-json"],
)
async def test_a_settle_that_breaks_a_rule_writes_none_of_it(
    whole: Store, store: MessageStore, note: Note, said: list[Said]
) -> None:
    """All or nothing: the message still runs, nothing is said or remembered, and a right settle is welcome. (P6)"""
    ids = await running(store, "a")
    with pytest.raises(RuleBroken):
        await store.settle("turn", ids, MessageState.DONE, [NOTE, note], said, 0.9)
    assert await state(store, "a") is MessageState.RUNNING
    assert await waiting_replies(store) == []
    assert await whole.session(HERE) is None
    assert await store.settle("turn", ids, MessageState.DONE, [NOTE], SAID, 0.9)


async def test_an_impossible_end_remembers_nothing(whole: Store, store: MessageStore) -> None:
    """A message that never ran cannot be done, and nothing was said in its name."""
    ids = await accepted(store, "a")
    with pytest.raises(ValueError, match="cannot go from accepted to done"):
        await store.settle("", ids, MessageState.DONE, [NOTE], SAID, 0.9)
    assert await whole.session(HERE) is None
