"""Conversations: each line that was written is there once and in its place, each policy is the last that was set.

A settled turn has all its lines and its figure, one that was not settled has none: the reply tells which it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from tests.faults.told import ALONE, SESSIONS, Ask, Round

if TYPE_CHECKING:
    from collections.abc import Iterator

    from store.records import Line
    from tests.faults.found import Conversation, Found


class Mark(NamedTuple):
    """What a line says of itself."""

    number: int
    tag: object
    part: object
    of: object


def mark(line: Line) -> Mark:
    data = line.said.data
    return Mark(line.number, data["tag"], data["part"], data["of"])


@dataclass(slots=True)
class Known:
    lines: list[Mark] = field(default_factory=list)
    trimmed: int = 0
    context: float = 0.0
    cap: int | None = None


class Sessions:
    def __init__(self) -> None:
        self.known = {str(key): Known() for key in SESSIONS}
        self.alone: list[object] = []

    def judge(self, heard: Round, found: Found, settled: dict[str, tuple[int, ...]]) -> Iterator[str]:
        for session, known in self.known.items():
            asks = [ask for ask in heard.asks if ask.fields.get("session") == session]
            for problem in self.conversation(known, asks, found.sessions[session], settled):
                yield f"{session}: {problem}"
        yield from self.forgotten(heard, found)

    def conversation(
        self, known: Known, asks: list[Ask], now: Conversation, settled: dict[str, tuple[int, ...]]
    ) -> Iterator[str]:
        lines = [mark(line) for line in now.lines]
        yield from garbled(now)
        yield from self.trimmed(known, asks, now)
        yield from self.old_lines(known, asks, lines)
        new = lines[len(known.lines) :]
        written = {str(tag): list(marks) for tag, marks in groupby(new, key=lambda one: one.tag)}
        if sum(map(len, written.values())) != len(new):
            yield f"what one verb has written is torn apart: {new}"
        writers = {ask.fields["tag"]: ask for ask in asks if ask.verb in ("settle", "remember")}
        for tag in written.keys() - writers.keys():
            yield f"lines {tag} were never asked for"
        for tag, ask in writers.items():
            yield from self.whole(ask, written.get(tag, []), settled)
        yield from in_order([writers[tag] for tag in written if tag in writers])
        yield from self.figures(known, asks, [writers[tag] for tag in written if tag in writers], now)
        known.lines = lines

    def trimmed(self, known: Known, asks: list[Ask], now: Conversation) -> Iterator[str]:
        trims = [ask for ask in asks if ask.verb == "trim"]
        sure = max([known.trimmed, *(ask.fields["upto"] for ask in trims if not ask.open)])
        perhaps = max([sure, *(ask.fields["upto"] for ask in trims)])
        trimmed = now.kept.trimmed if now.kept else 0
        if trimmed not in (sure, perhaps):
            yield f"trimmed up to {trimmed}, expected {sure} or {perhaps}"
        known.lines = [line for line in known.lines if line.number > trimmed]
        known.trimmed = trimmed

    def old_lines(self, known: Known, asks: list[Ask], lines: list[Mark]) -> Iterator[str]:
        """What was there before this life, and what it has read, is there in the same place."""
        if lines[: len(known.lines)] != known.lines:
            yield f"old lines were {known.lines} and are {lines[: len(known.lines)]}"
        numbers = {line.number: line.tag for line in lines}
        for ask in asks:
            for number, tag in ask.answer or [] if ask.verb == "newest" else []:
                if number > known.trimmed and numbers.get(number) != tag:
                    yield f"line {number} was read as {tag} and is {numbers.get(number)}"

    def whole(self, ask: Ask, lines: list[Mark], settled: dict[str, tuple[int, ...]]) -> Iterator[str]:
        """All lines of a verb in their order, or none: none only if it was not told, or did nothing."""
        parts = [(line.part, line.of) for line in lines]
        every = [(part, ask.fields["of"]) for part in range(ask.fields["of"])]
        if parts not in ([], every):
            yield f"half of {ask.fields} is there: {parts}"
        if ask.verb == "settle" and bool(parts) != (ask.fields["tag"] in settled):
            yield f"settle {ask.fields}: its reply is there: {not parts}, its lines are there: {bool(parts)}"
        if ask.verb == "remember" and not ask.open and [line.number for line in lines][-1:] != [ask.answer]:
            yield f"remember {ask.fields} was told {ask.answer}, its lines are {lines}"

    def figures(self, known: Known, asks: list[Ask], writers: list[Ask], now: Conversation) -> Iterator[str]:
        """The figure is that of the turn whose lines came last, the policy the last that was set."""
        for writer in writers:
            known.context = writer.fields.get("context", known.context)
        context = now.kept.standing.context if now.kept else 0.0
        if context != known.context:
            yield f"its figure is {context}, expected {known.context}"
        cap = now.kept.standing.policy.cap if now.kept else None
        if cap not in (possible := caps(known.cap, asks)):
            yield f"its policy has cap {cap}, expected one of {possible}"
        known.cap = cap

    def forgotten(self, heard: Round, found: Found) -> Iterator[str]:
        """The session of one task alone is as its last verb has left it, or the one before that was told."""
        possible = [self.alone]
        for ask in heard.of("remember", "forget"):
            if ask.verb == "forget" or ask.fields["session"] == str(ALONE):
                last = possible[-1]
                after = [] if ask.verb == "forget" else last + [ask.fields["tag"]] * ask.fields["of"]
                possible = [last, after] if ask.open else [after]
        now = found.sessions[str(ALONE)]
        self.alone = [line.said.data["tag"] for line in now.lines]
        if self.alone not in possible:
            yield f"the session of one task holds {self.alone}, expected one of {possible}"
        if now.kept is None and self.alone:
            yield f"a forgotten session has lines: {self.alone}"
        yield from garbled(now)


def caps(before: int | None, asks: list[Ask]) -> list[int | None]:
    possible = [before]
    for ask in asks:
        if ask.verb == "set_policy":
            possible = [possible[-1], ask.fields["cap"]] if ask.open else [ask.fields["cap"]]
    return possible


def garbled(now: Conversation) -> Iterator[str]:
    """Lines are numbered without a gap up to the newest, and their text is the one that was written."""
    first, last = (now.kept.trimmed + 1, now.kept.lines) if now.kept else (1, 0)
    numbers = [line.number for line in now.lines]
    if numbers != list(range(first, last + 1)):
        yield f"lines {first} to {last} are numbered {numbers}"
    for line in now.lines:
        if not line.said.text.startswith(f"{line.said.data['tag']}/{line.said.data['part']} "):
            yield f"line {line.number} is garbled: {line}"


def in_order(writers: list[Ask]) -> Iterator[str]:
    """What was told before another was asked stands before it."""
    latest = -1
    for ask in writers:
        if ask.told < latest:
            yield f"{ask.fields} stands after what was asked later"
        latest = max(latest, ask.asked)
