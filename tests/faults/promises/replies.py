"""The outbox: a settled turn has its reply once, from then until it was sent, with the parts that were noted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults.found import Found
    from tests.faults.told import Ask, Round


@dataclass(frozen=True, slots=True)
class Row:
    tag: str
    answers: tuple[int, ...]
    parts: int = 0
    live: str = ""


class Replies:
    def __init__(self) -> None:
        self.rows: dict[int, Row] = {}  # the outbox as it was found last
        self.sent: set[int] = set()
        self.highest = 0
        self.settled: dict[str, tuple[int, ...]] = {}
        """The settles of this life that took effect, by tag, with the messages that they ended."""

    def judge(self, heard: Round, found: Found) -> Iterator[str]:
        now = {one.id: Row(one.note.text.split()[0], one.answers, one.parts, one.live) for one in found.outbox}
        seen = dict(self.rows)
        yield from self.listings(heard, seen)
        for number, row in now.items():
            yield from self.same(seen, number, row)
        yield from self.settles(heard, seen)
        yield from self.numbers(heard, seen)
        for number, row in seen.items():
            yield from self.whereabouts(heard, number, row, now.get(number))
        order = sorted(found.outbox, key=lambda one: (not one.note.urgent, one.id))
        if list(found.outbox) != order:
            yield f"the outbox is out of order: {[one.id for one in found.outbox]}"
        self.rows = now

    def listings(self, heard: Round, seen: dict[int, Row]) -> Iterator[str]:
        """What a listing has shown was safe from then on."""
        sent = {ask.fields["reply"]: ask.told for ask in heard.of("sent")}
        for ask in heard.told("outbox"):
            for number, tag, answers, *_ in ask.answer:
                yield from self.same(seen, number, Row(tag, tuple(answers)))
                if sent.get(number, ask.asked) < ask.asked:
                    yield f"reply {number} was listed after it had been sent"

    def same(self, seen: dict[int, Row], number: int, row: Row) -> Iterator[str]:
        known = seen.setdefault(number, replace(row, parts=0, live=""))
        if (known.tag, known.answers) != (row.tag, row.answers):
            yield f"reply {number} was {known} and is {row}"
        if number in self.sent:
            yield f"reply {number} is there again after it was sent in an earlier life"

    def settles(self, heard: Round, seen: dict[int, Row]) -> Iterator[str]:
        asked = {ask.fields["tag"]: ask for ask in heard.of("settle")}
        fresh = {number: row for number, row in seen.items() if number not in self.rows}
        self.settled = {row.tag: row.answers for row in fresh.values()}
        if len(self.settled) != len(fresh):
            yield f"a turn has more than one reply: {fresh}"
        for tag in self.settled.keys() - asked.keys():
            yield f"reply {tag} was never asked for"
        for tag, ask in asked.items():
            if not ask.open and ask.answer != (tag in self.settled):
                yield f"settle {tag} was told {ask.answer}, its reply is there: {tag in self.settled}"

    def numbers(self, heard: Round, seen: dict[int, Row]) -> Iterator[str]:
        by_tag = {row.tag: number for number, row in seen.items() if number not in self.rows}
        settles = [ask for ask in heard.of("settle") if ask.fields["tag"] in by_tag]
        numbered = {by_tag[ask.fields["tag"]]: ask for ask in settles}
        yield from rising("reply", self.highest, numbered)
        self.highest = max([self.highest, *seen])

    def whereabouts(self, heard: Round, number: int, row: Row, now: Row | None) -> Iterator[str]:
        sending = [ask for ask in heard.of("sent") if ask.fields["reply"] == number]
        told = [ask.answer for ask in sending if not ask.open]
        if told not in ([], [True]):
            yield f"reply {number} was told sent: {told}"
        if now is None and not sending:
            yield f"reply {number} ({row.tag}) is lost"
        if now is not None and told:
            yield f"reply {number} ({row.tag}) was sent and is still there"
        if now is None:
            self.sent.add(number)
        elif now not in self.grown(heard, number, row):
            yield f"reply {number} is {now}, expected one of {self.grown(heard, number, row)}"

    def grown(self, heard: Round, number: int, row: Row) -> list[Row]:
        """The reply with all the progress that was told, and with the last that was only asked."""
        rows = [row]
        for ask in heard.of("progress"):
            if ask.fields["reply"] == number:
                grown = replace(rows[-1], parts=ask.fields["parts"], live=ask.fields["live"])
                rows = [rows[-1], grown] if ask.open else [grown]
        return rows


def rising(what: str, before: int, numbered: dict[int, Ask]) -> Iterator[str]:
    """Numbers are higher than all that was told before they were asked for, in this life and the ones before."""
    highest, told = before, sorted(numbered, key=lambda number: numbered[number].told)
    done = 0
    for number in sorted(numbered, key=lambda number: numbered[number].asked):
        while done < len(told) and numbered[told[done]].told < numbered[number].asked:
            highest = max(highest, told[done])
            done += 1
        if number <= highest:
            yield f"{what} {number} was numbered after {highest}"
