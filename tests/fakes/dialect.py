"""What a wire must be able to say and to read; the server and the player know nothing else of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import orjson

from tests.fakes.script import Call

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.fakes.script import Asked

Part: TypeAlias = str | Call
"""A text or a call, in the order in which the model made them."""

CREATED = 1_750_000_000  # nobody asks when


class Complaint(Exception):
    """The request is not one that the real server would take."""


@dataclass(frozen=True, slots=True)
class Usage:
    """``cached`` is a part of ``tokens_in``."""

    tokens_in: int
    tokens_out: int
    cached: int = 0


class Writer(Protocol):
    """The events of one streamed answer, as bytes."""

    def begin(self) -> bytes: ...
    def text(self, piece: str) -> bytes: ...
    def call(self, call: Call) -> bytes:
        """The start of a call; its arguments follow."""

    def arguments(self, piece: str) -> bytes: ...
    def ping(self) -> bytes: ...
    def error(self, code: int, body: Mapping[str, Any]) -> bytes: ...
    def end(self, reason: str, usage: Usage) -> bytes: ...


class Dialect(Protocol):
    """One wire. ``prefix`` is what the base URL has after the port, ``path`` where a model is asked."""

    name: str
    prefix: str
    path: str

    def key(self, headers: Mapping[str, str]) -> str | None:
        """The API key that came with the request."""

    def headers(self, number: int) -> Mapping[str, str]:
        """Headers of every response to a request with that number."""

    def read(self, body: Mapping[str, Any]) -> Asked:
        """What was asked, or a Complaint."""

    def call_id(self, number: int, index: int) -> str: ...

    def models(self, names: Sequence[str]) -> Mapping[str, Any]: ...

    def error(self, code: int, message: str) -> Mapping[str, Any]:
        """The body of an error response."""

    def writer(self, asked: Asked, body: Mapping[str, Any], usage: Usage) -> Writer:
        """``usage`` is as far as it is known at the start."""

    def whole(self, asked: Asked, parts: Sequence[Part], reason: str, usage: Usage) -> Mapping[str, Any]: ...


def event(data: object, name: str = "") -> bytes:
    """One server-sent event."""
    return (f"event: {name}\n" if name else "").encode() + b"data: " + as_json(data) + b"\n\n"


def as_json(data: object) -> bytes:
    """Also with half of a surrogate pair in it, which a careless server escapes and sends."""
    try:
        return orjson.dumps(data)
    except TypeError:
        return json.dumps(data).encode()
