"""Reads a `.env` file whole, and names every line it cannot read instead of guessing at it.

One line holds one assignment: `NAME=value`, with `export` before it if you like. The value may stand in single
quotes (taken as it is) or double quotes (`\\n`, `\\"` and `\\\\` are understood); without quotes a blank followed by
`#` begins a comment. Nothing is substituted, and no value runs over several lines: a quote somebody forgot to close
would otherwise swallow the settings below it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_ASSIGNMENT: Final = re.compile(r"(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*=\s*(?P<value>.*)")
_QUOTED: Final = re.compile(r"""(?:'(?P<single>[^']*)'|"(?P<double>(?:[^"\\]|\\.)*)")\s*(?:#.*)?""")
_COMMENT: Final = re.compile(r"(?:^|\s+)#.*")
_ESCAPE: Final = re.compile(r'\\([n"\\])')


@dataclass(frozen=True, slots=True)
class Assignment:
    name: str
    value: str
    line: int


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A place that cannot be read, and what should be there; `line` is None when it is the whole file."""

    line: int | None
    expected: str


@dataclass(frozen=True, slots=True)
class EnvFile:
    assignments: tuple[Assignment, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()


def read_env_file(path: Path) -> EnvFile:
    """Read the file at `path`; a file that is not there is an empty one."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return EnvFile()
    except OSError as error:
        return EnvFile(unreadable=(Unreadable(None, f"a file that can be read ({error.strerror})"),))
    try:
        return parse_env(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        return EnvFile(unreadable=(Unreadable(line, "UTF-8 text"),))


def parse_env(text: str) -> EnvFile:
    assignments: list[Assignment] = []
    unreadable: list[Unreadable] = []
    for number, raw in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        read = _read_line(line, number)
        if isinstance(read, Assignment):
            assignments.append(read)
        else:
            unreadable.append(read)
    return EnvFile(tuple(assignments), tuple(unreadable))


def _read_line(line: str, number: int) -> Assignment | Unreadable:
    # The line itself is never repeated in a message: it may hold a secret.
    match = _ASSIGNMENT.fullmatch(line)
    if match is None:
        return Unreadable(number, "NAME=value")
    value = _read_value(match["value"])
    if value is None:
        return Unreadable(number, f"a closing quote at the end of the value of {match['name']}")
    return Assignment(match["name"], value, number)


def _read_value(text: str) -> str | None:
    if not text.startswith(("'", '"')):
        return _COMMENT.sub("", text)
    match = _QUOTED.fullmatch(text)
    if match is None:
        return None
    if match["single"] is not None:
        return match["single"]
    return _ESCAPE.sub(lambda escape: "\n" if escape[1] == "n" else escape[1], match["double"])
