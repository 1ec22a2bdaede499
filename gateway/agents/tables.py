"""Reads the tables of a TOML document key by key, and gathers every problem with its line instead of raising the first.

A reader takes a key out of its table; what is left over at the end is unknown. A key whose value is of no use counts as
absent after its problem was noted, so that the rest can still be looked at.
"""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from cron.durations import parse_duration
from cron.errors import DurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import timedelta

    from gateway.agents.toml_lines import Locator

Choice = TypeVar("Choice", bound=str)

LONGEST_SHOWN = 60
SECRETS = ("key", "secret", "token", "password")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with the file. ``key`` is the whole name, ``agent.main.window``; without it, it is the file."""

    file: str
    line: int | None
    key: str
    value: str | None
    message: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}, line {self.line}"
        return f"{place}: {self.message}"


@dataclass(slots=True)
class Problems:
    """What was found wrong so far in one file."""

    file: str
    lines: Locator | None
    """None if there is no file: what is wrong is then what stands elsewhere, in the settings."""
    found: list[Problem] = field(default_factory=list)

    def note(self, path: tuple[str | int, ...], message: str, value: str | None = None) -> None:
        key = ".".join(str(part) for part in path)
        line = None if self.lines is None else self.lines.line(*path)
        self.found.append(Problem(self.file, line, key, value, message))

    def in_order(self, names: Iterable[str], table: str) -> list[str]:
        """Names that stand in one table, as they follow each other in the file."""
        lines = self.lines
        return sorted(names, key=lambda name: (lines.line(table, name) if lines else 0, name))


class Table:
    def __init__(self, values: Mapping[str, object], path: tuple[str, ...], problems: Problems) -> None:
        self._left = dict(values)
        self._asked: list[str] = []
        self.given = frozenset(values)
        self.path = path
        self.problems = problems

    def text(self, key: str, expected: str = "a text that is not empty") -> str | None:
        value = self.take(key)
        if value is None:
            return None
        if isinstance(value, str) and value.strip() and "\0" not in value:
            return value
        self.wrong(key, value, expected)
        return None

    def whole(self, key: str, low: int, high: int, unit: str) -> int | None:
        value = self.take(key)
        if value is None or (isinstance(value, int) and not isinstance(value, bool) and low <= value <= high):
            return value
        self.wrong(key, value, f"a whole number from {low} to {high} ({unit})")
        return None

    def flag(self, key: str) -> bool | None:
        value = self.take(key)
        if value is None or isinstance(value, bool):
            return value
        self.wrong(key, value, "true or false")
        return None

    def choice(self, key: str, choices: Sequence[Choice]) -> Choice | None:
        value = self.take(key)
        if value is None:
            return None
        for choice in choices:
            if choice == value:
                return choice
        self.wrong(key, value, f"one of {', '.join(choices)}" + did_you_mean(value, choices))
        return None

    def span(self, key: str) -> timedelta | None:
        value = self.take(key)
        if value is None:
            return None
        if not isinstance(value, str):
            self.wrong(key, value, 'a duration in quotes, for instance "10m"')
            return None
        try:
            return parse_duration(value, strict=True)
        except DurationError as error:
            self.wrong(key, value, f'a duration, for instance "10m" ({error})')
            return None

    def words(self, key: str, expected: str = "a list of texts") -> tuple[str, ...] | None:
        value = self.take(key)
        if value is None:
            return None
        if isinstance(value, list) and all(isinstance(word, str) and word and "\0" not in word for word in value):
            return tuple(value)
        self.wrong(key, value, expected)
        return None

    def names(self, key: str, known: Iterable[str], kind: str) -> tuple[str, ...] | None:
        """A list of names that must be known."""
        names = self.words(key, f"a list of names, each {kind}")
        known = tuple(known)
        for index, name in enumerate(names or ()):
            if name not in known:
                message = f"{self.name(key)} names {shown(name)}, which is not {kind}{did_you_mean(name, known)}"
                self.problems.note((*self.path, key, index), message, shown(name))
        return names

    def table(self, key: str) -> Table:
        value = self.take(key)
        if value is not None and not isinstance(value, dict):
            self.wrong(key, value, f"a table [{self.name(key)}]")
            value = None
        return Table(value or {}, (*self.path, key), self.problems)

    def take(self, key: str) -> object:
        self._asked.append(key)
        return self._left.pop(key, None)

    def wrong(self, key: str, value: object, expected: str) -> None:
        self.problems.note((*self.path, key), f"{self.name(key)} = {shown(value)}: expected {expected}", shown(value))

    def refuse_rest(self) -> None:
        """What nobody has asked for is unknown. Its value is not shown: it may be a secret under a wrong name."""
        for key in self._left:
            where = f" in [{'.'.join(self.path)}]" if self.path else ""
            message = f"unknown key `{key}`{where}{did_you_mean(key, self._asked)}"
            if "api_key_env" in self._asked and any(word in key.lower() for word in SECRETS):
                message = (
                    f"unknown key `{key}`{where}: keys do not belong into this file; set an environment variable to it"
                    ' and name the variable, for instance api_key_env = "MY_API_KEY"'
                )
            self.problems.note((*self.path, key), message)

    def name(self, key: str) -> str:
        return ".".join((*self.path, key))


def shown(value: object) -> str:
    """A value as it could stand in the file, cut short."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def did_you_mean(word: object, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word.lower(), known, n=1, cutoff=0.6) if isinstance(word, str) else []
    return f"; did you mean {close[0]}?" if close else ""
