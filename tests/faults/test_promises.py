"""The promises themselves: a faithful store keeps them however it is interrupted, one with a fault is found out."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import count
from random import Random
from typing import TYPE_CHECKING, TypeVar

import pytest
import trio

from gateway.clock import utc_now
from store.memory import MemoryStore
from store.records import DEFAULT_TENANT, Message, MessageState, SessionPolicy
from tests.faults import told
from tests.faults.found import look
from tests.faults.hard_work import Life
from tests.faults.promises import Promises
from tests.faults.promises.tenants import touched

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

T = TypeVar("T")


class Interrupted(told.Log):
    """A log whose life is over after so many lines, in the middle of everything."""

    __slots__ = ("left", "over")

    def __init__(self, out: int, left: int, over: trio.CancelScope) -> None:
        super().__init__(out)
        self.left, self.over = left, over

    async def ask(
        self, verb: str, call: Callable[[], Awaitable[T]], tell: Callable[[T], object] = bool, **fields: object
    ) -> T:
        """An answer that takes a moment to arrive: the life may be over before it does."""

        async def late() -> T:
            answer = await call()
            await trio.lowlevel.checkpoint()
            return answer

        return await super().ask(verb, late, tell, **fields)

    def write(self, line: dict[str, object]) -> None:
        if self.over.cancel_called:
            return
        super().write(line)
        self.left -= 1
        if self.left <= 0:
            self.over.cancel()


async def lives(store: MemoryStore, place: Path, crash: Callable[[MemoryStore], None]) -> list[str]:
    """What is first broken in a few lives that end in a cancel and a crash, the nearest thing to a kill in memory."""
    promises, random = Promises(), Random(1)
    for number in range(12):
        log = place / f"life-{number}.jsonl"
        out = os.open(log, os.O_CREAT | os.O_WRONLY)
        with trio.CancelScope() as over:
            written = Interrupted(out, random.randrange(1, 1200), over)
            await Life(store, written, Random(number), number, "me").live()
        os.close(out)
        crash(store)
        heard = told.read(number, log.read_bytes().splitlines(keepends=True))
        found = await look(store, "me", sorted(promises.names(heard, random, 50)), touched(heard))
        if broken := list(promises.judge(heard, found)):
            return broken
    return []


def nothing(store: MemoryStore) -> None:
    """A crash that costs nothing."""


async def test_a_faithful_store_breaks_no_promise(tmp_path: Path) -> None:
    """Whatever the work and wherever it is cut off, the plainest store has nothing to answer for."""
    assert await lives(MemoryStore(utc_now), tmp_path, nothing) == []


def loses_a_message(store: MemoryStore) -> None:
    store.open.pop(min(store.open, default=0), None)


def loses_a_key(store: MemoryStore) -> None:
    """What has ended would be taken again when it is delivered again."""
    for key in list(store.seen)[-1:]:
        del store.seen[key]


def loses_a_reply(store: MemoryStore) -> None:
    store.outbox.pop(max(store.outbox, default=0), None)


def brings_a_reply_twice(store: MemoryStore) -> None:
    for reply in list(store.outbox.values())[-1:]:
        number = next(store.ids)
        store.outbox[number] = replace(reply, id=number)


def forgets_parts(store: MemoryStore) -> None:
    store.outbox = {number: replace(reply, parts=0) for number, reply in store.outbox.items()}


def loses_the_last_line(store: MemoryStore) -> None:
    for key, kept in store.kept.items():
        if store.said.get(key):
            store.said[key].pop()
            store.kept[key] = replace(kept, lines=kept.lines - 1)


def brings_lines_twice(store: MemoryStore) -> None:
    key = told.SESSIONS[0]
    for line in store.said.get(key, [])[-1:]:
        store.write_down(store.kept[key], [line.said])


def swaps_lines(store: MemoryStore) -> None:
    for lines in store.said.values():
        if len(lines) > 8:
            first, last = lines[2], lines[-1]
            lines[2], lines[-1] = replace(first, said=last.said), replace(last, said=first.said)


def turns_a_cursor_back(store: MemoryStore) -> None:
    store.cursors = {place: position - 1 for place, position in store.cursors.items()}


def opens_what_was_stopped(store: MemoryStore) -> None:
    for key, seen in list(store.seen.items()):
        if seen.state is MessageState.STOPPED:
            del store.seen[key]
            store.open[seen.id] = Message(seen.id, told.incoming(key.external_id), store.now())
            return


def opens_what_was_settled(store: MemoryStore) -> None:
    """The reply is there and the message is not at its end."""
    for key, seen in list(store.seen.items())[-1:]:
        del store.seen[key]
        store.open[seen.id] = Message(seen.id, told.incoming(key.external_id), store.now())


def counts_an_attempt_too_many(store: MemoryStore) -> None:
    store.open = {number: replace(one, attempts=one.attempts + 1) for number, one in store.open.items()}


def numbers_from_the_start(store: MemoryStore) -> None:
    store.ids = count(1_000)


def loses_policies(store: MemoryStore) -> None:
    for key in told.SESSIONS:
        if key in store.kept:
            standing = replace(store.kept[key].standing, policy=SessionPolicy())
            store.kept[key] = replace(store.kept[key], standing=standing)


def loses_a_tenant(store: MemoryStore) -> None:
    for tenant in sorted(store.people.keys() - {DEFAULT_TENANT})[-1:]:
        del store.people[tenant]


def opens_a_revoked_token(store: MemoryStore) -> None:
    store.keys = {key: replace(token, revoked_at=None) for key, token in store.keys.items()}


def forgets_who_holds_the_lease(store: MemoryStore) -> None:
    store.leases.clear()


def forgets_a_worker(store: MemoryStore) -> None:
    store.crew.clear()


@pytest.mark.parametrize(
    "crash",
    [
        loses_a_message,
        loses_a_key,
        loses_a_reply,
        brings_a_reply_twice,
        forgets_parts,
        loses_the_last_line,
        brings_lines_twice,
        swaps_lines,
        turns_a_cursor_back,
        opens_what_was_stopped,
        opens_what_was_settled,
        counts_an_attempt_too_many,
        numbers_from_the_start,
        loses_policies,
        loses_a_tenant,
        opens_a_revoked_token,
        forgets_who_holds_the_lease,
        forgets_a_worker,
    ],
    ids=lambda crash: crash.__name__,
)
async def test_a_store_that_breaks_a_promise_is_found_out(crash: Callable[[MemoryStore], None], tmp_path: Path) -> None:
    """Each of these faults is seen within a few lives."""
    assert await lives(MemoryStore(utc_now), tmp_path, crash)
