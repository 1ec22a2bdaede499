"""Words: every text comes back as it was given, however odd, and half a character is refused with nothing changed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from store.protocols import RuleBroken
from store.records import (
    CHAT_LEASE,
    Cursor,
    DeliveryKey,
    Incoming,
    MessageState,
    NewToken,
    Note,
    Reading,
    Role,
    Said,
    SessionKey,
    SessionPolicy,
    WorkerStatus,
)
from tests.contract.picture import picture
from tests.contract.rows import HERE, NOTE, accepted, delivered, running, sent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from store.protocols import MessageStore, Store
    from tests.contract.backends import Wall

    Write = Callable[[Store, MessageStore], Awaitable[object]]

ODD = {
    "empty": "",
    "nul": "a\x00b\x00",
    "controls": "\x01\x1f\x7f\x85\u2028\u2029",
    "line ends": "\r\n\n\t ",
    "quotes": "'; DROP TABLE inbox; -- \"\\u0000\\x00$1%s{}",
    "colons": ":%3A:/%%:",
    "emoji": "🦀👩\u200d👩\u200d👧 \u202e ümläut 中",
    "no characters": "\ufffe\uffff\U0010ffff\ue000\ue001\ue002\uf8ff",
    "escapes": "\ue000\x00\ue000\ue001\x00\ue002\\",
    "combined": "e\u0301 \u00e9",
}
odd = pytest.mark.parametrize("text", list(ODD.values()), ids=list(ODD))


def session_of(text: str, tenant: str) -> SessionKey:
    return SessionKey(tenant, text, text, text, text, text, 3)


@odd
async def test_messages_and_replies_keep_every_text(whole: Store, store: MessageStore, text: str) -> None:
    """Key, session, sender, text, note, turn, live id and cursor of any characters lead back to themselves."""
    await whole.create_tenant(text)
    session = session_of(text, text)
    incoming = Incoming(DeliveryKey(text, text, text), session, text, text, group=True, admin=True, control=True)
    (fresh,) = await delivered(store, incoming, cursor=Cursor(text, text, 3))
    assert fresh.message is not None
    assert fresh.message.incoming == incoming
    assert await store.cursor(text, text) == 3
    (known,) = await delivered(store, incoming)
    assert (known.fresh, known.message) == (False, fresh.message)
    assert [one.incoming for one in await store.begin(f"turn{text}", [fresh.id])] == [incoming]
    assert await store.settle(f"turn{text}", [fresh.id], MessageState.DONE, [Note(session, text, urgent=True)])
    (reply,) = await store.outbox(9)
    assert (reply.note, await store.outbox(9, skip=[session.address])) == (Note(session, text, urgent=True), ())
    assert await store.progress(reply.id, 1, text)
    assert [one.live for one in await store.outbox(9)] == [text]


@odd
async def test_sessions_keep_every_text(whole: Store, text: str) -> None:
    """Keys, lines and data of any characters lead back to themselves, and pages find their place."""
    await whole.create_tenant(text)
    session = session_of(text, text)
    said = Said(Role.TOOL, text, {text: [text, {"deep": text}]})
    await whole.remember(session, [said])
    assert [line.said for line in await whole.transcript(session)] == [said]
    assert [one.key for one in await whole.sessions(text)] == [session]
    assert await whole.sessions(text, after=str(session)) == ()
    kept = await whole.session(session)
    assert kept is not None
    assert kept.key == session


@odd
async def test_tenants_and_workers_keep_every_text(whole: Store, wall: Wall, text: str) -> None:
    """Names, tokens, beats, readings and leases of any characters lead back to themselves."""
    assert await whole.create_tenant(text, text, text)
    tenant = await whole.tenant(text)
    assert tenant is not None
    assert (tenant.id, tenant.name, tenant.zone) == (text, text, text)
    token = NewToken(text, text, text, text, (text, "other", text))
    assert await whole.add_token(token)
    found = await whole.token_for(text)
    assert found is not None
    assert found.new == token
    assert await whole.revoke_token(text, text)
    await whole.beat(text, WorkerStatus.IDLE, run=text, context={text: text})
    (beat,) = await whole.beats(text)
    assert (beat.worker, beat.run, beat.context) == (text, text, {text: text})
    reading = Reading(text, context={text: [text]})
    await whole.record(reading)
    assert [one.reading for one in await whole.readings()] == [reading]
    lease = await whole.acquire(text, text, timedelta(minutes=1))
    assert lease is not None
    assert await whole.lease(text) == lease
    assert await whole.release(lease)
    assert await whole.leave(text)
    assert await whole.delete_tenant(text)


async def test_texts_that_look_alike_are_different(whole: Store, store: MessageStore) -> None:
    """Case, spaces at the end, composed and joined characters all count: nobody is taken for another. (P11)"""
    alike = ["a", "A", "a ", " a", "a\x00", "e\u0301", "\u00e9", "ﬁ", "fi", "\ue000", "\ue000\ue001", "\x00", ""]
    receipts = await delivered(store, *(sent(text) for text in alike))
    assert all(one.fresh for one in receipts)
    for number, text in enumerate(alike):
        assert await whole.create_tenant(text)
        await whole.remember(replace(HERE, chat=text), [Said(Role.USER, str(number))])
        await whole.beat(text, WorkerStatus.IDLE)
    assert len(await whole.workers()) == len(alike)
    for number, text in enumerate(alike):
        lines = await whole.transcript(replace(HERE, chat=text))
        assert [line.said.text for line in lines] == [str(number)]


async def test_large_texts_are_no_trouble(whole: Store, store: MessageStore) -> None:
    """A megabyte in, the same megabyte out, in messages, replies and transcripts."""
    text = "🦀 word " * 150_000
    ids = await running(store, "a")
    (fresh,) = await delivered(store, replace(sent("b"), text=text))
    assert fresh.message is not None
    assert fresh.message.text == text
    await store.settle("turn", ids, MessageState.DONE, [Note(HERE, text)], [Said(Role.USER, text)])
    assert [reply.note.text for reply in await store.outbox(9)] == [text]
    assert [line.said.text for line in await whole.newest(HERE, 1)] == [text]


HALF = "half \ud83e"
UNKNOWN = replace(HERE, tenant="nobody")
SESSIONS = {
    "tenant": replace(HERE, tenant=HALF),
    "agent": replace(HERE, agent=HALF),
    "channel": replace(HERE, channel=HALF),
    "account": replace(HERE, account=HALF),
    "chat": replace(HERE, chat=HALF),
    "thread": replace(HERE, thread=HALF),
}


def accept(incoming: Incoming, cursor: Cursor | None = None) -> Write:
    return lambda whole, store: store.accept([sent("before"), incoming], cursor)


def remember(session: SessionKey) -> Write:
    return lambda whole, store: whole.remember(session, [Said(Role.USER, "x")])


def set_policy(session: SessionKey) -> Write:
    return lambda whole, store: whole.set_policy(session, SessionPolicy(cap=1))


def token(**changed: object) -> Write:
    new = replace(NewToken("k2", "default", "n", "d2", ("s",)), **changed)  # type: ignore[arg-type]
    return lambda whole, store: whole.add_token(new)


BROKEN: dict[str, Write] = {
    **{f"accept, {part}": accept(sent("x", session)) for part, session in SESSIONS.items()},
    **{f"remember, {part}": remember(session) for part, session in SESSIONS.items()},
    **{f"set policy, {part}": set_policy(session) for part, session in SESSIONS.items()},
    "accept, key": accept(replace(sent("x"), key=DeliveryKey("fake", "bot", HALF))),
    "accept, key's channel": accept(replace(sent("x"), key=DeliveryKey(HALF, "bot", "x"))),
    "accept, key's account": accept(replace(sent("x"), key=DeliveryKey("fake", HALF, "x"))),
    "accept, sender": accept(replace(sent("x"), sender=HALF)),
    "accept, text": accept(replace(sent("x"), text=HALF)),
    "accept, unknown tenant": accept(sent("x", UNKNOWN)),
    "cursor, channel": accept(sent("x"), Cursor(HALF, "bot", 9)),
    "cursor, account": accept(sent("x"), Cursor("fake", HALF, 9)),
    "remember, text": lambda whole, store: whole.remember(HERE, [Said(Role.USER, "x"), Said(Role.USER, HALF)]),
    "remember, data": lambda whole, store: whole.remember(HERE, [Said(Role.USER, "x", {HALF: 1})]),
    "remember, unknown tenant": lambda whole, store: whole.remember(UNKNOWN, [Said(Role.USER, "x")]),
    "set policy, unknown tenant": lambda whole, store: whole.set_policy(UNKNOWN, SessionPolicy(cap=1)),
    "create tenant": lambda whole, store: whole.create_tenant(HALF),
    "create tenant, name": lambda whole, store: whole.create_tenant("t", HALF),
    "create tenant, zone": lambda whole, store: whole.create_tenant("t", "", HALF),
    "add token, id": token(id=HALF),
    "add token, name": token(name=HALF),
    "add token, digest": token(digest=HALF),
    "add token, scope": token(scopes=("s", HALF)),
    "add token, tenant": token(tenant=HALF),
    "add token, unknown tenant": token(tenant="nobody"),
    "beat, worker": lambda whole, store: whole.beat(HALF, WorkerStatus.IDLE),
    "beat, run": lambda whole, store: whole.beat("w1", WorkerStatus.IDLE, run=HALF),
    "beat, context": lambda whole, store: whole.beat("w1", WorkerStatus.IDLE, context={"a": [HALF]}),
    "record, worker": lambda whole, store: whole.record(Reading(HALF)),
    "record, context": lambda whole, store: whole.record(Reading("w1", context={"a": HALF})),
    "acquire, owner": lambda whole, store: whole.acquire("other", HALF, timedelta(minutes=1)),
    "delete default": lambda whole, store: whole.delete_tenant("default"),
}


@pytest.mark.parametrize("write", list(BROKEN.values()), ids=list(BROKEN))
async def test_what_breaks_a_rule_changes_nothing(whole: Store, store: MessageStore, write: Write) -> None:
    """The verb says what is wrong and must not be repeated; everything in the store is as it was. (issue 3)"""
    await store.settle("turn", await running(store, "a"), MessageState.DONE, [NOTE], [Said(Role.USER, "a")])
    await accepted(store, "waits")
    await whole.add_token(NewToken("k1", "default", "n", "d1"))
    before = await picture(whole, store)
    with pytest.raises(RuleBroken) as caught:
        await write(whole, store)
    assert not caught.value.retriable
    assert await picture(whole, store) == before
    assert (await whole.lease(CHAT_LEASE)) is not None
