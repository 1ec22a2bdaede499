"""Sessions: policies and transcripts, each conversation for itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import trio

from store.protocols import RuleBroken
from store.records import Line, MessageState, Role, Said, Session, SessionKey, SessionPolicy, Standing
from tests.contract.rows import HERE, NOTE, THERE, accepted, running, state, waiting_replies

if TYPE_CHECKING:
    from store.protocols import MessageStore, Store
    from tests.contract.backends import Wall

POLICY = SessionPolicy(mode="collect", cap=5, drop="new", debounce_ms=250, max_concurrent=1, zone="Asia/Kolkata")


def words(*texts: str) -> list[Said]:
    return [Said(Role.USER, text) for text in texts]


async def read(whole: Store, key: SessionKey = HERE) -> list[tuple[int, str]]:
    return [(line.number, line.said.text) for line in await whole.transcript(key)]


async def test_nothing_is_known_of_a_conversation_that_never_was(whole: Store) -> None:
    """None, no lines, nothing to trim, nothing to forget; asking makes nothing."""
    assert await whole.session(HERE) is None
    assert await whole.transcript(HERE) == await whole.newest(HERE, 5) == ()
    assert await whole.trim(HERE, 5) == 0
    assert not await whole.forget(HERE)
    assert await whole.sessions("default") == ()


async def test_a_policy_is_kept_whole(whole: Store, wall: Wall) -> None:
    """Every part of it comes back, and what is None stays None."""
    for policy in (POLICY, SessionPolicy(debounce_ms=0), SessionPolicy()):
        wall.pass_by(timedelta(seconds=1))
        session = await whole.set_policy(HERE, policy)
        assert session == Session(HERE, Standing(policy), 0, 0, wall.time) == await whole.session(HERE)


async def test_a_part_of_a_policy_leaves_the_others_alone(whole: Store) -> None:
    """Two who set different things both do, whatever each had read before; what is set to None is cleared."""
    await whole.set_policy(HERE, POLICY)
    await whole.set_policy(HERE, SessionPolicy(cap=7), ["cap"])
    await whole.set_policy(HERE, SessionPolicy(zone="Europe/Berlin"), ["zone", "debounce_ms"])
    expected = replace(POLICY, cap=7, zone="Europe/Berlin", debounce_ms=None)
    assert (await whole.set_policy(HERE, SessionPolicy(cap=1), [])).standing.policy == expected
    assert (await whole.set_policy(THERE, SessionPolicy(cap=3), ["cap"])).standing.policy == SessionPolicy(cap=3)


async def test_a_new_policy_leaves_the_rest_alone(whole: Store, store: MessageStore) -> None:
    """Figure and transcript of the session stay when its policy changes."""
    await store.settle("turn", await running(store, "a"), MessageState.DONE, [], words("a"), 0.5)
    session = await whole.set_policy(HERE, POLICY)
    assert (session.standing, session.lines) == (Standing(POLICY, 0.5), 1)
    assert await read(whole) == [(1, "a")]


async def test_lines_are_numbered_from_one(whole: Store, wall: Wall) -> None:
    """Numbers rise by one over all writes; each line has its time, role and data."""
    assert await whole.remember(HERE, words("a", "b")) == 2
    wall.pass_by(timedelta(minutes=5))
    tool = Said(Role.TOOL, "c", {"call": {"id": "1", "args": [1, 2.5, None, True]}})
    assert await whole.remember(HERE, [tool]) == 3
    assert await whole.transcript(HERE) == (
        Line(1, wall.time - timedelta(minutes=5), Said(Role.USER, "a")),
        Line(2, wall.time - timedelta(minutes=5), Said(Role.USER, "b")),
        Line(3, wall.time, tool),
    )
    session = await whole.session(HERE)
    assert session == Session(HERE, Standing(), 3, 0, wall.time)


async def test_every_role_is_kept(whole: Store) -> None:
    """Who said it comes back as it went in."""
    await whole.remember(HERE, [Said(role, role.value) for role in Role])
    assert [line.said.role for line in await whole.transcript(HERE)] == list(Role)


async def test_remembering_nothing_notes_the_session(whole: Store) -> None:
    """Nothing said is no line; the number of the newest is still told."""
    assert await whole.remember(HERE, []) == 0
    assert await whole.remember(HERE, words("a")) == 1
    assert await whole.remember(HERE, []) == 1


async def test_a_transcript_is_read_in_pieces(whole: Store) -> None:
    """From the first line after a number on, at most as many as asked for; beyond the end there is nothing."""
    await whole.remember(HERE, words(*"abcdefg"))
    seen: list[int] = []
    while piece := await whole.transcript(HERE, after=seen[-1] if seen else 0, limit=3):
        assert len(piece) <= 3
        seen += [line.number for line in piece]
    assert seen == [1, 2, 3, 4, 5, 6, 7]
    assert await whole.transcript(HERE, limit=0) == ()
    assert await whole.transcript(HERE, after=7) == ()


async def test_the_newest_lines_come_in_order(whole: Store) -> None:
    """The last ones, oldest of them first; asked for more than there is, all of them."""
    await whole.remember(HERE, words(*"abc"))
    assert [line.said.text for line in await whole.newest(HERE, 2)] == ["b", "c"]
    assert [line.said.text for line in await whole.newest(HERE, 99)] == ["a", "b", "c"]
    assert await whole.newest(HERE, 0) == ()


async def test_trimmed_lines_are_gone_and_numbers_go_on(whole: Store, wall: Wall) -> None:
    """Older lines go, the others keep their numbers, and the next one is numbered as if nothing had gone."""
    await whole.remember(HERE, words(*"abcd"))
    wall.pass_by(timedelta(seconds=1))
    assert await whole.trim(HERE, 2) == 2
    assert await whole.session(HERE) == Session(HERE, Standing(), 4, 2, wall.time)
    assert await read(whole) == [(3, "c"), (4, "d")]
    assert await whole.remember(HERE, words("e")) == 5
    assert [line.number for line in await whole.newest(HERE, 9)] == [3, 4, 5]
    assert [line.number for line in await whole.transcript(HERE, after=1, limit=2)] == [3, 4]


async def test_trimming_again_finds_nothing(whole: Store, wall: Wall) -> None:
    """What is gone is not counted twice, and nothing to do leaves the session as it was."""
    await whole.remember(HERE, words(*"abc"))
    await whole.trim(HERE, 2)
    before = await whole.session(HERE)
    wall.pass_by(timedelta(seconds=1))
    assert [await whole.trim(HERE, upto) for upto in (2, 1, 0, -3)] == [0, 0, 0, 0]
    assert await whole.session(HERE) == before


async def test_trimming_beyond_the_end_stops_there(whole: Store) -> None:
    """All lines go, and those to come are not trimmed beforehand."""
    await whole.remember(HERE, words(*"abc"))
    assert await whole.trim(HERE, 1000) == 3
    session = await whole.session(HERE)
    assert session is not None
    assert (session.lines, session.trimmed) == (3, 3)
    assert await whole.remember(HERE, words("d")) == 4
    assert await read(whole) == [(4, "d")]


async def test_what_is_forgotten_starts_anew(whole: Store, store: MessageStore) -> None:
    """Policy, figure and lines are gone, and the next line is the first. Messages and replies are not touched."""
    await whole.set_policy(HERE, POLICY)
    await store.settle("turn", await running(store, "a"), MessageState.DONE, [NOTE], words("a", "b"), 0.5)
    await accepted(store, "b")
    await whole.remember(THERE, words("there"))
    assert await whole.forget(HERE)
    assert not await whole.forget(HERE)
    assert await whole.session(HERE) is None
    assert await read(whole) == []
    assert await store.standings([HERE]) == {HERE: Standing()}
    assert await waiting_replies(store) == [NOTE.text]
    assert await state(store, "a") is MessageState.DONE
    assert [message.text for message in await store.waiting()] == ["b"]
    assert await whole.remember(HERE, words("new")) == 1
    assert await read(whole) == [(1, "new")]
    assert await read(whole, THERE) == [(1, "there")]


async def test_sessions_that_differ_in_one_part_are_apart(whole: Store) -> None:
    """Each of the seven parts makes another conversation. (P11)"""
    await whole.create_tenant("t")
    others = [
        replace(HERE, tenant="t"),
        replace(HERE, agent="other"),
        replace(HERE, channel="other"),
        replace(HERE, account=""),
        replace(HERE, chat="other"),
        replace(HERE, thread="1"),
        replace(HERE, epoch=1),
    ]
    for number, key in enumerate([HERE, *others]):
        await whole.remember(key, words(str(number)))
    for number, key in enumerate([HERE, *others]):
        assert await read(whole, key) == [(1, str(number))]


async def test_sessions_are_listed_by_their_text_forms(whole: Store) -> None:
    """In the order of the characters' numbers, in every language, upper case before lower case."""
    chats = ["b", "a", "B", "-", "_", "é", "中", "a:b", "a b", "", "🦀", "~", "10", "9"]
    keys = [replace(HERE, chat=chat) for chat in chats]
    for key in keys:
        await whole.set_policy(key, POLICY)
    assert [str(one.key) for one in await whole.sessions("default")] == sorted(str(key) for key in keys)


