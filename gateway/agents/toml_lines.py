"""On which line of a TOML document a key stands: tomllib does not say, and a message without it sends people searching.

It walks over a document that tomllib has accepted, so it only has to know where keys begin and values end. Whatever it
does not recognise ends the walk; keys after that are given the line of the nearest table or key that was found.
"""

from __future__ import annotations

import contextlib
import re
import tomllib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

Path = tuple[str | int, ...]

_BLANK = re.compile(r"[ \t]*")
_BETWEEN = re.compile(r"(?:[ \t\r\n,]|#[^\n]*)*")
_KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'""")
_STRING = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"{3,5}' + "|'''(?:[^']|'(?!''))*'{3,5}" + r"""|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'""",
    re.DOTALL,
)
_SCALAR = re.compile(r"[^,\]}#\r\n]+")
_TWICE = re.compile(r"Cannot declare \((.+?),?\) twice")
_AT_LINE = re.compile(r" \(at line (\d+), column (\d+)\)$")


class _Lost(Exception):
    """Here stands something that the walk does not know."""


class Locator:
    """Where the keys of one document stand."""

    def __init__(self, text: str) -> None:
        walk = _Walk(text)
        with contextlib.suppress(_Lost, tomllib.TOMLDecodeError, RecursionError):
            walk.document()
        self._found: Mapping[Path, int] = walk.found

    def line(self, *path: str | int) -> int:
        """The line of a key, counted from 1; of what it stands in, if the key itself was not found."""
        while path and path not in self._found:
            path = path[:-1]
        return self._found.get(path, 1)


class _Walk:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: dict[Path, int] = {}

    def document(self) -> None:
        table: Path = ()
        repeated: dict[Path, int] = {}
        while not self.ended():
            start = self.at
            if self.skip("[["):
                table = self.key()
                repeated[table] = repeated.get(table, -1) + 1
                table = (*table, repeated[table])
                self.note((), table, start)
                self.expect("]]")
            elif self.skip("["):
                table = self.key()
                self.note((), table, start)
                self.expect("]")
            else:
                self.assignment(table)

    def assignment(self, table: Path) -> None:
        start = self.at
        key = self.key()
        self.note(table, key, start)
        self.expect("=")
        self.value((*table, *key))

    def value(self, path: Path) -> None:
        self.match(_BLANK)
        if self.skip("{"):
            while not self.closed("}"):
                self.assignment(path)
        elif self.skip("["):
            index = 0
            while not self.closed("]"):
                self.note(path, (index,), self.at)
                self.value((*path, index))
                index += 1
        elif not self.match(_STRING) and not self.match(_SCALAR):
            raise _Lost

    def key(self) -> Path:
        parts = []
        while True:
            self.match(_BLANK)
            part = self.match(_KEY)
            if not part:
                raise _Lost
            parts.append(tomllib.loads(f"key = {part}")["key"] if part[0] in "\"'" else part)
            self.match(_BLANK)
            if not self.skip("."):
                return tuple(parts)

    def note(self, table: Path, key: Path, start: int) -> None:
        line = self.text.count("\n", 0, start) + 1
        for length in range(1, len(key) + 1):
            self.found.setdefault((*table, *key[:length]), line)
        self.found[(*table, *key)] = min(line, self.found[(*table, *key)])

    def ended(self) -> bool:
        self.match(_BETWEEN)
        return self.at >= len(self.text)

    def closed(self, bracket: str) -> bool:
        if self.ended():
            raise _Lost
        return self.skip(bracket)

    def expect(self, token: str) -> None:
        self.match(_BLANK)
        if not self.skip(token):
            raise _Lost

    def skip(self, token: str) -> bool:
        here = self.text.startswith(token, self.at)
        self.at += len(token) if here else 0
        return here

    def match(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        if match is None:
            return ""
        self.at = match.end()
        return match[0]


def syntax_error(error: tomllib.TOMLDecodeError, text: str) -> tuple[int, str]:
    """The line of what tomllib cannot read, and its words without that."""
    message = _TWICE.sub(lambda found: f"[{_dotted(found[1])}] stands here a second time", str(error))
    message = message.replace("Cannot overwrite a value", "this has a value already")
    if match := _AT_LINE.search(message):
        return int(match[1]), f"{message[: match.start()]} (column {match[2]})"
    return len(text.rstrip().splitlines()) or 1, message.removesuffix(" (at end of document)")


def _dotted(parts: str) -> str:
    return ".".join(part.strip("'\"") for part in parts.split(", "))
