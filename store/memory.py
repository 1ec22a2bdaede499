"""The store without a disk: the plainest implementation of every verb, for a first chat and for fast tests.

Each verb does its work between two checkpoints, so it is atomic. What has ended shrinks to its delivery key, and keys
are forgotten after a week: a long chat does not grow.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import trio

from store.records import DeliveryKey, Incoming, Message, MessageState, Note, Receipt, Reply, SessionKey

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

REMEMBER_KEYS = timedelta(days=7)


class Seen(NamedTuple):
    id: int
    state: MessageState
    at: datetime


@dataclass(slots=True)
class MemoryStore:
    now: Callable[[], datetime]
    _open: dict[int, Message] = field(default_factory=dict)
    _seen: dict[DeliveryKey, Seen] = field(default_factory=dict)
    _ended: dict[DeliveryKey, Seen] = field(default_factory=dict)  # those of them that have ended, oldest first
    _outbox: dict[int, Reply] = field(default_factory=dict)
    _ids: Iterator[int] = field(default_factory=lambda: count(1))

    async def accept(self, batch: Sequence[Incoming]) -> tuple[Receipt, ...]:
        await trio.lowlevel.checkpoint()
        self._forget_old_keys()
        return tuple([self._accept_one(incoming) for incoming in batch])

    async def begin(self, turn: str, ids: Sequence[int]) -> tuple[Message, ...]:
        await trio.lowlevel.checkpoint()
        for message in self._those(ids):
            if message.state is MessageState.ACCEPTED:
                attempts = message.attempts + 1
                self._open[message.id] = message.moved(MessageState.RUNNING, turn=turn, attempts=attempts)
        return tuple(message for message in self._those(ids) if message.turn == turn)

    async def settle(self, turn: str, ids: Sequence[int], state: MessageState, notes: Sequence[Note]) -> bool:
        await trio.lowlevel.checkpoint()
        mine = [message for message in self._those(ids) if message.turn == turn]
        if not mine:
            return False
        for message in mine:
            self._end(message.moved(state))
        for note in notes:
            reply = Reply(next(self._ids), note, tuple(message.id for message in mine))
            self._outbox[reply.id] = reply
        return True

    async def stop(
        self, session: SessionKey, upto: int, *, sender: str | None = None, only: Sequence[int] | None = None
    ) -> tuple[Message, ...]:
        await trio.lowlevel.checkpoint()
        candidates = list(self._open.values()) if only is None else self._those(only)
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

    async def put_back(self, turn: str, ids: Sequence[int]) -> None:
        await trio.lowlevel.checkpoint()
        for message in self._those(ids):
            if message.turn == turn:
                self._open[message.id] = message.moved(MessageState.ACCEPTED, attempts=message.attempts - 1)

    async def resume(self) -> tuple[Message, ...]:
        await trio.lowlevel.checkpoint()
        for message in list(self._open.values()):
            if message.state is MessageState.RUNNING:
                self._open[message.id] = message.moved(MessageState.ACCEPTED)
        return tuple(sorted(self._open.values(), key=lambda message: message.id))

    async def outbox(self, limit: int, skip: Collection[SessionKey] = ()) -> tuple[Reply, ...]:
        await trio.lowlevel.checkpoint()
        due = [reply for reply in self._outbox.values() if reply.note.session not in skip]
        ordered = sorted(due, key=lambda reply: (not reply.note.urgent, reply.id))
        return tuple(ordered[:limit])

    async def sent(self, reply: int) -> None:
        await trio.lowlevel.checkpoint()
        self._outbox.pop(reply, None)

    def _accept_one(self, incoming: Incoming) -> Receipt:
        seen = self._seen.get(incoming.key)
        if seen is not None:
            row = self._open.get(seen.id)
            return Receipt(seen.id, seen.state if row is None else row.state, row, fresh=False)
        message = Message(next(self._ids), incoming, self.now())
        self._open[message.id] = message
        self._seen[incoming.key] = Seen(message.id, message.state, message.accepted_at)
        return Receipt(message.id, message.state, message, fresh=True)

    def _those(self, ids: Iterable[int]) -> list[Message]:
        return [self._open[number] for number in ids if number in self._open]

    def _end(self, message: Message) -> None:
        del self._open[message.id]
        key = message.incoming.key
        self._seen[key] = self._ended[key] = Seen(message.id, message.state, self.now())

    def _forget_old_keys(self) -> None:
        oldest = self.now() - REMEMBER_KEYS
        while self._ended:
            key, seen = next(iter(self._ended.items()))
            if seen.at > oldest:
                return
            del self._seen[key], self._ended[key]
