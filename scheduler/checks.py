"""Bad values are refused where they come in, with a message that repeats the value and says what was expected."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

from scheduler import errors

Choice = TypeVar("Choice", bound=StrEnum)


def choice(kind: type[Choice], what: str, value: str) -> Choice:
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(kind)
        raise errors.InvalidRequest(f"unknown {what} {value!r}: expected one of {known}", value=value) from None


def check_limit(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise errors.InvalidRequest(f"{name} is {value!r}: expected a whole number of at least 1", value=value)


def check_span(name: str, value: float, *, least: float, open_end: bool = False) -> None:
    bad = isinstance(value, bool) or not isinstance(value, int | float) or value != value
    if bad or value < least or (open_end and value == least):
        bound = f"more than {least:g}" if open_end else f"at least {least:g}"
        raise errors.InvalidRequest(f"{name} is {value!r}: expected seconds, {bound}", value=value)
