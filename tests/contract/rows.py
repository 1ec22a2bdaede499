"""Short ways to say what was sent, by whom and where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from store.records import Cursor, DeliveryKey, Incoming, Message, MessageState, Note, Receipt, SessionKey

if TYPE_CHECKING:
    from store.protocols import MessageStore

HERE = SessionKey("default", "main", "fake", "bot", "here")
THERE = SessionKey("default", "main", "fake", "bot", "there")
NOTE = Note(HERE, "the answer")


def sent(text: str, session: SessionKey = HERE, *, sender: str = "ann", group: bool = False) -> Incoming:
    """One delivery; its text names it, so the same text is the same delivery."""
    return Incoming(DeliveryKey("fake", "bot", text), session, sender, text, group=group)


async def delivered(store: MessageStore, *batch: Incoming, cursor: Cursor | None = None) -> tuple[Receipt, ...]:
    """Hand in a batch that is taken."""
    receipts = await store.accept(batch, cursor)
    assert receipts is not None
    return receipts


async def accepted(store: MessageStore, *texts: str, session: SessionKey = HERE, sender: str = "ann") -> list[int]:
    receipts = await delivered(store, *(sent(text, session, sender=sender) for text in texts))
    return [receipt.id for receipt in receipts]


async def stopped(store: MessageStore, upto: int, **narrowed: Any) -> tuple[int, ...]:
    """Stop here; the ids of what that stopped."""
    return tuple(message.id for message in await store.stop(HERE, upto, **narrowed))


async def running(store: MessageStore, *texts: str, turn: str = "turn", session: SessionKey = HERE) -> list[int]:
    ids = await accepted(store, *texts, session=session)
    await store.begin(turn, ids)
    return ids


async def receipt(store: MessageStore, text: str) -> Receipt:
    """What a second delivery of that text is answered with: the way to look at a row without changing it."""
    (only,) = await delivered(store, sent(text))
    assert not only.fresh
    return only


async def state(store: MessageStore, text: str) -> MessageState:
    return (await receipt(store, text)).state


async def row(store: MessageStore, text: str) -> Message:
    found = (await receipt(store, text)).message
    assert found is not None
    return found


async def waiting_replies(store: MessageStore) -> list[str]:
    return [reply.note.text for reply in await store.outbox(1000)]
