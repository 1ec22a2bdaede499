"""A line that knows whether it is whole: eight hexadecimal digits of CRC-32, a space, JSON, a line feed."""

from __future__ import annotations

import zlib
from datetime import timedelta
from typing import Any

import orjson

from store.rules import not_json

MICROSECOND = timedelta(microseconds=1)


def encode(value: object) -> bytes:
    """The value as JSON, times in UTC with a Z; what cannot be written breaks a rule."""
    try:
        return orjson.dumps(value, _plainer, orjson.OPT_UTC_Z)
    except TypeError as error:
        raise not_json(error) from None


def pack(value: object) -> bytes:
    content = encode(value)
    return b"%08x %b\n" % (zlib.crc32(content), content)


def unpack(line: bytes) -> Any:
    """What was packed, from a line without its line feed; None if it is not what was written."""
    try:
        if line[:9] != b"%08x " % zlib.crc32(line[9:]):
            return None
        return orjson.loads(line[9:])
    except ValueError:
        return None


def _plainer(value: object) -> object:
    """A named tuple is a list, a span so many microseconds; nothing else is guessed."""
    if isinstance(value, tuple):
        return tuple(value)
    if isinstance(value, timedelta):
        return value // MICROSECOND
    raise TypeError(f"{type(value).__name__} is not something that JSON can hold")
