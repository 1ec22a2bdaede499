"""A process that wants the chat lease and works under it: `python -m tests.postgres.contender DSN NAME`.

It prints a line of JSON for every grant, and one with the answers to every verb when it finds its lease gone.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import TYPE_CHECKING

import trio

from store.postgres import open_postgres
from store.records import CHAT_LEASE, Cursor, DeliveryKey, Incoming, MessageState, Note, SessionKey
from tests.faults.talking import say

if TYPE_CHECKING:
    from store.postgres import PostgresStore
    from store.records import Lease

SPAN = timedelta(seconds=1)
HERE = SessionKey("default", "main", "fake", "bot", "here")


def delivery(name: str) -> Incoming:
    return Incoming(DeliveryKey("fake", "bot", name), HERE, "ann", name)


async def main(dsn: str, name: str) -> None:
    async with open_postgres(dsn) as store:
        while True:
            lease = await store.acquire(CHAT_LEASE, name, SPAN)
            if lease is None:
                await trio.sleep(0.05)
            else:
                await hold(store, lease)


async def hold(store: PostgresStore, lease: Lease) -> None:
    """Work, then renew until that is refused; then try everything once more."""
    messages = store.messages(lease)
    receipts = await messages.accept([delivery(f"{lease.token} ends"), delivery(f"{lease.token} runs")])
    assert receipts is not None
    ends, runs = (receipt.id for receipt in receipts)
    await messages.begin("turn", [ends, runs])
    await messages.settle("turn", [ends], MessageState.DONE, [Note(HERE, "an answer")])
    reply = (await messages.outbox(1))[0].id
    say(held=lease.token)
    renewed: Lease | None = lease
    while renewed is not None:
        await trio.sleep(0.1)
        renewed = await store.renew(lease, SPAN)
    say(token=lease.token, refused=await try_everything(store, lease, runs, reply))


async def try_everything(store: PostgresStore, lease: Lease, message: int, reply: int) -> dict[str, object]:
    messages = store.messages(lease)
    await messages.put_back("turn", [message])
    return {
        "accept": await messages.accept([delivery(f"{lease.token} late")], Cursor("fake", "bot", 10**6 + lease.token)),
        "cursor": await messages.cursor("fake", "bot"),
        "begin": await messages.begin("late", [message]),
        "settle": await messages.settle("turn", [message], MessageState.DONE, [Note(HERE, "too late")]),
        "stop": await messages.stop(HERE, message),
        "resume": await messages.resume(),
        "waiting": await messages.waiting(),
        "outbox": await messages.outbox(10),
        "progress": await messages.progress(reply, 5, "late"),
        "sent": await messages.sent(reply),
        "renew": await store.renew(lease, SPAN),
        "release": await store.release(lease),
    }


if __name__ == "__main__":
    trio.run(main, sys.argv[1], sys.argv[2])
