"""Bad values are refused where they come in, with a message that repeats the value and says what was expected."""

from __future__ import annotations

import math
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


def check_span(
    name: str, value: float, *, above: float | None = None, endless: bool = False, what: str = "seconds"
) -> None:
    """A number of seconds or ``what``: not negative, more than ``above``, and finite unless it may be ``endless``."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)
    if number and value >= 0 and (above is None or value > above) and (endless or not math.isinf(value)):
        return
    bound = "at least 0" if above is None else f"more than {above:g}"
    raise errors.InvalidRequest(f"{name} is {value!r}: expected {what}, {bound}", value=value)
