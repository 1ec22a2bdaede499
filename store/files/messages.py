"""Inbox and outbox of the JSON store."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from store.files.cron_keeping import delivered
from store.files.verbs import Verbs
from store.records import CHAT_LEASE, REMEMBER_KEYS, Message, MessageState, Receipt, Reply, Seen, Standing
from store.rules import check_end, check_figure, check_words

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from store.files.journal import Journal
    from store.records import Address, Cursor, Incoming, Lease, Note, OwnKey, Said, SessionKey


class JsonMessages(Verbs):
    def __init__(self, journal: Journal, now: Callable[[], datetime], lease: Lease | None) -> None:
        super().__init__(journal, now)
        self.lease = lease

    async def accept(self, batch: Sequence[Incoming], cursor: Cursor | None = None) -> tuple[Receipt, ...] | None:
        return await self.journal.do(lambda: self._accept(batch, cursor))

    async def cursor(self, channel: str, account: str) -> int | None:
        rows = self.tables.cursors.rows
        return await self.journal.do(lambda: rows.get((channel, account)) if self._works() else None)

    async def begin(self, turn: str, ids: Sequence[int]) -> tuple[Message, ...]:
        return await self.journal.do(lambda: self._begin(turn, ids))

    async def settle(
        self,
        turn: str,
        ids: Sequence[int],
        state: MessageState,
        notes: Sequence[Note],
        said: Sequence[Said] = (),
        context: float | None = None,
    ) -> bool:
        return await self.journal.do(lambda: self._settle(turn, ids, state, notes, said, context))

    async def stop(
        self, session: SessionKey, upto: int, *, sender: str | None = None, only: Sequence[int] | None = None
    ) -> tuple[Message, ...]:
        return await self.journal.do(lambda: self._stop(session, upto, sender, only))

    async def put_back(self, turn: str, ids: Sequence[int]) -> None:
        await self.journal.do(lambda: self._put_back(turn, ids))

    async def resume(self) -> tuple[Message, ...]:
        return await self.journal.do(self._resume)

    async def waiting(self) -> tuple[Message, ...]:
        return await self.journal.do(self._waiting)

    async def standings(self, sessions: Collection[SessionKey]) -> Mapping[SessionKey, Standing]:
        return await self.journal.do(lambda: {key: self._standing(key) for key in sessions})

    async def states(self, keys: Collection[OwnKey]) -> Mapping[OwnKey, MessageState]:
        return await self.journal.do(lambda: self._states(keys))

    async def outbox(self, limit: int, skip: Collection[Address] = ()) -> tuple[Reply, ...]:
        return await self.journal.do(lambda: self._outbox(limit, skip))

    async def progress(self, reply: int, parts: int, live: str) -> bool:
        return await self.journal.do(lambda: self._progress(reply, parts, live))

    async def sent(self, reply: int, *, failed: str = "") -> bool:
        return await self.journal.do(lambda: self._sent(reply, failed))

    # ── each in one step ─────────────────────────────────────────────────────────────────────────────────────────────

    def _accept(self, batch: Sequence[Incoming], cursor: Cursor | None) -> tuple[Receipt, ...] | None:
        if cursor is not None:
            if not self._works():
                return None
            check_words(cursor.channel, cursor.account)
        self.check_tenants(incoming.session for incoming in batch)
        check_words(*(text for one in batch for text in (*one.key, one.sender, one.text)))
        if cursor is not None:
            place = cursor.channel, cursor.account
            read = self.tables.cursors.rows.get(place)
            if read is None or read < cursor.position:
                self.tables.put(self.tables.cursors, place, cursor.position)
        return tuple([self._accept_one(incoming) for incoming in batch])

    def _accept_one(self, incoming: Incoming) -> Receipt:
        """One delivery; the key of an open message is never forgotten, that of an ended one after a week."""
        tables, key, standing = self.tables, incoming.own_key, self._standing(incoming.session)
        number = tables.by_key.get(key)
        if number is not None:
            open_one = tables.messages.rows[number]
            return Receipt(number, open_one.state, open_one, fresh=False, standing=standing)
        seen = tables.seen.rows.get(key)
        if seen is not None and seen.at > self.now() - REMEMBER_KEYS:
            return Receipt(seen.id, seen.state, None, fresh=False, standing=standing)
        tables.drop(tables.seen, key)
        message = Message(tables.fresh_id(), incoming, self.now())
        tables.put(tables.messages, message.id, message)
        return Receipt(message.id, message.state, message, fresh=True, standing=standing)

    def _states(self, keys: Collection[OwnKey]) -> dict[OwnKey, MessageState]:
        tables, after = self.tables, self.now() - REMEMBER_KEYS
        found: dict[OwnKey, MessageState] = {}
        for key in keys:
            if (number := tables.by_key.get(key)) is not None:
                found[key] = tables.messages.rows[number].state
            elif (seen := tables.seen.rows.get(key)) is not None and seen.at > after:
                found[key] = seen.state
        return found

    def _begin(self, turn: str, ids: Sequence[int]) -> tuple[Message, ...]:
        check_words(turn)
        for message in self._those(ids):
            if message.state is MessageState.ACCEPTED:
                self._move(message.moved(MessageState.RUNNING, turn=turn, attempts=message.attempts + 1))
        return tuple(message for message in self._those(ids) if message.turn == turn)

    def _settle(
        self,
        turn: str,
        ids: Sequence[int],
        state: MessageState,
        notes: Sequence[Note],
        said: Sequence[Said],
        context: float | None,
    ) -> bool:
        check_end(state)
        check_figure(context)
        mine = [message for message in self._those(ids) if message.turn == turn]
        if not mine:
            return False
        ended = [message.moved(state) for message in mine]
        self.check_tenants(note.session for note in notes)
        check_words(*(note.text for note in notes), *(one.text for one in said))
        for message in ended:
            self._end(message)
        for note in notes:
            reply = Reply(self.tables.fresh_id(), note, tuple(message.id for message in mine))
            self.tables.put(self.tables.replies, reply.id, reply)
        if said or context is not None:
            kept = self.keep(mine[0].session)
            figure = kept.session.standing.context if context is None else context
            standing = replace(kept.session.standing, context=figure)
            self.write_down(kept, replace(kept.session, standing=standing), said)
        return True

    def _stop(
        self, session: SessionKey, upto: int, sender: str | None, only: Sequence[int] | None
    ) -> tuple[Message, ...]:
        candidates = self._those(self.tables.open_in[session] if only is None else sorted(only))
        stopped = [
            message
            for message in candidates
            if message.session == session
            and message.id <= upto
            and sender in (None, message.incoming.sender)
            and not message.incoming.control
        ]
        for message in stopped:
            self._end(message.moved(MessageState.STOPPED))
        return tuple(stopped)

    def _put_back(self, turn: str, ids: Sequence[int]) -> None:
        for message in self._those(ids):
            if message.state is MessageState.RUNNING and message.turn == turn:
                self._move(message.moved(MessageState.ACCEPTED, attempts=message.attempts - 1))

    def _resume(self) -> tuple[Message, ...]:
        for message in self._those(self.tables.messages.rows):
            if message.state is MessageState.RUNNING:
                self._move(message.moved(MessageState.ACCEPTED))
        return tuple(self._those(sorted(self.tables.messages.rows)))

    def _waiting(self) -> tuple[Message, ...]:
        everything = self._those(sorted(self.tables.messages.rows))
        return tuple(message for message in everything if message.state is MessageState.ACCEPTED)

    def _outbox(self, limit: int, skip: Collection[Address]) -> tuple[Reply, ...]:
        numbers = self.tables.queues.due(limit, skip) if self._works() else []
        return tuple([self.tables.replies.rows[number] for number in numbers])

    def _progress(self, reply: int, parts: int, live: str) -> bool:
        check_words(live)
        row = self.tables.replies.rows.get(reply)
        if row is None or not self._works():
            return False
        self.tables.put(self.tables.replies, reply, replace(row, parts=max(parts, row.parts), live=live))
        return True

    def _sent(self, reply: int, failed: str) -> bool:
        check_words(failed)
        row = self.tables.drop(self.tables.replies, reply) if self._works() else None
        if row is not None and row.note.run:
            delivered(self.tables, row.note.session.tenant, row.note.run, failed)
        return row is not None

    def _works(self) -> bool:
        return self.lease is not None and self.lease.name == CHAT_LEASE and self.holds(self.lease)

    def _those(self, ids: Iterable[int]) -> list[Message]:
        known = self.tables.messages.rows if self._works() else {}
        return [known[number] for number in dict.fromkeys(ids) if number in known]

    def _standing(self, key: SessionKey) -> Standing:
        kept = self.tables.sessions.rows.get(key)
        return Standing() if kept is None else kept.session.standing

    def _move(self, message: Message) -> None:
        self.tables.put(self.tables.messages, message.id, message)

    def _end(self, message: Message) -> None:
        self.tables.drop(self.tables.messages, message.id)
        seen = Seen(message.id, message.state, self.now())
        self.tables.put(self.tables.seen, message.incoming.own_key, seen)
