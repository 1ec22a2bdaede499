"""What a model is to the tool loop, whoever's server it runs on; and how a transcript becomes something to send.

    Said lines ──repair──> lines that every server accepts ──wire format──> request
                                                                              │
    TextPiece … ToolCall … Finished  <───────────── stream ───────────────────┘

A transcript keeps an assistant's line that calls tools with `data={"calls": [{"id", "name", "arguments"}]}` and what
came of a call as a line of the tool with `data={"call": id, "name": name, "ok": bool}`.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, cast

from gateway.protocols import AgentError, Tool, ToolResult, Usage
from store.records import Role, Said

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping
    from contextlib import AbstractAsyncContextManager

UNKNOWN_RESULT = "no result is known"
NO_TEXT = "(no text)"
CHARACTERS_PER_TOKEN = 4
"""A rough rule, for servers that do not count."""
LARGEST_ANSWER = 2_000_000
"""Characters of an answer, its calls included: many times what any model writes."""
DEEPEST = 100
"""Objects and lists within each other."""
LARGEST_WHOLE = 2**63 - 1

Reason = Literal["end", "tools", "length", "refused"]

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")
_NEVER_SENT = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class ModelRequest:
    system: str
    messages: tuple[Said, ...]
    tools: tuple[Tool, ...]
    max_tokens: int


@dataclass(frozen=True, slots=True)
class TextPiece:
    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model wants called. ``arguments`` is None if what it wrote, ``raw``, is no JSON object."""

    id: str
    name: str
    arguments: Mapping[str, object] | None
    raw: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of every stream that did not break off."""

    usage: Usage
    reason: Reason


ModelEvent = TextPiece | ToolCall | Finished


class Model(Protocol):
    name: str

    def stream(self, request: ModelRequest) -> AbstractAsyncContextManager[AsyncIterator[ModelEvent]]:
        """Ask. Leaving the context ends the request, on the wire too. Raises `ModelTrouble` and `AgentError`."""


class ModelTrouble(Exception):
    """The server could not answer this time; the text says why, as the end of a sentence."""

    def __init__(self, message: str, *, retriable: bool = True, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retriable = retriable
        self.retry_after_s = retry_after_s


class ContextTooLong(AgentError):
    """The conversation does not fit the model's window."""

    code = "context_too_long"


# ── from the wire ────────────────────────────────────────────────────────────────────────────────────────────────────


class Room:
    """What one answer may fill. A server that has lost its way sends without end, and all of it would be kept."""

    def __init__(self) -> None:
        self._left = LARGEST_ANSWER

    def take(self, piece: str) -> str:
        self._left -= len(piece) + 1  # empty ones are not for free
        if self._left < 0:
            raise AgentError(f"the model answered with more than {LARGEST_ANSWER:,} characters; it was ended there")
        return piece


def read_call(call_id: str, name: str, raw: str) -> ToolCall:
    """A call as it was streamed. Some models write nothing at all for a tool without parameters."""
    try:
        arguments = json.loads(raw) if raw.strip() else {}
    except (ValueError, RecursionError):
        arguments = None
    return ToolCall(clean_text(str(call_id)), clean_text(str(name)), clean(arguments), raw)


def counted(tokens: object) -> int:
    """What a server says that something took; nothing, if that is no number of tokens."""
    if not isinstance(tokens, int | float) or not 0 <= tokens <= LARGEST_WHOLE:  # which infinity and NaN are not
        return 0
    return int(tokens)


def clean_text(text: str) -> str:
    """Half of a surrogate pair cannot be sent in UTF-8, and no store keeps NUL."""
    return _NEVER_SENT.sub("\ufffd", text)


def clean(value: object) -> dict[str, object] | None:
    """An object that can be sent and kept, its texts made whole; None for what is none.

    What no store keeps is no JSON that means anything to a tool either: numbers beyond all bounds, NaN, nesting without
    end. Caught here it is told to the model; later it would cost the person the answer.
    """
    try:
        return cast("dict[str, object]", _clean_value(value, DEEPEST)) if isinstance(value, dict) else None
    except ValueError:
        return None


