"""A life on the store, lived as hard as it can be until it is killed: all that a gateway asks for, all at once.

Every reply and every line that is written carries the tag of the verb that wrote it, so that whoever looks afterwards
can tell whether all of the verb is there or nothing. What must be told apart is asked for by one task alone.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import trio

from store.records import (
    CHAT_LEASE,
    Cursor,
    Message,
    MessageState,
    NewToken,
    Note,
    Reading,
    Role,
    Said,
    SessionPolicy,
    WorkerStatus,
    turn_id,
)
from tests.faults.told import ACCOUNTS, ALONE, CHANNEL, SESSIONS, incoming, session_of

if TYPE_CHECKING:
    from random import Random

    from store.protocols import MessageStore, Store
    from store.records import Lease, Line, Receipt, Reply, SessionKey
    from tests.faults.told import Log

SPAN = timedelta(minutes=30)
"""So long that a slow machine never loses the lease by being slow; the next life asks under the same name."""
PLENTY = 40
UNBEGUN = (MessageState.FAILED, MessageState.DROPPED, MessageState.QUARANTINED)


def rows(messages: tuple[Message, ...]) -> list[tuple[str, int, str, int]]:
    return [(one.incoming.key.external_id, one.id, one.state, one.attempts) for one in messages]


def receipts(answer: tuple[Receipt, ...] | None) -> list[tuple[int, str, bool]] | None:
    return None if answer is None else [(one.id, one.state, one.fresh) for one in answer]


def replies(answer: tuple[Reply, ...]) -> list[tuple[int, str, tuple[int, ...], int, str]]:
    return [(one.id, one.note.text.split()[0], one.answers, one.parts, one.live) for one in answer]


def numbered(lines: tuple[Line, ...]) -> list[tuple[int, object]]:
    return [(line.number, line.said.data["tag"]) for line in lines]


class Life:
    def __init__(self, store: Store, log: Log, random: Random, number: int, owner: str) -> None:
        self.store, self.log, self.random, self.number, self.owner = store, log, random, number, owner
        self.names: list[str] = []
        self.tags = 0
        self.recent = deque[tuple[int, str]](maxlen=40)
        self.lines = dict.fromkeys(SESSIONS, 0)
        self.send_backlog, self.backlog = trio.open_memory_channel[tuple[int, str]](float("inf"))

    async def live(self) -> None:
        """Take the lease and what the last life left open, then never rest."""
        lease = await self.log.ask(
            "acquire",
            partial(self.store.acquire, CHAT_LEASE, self.owner, SPAN),
            lambda lease: None if lease is None else lease.token,
        )
        assert lease is not None, "somebody else holds the lease"
        messages = self.store.messages(lease)
        left = await self.log.ask("resume", messages.resume, rows)
        for message in left:
            self.take_up(message.id, message.incoming.key.external_id)
        for key in SESSIONS:
            kept = await self.store.session(key)
            self.lines[key] = kept.lines if kept else 0
        async with trio.open_nursery() as nursery:
            for account in ACCOUNTS:
                nursery.start_soon(self.read_channel, messages, account)
            for task in (self.answer, self.answer, self.answer, self.deliver, self.stop):
                nursery.start_soon(task, messages)
            nursery.start_soon(self.converse)
            nursery.start_soon(self.remember_alone)
            nursery.start_soon(self.govern, lease)

    def take_up(self, number: int, name: str) -> None:
        self.names.append(name)
        self.recent.append((number, name))
        self.send_backlog.send_nowait((number, name))

    def a_name(self, account: str, made: int) -> str:
        session, sender = self.random.randrange(len(SESSIONS)), self.random.choice(("ann", "bob"))
        return f"{made}.{session}.{sender}.{account}.{self.number}"

    def tag(self) -> str:
        self.tags += 1
        return f"{self.number}-{self.tags}"

    def said(self, tag: str, count: int) -> list[Said]:
        padding = "so they said " * self.random.choice((0, 1, 20))
        marks = [{"tag": tag, "part": part, "of": count} for part in range(count)]
        return [Said(self.random.choice(list(Role)), f"{tag}/{mark['part']} {padding}", mark) for mark in marks]

    # ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def read_channel(self, messages: MessageStore, account: str) -> None:
        """Deliver new messages and, like every channel now and then, old ones again, also such as are on their way."""
        position = await messages.cursor(CHANNEL, account) or 0
        made = 0
        while True:
            names = self.random.sample(self.names, min(len(self.names), self.random.choice((0, 0, 1, 2))))
            if self.backlog.statistics().current_buffer_used < PLENTY or not names:
                for _ in range(self.random.randint(1, 3)):
                    made += 1
                    names.append(self.a_name(account, made))
            self.names += [name for name in names if name not in self.names[-200:]]
            position += 1
            await self.accept(messages, names, Cursor(CHANNEL, account, position))

    async def accept(self, messages: MessageStore, names: list[str], cursor: Cursor) -> None:
        batch = [incoming(name) for name in names]
        place = {"account": cursor.account, "position": cursor.position}
        answer = await self.log.ask("accept", partial(messages.accept, batch, cursor), receipts, names=names, **place)
        assert answer is not None, "refused without a reason"
        for name, receipt in zip(names, answer, strict=True):
            if receipt.fresh:
                self.take_up(receipt.id, name)

    async def answer(self, messages: MessageStore) -> None:
        """Run turns of one or two messages to one of their ends, or put them back, or leave them as they are."""
        async for number, name in self.backlog:
            ids = [number, *self.another(name)]
            if self.random.random() < 0.05:
                await self.settle(messages, "", ids, self.random.choice(UNBEGUN), session_of(name))
                continue
            turn = turn_id(f"life{self.number}", self.log.count)
            begun = await self.begin(messages, turn, ids)
            choice = self.random.random()
            if choice < 0.75:
                state = MessageState.DONE if choice < 0.65 else MessageState.FAILED
                await self.settle(messages, turn, ids, state, session_of(name))
            elif choice < 0.95:
                await self.put_back(messages, turn, ids)
                for message in begun:
                    self.send_backlog.send_nowait((message.id, message.incoming.key.external_id))

    def another(self, name: str) -> list[int]:
        """A second message of the same session, if one is next."""
        try:
            number, other = self.backlog.receive_nowait()
        except trio.WouldBlock:
            return []
        if session_of(other) == session_of(name):
            return [number]
        self.send_backlog.send_nowait((number, other))
        return []

    async def begin(self, messages: MessageStore, turn: str, ids: list[int]) -> tuple[Message, ...]:
        return await self.log.ask("begin", partial(messages.begin, turn, ids), rows, turn=turn, ids=ids)

    async def put_back(self, messages: MessageStore, turn: str, ids: list[int]) -> None:
        await self.log.ask("put_back", partial(messages.put_back, turn, ids), turn=turn, ids=ids)

    async def settle(
        self, messages: MessageStore, turn: str, ids: list[int], state: MessageState, session: SessionKey
    ) -> None:
        tag, context = self.tag(), round(self.random.random(), 3)
        note = Note(session, f"{tag} the answer", urgent=self.random.random() < 0.1)
        said = self.said(tag, self.random.randint(1, 3))
        await self.log.ask(
            "settle",
            partial(messages.settle, turn, ids, state, [note], said, context),
            tag=tag, ids=ids, state=state, session=str(session), context=context, of=len(said),
        )  # fmt: skip

    async def stop(self, messages: MessageStore) -> None:
        """Stop what came lately, whether it waits, runs or has ended: one message, or all of its session up to it."""
        while True:
            upto, name = self.random.choice(self.recent or [(0, self.a_name("first", 0))])
            session, sender = session_of(name), self.random.choice((None, "ann"))
            only = [upto] if self.random.random() < 0.8 else None
            await self.log.ask(
                "stop",
                partial(messages.stop, session, upto, sender=sender, only=only),
                rows,
                session=str(session), upto=upto, sender=sender, only=only,
            )  # fmt: skip
            for _ in range(self.random.randrange(12)):
                await self.log.ask("waiting", messages.waiting, lambda seen: [message.id for message in seen])

    async def deliver(self, messages: MessageStore) -> None:
        """Send what is in the outbox, some of it in parts."""
        while True:
            skip = [key.address for key in SESSIONS if self.random.random() < 0.2]
            for reply in await self.log.ask("outbox", partial(messages.outbox, 6, skip), replies):
                if self.random.random() < 0.5:
                    await self.progress(messages, reply.id, reply.parts + 1)
                if self.random.random() < 0.8:
                    await self.log.ask("sent", partial(messages.sent, reply.id), reply=reply.id)

    async def progress(self, messages: MessageStore, reply: int, parts: int) -> None:
        live = self.tag()
        verb = partial(messages.progress, reply, parts, live)
        await self.log.ask("progress", verb, reply=reply, parts=parts, live=live)

    # ── everything else ──────────────────────────────────────────────────────────────────────────────────────────────

    async def converse(self) -> None:
        """Policies, transcripts and their trimming; only what was there at the start of this life is trimmed."""
        while True:
            key = self.random.choice(SESSIONS)
            await self.set_policy(key)
            if self.random.random() < 0.5:
                await self.remember(key, self.random.randint(1, 3))
            if self.random.random() < 0.3:
                upto = max(0, self.lines[key] - self.random.randrange(40))
                await self.log.ask("trim", partial(self.store.trim, key, upto), int, session=str(key), upto=upto)
            await self.log.ask("newest", partial(self.store.newest, key, 4), numbered, session=str(key))

    async def set_policy(self, key: SessionKey) -> None:
        cap = self.random.randint(1, 1_000_000)
        verb = partial(self.store.set_policy, key, SessionPolicy(cap=cap))
        await self.log.ask("set_policy", verb, session=str(key), cap=cap)

    async def remember(self, key: SessionKey, count: int) -> None:
        tag = self.tag()
        verb = partial(self.store.remember, key, self.said(tag, count))
        await self.log.ask("remember", verb, int, session=str(key), tag=tag, of=count)

    async def remember_alone(self) -> None:
        while True:
            for _ in range(self.random.randrange(20)):
                await self.remember(ALONE, self.random.randint(1, 2))
            await self.log.ask("forget", partial(self.store.forget, ALONE))

    async def govern(self, lease: Lease) -> None:
        """Workers give signs of life, the lease is renewed, tenants come and go with all that they own."""
        worker = f"life{self.number}"
        while True:
            await self.log.ask("beat", partial(self.store.beat, worker, WorkerStatus.BUSY), worker=worker)
            await self.log.ask("record", partial(self.store.record, Reading(worker)))
            renewed = await self.log.ask("renew", partial(self.store.renew, lease, SPAN))
            assert renewed is not None, "the lease was lost"
            await self.let_in(f"tenant{self.tag()}")
            await self.log.ask("tidy", self.store.tidy)

    async def let_in(self, tenant: str) -> None:
        await self.log.ask("create_tenant", partial(self.store.create_tenant, tenant), tenant=tenant)
        await self.set_policy(replace(ALONE, tenant=tenant))
        for number in range(self.random.randrange(4)):
            token = NewToken(f"token{number}", tenant, "", f"{tenant}/{number}")
            await self.log.ask("add_token", partial(self.store.add_token, token), tenant=tenant, token=token.id)
            if self.random.random() < 0.5:
                verb = partial(self.store.revoke_token, tenant, token.id)
                await self.log.ask("revoke_token", verb, tenant=tenant, token=token.id)
        if self.random.random() < 0.5:
            await self.log.ask("enable_tenant", partial(self.store.enable_tenant, tenant, False), tenant=tenant)
        if self.random.random() < 0.7:
            await self.log.ask("delete_tenant", partial(self.store.delete_tenant, tenant), tenant=tenant)
