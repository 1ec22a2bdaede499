"""How the store is asked: domain verbs, each one transaction, each with its promise.

Expected refusals (a duplicate, a message that was stopped meanwhile) are values. A `StoreError` means that the verb
could not be carried out, or that nobody knows whether it was: every verb may be called again after one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from store.records import Incoming, Message, MessageState, Note, Receipt, Reply, SessionKey


class StoreError(Exception):
    """The store could not do it. ``retriable`` tells whether trying again may help."""

    code = "store"

    def __init__(self, message: str, *, retriable: bool = True, **fields: object) -> None:
        super().__init__(message)
        self.retriable = retriable
        self.fields = fields


class MessageStore(Protocol):
    """Inbox and outbox."""

    async def accept(self, batch: Sequence[Incoming]) -> tuple[Receipt, ...]:
        """All of the batch is kept when this returns, in order; what was delivered before leads to its old row."""

    async def begin(self, turn: str, ids: Sequence[int]) -> tuple[Message, ...]:
        """Those of the messages that run in this turn now. Left out is what was stopped or begun by another turn."""

    async def settle(self, turn: str, ids: Sequence[int], state: MessageState, notes: Sequence[Note]) -> bool:
        """Bring the turn's messages to their end and its notes into the outbox, both or neither.

        False, and nothing is written, if none of the messages was still open for this turn: a stop came first.
        An empty turn settles what has never begun.
        """

    async def stop(
        self, session: SessionKey, upto: int, *, sender: str | None = None, only: Sequence[int] | None = None
    ) -> tuple[Message, ...]:
        """Stop the open messages of the session up to that id for ever; returns them as they were. Commands go on.

        ``sender`` and ``only`` narrow it to one person's messages, or to these.
        """

    async def put_back(self, turn: str, ids: Sequence[int]) -> None:
        """What runs in this turn waits again, as if it had not begun: a shutdown costs no attempt."""

    async def resume(self) -> tuple[Message, ...]:
        """After a start: everything open, in order. What was running waits again, its attempt counted."""

    async def outbox(self, limit: int, skip: Collection[SessionKey] = ()) -> tuple[Reply, ...]:
        """What is still to be sent, but for these sessions: urgent replies first, then in order."""

    async def sent(self, reply: int) -> None:
        """The channel has it; it leaves the outbox."""