async def test_sessions_are_listed_in_pages(whole: Store) -> None:
    """Each page goes on after the last text of the one before, which need not exist any more."""
    keys = [replace(HERE, chat=f"chat {number:02}") for number in range(7)]
    for key in keys:
        await whole.set_policy(key, POLICY)
    first = await whole.sessions("default", limit=3)
    assert [one.key for one in first] == keys[:3]
    await whole.forget(keys[2])
    second = await whole.sessions("default", limit=3, after=str(keys[2]))
    assert [one.key for one in second] == keys[3:6]
    assert [one.key for one in await whole.sessions("default", after=str(keys[5]))] == keys[6:]
    assert await whole.sessions("default", after=str(keys[6])) == ()
    assert await whole.sessions("default", limit=0) == ()


async def test_a_tenant_sees_its_own_sessions_only(whole: Store) -> None:
    """Neither another tenant's nor those of a tenant whose name begins alike. (P11)"""
    for tenant in ("t", "t2"):
        await whole.create_tenant(tenant)
        await whole.set_policy(replace(HERE, tenant=tenant), POLICY)
    assert [one.key.tenant for one in await whole.sessions("t")] == ["t"]
    assert await whole.sessions("default") == await whole.sessions("nobody") == ()


async def test_what_is_kept_is_not_changed_by_its_giver(whole: Store) -> None:
    """Data that its giver changes afterwards, at the top or deep inside, stays in the store as it was."""
    deep = [1]
    data: dict[str, object] = {"list": deep}
    await whole.remember(HERE, [Said(Role.TOOL, "x", data)])
    data["more"] = 2
    deep.append(2)
    (line,) = await whole.transcript(HERE)
    assert line.said.data == {"list": [1]}


