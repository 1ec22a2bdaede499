"""The loads that a store is put under: updates of single rows, messages from beginning to end, every verb by itself."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from time import perf_counter
from typing import TYPE_CHECKING

import orjson
import trio

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

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from store.protocols import MessageStore, Store
    from store.records import Lease, Receipt

YEAR = timedelta(days=365)
AT_ONCE = 1_000


def utc_now() -> datetime:
    return datetime.now(UTC)


def session(number: int) -> SessionKey:
    return SessionKey("default", "main", "bench", "bot", f"chat-{number}")


def message(number: int, chat: int = 0) -> Incoming:
    text = f"message {number}: what shall we do tomorrow, if it rains?"
    return Incoming(DeliveryKey("bench", "bot", str(number)), session(chat), "somebody", text)


async def per_second(callers: int, seconds: float, act: Callable[[int], Awaitable[None]]) -> float:
    """How often ``callers`` tasks together get through ``act``, which is told which of them it is."""
    done = 0
    start = perf_counter()

    async def work(caller: int) -> None:
        nonlocal done
        while perf_counter() - start < seconds:
            await act(caller)
            done += 1

    async with trio.open_nursery() as nursery:
        for caller in range(callers):
            nursery.start_soon(work, caller)
    return done / (perf_counter() - start)


# ── updates ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def fill_sessions(store: Store, rows: int) -> None:
    async with trio.open_nursery() as nursery:
        for number in range(rows):
            nursery.start_soon(store.set_policy, session(number), SessionPolicy(cap=20))


async def updates(store: Store, rows: int, callers: int, seconds: float) -> float:
    """Each update changes one of the rows and is on the disk when it returns."""
    numbers = count()

    async def update(caller: int) -> None:
        number = next(numbers)
        await store.set_policy(session(number % rows), SessionPolicy(cap=1 + number % 1000))

    return await per_second(callers, seconds, update)


class WholeFile:
    """What a careful program without a journal does: every update writes all rows to a new file and renames it."""

    def __init__(self, path: Path, rows: int) -> None:
        self.path = path
        self.rows = {
            str(session(number)): {
                "policy": {"mode": None, "cap": 20, "drop": None, "debounce_ms": None, "max_concurrent": None},
                "context": 0.0,
                "lines": 0,
                "trimmed": 0,
                "updated_at": "2026-03-01T12:00:00.000000Z",
            }
            for number in range(rows)
        }
        self.keys = list(self.rows)
        self.turn = trio.Lock()

    async def update(self, number: int) -> None:
        async with self.turn:
            key = self.keys[number % len(self.keys)]
            self.rows[key] = {**self.rows[key], "lines": number}
            await trio.to_thread.run_sync(self._write)

    def _write(self) -> None:
        temporary = self.path.with_suffix(".tmp")
        with temporary.open("wb") as file:
            file.write(orjson.dumps(self.rows))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.path)
        directory = os.open(self.path.parent, os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)


async def rewrites(path: Path, rows: int, callers: int, seconds: float) -> float:
    whole, numbers = WholeFile(path, rows), count()
    return await per_second(callers, seconds, lambda caller: whole.update(next(numbers)))


# ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def chat_lease(store: Store) -> Lease:
    lease = await store.acquire(CHAT_LEASE, "bench", YEAR)
    assert lease is not None
    return lease


@dataclass(slots=True)
class Cycles:
    """Messages from beginning to end, each verb timed."""

    chat: MessageStore
    numbers: count[int] = field(default_factory=count)
    taken: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    async def one(self, caller: int) -> None:
        number = next(self.numbers)
        start = perf_counter()
        (receipt,) = await self.chat.accept([message(number, caller)]) or ()
        accepted = perf_counter()
        turn = f"turn-{number}"
        await self.chat.begin(turn, [receipt.id])
        begun = perf_counter()
        said = [Said(Role.USER, "a question"), Said(Role.ASSISTANT, "an answer")]
        settled = await self.chat.settle(
            turn, [receipt.id], MessageState.DONE, [Note(session(caller), "an answer")], said, 0.1
        )
        end = perf_counter()
        assert settled
        for verb, took in (("accept", accepted - start), ("begin", begun - accepted), ("settle", end - begun)):
            self.taken[verb].append(took)


async def fill_messages(store: Store, rows: int, lease: Lease) -> None:
    """So many messages that have ended: what a busy week leaves behind."""
    chat = store.messages(lease)
    for first in range(0, rows, AT_ONCE):
        receipts = await chat.accept([message(-1 - number) for number in range(first, min(first + AT_ONCE, rows))])
        assert receipts is not None
        await chat.settle("", [receipt.id for receipt in receipts], MessageState.DROPPED, [])


# ── every verb by itself ─────────────────────────────────────────────────────────────────────────────────────────────


class Verbs:
    """Each verb once, on a store in which there is something for it to do."""

    def __init__(self, store: Store, lease: Lease) -> None:
        self.store = store
        self.lease = lease
        self.chat = store.messages(lease)
        self.numbers = count(10_000_000)

    async def time(self, times: int) -> dict[str, list[float]]:
        taken: defaultdict[str, list[float]] = defaultdict(list)
        await self.store.add_token(NewToken("bench", "default", "", "digest"))
        for _ in range(times):
            for verb, act in await self._prepared():
                start = perf_counter()
                await act()
                taken[verb].append(perf_counter() - start)
        return dict(taken)

    async def _accepted(self) -> Receipt:
        (receipt,) = await self.chat.accept([message(next(self.numbers))]) or ()
        return receipt

    async def _prepared(self) -> list[tuple[str, Callable[[], Awaitable[object]]]]:
        """Where a verb ends something, there is something of its own for it to end."""
        runs, waits, settles, replies = [(await self._accepted()).id for _ in range(4)]
        await self.chat.begin("runs", [runs])
        await self.chat.begin("settles", [settles])
        await self.chat.settle("", [replies], MessageState.FAILED, [Note(session(0), "sorry")])
        (reply,) = await self.chat.outbox(1)
        chat, store, key, said = self.chat, self.store, session(0), [Said(Role.USER, "hello")]
        batch, cursor = [message(next(self.numbers))], Cursor("bench", "bot", next(self.numbers))
        return [
            ("accept", lambda: chat.accept(batch, cursor)),
            ("begin", lambda: chat.begin("turn", [waits])),
            ("settle", lambda: chat.settle("settles", [settles], MessageState.DONE, [Note(key, "yes")], said, 0.1)),
            ("put_back", lambda: chat.put_back("runs", [runs])),
            ("waiting", chat.waiting),
            ("stop", lambda: chat.stop(key, 1 << 60)),
            ("outbox", lambda: chat.outbox(10)),
            ("progress", lambda: chat.progress(reply.id, 1, "live")),
            ("sent", lambda: chat.sent(reply.id)),
            ("standings", lambda: chat.standings([key])),
            ("set_policy", lambda: store.set_policy(key, SessionPolicy(cap=3))),
            ("remember", lambda: store.remember(key, said)),
            ("newest", lambda: store.newest(key, 20)),
            ("token_for", lambda: store.token_for("digest")),
            ("beat", lambda: store.beat("bench", WorkerStatus.BUSY)),
            ("record", lambda: store.record(Reading("bench"))),
            ("renew", lambda: store.renew(self.lease, YEAR)),
            ("tidy", store.tidy),
        ]
