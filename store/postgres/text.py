"""Text and JSON on their way into Postgres and back.

A `text` of Postgres holds every character but NUL. So one character of the private area, U+E000, stands for an escape:
NUL becomes U+E000 U+E002, and U+E000 itself U+E000 U+E001. Everything else is written as it is and can be read in psql.

Half a character can be written nowhere, and `rules.check_words` refuses it before. It may still be asked for: then it
becomes U+E000 U+E003, which no row holds, so that nothing is found.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable

ESCAPE = "\ue000"
WRITTEN = {"\0": ESCAPE + "\ue002", ESCAPE: ESCAPE + "\ue001"}
READ = {written: plain for plain, written in WRITTEN.items()}
NOWHERE = ESCAPE + "\ue003"
PLAIN = re.compile(f"[\0{ESCAPE}\ud800-\udfff]")
CODED = re.compile(f"{ESCAPE}[\ue001\ue002]")


def escaped(text: str) -> str:
    if not text.isascii() or "\0" in text:
        return PLAIN.sub(lambda found: WRITTEN.get(found[0], NOWHERE), text)
    return text


def plain(text: str) -> str:
    return CODED.sub(lambda found: READ[found[0]], text) if ESCAPE in text else text


def to_json(value: object) -> str:
    """For a parameter of type json. The value is one that `rules.plain_json` has passed, or made of such."""
    text = orjson.dumps(value).decode()
    if "\\u0000" in text or ESCAPE in text:
        return orjson.dumps(_walked(value, escaped)).decode()
    return text


def from_json(text: str) -> Any:
    value = orjson.loads(text)
    return _walked(value, plain) if ESCAPE in text else value


def _walked(value: object, change: Callable[[str], str]) -> object:
    """The same with every text in it changed, keys included."""
    match value:
        case str():
            return change(value)
        case dict():
            return {_walked(key, change): _walked(one, change) for key, one in value.items()}
        case list() | tuple():
            return [_walked(one, change) for one in value]
        case _:
            return value