@pytest.mark.parametrize(
    "data",
    [{"a": object()}, {"a": {1, 2}}, {"a": float("nan")}, {"a": float("-inf")}, {"a": b"bytes"}, {"a": "\udd80"}],
    ids=["object", "set", "nan", "infinity", "bytes", "half a character"],
)
async def test_what_json_cannot_hold_is_refused(whole: Store, data: dict[str, object]) -> None:
    """Refused before anything is kept, the lines beside it included; never silently changed."""
    with pytest.raises(RuleBroken, match=r"JSON|half a character"):
        await whole.remember(HERE, [Said(Role.USER, "a"), Said(Role.TOOL, "x", data)])
    assert await whole.session(HERE) is None


async def test_lines_remembered_at_once_each_have_their_number(whole: Store) -> None:
    """Ten writers make no gap and no double, and the lines of one write stay together."""
    newest: list[int] = []

    async def remember(name: str) -> None:
        newest.append(await whole.remember(HERE, words(name, name, name)))

    async with trio.open_nursery() as nursery:
        for name in "abcdefghij":
            nursery.start_soon(remember, name)
    lines = await read(whole)
    assert [number for number, _ in lines] == list(range(1, 31))
    assert sorted(newest) == list(range(3, 31, 3))
    assert all(len({text for _, text in lines[start : start + 3]}) == 1 for start in range(0, 30, 3))
