"""A server that speaks as OpenAI does: `open_openai` in a test, `python -m tests.fakes.openai` by hand.

It answers `POST /v1/chat/completions`, streaming and not, and `GET /v1/models`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tests.fakes.command import run
from tests.fakes.complaints import check_messages, check_tools, wanted
from tests.fakes.dialect import CREATED, Complaint, Part, Usage, event
from tests.fakes.script import Asked, Call, Message, Result, Tool
from tests.fakes.server import ModelServer, serving
from tests.fakes.words import by_hand

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from tests.fakes.script import Script

REASONS = {"tools": "tool_calls", "refusal": "content_filter"}
ERRORS = {401: "invalid_api_key", 404: "not_found", 429: "rate_limit_exceeded"}


def open_openai(script: Script = by_hand, **options: Any) -> AbstractAsyncContextManager[ModelServer]:
    """A server for as long as the block lasts; the options are those of `tests.fakes.server.serving`."""
    return serving(OpenAI(), script, **options)


class OpenAI:
    name = "openai"
    prefix = "/v1"
    path = "/v1/chat/completions"

    def key(self, headers: Mapping[str, str]) -> str | None:
        kind, _, key = headers.get("authorization", "").partition(" ")
        return key if kind.lower() == "bearer" else None

    def headers(self, number: int) -> Mapping[str, str]:
        return {"x-request-id": f"req_{number}"}

    def read(self, body: Mapping[str, Any]) -> Asked:
        system: list[str] = []
        messages: list[Message] = []
        for raw in wanted(body, "messages", list):
            if raw["role"] in ("system", "developer") and not messages:
                system.append(text_of(raw.get("content")))
            elif raw["role"] == "tool" and messages and messages[-1].role == "tool":
                messages[-1] = Message("tool", results=(*messages[-1].results, result_of(raw)))
            else:
                messages.append(message_of(raw))
        tools = tuple(tool_of(raw["function"]) for raw in body.get("tools") or ())
        check_messages(messages)
        check_tools(tools)
        limit = body.get("max_completion_tokens") or body.get("max_tokens")
        return Asked(
            wanted(body, "model", str), "\n".join(system), tuple(messages), tools, bool(body.get("stream")), limit
        )

    def call_id(self, number: int, index: int) -> str:
        return f"call_{number}_{index}"

    def models(self, names: Sequence[str]) -> Mapping[str, Any]:
        listed = [{"id": name, "object": "model", "created": CREATED, "owned_by": "fakes"} for name in names]
        return {"object": "list", "data": listed}

    def error(self, code: int, message: str) -> Mapping[str, Any]:
        kind = "server_error" if code >= 500 else "invalid_request_error"
        return {"error": {"message": message, "type": kind, "param": None, "code": ERRORS.get(code)}}

    def writer(self, asked: Asked, body: Mapping[str, Any], usage: Usage) -> Chunks:
        options = body.get("stream_options") or {}
        return Chunks(asked, tells_usage=bool(options.get("include_usage")))

    def whole(self, asked: Asked, parts: Sequence[Part], reason: str, usage: Usage) -> Mapping[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "refusal": None}
        message["content"] = "".join(part for part in parts if isinstance(part, str)) or None
        if calls := [part for part in parts if isinstance(part, Call)]:
            message["tool_calls"] = [call_json(call) for call in calls]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": REASONS.get(reason, reason)}
        return {**head(asked, "chat.completion"), "choices": [choice], "usage": usage_json(usage)}


class Chunks:
    """The events of one answer."""

    def __init__(self, asked: Asked, *, tells_usage: bool) -> None:
        self._head = head(asked, "chat.completion.chunk")
        self._tells_usage = tells_usage
        self._calls = 0

    def begin(self) -> bytes:
        return self._chunk({"role": "assistant", "content": "", "refusal": None})

    def text(self, piece: str) -> bytes:
        return self._chunk({"content": piece})

    def call(self, call: Call) -> bytes:
        self._calls += 1
        started = call_json(Call(call.id, call.name, ""))
        return self._chunk({"tool_calls": [{"index": self._calls - 1, **started}]})

    def arguments(self, piece: str) -> bytes:
        return self._chunk({"tool_calls": [{"index": self._calls - 1, "function": {"arguments": piece}}]})

    def ping(self) -> bytes:
        return b": ping\n\n"

    def error(self, code: int, body: Mapping[str, Any]) -> bytes:
        return event(body)

    def end(self, reason: str, usage: Usage) -> bytes:
        last = self._chunk({}, REASONS.get(reason, reason))
        if self._tells_usage:
            last += event({**self._head, "choices": [], "usage": usage_json(usage)})
        return last + b"data: [DONE]\n\n"

    def _chunk(self, delta: Mapping[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return event({**self._head, "choices": [choice], **({"usage": None} if self._tells_usage else {})})


def head(asked: Asked, kind: str) -> Mapping[str, Any]:
    name = f"chatcmpl-{asked.number}"
    return {"id": name, "object": kind, "created": CREATED, "model": asked.model, "system_fingerprint": "fp_fake"}


def usage_json(usage: Usage) -> Mapping[str, Any]:
    return {
        "prompt_tokens": usage.tokens_in,
        "completion_tokens": usage.tokens_out,
        "total_tokens": usage.tokens_in + usage.tokens_out,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }


def call_json(call: Call) -> Mapping[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def message_of(raw: Mapping[str, Any]) -> Message:
    match raw["role"]:
        case "tool":
            return Message("tool", results=(result_of(raw),))
        case "assistant":
            listed = raw.get("tool_calls") or ()
            calls = (Call(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in listed)
            return Message("assistant", text_of(raw.get("content")), tuple(calls))
        case "user" | "system" | "developer" as role:
            return Message("user" if role == "user" else "system", text_of(raw["content"]))
        case role:
            raise Complaint(f"messages: {role!r} is no role")


def result_of(raw: Mapping[str, Any]) -> Result:
    return Result(raw["tool_call_id"], text_of(raw["content"]))


def tool_of(raw: Mapping[str, Any]) -> Tool:
    return Tool(raw["name"], raw.get("description", ""), raw.get("parameters") or {"type": "object"})


def text_of(content: Any) -> str:
    """The text of a content; other kinds of parts are named."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(part["text"] if part["type"] == "text" else f"[{part['type']}]" for part in content)


if __name__ == "__main__":
    sys.exit(run(OpenAI(), __doc__))
