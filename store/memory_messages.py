"""Inbox and outbox of the store without a disk."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import trio

from store.records import CHAT_LEASE, REMEMBER_KEYS, Message, MessageState, Receipt, Reply, Seen, Standing
from store.rules import at_most, check_end, check_figure, check_words, copied

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from store.memory import MemoryStore
    from store.records import Address, Cursor, Incoming, Lease, Note, OwnKey, Said, SessionKey


@dataclass(frozen=True, slots=True)
class MemoryMessages:
    whole: MemoryStore
    lease: Lease | None

    async def accept(self, batch: Sequence[Incoming], cursor: Cursor | None = None) -> tuple[Receipt, ...] | None:
        await trio.lowlevel.checkpoint()
        if cursor is not None:
            if not self._works():
                return None
            check_words(cursor.channel, cursor.account)
        self.whole.check_tenants(incoming.session for incoming in batch)
        check_words(*(text for one in batch for text in (*one.key, one.sender, one.text)))
        if cursor is not None:
            place = cursor.channel, cursor.account
            self.whole.cursors[place] = max(cursor.position, self.whole.cursors.get(place, cursor.position))
        return tuple([self._accept_one(incoming) for incoming in batch])

    async def cursor(self, channel: str, account: str) -> int | None:
        await trio.lowlevel.checkpoint()
        return self.whole.cursors.get((channel, account)) if self._works() else None

    async def begin(self, turn: str, ids: Sequence[int]) -> tuple[Message, ...]:
        await trio.lowlevel.checkpoint()
        check_words(turn)
        for message in self._those(ids):
            if message.state is MessageState.ACCEPTED:
                attempts = message.attempts + 1
                self.whole.open[message.id] = message.moved(MessageState.RUNNING, turn=turn, attempts=attempts)
        return tuple(message for message in self._those(ids) if message.turn == turn)

    async def settle(
        self,
        turn: str,
        ids: Sequence[int],
        state: MessageState,
        notes: Sequence[Note],
        said: Sequence[Said] = (),
        context: float | None = None,
    ) -> bool:
        await trio.lowlevel.checkpoint()
        check_end(state)
        check_figure(context)
        mine = [message for message in self._those(ids) if message.turn == turn]
        if not mine:
            return False
        ended = [message.moved(state) for message in mine]
        self.whole.check_tenants(note.session for note in notes)
        check_words(*(note.text for note in notes))
        lines = copied(said)
        for message in ended:
            self._end(message)
        for note in notes:
            reply = Reply(next(self.whole.ids), note, tuple(message.id for message in mine))
            self.whole.outbox[reply.id] = reply
        if lines or context is not None:
            kept = self.whole.keep(mine[0].session)
            figure = kept.standing.context if context is None else context
            self.whole.write_down(replace(kept, standing=replace(kept.standing, context=figure)), lines)
        return True

    async def stop(
        self, session: SessionKey, upto: int, *, sender: str | None = None, only: Sequence[int] | None = None
    ) -> tuple[Message, ...]:
        await trio.lowlevel.checkpoint()
        candidates = self._those(self.whole.open if only is None else only)
        stopped = [
            message
            for message in sorted(candidates, key=lambda message: message.id)
            if message.session == session
            and message.id <= upto
            and sender in (None, message.incoming.sender)
            and not message.incoming.control
        ]
        for message in stopped:
            self._end(message.moved(MessageState.STOPPED))
        return tuple(stopped)

    async def put_back(self, turn: str, ids: Sequence[int]) -> None:
        await trio.lowlevel.checkpoint()
        for message in self._those(ids):
            if message.state is MessageState.RUNNING and message.turn == turn:
                self.whole.open[message.id] = message.moved(MessageState.ACCEPTED, attempts=message.attempts - 1)

    async def resume(self) -> tuple[Message, ...]:
        await trio.lowlevel.checkpoint()
        for message in self._those(self.whole.open):
            if message.state is MessageState.RUNNING:
                self.whole.open[message.id] = message.moved(MessageState.ACCEPTED)
        return tuple(sorted(self._those(self.whole.open), key=lambda message: message.id))

    async def waiting(self) -> tuple[Message, ...]:
        await trio.lowlevel.checkpoint()
        waiting = [one for one in self._those(self.whole.open) if one.state is MessageState.ACCEPTED]
        return tuple(sorted(waiting, key=lambda message: message.id))

    async def standings(self, sessions: Collection[SessionKey]) -> Mapping[SessionKey, Standing]:
        await trio.lowlevel.checkpoint()
        return {key: self._standing(key) for key in sessions}

    async def states(self, keys: Collection[OwnKey]) -> Mapping[OwnKey, MessageState]:
        await trio.lowlevel.checkpoint()
        running = {message.incoming.own_key: message.state for message in self.whole.open.values()}
        found = {key: running.get(key) or self._ended(key) for key in keys}
        return {key: state for key, state in found.items() if state is not None}

    async def outbox(self, limit: int, skip: Collection[Address] = ()) -> tuple[Reply, ...]:
        await trio.lowlevel.checkpoint()
        replies = self.whole.outbox.values() if self._works() else ()
        due = [reply for reply in replies if reply.note.session.address not in skip]
        ordered = sorted(due, key=lambda reply: (not reply.note.urgent, reply.id))
        return tuple(ordered[: at_most(limit)])

    async def progress(self, reply: int, parts: int, live: str) -> bool:
        await trio.lowlevel.checkpoint()
        check_words(live)
        row = self.whole.outbox.get(reply)
        if row is None or not self._works():
            return False
        self.whole.outbox[reply] = replace(row, parts=max(parts, row.parts), live=live)
        return True

    async def sent(self, reply: int, *, failed: str = "") -> bool:
        await trio.lowlevel.checkpoint()
        check_words(failed)
        row = self.whole.outbox.pop(reply, None) if self._works() else None
        if row is not None and row.note.run:
            self.whole.cron.delivered(row.note.session.tenant, row.note.run, failed)
        return row is not None

    def _works(self) -> bool:
        return self.lease is not None and self.lease.name == CHAT_LEASE and self.whole.holds(self.lease)

    def _those(self, ids: Iterable[int]) -> list[Message]:
        known = self.whole.open if self._works() else {}
        return [known[number] for number in dict.fromkeys(ids) if number in known]

    def _standing(self, key: SessionKey) -> Standing:
        kept = self.whole.kept.get(key)
        return Standing() if kept is None else kept.standing

    def _accept_one(self, incoming: Incoming) -> Receipt:
        """One delivery; the key of an open message is never forgotten, that of an ended one after a week."""
        whole, key, standing = self.whole, incoming.own_key, self._standing(incoming.session)
        for message in whole.open.values():
            if message.incoming.own_key == key:
                return Receipt(message.id, message.state, message, fresh=False, standing=standing)
        seen = whole.seen.get(key)
        if seen is not None and seen.at > whole.now() - REMEMBER_KEYS:
            return Receipt(seen.id, seen.state, None, fresh=False, standing=standing)
        whole.seen.pop(key, None)
        message = Message(next(whole.ids), incoming, whole.now())
        whole.open[message.id] = message
        return Receipt(message.id, message.state, message, fresh=True, standing=standing)

    def _ended(self, key: OwnKey) -> MessageState | None:
        seen = self.whole.seen.get(key)
        return None if seen is None or seen.at <= self.whole.now() - REMEMBER_KEYS else seen.state

    def _end(self, message: Message) -> None:
        del self.whole.open[message.id]
        self.whole.seen[message.incoming.own_key] = Seen(message.id, message.state, self.whole.now())
