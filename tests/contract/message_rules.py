"""Histories of messages and replies under leases that come and go."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import strategies as st
from hypothesis.stateful import rule

from store.records import CHAT_LEASE, Cursor, Incoming, MessageState, Note
from tests.contract.machine import StoreMachine, end_the_lease
from tests.contract.pools import (
    CENTURY,
    KEYS,
    LONGEST_WAIT,
    MOMENT,
    NAMES,
    SESSIONS,
    cursors,
    ends,
    figures,
    incoming,
    leases,
    limits,
    notes,
    pick,
    picks,
    said,
    senders,
    sessions,
    some,
    texts,
    turns,
    usual_sessions,
    views,
    waits,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from store.records import DeliveryKey, Said, SessionKey
    from tests.contract.sides import Side

    View = int | str | None


class MessageRules(StoreMachine):
    @rule(view=views, batch=st.lists(incoming, max_size=4), cursor=cursors)
    def accept(self, view: View, batch: Sequence[Incoming], cursor: Cursor | None) -> None:
        self.ask(lambda side: side.view(view).accept(batch, cursor))

    @rule(view=views, batch=st.lists(incoming, min_size=1, max_size=3), turn=turns, those=some, back=st.booleans())
    def work(self, view: View, batch: Sequence[Incoming], turn: str, those: Sequence[int], back: bool) -> None:
        """Some of what came begins, and is put back or answered."""
        here = [replace(one, session=SESSIONS[0]) for one in batch]
        self.ask(lambda side: side.view(None).accept(here))
        self.ask(lambda side: side.view(view).begin(turn, side.those(those)))
        if back:
            self.ask(lambda side: side.view(0).put_back(turn, side.those(those)))
            self.ask(lambda side: side.view(0).waiting())
        else:
            note = Note(SESSIONS[0], "the answer")
            self.ask(lambda side: side.view(0).settle(turn, side.those(those), MessageState.DONE, [note]))

    @rule(view=views, turn=turns, those=picks)
    def begin(self, view: View, turn: str, those: Sequence[int]) -> None:
        self.ask(lambda side: side.view(view).begin(turn, side.those(those)))

    @rule(view=views, turn=turns, those=picks, end=ends, replies=notes, words=said, context=figures)
    def settle(
        self,
        view: View,
        turn: str,
        those: Sequence[int],
        end: MessageState,
        replies: Sequence[Note],
        words: Sequence[Said],
        context: float | None,
    ) -> None:
        self.ask(lambda side: side.view(view).settle(turn, side.those(those), end, replies, words, context))

    @rule(
        session=usual_sessions, keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=2), words=said, replies=notes
    )
    def answer(
        self, session: SessionKey, keys: Sequence[DeliveryKey], words: Sequence[Said], replies: Sequence[Note]
    ) -> None:
        """The usual way of a message, from beginning to end; the second one says nothing about the window."""
        for key, context in zip(keys, (0.5, None), strict=False):
            self.ask(lambda side, key=key: side.view(None).accept([Incoming(key, session, "ann", "hello")]))  # type: ignore[misc]
            self.ask(lambda side: side.view(0).begin("t1", side.those([0])))
            self.ask(
                lambda side, context=context: side.view(0).settle(  # type: ignore[misc]
                    "t1", side.those([0]), MessageState.DONE, replies, words, context
                )
            )

    @rule(
        view=views,
        session=usual_sessions,
        upto=pick,
        sender=senders,
        only=st.none() | picks,
    )
    def stop(self, view: View, session: SessionKey, upto: int, sender: str | None, only: Sequence[int] | None) -> None:
        self.ask(
            lambda side: side.view(view).stop(
                session, side.message(upto), sender=sender, only=None if only is None else side.those(only)
            )
        )

    @rule(view=views, turn=turns, those=picks)
    def put_back(self, view: View, turn: str, those: Sequence[int]) -> None:
        self.ask(lambda side: side.view(view).put_back(turn, side.those(those)))

    @rule(view=views)
    def resume(self, view: View) -> None:
        self.ask(lambda side: side.view(view).resume())

    @rule(view=views)
    def waiting(self, view: View) -> None:
        self.ask(lambda side: side.view(view).waiting())

    @rule(view=views, those=st.lists(sessions, max_size=3))
    def standings(self, view: View, those: Sequence[SessionKey]) -> None:
        self.ask(lambda side: side.view(view).standings(those))

    @rule(view=views, limit=limits, skip=st.lists(sessions, max_size=2))
    def outbox(self, view: View, limit: int, skip: Sequence[SessionKey]) -> None:
        self.ask(lambda side: side.view(view).outbox(limit, [session.address for session in skip]))

    @rule(view=views, reply=pick, parts=st.integers(min_value=0, max_value=3), live=texts)
    def progress(self, view: View, reply: int, parts: int, live: str) -> None:
        self.ask(lambda side: side.view(view).progress(side.reply(reply), parts, live))

    @rule(view=views, reply=pick)
    def sent(self, view: View, reply: int) -> None:
        self.ask(lambda side: side.view(view).sent(side.reply(reply)))

    @rule(name=st.sampled_from(NAMES), owner=st.sampled_from("ab"), span=leases)
    def acquire(self, name: str, owner: str, span: timedelta) -> None:
        self.ask(lambda side: side.whole.acquire(name, owner, span))

    @rule(lease=pick, span=leases)
    def renew(self, lease: int, span: timedelta) -> None:
        self.ask(lambda side: renew(side, lease, span))

    @rule(lease=pick)
    def release(self, lease: int) -> None:
        self.ask(lambda side: release(side, lease))

    # ── moments that matter ──────────────────────────────────────────────────────────────────────────────────────────

    @rule(key=st.sampled_from(KEYS), end=ends, span=waits)
    def deliver_again_after(self, key: DeliveryKey, end: MessageState, span: timedelta) -> None:
        """Just before, at and just after the moment at which a key is forgotten."""
        self.ask(lambda side: side.view(None).accept([Incoming(key, SESSIONS[0], "ann", "hello")]))
        self.ask(lambda side: side.view(0).begin("t1", side.those([0])))
        self.ask(lambda side: side.view(0).settle("t1", side.those([0]), end, []))
        self.wall.pass_by(span)
        self.ask(lambda side: side.view(None).accept([Incoming(key, SESSIONS[0], "ann", "again")]))

    @rule(key=st.sampled_from(KEYS), end=ends, gone=st.booleans())
    def deliver_to_two_tenants(self, key: DeliveryKey, end: MessageState, gone: bool) -> None:
        """One and the same delivery: each tenant has its own, whatever becomes of the other's."""
        batch = [Incoming(key, session, "ann", session.tenant) for session in (SESSIONS[0], SESSIONS[3])]
        self.ask(lambda side: side.whole.create_tenant("t"))
        self.ask(lambda side: side.view(None).accept(batch))
        self.ask(lambda side: side.view(0).begin("t1", side.those([0])))
        self.ask(lambda side: side.view(0).settle("t1", side.those([0]), end, []))
        if gone:
            self.ask(lambda side: side.whole.delete_tenant("t"))
        self.ask(lambda side: side.view(None).accept(batch[:1]))
        self.ask(lambda side: side.view(None).accept(batch[1:]))

    @rule(batch=st.lists(incoming, min_size=2, max_size=4), begun=picks, sender=senders, upto=pick)
    def stop_what_came(self, batch: Sequence[Incoming], begun: Sequence[int], sender: str | None, upto: int) -> None:
        """Some wait and some run when somebody says stop."""
        self.ask(lambda side: side.view(None).accept([replace(one, session=SESSIONS[0]) for one in batch]))
        self.ask(lambda side: side.view(0).begin("t2", side.those(begun)))
        self.ask(lambda side: side.view(0).stop(SESSIONS[0], side.message(upto), sender=sender))

    @rule(key=st.sampled_from(KEYS), note=notes, parts=st.lists(st.integers(min_value=0, max_value=3), max_size=3))
    def send_in_parts(self, key: DeliveryKey, note: Sequence[Note], parts: Sequence[int]) -> None:
        """A reply grows in its chat, and not all that is heard of it comes in order."""
        self.ask(lambda side: side.view(None).accept([Incoming(key, SESSIONS[0], "ann", "hello")]))
        self.ask(lambda side: side.view(0).settle("", side.those([0]), MessageState.FAILED, note))
        self.ask(lambda side: side.view(0).outbox(100))
        for number in parts:
            self.ask(lambda side, number=number: side.view(0).progress(side.reply(0), number, str(number)))  # type: ignore[misc]
        self.ask(lambda side: side.view(0).outbox(100))

    @rule(owner=st.sampled_from("ab"), span=leases, early=st.booleans(), next_owner=st.sampled_from("ab"))
    def outlive_a_lease(self, owner: str, span: timedelta, early: bool, next_owner: str) -> None:
        """Somebody holds it to its end, or nearly; then it is used, renewed and asked for by somebody."""
        self.ask(end_the_lease)
        self.ask(lambda side: side.whole.acquire(CHAT_LEASE, owner, min(span, LONGEST_WAIT)))
        self.wall.pass_by(min(span, LONGEST_WAIT) - early * MOMENT)
        self.ask(lambda side: side.view(0).accept([], Cursor("fake", "bot", 5)))
        self.ask(lambda side: renew(side, 0, span))
        self.ask(lambda side: side.whole.acquire(CHAT_LEASE, next_owner, CENTURY))
        self.ask(lambda side: side.view(1).waiting())


async def renew(side: Side, pick: int, span: timedelta) -> object:
    lease = side.lease(pick)
    renewed = None if lease is None else await side.whole.renew(lease, span)
    return None if renewed is None else replace(renewed, token=0)


async def release(side: Side, pick: int) -> object:
    lease = side.lease(pick)
    return lease is not None and await side.whole.release(lease)
