"""A view without the lease: every verb says that there is nothing to do, and nothing is changed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import pytest

from store.records import CHAT_LEASE, Cursor, MessageState, Note, Role, Said, SessionPolicy, Standing
from tests.contract.picture import picture
from tests.contract.rows import HERE, NOTE, THERE, accepted, delivered, running, sent, state

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from store.protocols import MessageStore, Store
    from tests.contract.backends import Wall

MINUTE = timedelta(minutes=1)
POLICY = SessionPolicy(cap=4)


async def nobody(whole: Store, wall: Wall) -> MessageStore:
    """Never asked for the lease."""
    return whole.messages(None)


async def expired(whole: Store, wall: Wall) -> MessageStore:
    """Held it until a moment ago, and nobody else has it yet."""
    lease = await whole.acquire(CHAT_LEASE, "old", MINUTE)
    wall.pass_by(MINUTE)
    return whole.messages(lease)


async def released(whole: Store, wall: Wall) -> MessageStore:
    """Has let it go."""
    lease = await whole.acquire(CHAT_LEASE, "old", MINUTE)
    assert lease is not None
    assert await whole.release(lease)
    return whole.messages(lease)


async def succeeded(whole: Store, wall: Wall) -> MessageStore:
    """Was too late: somebody else holds it."""
    old = await expired(whole, wall)
    assert await whole.acquire(CHAT_LEASE, "next", MINUTE) is not None
    return old


async def replaced(whole: Store, wall: Wall) -> MessageStore:
    """Its own owner has asked again."""
    lease = await whole.acquire(CHAT_LEASE, "old", MINUTE)
    assert await whole.acquire(CHAT_LEASE, "old", MINUTE) is not None
    return whole.messages(lease)


async def another(whole: Store, wall: Wall) -> MessageStore:
    """Holds a lease, but not this one; its token may even be the same number."""
    return whole.messages(await whole.acquire("other", "old", MINUTE))


KINDS = [nobody, expired, released, succeeded, replaced, another]


class Work(NamedTuple):
    """What there would be to do."""

    waits: int
    runs: int
    reply: int


async def fill(whole: Store, store: MessageStore) -> Work:
    (waits,) = await accepted(store, "waits")
    (runs,) = await running(store, "runs")
    (ended,) = await running(store, "ended", turn="done", session=THERE)
    await store.settle("done", [ended], MessageState.DONE, [Note(THERE, "reply")])
    await store.accept([], Cursor("fake", "bot", 5))
    await whole.set_policy(HERE, POLICY)
    (reply,) = await store.outbox(9)
    return Work(waits, runs, reply.id)


async def current(whole: Store) -> MessageStore:
    """A view that may look: whoever holds the lease now, or a new holder."""
    held = await whole.lease(CHAT_LEASE)
    return whole.messages(held or await whole.acquire(CHAT_LEASE, "looks", MINUTE))


VERBS: dict[str, tuple[Callable[[MessageStore, Work], Awaitable[object]], object]] = {
    "accept with a cursor": (lambda view, work: view.accept([sent("new")], Cursor("fake", "bot", 9)), None),
    "accept a known one with a cursor": (lambda view, work: view.accept([sent("waits")], Cursor("x", "", 1)), None),
    "cursor": (lambda view, work: view.cursor("fake", "bot"), None),
    "begin": (lambda view, work: view.begin("late", [work.waits, work.runs]), ()),
    "begin again": (lambda view, work: view.begin("turn", [work.runs]), ()),
    "settle": (
        lambda view, work: view.settle("turn", [work.runs], MessageState.DONE, [NOTE], [Said(Role.USER, "x")], 0.5),
        False,
    ),
    "settle what waits": (lambda view, work: view.settle("", [work.waits], MessageState.DROPPED, [NOTE]), False),
    "an impossible settle": (lambda view, work: view.settle("", [work.waits], MessageState.DONE, [NOTE]), False),
    "stop": (lambda view, work: view.stop(HERE, 10_000), ()),
    "stop some": (lambda view, work: view.stop(HERE, 10_000, sender="ann", only=[work.waits]), ()),
    "put back": (lambda view, work: view.put_back("turn", [work.runs]), None),
    "resume": (lambda view, work: view.resume(), ()),
    "waiting": (lambda view, work: view.waiting(), ()),
    "outbox": (lambda view, work: view.outbox(9), ()),
    "progress": (lambda view, work: view.progress(work.reply, 1, "live"), False),
    "sent": (lambda view, work: view.sent(work.reply), False),
}


@pytest.mark.parametrize("kind", KINDS)
async def test_who_does_not_hold_the_lease_changes_nothing(
    whole: Store, wall: Wall, kind: Callable[[Store, Wall], Awaitable[MessageStore]]
) -> None:
    """Each verb is refused with a value, and message, reply, cursor and session are as they were. (design 7)"""
    first = whole.messages(await whole.acquire(CHAT_LEASE, "old", MINUTE))
    work = await fill(whole, first)
    stale = await kind(whole, wall)
    answers = {name: await verb(stale, work) for name, (verb, _) in VERBS.items()}
    assert answers == {name: answer for name, (_, answer) in VERBS.items()}
    view = await current(whole)
    assert [message.text for message in await view.waiting()] == ["waits"]
    assert [(reply.note.text, reply.parts, reply.live) for reply in await view.outbox(9)] == [("reply", 0, "")]
    assert [await view.cursor("fake", "bot"), await view.cursor("x", "")] == [5, None]
    assert [await state(view, text) for text in ("waits", "runs")] == [MessageState.ACCEPTED, MessageState.RUNNING]
    assert await whole.transcript(HERE) == ()
    assert await view.settle("turn", [work.runs], MessageState.DONE, [])


@pytest.mark.parametrize("kind", KINDS)
async def test_everybody_may_hand_in_messages(
    whole: Store, wall: Wall, kind: Callable[[Store, Wall], Awaitable[MessageStore]]
) -> None:
    """Accepting without a cursor needs no lease: rows, duplicates and standings are told as to the holder. (P1)"""
    first = whole.messages(await whole.acquire(CHAT_LEASE, "old", MINUTE))
    await fill(whole, first)
    stale = await kind(whole, wall)
    fresh, known = await delivered(stale, sent("new"), sent("runs"))
    assert (fresh.fresh, known.fresh, known.state) == (True, False, MessageState.RUNNING)
    assert fresh.standing == known.standing == Standing(POLICY)
    view = await current(whole)
    assert [message.text for message in await view.waiting()] == ["waits", "new"]


async def test_a_renewed_lease_still_works(whole: Store, wall: Wall) -> None:
    """The view goes by the token: it need not be made again when the lease is renewed."""
    lease = await whole.acquire(CHAT_LEASE, "old", MINUTE)
    assert lease is not None
    view = whole.messages(lease)
    ids = await running(view, "a")
    wall.pass_by(MINUTE - timedelta(seconds=1))
    assert await whole.renew(lease, MINUTE) is not None
    wall.pass_by(timedelta(seconds=30))
    assert await view.settle("turn", ids, MessageState.DONE, [NOTE])


async def test_a_view_may_be_made_as_often_as_wanted(whole: Store, wall: Wall) -> None:
    """Views of one lease are one holder: what one began another settles."""
    lease = await whole.acquire(CHAT_LEASE, "old", MINUTE)
    ids = await running(whole.messages(lease), "a")
    assert await whole.messages(lease).settle("turn", ids, MessageState.DONE, [NOTE])


async def test_what_needs_no_lease_works_without(whole: Store) -> None:
    """Sessions, tenants and workers are everybody's."""
    view = whole.messages(await whole.acquire(CHAT_LEASE, "old", MINUTE))
    before = await picture(whole, view)
    await whole.set_policy(HERE, POLICY)
    await whole.create_tenant("t")
    assert await picture(whole, view) != before
    assert await whole.messages(None).standings([HERE]) == {HERE: Standing(POLICY)}
