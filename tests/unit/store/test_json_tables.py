"""The tables: whatever is changed, undone or read back, an index says exactly what the rows say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from store.files.decode import Kept
from store.files.frames import encode
from store.files.indexes import ByAge, Queues
from store.files.tables import Tables
from store.records import (
    Address,
    ApiToken,
    Beat,
    DeliveryKey,
    Incoming,
    Line,
    MachineSnapshot,
    Message,
    MessageState,
    NewToken,
    Note,
    OwnKey,
    Reading,
    Reply,
    Role,
    Said,
    Seen,
    Session,
    SessionKey,
    Standing,
    WorkerStatus,
)

if TYPE_CHECKING:
    from collections.abc import Callable

NOW = datetime(2026, 3, 1, tzinfo=UTC)

few = st.integers(1, 4)
names = st.sampled_from(["a", "b"])
times = st.integers(0, 3).map(lambda days: NOW + timedelta(days=days))
sessions = st.builds(lambda tenant, chat: SessionKey(tenant, "main", "fake", "bot", chat), names, names)
keys = st.builds(lambda tenant, name: OwnKey(tenant, "fake", "bot", name), names, st.sampled_from("abcd"))


def message(number: int, name: str, session: SessionKey, at: datetime) -> tuple[str, int, Message]:
    """No two that are open have the same key: the verbs see to that."""
    return "message", number, Message(number, Incoming(DeliveryKey(name, "", str(number)), session, "ann", "hi"), at)


def token(tenant: str, name: str, digest: str, at: datetime) -> tuple[str, tuple[str, str], ApiToken]:
    return "token", (tenant, name), ApiToken(NewToken(name, tenant, "name", f"{tenant} {name} {digest}"), at)


def rows() -> st.SearchStrategy[tuple[str, Any, Any]]:
    """A table, a key, and the row that it gets; None for none."""
    said = Said(Role.USER, "hello", {"a": [1, None]})
    messages = st.builds(message, few, names, sessions, times)
    seen = st.builds(Seen, few, st.just(MessageState.DONE), times)
    notes = st.builds(Note, sessions, st.just("text"), st.booleans())
    replies = st.tuples(st.just("reply"), few, st.builds(Reply, few, notes, st.just((1,))))
    kept = st.builds(
        lambda key, trimmed: Kept(Session(key, Standing(), 4, trimmed, NOW), "file", 10, 1, 4),
        sessions,
        st.integers(0, 4),
    )
    lines = st.builds(lambda key, number: ("line", (key, number), Line(number, NOW, said)), sessions, few)
    tokens = st.builds(token, names, names, names, times)
    beats = st.builds(lambda worker, at: Beat(worker, WorkerStatus.IDLE, "", {}, at), names, times)
    machines = st.builds(lambda at: MachineSnapshot(Reading("w"), at), times)
    put = st.one_of(
        messages,
        st.tuples(st.just("seen"), keys, seen),
        replies,
        kept.map(lambda row: ("session", row.session.key, row)),
        lines,
        tokens,
        st.tuples(st.just("beat"), few, beats),
        st.tuples(st.just("machine"), few, machines),
    )
    return st.one_of(put, put, put.map(lambda change: (change[0], change[1], None)))


def told(tables: Tables) -> dict[str, Any]:
    """What the indexes say, in a form in which order counts only where it is promised."""
    return {
        "keys": set(tables.by_key),
        "open": tables.open_in.of,
        "messages of": {owner: set(rows) for owner, rows in tables.messages_of.of.items()},
        "seen of": {owner: set(rows) for owner, rows in tables.seen_of.of.items()},
        "due": tables.queues.due(100, ()),
        "due elsewhere": tables.queues.due(100, [Address("fake", "bot", "a", "")]),
        "heads": tables.queues.heads,
        "replies of": {owner: set(rows) for owner, rows in tables.replies_of.of.items()},
        "sessions": tables.sessions_of.of,
        "texts": tables.by_text,
        "lines": tables.lines_of.of,
        "trimmed": set(tables.mostly_trimmed),
        "digests": set(tables.by_digest),
        "tokens": tables.tokens_of.of,
        "beats": tables.beats_of.of,
        "machines": tables.machines_in_order.of,
    }


def aged(tables: Tables) -> list[list[Any]]:
    """What is old, as a tidying would find it; that empties these indexes, so it comes last."""
    last = NOW + timedelta(days=1)
    ages: list[ByAge[Any]] = [tables.seen_by_age, tables.beats_by_age, tables.machines_by_age]
    return [sorted(age.pop_until(last, 100)) for age in ages]


def rebuilt(tables: Tables) -> Tables:
    """The same rows in tables that have never seen anything else, by way of JSON."""
    again = Tables()
    for table in tables.every.values():
        again.take_in(orjson.loads(encode((table.name, key, row))) for key, row in table.rows.items())
    return again


def same(tables: Tables, expected: dict[str, Any]) -> bool:
    return {name: dict(table.rows) for name, table in tables.every.items()} == expected


def change(tables: Tables, name: str, key: Any, row: Any) -> None:
    table = tables.every[name]
    tables.drop(table, key) if row is None else tables.put(table, key, row)


@settings(max_examples=200, deadline=None)
@given(st.lists(rows(), max_size=12), st.lists(rows(), max_size=12), st.lists(rows(), max_size=6))
def test_indexes_follow_the_rows(
    first: list[tuple[str, Any, Any]], undone: list[tuple[str, Any, Any]], last: list[tuple[str, Any, Any]]
) -> None:
    """Changes, some of them undone, then more: rows and indexes are those of tables that were just read back."""
    tables = Tables()
    for one in first:
        change(tables, *one)
    before = {name: dict(table.rows) for name, table in tables.every.items()}
    tables.log = []
    for one in undone:
        change(tables, *one)
    tables.undo(tables.log)
    assert same(tables, before)
    for one in last:
        change(tables, *one)
    again = rebuilt(tables)
    assert same(again, {name: dict(table.rows) for name, table in tables.every.items()})
    assert told(tables) == told(again)
    assert aged(tables) == aged(again)


def test_the_outbox_looks_at_no_more_than_it_must() -> None:
    """Ten thousand replies for addresses that are skipped cost one look for each address, not for each reply."""
    queues = Queues()
    looks = 0

    class Counted(Address):
        def __hash__(self) -> int:
            nonlocal looks
            looks += 1
            return hash(tuple(self))

    skipped = [Counted("fake", "bot", str(number), "") for number in range(10)]
    for number in range(10_000):
        queues.add(skipped[number % 10], (True, number))
    queues.add(Counted("fake", "bot", "free", ""), (True, 10_000))
    looks = 0
    assert queues.due(5, skipped) == [10_000]
    assert looks < 50


def test_an_age_that_is_passed_over_costs_nothing_later() -> None:
    """A row that was renewed is found at its new time only, and once."""
    at: dict[str, datetime] = {}
    times_of: Callable[[str], datetime | None] = at.get
    ages = ByAge(times_of)
    for day in (0, 1, 2, 2):
        at["key"] = NOW + timedelta(days=day)
        ages.add(at["key"], "key")
    assert ages.pop_until(NOW + timedelta(days=1), 10) == []
    assert ages.pop_until(NOW + timedelta(days=2), 10) == ["key"]
    assert ages.heap == []