def _clean_value(value: object, deep: int) -> object:
    if deep < 0:
        raise ValueError("nested too deeply")
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [_clean_value(inner, deep - 1) for inner in value]
    if isinstance(value, dict):
        return {clean_text(key): _clean_value(inner, deep - 1) for key, inner in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("not a number")
    if isinstance(value, int) and abs(value) > LARGEST_WHOLE:
        raise ValueError("a number that is too large")
    return value


def estimate(request: ModelRequest, answer: str) -> Usage:
    """What a request may have cost, if its server does not say."""
    sent = len(request.system) + sum(len(line.text) + len(str(line.data)) for line in request.messages)
    return Usage(sent // CHARACTERS_PER_TOKEN + 1, len(answer) // CHARACTERS_PER_TOKEN + 1)


# ── the transcript ───────────────────────────────────────────────────────────────────────────────────────────────────


def calling(text: str, calls: Iterable[ToolCall]) -> Said:
    """The line of an assistant that calls tools."""
    kept = [{"id": call.id, "name": call.name, "arguments": dict(call.arguments or {})} for call in calls]
    return Said(Role.ASSISTANT, text, {"calls": kept})


def result_of(call: ToolCall, result: ToolResult) -> Said:
    return Said(Role.TOOL, clean_text(result.text), {"call": call.id, "name": call.name, "ok": result.ok})


def calls_of(line: Said) -> tuple[ToolCall, ...]:
    """The calls that a line of a transcript holds; what is damaged is left out."""
    calls = line.data.get("calls") if line.role is Role.ASSISTANT else None
    found = []
    for call in calls if isinstance(calls, list | tuple) else ():
        if isinstance(call, dict) and isinstance(call.get("id"), str) and isinstance(call.get("name"), str):
            arguments = clean(call.get("arguments")) or {}
            found.append(ToolCall(call["id"], call["name"], arguments, json.dumps(arguments, default=str)))
    return tuple(found)


def repair(lines: Iterable[Said]) -> tuple[Said, ...]:
    """What every server accepts, of a history that may be cut or damaged.

    It begins with a person's words. Every call has an id of its own, a name that servers allow, and exactly one result,
    which follows it; results without a call are dropped. No line is empty, and no two lines of one speaker follow each
    other unless one of them calls tools.
    """
    repaired = _Repaired()
    for line in lines:
        if line.role is Role.TOOL:
            repaired.result(line)
        elif line.role is Role.ASSISTANT:
            repaired.answer(line)
        else:
            repaired.words(line)
    repaired.settle()
    return tuple(repaired.lines)


class _Repaired:
    def __init__(self) -> None:
        self.lines: list[Said] = []
        self._ids: set[str] = set()
        self._open: list[tuple[str, ToolCall]] = []
        """Calls of the last line that have no result yet, with the ids they had in the transcript: some models use
        one id twice."""

    def words(self, line: Said) -> None:
        self.settle()
        text = clean_text(line.text)
        self._add(Said(Role.USER, f"[note] {text}" if line.role is Role.SYSTEM else text if text.strip() else NO_TEXT))

    def answer(self, line: Said) -> None:
        self.settle()
        if not self.lines:
            return
        calls = calls_of(line)
        text = clean_text(line.text).strip()
        if calls:
            renamed = [self._rename(call) for call in calls]
            self._open = [(call.id, new) for call, new in zip(calls, renamed, strict=True)]
            self.lines.append(calling(text, renamed))
        elif text:
            self._add(Said(Role.ASSISTANT, text))

    def result(self, line: Said) -> None:
        match = next((waiting for waiting in self._open if waiting[0] == line.data.get("call")), None)
        if match is not None:
            self._open.remove(match)
            ok = line.data.get("ok", True) is True
            self.lines.append(result_of(match[1], ToolResult(line.text if line.text.strip() else NO_TEXT, ok)))

    def settle(self) -> None:
        """Calls that nobody answered are answered: a gateway may have died between a call and its result."""
        for _, call in self._open:
            self.lines.append(result_of(call, ToolResult(UNKNOWN_RESULT, ok=False)))
        self._open = []

    def _add(self, line: Said) -> None:
        last = self.lines[-1] if self.lines else None
        if last is not None and last.role is line.role and not last.data:
            self.lines[-1] = Said(line.role, f"{last.text}\n\n{line.text}")
        else:
            self.lines.append(line)

    def _rename(self, call: ToolCall) -> ToolCall:
        new, number = call.id, len(self._ids)
        while not _ID.fullmatch(new) or new in self._ids:
            new, number = f"call_{number}", number + 1
        self._ids.add(new)
        name = _NOT_IN_A_NAME.sub("_", call.name)[:64] or "unknown"
        return ToolCall(new, name, call.arguments, call.raw)
