"""A server that speaks as Anthropic does: `open_anthropic` in a test, `python -m tests.fakes.anthropic` by hand.

It answers `POST /v1/messages`, streaming and not, and `GET /v1/models`.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import orjson

from tests.fakes.command import run
from tests.fakes.complaints import check_messages, check_tools, wanted
from tests.fakes.dialect import Complaint, Part, Usage, event
from tests.fakes.script import Asked, Call, Message, Result, Tool
from tests.fakes.server import ModelServer, serving
from tests.fakes.words import by_hand

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from tests.fakes.script import Script

REASONS = {"stop": "end_turn", "length": "max_tokens", "tools": "tool_use"}
ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def open_anthropic(script: Script = by_hand, **options: Any) -> AbstractAsyncContextManager[ModelServer]:
    """A server for as long as the block lasts; the options are those of `tests.fakes.server.serving`."""
    return serving(Anthropic(), script, **options)


class Anthropic:
    name = "anthropic"
    prefix = ""
    path = "/v1/messages"

    def key(self, headers: Mapping[str, str]) -> str | None:
        kind, _, token = headers.get("authorization", "").partition(" ")
        return headers.get("x-api-key") or (token if kind.lower() == "bearer" else None)

    def headers(self, number: int) -> Mapping[str, str]:
        return {"request-id": f"req_{number}"}

    def read(self, body: Mapping[str, Any]) -> Asked:
        messages = [message for raw in wanted(body, "messages", list) for message in messages_of(raw)]
        tools = tuple(
            Tool(raw["name"], raw.get("description", ""), raw["input_schema"]) for raw in body.get("tools") or ()
        )
        check_messages(messages)
        check_tools(tools)
        if messages[0].role != "user":
            raise Complaint("messages: the first one must be the user's")
        model, limit = wanted(body, "model", str), wanted(body, "max_tokens", int)
        system = "\n".join(block["text"] for block in blocks_of(body.get("system") or []))
        return Asked(model, system, tuple(messages), tools, bool(body.get("stream")), limit)

    def call_id(self, number: int, index: int) -> str:
        return f"toolu_{number}_{index}"

    def models(self, names: Sequence[str]) -> Mapping[str, Any]:
        made = "2025-06-15T00:00:00Z"
        listed = [{"type": "model", "id": name, "display_name": name, "created_at": made} for name in names]
        return {"data": listed, "has_more": False, "first_id": names[0], "last_id": names[-1]}

    def error(self, code: int, message: str) -> Mapping[str, Any]:
        return {"type": "error", "error": {"type": ERRORS.get(code, "api_error"), "message": message}}

    def writer(self, asked: Asked, body: Mapping[str, Any], usage: Usage) -> Events:
        return Events(asked, usage)

    def whole(self, asked: Asked, parts: Sequence[Part], reason: str, usage: Usage) -> Mapping[str, Any]:
        content = [block_json(part, input_of(part) if isinstance(part, Call) else part) for part in parts]
        return {**head(asked, usage), "content": content, "stop_reason": REASONS.get(reason, reason)}


class Events:
    """The events of one answer; a block is closed when another kind begins."""

    def __init__(self, asked: Asked, usage: Usage) -> None:
        self._asked = asked
        self._usage = usage
        self._index = -1
        self._open = ""  # the kind of the block that is open

    def begin(self) -> bytes:
        return self._event("message_start", message=head(self._asked, self._usage)) + self.ping()

    def text(self, piece: str) -> bytes:
        before = b"" if self._open == "text" else self._start("", "")
        return before + self._delta(type="text_delta", text=piece)

    def call(self, call: Call) -> bytes:
        return self._start(call, {}) + self.arguments("")

    def arguments(self, piece: str) -> bytes:
        return self._delta(type="input_json_delta", partial_json=piece)

    def ping(self) -> bytes:
        return self._event("ping")

    def error(self, code: int, body: Mapping[str, Any]) -> bytes:
        return event(body, "error")

    def end(self, reason: str, usage: Usage) -> bytes:
        delta = {"stop_reason": REASONS.get(reason, reason), "stop_sequence": None}
        last = self._event("message_delta", delta=delta, usage=usage_json(usage))
        return self._stop() + last + self._event("message_stop")

    def _start(self, part: Part, value: object) -> bytes:
        before = self._stop()
        block = block_json(part, value)
        self._open = block["type"]
        self._index += 1
        return before + self._event("content_block_start", index=self._index, content_block=block)

    def _stop(self) -> bytes:
        if not self._open:
            return b""
        self._open = ""
        return self._event("content_block_stop", index=self._index)

    def _delta(self, **delta: str) -> bytes:
        return self._event("content_block_delta", index=self._index, delta=delta)

    def _event(self, kind: str, **fields: object) -> bytes:
        return event({"type": kind, **fields}, kind)


def head(asked: Asked, usage: Usage) -> dict[str, Any]:
    """A message without content."""
    return {
        "id": f"msg_{asked.number}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage_json(usage),
    }


def usage_json(usage: Usage) -> Mapping[str, Any]:
    return {
        "input_tokens": usage.tokens_in - usage.cached,
        "output_tokens": usage.tokens_out,
        "cache_read_input_tokens": usage.cached,
        "cache_creation_input_tokens": 0,
    }


def block_json(part: Part, value: object) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": value}
    return {"type": "tool_use", "id": part.id, "name": part.name, "input": value}


def input_of(call: Call) -> object:
    """The arguments; those that are no JSON stay the text they are, which the real server never sends."""
    try:
        return orjson.loads(call.arguments)
    except orjson.JSONDecodeError:
        return call.arguments


def messages_of(raw: Mapping[str, Any]) -> list[Message]:
    """Results and the text after them are two messages here, as they are on the other wire."""
    role, blocks = raw["role"], blocks_of(raw["content"])
    if role not in ("user", "assistant"):
        raise Complaint(f"messages: {role!r} is no role")
    if not blocks:
        raise Complaint("messages: all messages must have non-empty content")
    text = "".join(text_of(block) for block in blocks)
    results = tuple(result_of(block) for block in blocks if block["type"] == "tool_result")
    calls = tuple(
        Call(block["id"], block["name"], json.dumps(block["input"])) for block in blocks if block["type"] == "tool_use"
    )
    answered = [Message("tool", results=results)] if results else []
    return [*answered, Message(role, text, calls)] if text or calls or not results else answered


def result_of(block: Mapping[str, Any]) -> Result:
    text = "".join(text_of(inner) for inner in blocks_of(block.get("content") or []))
    return Result(block["tool_use_id"], text, bool(block.get("is_error")))


def text_of(block: Mapping[str, Any]) -> str:
    """The text of a block; what is neither text nor about tools is named."""
    if block["type"] == "text":
        if not block["text"].strip():
            raise Complaint("messages: text content blocks must be non-empty")
        return str(block["text"])
    return "" if block["type"] in ("tool_use", "tool_result") else f"[{block['type']}]"


def blocks_of(content: Any) -> list[Mapping[str, Any]]:
    return ([{"type": "text", "text": content}] if content else []) if isinstance(content, str) else content


if __name__ == "__main__":
    sys.exit(run(Anthropic(), __doc__))
