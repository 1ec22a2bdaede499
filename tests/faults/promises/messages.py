"""The inbox: what was accepted is there once, and is in the very state that the verbs about it have left.

A message is worked on by one task at a time, and only stops come in between: so its state, turn and attempts are known
exactly but for the last verb, which was perhaps not told.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from store.records import MessageState
from tests.faults.promises.replies import rising
from tests.faults.told import ACCOUNTS, Ask, Round, sender_of, session_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from store.records import Receipt
    from tests.faults.found import Found


@dataclass(frozen=True, slots=True)
class Row:
    id: int
    state: MessageState
    attempts: int = 0
    turn: str = ""


def row_of(receipt: Receipt) -> Row:
    if receipt.message is None:
        return Row(receipt.id, receipt.state)
    return Row(receipt.id, receipt.state, receipt.message.attempts, receipt.message.turn)


class Messages:
    def __init__(self) -> None:
        self.known: dict[str, Row] = {}
        self.ends: dict[str, MessageState] = {}
        self.ids: dict[str, int] = {}
        self.positions: dict[str, int] = {}
        self.highest = 0

    def names(self, heard: Round, random: Random, some: int) -> set[str]:
        asked = {name for ask in heard.of("accept") for name in ask.fields["names"]}
        old = sorted(self.ends)
        return asked | self.known.keys() | set(random.sample(old, min(some, len(old))))

    def judge(self, heard: Round, found: Found, settled: dict[str, tuple[int, ...]]) -> Iterator[str]:
        rows = {name: row_of(receipt) for name, receipt in found.receipts.items()}
        fresh = {name for name, receipt in found.receipts.items() if receipt.fresh}
        told = dict(self.ids)
        yield from self.receipts(heard, told)
        yield from self.resumed(heard, rows)
        for name in told.keys() & rows.keys():
            if name in fresh:
                yield f"message {name} was accepted and is lost"
            elif rows[name].id != told[name]:
                yield f"message {name} had id {told[name]} and has {rows[name].id}"
        for account in ACCOUNTS:
            yield from self.batches(heard, found, account, fresh)
        yield from self.looked_at(heard, found, rows, fresh)
        yield from self.states(heard, rows, settled)
        yield from self.numbers(heard, found)
        self.adopt(rows)

    # ── acceptance ───────────────────────────────────────────────────────────────────────────────────────────────────

    def receipts(self, heard: Round, told: dict[str, int]) -> Iterator[str]:
        """One delivery makes the row, all others lead to it."""
        for ask in sorted(heard.told("accept"), key=lambda ask: ask.told):
            for name, (number, _, _) in zip(ask.fields["names"], ask.answer, strict=True):
                if told.setdefault(name, number) != number:
                    yield f"message {name} was told to be {told[name]} and then {number}"
        made: dict[str, int] = dict.fromkeys(self.ids, 1)
        for ask in heard.told("accept"):
            for name, (_, _, fresh) in zip(ask.fields["names"], ask.answer, strict=True):
                made[name] = made.get(name, 0) + fresh
                if made[name] > 1:
                    yield f"message {name} was made twice"

    def batches(self, heard: Round, found: Found, account: str, fresh: set[str]) -> Iterator[str]:
        """A batch and its cursor are there together, or neither is."""
        asks = [ask for ask in heard.of("accept") if ask.fields["account"] == account]
        told = max([self.positions.get(account, 0), *(ask.fields["position"] for ask in asks if not ask.open)])
        now = found.cursors[account] or 0
        for ask in (ask for ask in asks if ask.open):
            others = {name for one in heard.of("accept") if one is not ask for name in one.fields["names"]}
            alone = set(ask.fields["names"]) - others - self.ids.keys()
            there = {name not in fresh for name in alone} | {now == ask.fields["position"]}
            if len(there) > 1:
                yield f"half of a batch is there: {ask.fields}, cursor at {now}, missing {alone & fresh}"
            told = now if now == ask.fields["position"] else told
        if now != told:
            yield f"the cursor of {account} is at {now}, expected {told}"
        self.positions[account] = now

    def looked_at(self, heard: Round, found: Found, rows: dict[str, Row], fresh: set[str]) -> Iterator[str]:
        """What waits is what the single looks show, in order; what a listing has shown is there."""
        waiting = [message.incoming.key.external_id for message in found.waiting]
        expected = sorted(
            (name for name, row in rows.items() if row.state is MessageState.ACCEPTED and name not in fresh),
            key=lambda name: rows[name].id,
        )
        if waiting != expected:
            yield f"waiting: {waiting}, expected {expected}"
        ids = {row.id for name, row in rows.items() if name not in fresh}
        for ask in heard.told("waiting"):
            if missing := set(ask.answer) - ids:
                yield f"messages {missing} were listed as waiting and are lost"

    def resumed(self, heard: Round, rows: dict[str, Row]) -> Iterator[str]:
        """A new life takes up everything that was open, in order, with its attempts: all of it or nothing."""
        ran = {name for name, row in self.known.items() if row.state is MessageState.RUNNING}
        if all(ask.open for ask in heard.of("resume")) and len({rows[name].state for name in ran}) > 1:
            yield f"half was taken up again: {[rows[name] for name in sorted(ran)]}"
        for ask in heard.told("resume"):
            left = sorted(self.known.items(), key=lambda item: item[1].id)
            expected = [[name, row.id, MessageState.ACCEPTED, row.attempts] for name, row in left]
            if ask.answer != expected:
                yield f"taken up again: {ask.answer}, expected {expected}"

    def numbers(self, heard: Round, found: Found) -> Iterator[str]:
        """Each number names one message, and later messages have higher ones."""
        first: dict[int, Ask] = {}
        for ask in heard.told("accept"):
            made = [number for number, _, fresh in ask.answer if fresh]
            if made != sorted(set(made)):
                yield f"a batch was numbered {made}"
            if both := set(made) & first.keys():
                yield f"numbers {both} were given twice"
            first |= dict.fromkeys(made, ask)
        yield from rising("message", self.highest, first)
        late = sorted(receipt.id for receipt in found.receipts.values() if receipt.fresh)
        self.highest = max([self.highest, *first])
        if late and late[0] <= self.highest:
            yield f"message {late[0]} was numbered after {self.highest}"
        self.highest = max([self.highest, *(receipt.id for receipt in found.receipts.values())])

    # ── states ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def states(self, heard: Round, rows: dict[str, Row], settled: dict[str, tuple[int, ...]]) -> Iterator[str]:
        for ask in heard.of("settle"):
            if strangers := set(settled.get(ask.fields["tag"], ())) - set(ask.fields["ids"]):
                yield f"settle {ask.fields} has ended {strangers} too"
        work = self.work(heard)
        ends = self.promised_ends(heard, rows, settled)
        for name, row in rows.items():
            reached = ends.get(name, set())
            if len(reached) > 1:
                yield f"message {name} ({row.id}) came to several ends: {reached}"
            if reached and row.state not in reached:
                yield f"message {name} ({row.id}) was told to be {reached} and is {row.state}"
            if not reached and row.state.terminal and not self.perhaps_stopped(heard, name, row):
                yield f"message {name} ({row.id}) is {row.state} and nobody asked for it"
            if not row.state.terminal:
                yield from self.still_open(heard, name, row, work.get(row.id, []))

    def work(self, heard: Round) -> dict[int, list[Ask]]:
        """The verbs about each message, in order."""
        work: dict[int, list[Ask]] = {}
        for ask in heard.of("begin", "put_back", "settle"):
            for number in ask.fields["ids"]:
                work.setdefault(number, []).append(ask)
        return work

    def promised_ends(
        self, heard: Round, rows: dict[str, Row], settled: dict[str, tuple[int, ...]]
    ) -> dict[str, set[MessageState]]:
        """Every end that somebody was told of, or that a reply bears witness to."""
        ends = {name: {end} for name, end in self.ends.items()}
        by_id = {row.id: name for name, row in rows.items()}
        for ask in heard.of("settle"):
            for number in set(settled.get(ask.fields["tag"], ())) & by_id.keys():
                ends.setdefault(by_id[number], set()).add(MessageState(ask.fields["state"]))
        for ask in heard.told("stop"):
            for name, *_ in ask.answer:
                ends.setdefault(name, set()).add(MessageState.STOPPED)
        for ask in heard.told("accept"):
            for name, (_, state, _) in zip(ask.fields["names"], ask.answer, strict=True):
                if MessageState(state).terminal:
                    ends.setdefault(name, set()).add(MessageState(state))
        return ends

    def perhaps_stopped(self, heard: Round, name: str, row: Row) -> bool:
        stops = [ask for ask in heard.of("stop") if ask.open]
        return row.state is MessageState.STOPPED and any(covers(stop.fields, name, row.id) for stop in stops)

    def still_open(self, heard: Round, name: str, row: Row, work: list[Ask]) -> Iterator[str]:
        """A row that is open was stopped by nobody, and is as the last verb about it has left it."""
        kept = min([ask.told for ask in heard.told("accept") if name in ask.fields["names"]], default=None)
        kept = -1 if name in self.ids else kept
        for stop in heard.told("stop"):
            if kept is not None and kept < stop.asked and covers(stop.fields, name, row.id):
                yield f"message {name} ({row.id}) is {row.state} although a stop covered it"
        expected = self.known.get(name, Row(row.id, MessageState.ACCEPTED))
        resumes = heard.of("resume")
        possible = [expected] if not resumes or resumes[0].open else []
        if resumes:
            possible.append(replace(expected, state=MessageState.ACCEPTED, turn=""))
        for ask in work:
            before = possible[-1]
            after = moved(before, ask, name)
            if after is None:
                yield f"message {name} ({row.id}) is {row.state} and {ask.verb} was told {ask.answer}"
                return
            possible = [before, after] if ask.open else [after]
        if row not in possible:
            yield f"message {name} is {row}, expected one of {possible}"

    def adopt(self, rows: dict[str, Row]) -> None:
        self.ids |= {name: row.id for name, row in rows.items()}
        self.ends |= {name: row.state for name, row in rows.items() if row.state.terminal}
        self.known = {name: row for name, row in rows.items() if not row.state.terminal}


def covers(stop: dict[str, Any], name: str, number: int) -> bool:
    return (
        stop["session"] == str(session_of(name))
        and number <= stop["upto"]
        and stop["sender"] in (None, sender_of(name))
        and (stop["only"] is None or number in stop["only"])
    )


def moved(row: Row, ask: Ask, name: str) -> Row | None:
    """The row after that verb; None if the verb's answer says that the row was not open any more."""
    if ask.verb == "begin":
        begun = replace(row, state=MessageState.RUNNING, turn=ask.fields["turn"], attempts=row.attempts + 1)
        return begun if ask.open or [name, row.id, begun.state, begun.attempts] in ask.answer else None
    if ask.verb == "put_back":
        return replace(row, state=MessageState.ACCEPTED, turn="", attempts=row.attempts - 1)
    return row if ask.open else None
