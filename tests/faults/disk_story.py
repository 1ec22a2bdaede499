"""A short life of a store in which every table is written, told step by step, for disks that fail on the way.

Each step is one verb, so it is carried out or not. Both the model and the files number from one, so a step may name the
ids that the steps before it have led to.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from store.records import (
    CHAT_LEASE,
    Cursor,
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
from tests.contract.rows import HERE, THERE, sent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from store.files import Look
    from store.protocols import MessageStore, Store

    Step = Callable[[Store, MessageStore], Awaitable[object]]

ELSEWHERE = SessionKey("acme", "main", "fake", "bot", "elsewhere")
LONG = timedelta(days=365)
SAID = (Said(Role.USER, "how are you?"), Said(Role.ASSISTANT, "well", {"tokens": 3}))

STORY: tuple[Step, ...] = (
    lambda whole, _: whole.create_tenant("acme", "Acme", "Europe/Berlin"),
    lambda whole, _: whole.add_token(
        NewToken("t1", "acme", "first", "0123", ("read",), datetime(2027, 1, 1, tzinfo=UTC))
    ),
    lambda _, chat: chat.accept([sent("a"), sent("b"), sent("c", THERE)], Cursor("fake", "bot", 7)),  # 1, 2, 3
    lambda _, chat: chat.begin("turn 1", [1, 2]),
    lambda whole, _: whole.set_policy(HERE, SessionPolicy(mode="collect", cap=3)),
    lambda _, chat: chat.settle("turn 1", [1], MessageState.DONE, [Note(HERE, "answer")], SAID, 0.25),  # reply 4
    lambda _, chat: chat.stop(HERE, 2),
    lambda _, chat: chat.accept([sent("a"), sent("d", ELSEWHERE), sent("é\n\u2028", THERE)]),  # 5, 6
    lambda _, chat: chat.progress(4, 1, "live"),
    lambda whole, _: whole.remember(ELSEWHERE, [Said(Role.SYSTEM, f"line {number}") for number in range(20)]),
    lambda whole, _: whole.beat("w1", WorkerStatus.BUSY, run="r", context={"depth": 2}),
    lambda whole, _: whole.record(Reading("w1", 1, 2, 3.5, None, {"load": [1, 2]})),
    lambda whole, _: whole.token_for("0123"),
    lambda _, chat: chat.begin("turn 2", [3]),
    lambda _, chat: chat.put_back("turn 2", [3]),
    lambda _, chat: chat.settle("", [3], MessageState.FAILED, [Note(THERE, "sorry", urgent=True)]),  # reply 7
    lambda _, chat: chat.sent(4),
    lambda whole, _: whole.trim(ELSEWHERE, 15),
    lambda whole, _: whole.remember(HERE, SAID),
    lambda whole, _: whole.leave("w1"),
    lambda whole, _: whole.forget(HERE),
    lambda whole, _: whole.remember(HERE, SAID),
    lambda _, chat: chat.accept([], Cursor("fake", "other", 1)),
    lambda whole, _: whole.delete_tenant("acme"),
    lambda _, chat: chat.resume(),
)


async def chat_of(whole: Store) -> MessageStore:
    lease = await whole.acquire(CHAT_LEASE, "story", LONG)
    assert lease is not None
    return whole.messages(lease)


def content(look: Look) -> dict[str, Any]:
    """What a directory says, however it is spread over its files."""
    tables = look.tables
    told = {
        table.name: [(key, table.rows[key]) for key in sorted(table.rows, key=repr)]
        for table in tables.every.values()
        if table.name not in ("session", "line", "trash", "lease", "meta")
    }
    told["session"] = [(text, tables.sessions.rows[tables.by_text[text]].session) for text in sorted(tables.by_text)]
    told["line"] = [(text, look.lines(tables.by_text[text])) for text in sorted(tables.by_text)]
    return {name: [row for _, row in rows] if name in ("beat", "machine") else rows for name, rows in told.items()}
