"""Anthropic's models, over the vendor's SDK, whose import takes a second: `build` waits with it until it is needed.

Retries are the tool loop's, so the SDK does none. Leaving a stream closes it at once; that is what the server sees of a
stop.
"""

from __future__ import annotations

from contextlib import aclosing, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, cast

import anthropic
import httpx2
import trio

from gateway.agents.models import Finished, Room, TextPiece, calls_of, counted, read_call
from gateway.agents.trouble import broken_off, not_understood, refusal, too_slow, unreachable
from gateway.protocols import Usage
from store.records import Role, Said

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator

    from gateway.agents.models import ModelEvent, ModelRequest, Reason, ToolCall
    from gateway.agents.trouble import Server

CLOSE_S = 2.0
DRAIN_S = 0.2
TIMEOUT = anthropic.Timeout(connect=10, read=300, write=60, pool=60)
REASONS: dict[str, Reason] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tools",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}


def open_client(base_url: str, key: str) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(base_url=base_url, api_key=key, max_retries=0, timeout=TIMEOUT)


class AnthropicModel:
    def __init__(self, client: anthropic.AsyncAnthropic, server: Server) -> None:
        self.name = server.model
        self._client = client
        self._server = server

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[ModelEvent]]:
        asked: dict[str, Any] = {
            "model": self.name,
            "system": request.system,
            "messages": messages(request.messages),
            "max_tokens": request.max_tokens,
        }
        if request.tools:
            asked["tools"] = [
                {"name": tool.name, "description": tool.about, "input_schema": dict(tool.parameters)}
                for tool in request.tools
            ]
        with self._translated():
            stream = await self._client.messages.create(**asked, stream=True)
        try:
            async with aclosing(self._events(stream)) as events:
                yield events
        finally:
            with trio.move_on_after(CLOSE_S, shield=True):
                await stream.close()

    async def _events(self, stream: anthropic.AsyncStream[Any]) -> AsyncGenerator[ModelEvent, None]:
        answer = _Answer()
        with self._translated():
            async with aclosing(cast("AsyncGenerator[Any, None]", aiter(stream))) as events:
                async for event in events:
                    if (found := answer.take(event)) is not None:
                        yield found
                    if answer.ended:
                        break
                # What is read to its end leaves a connection that can be used again.
                with trio.move_on_after(DRAIN_S):
                    async for _ in events:
                        pass
        if not answer.ended:
            raise broken_off()
        yield Finished(Usage(answer.tokens_in, answer.tokens_out), answer.reason)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (anthropic.APITimeoutError, httpx2.TimeoutException):
            raise too_slow(self._server) from None
        except anthropic.APIStatusError as error:
            words = error.api_message or error.message
            raise refusal(self._server, error.status_code, error.type or "", words, error.response.headers) from None
        except anthropic.APIConnectionError:
            raise unreachable(self._server) from None
        except httpx2.HTTPError:
            raise broken_off() from None
        except (anthropic.AnthropicError, ValueError, AttributeError, TypeError, KeyError):
            # The SDK hands on whatever a server sends: fields may be missing, and of any type.
            raise not_understood() from None


class _Answer:
    """What the events have told so far."""

    def __init__(self) -> None:
        self.tokens_in = 0
        self.tokens_out = 0
        self.reason: Reason = "end"
        self.ended = False
        self._call: tuple[str, str] | None = None
        self._raw = ""
        self._room = Room()

    def take(self, event: Any) -> TextPiece | ToolCall | None:
        """A piece of text or a whole call, if the event brings one."""
        match event.type:
            case "message_start":
                self.tokens_in = _tokens_in(event.message.usage)
                self.tokens_out = counted(event.message.usage.output_tokens)
            case "content_block_start" if event.content_block.type == "tool_use":
                self._call, self._raw = (event.content_block.id, self._room.take(event.content_block.name)), ""
            case "content_block_delta" if event.delta.type == "text_delta":
                return TextPiece(self._room.take(event.delta.text))
            case "content_block_delta" if event.delta.type == "input_json_delta":
                self._raw += self._room.take(event.delta.partial_json)
            case "content_block_stop" if self._call is not None:
                call_id, name = self._call
                self._call = None
                return read_call(call_id, name, self._raw)
            case "message_delta":
                self.tokens_out = counted(event.usage.output_tokens) or self.tokens_out
                self.reason = REASONS.get(event.delta.stop_reason or "", self.reason)
            case "message_stop":
                self.ended = True
        return None


def _tokens_in(usage: Any) -> int:
    """What was read from a cache, or written to one, was sent all the same."""
    parts = (usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens)
    return sum(map(counted, parts))


def messages(lines: tuple[Said, ...]) -> list[dict[str, Any]]:
    """A repaired transcript as alternating messages; the results of tools are the user's, before the user's words."""
    found: list[dict[str, Any]] = []
    for line in lines:
        role = "assistant" if line.role is Role.ASSISTANT else "user"
        if not found or found[-1]["role"] != role:
            found.append({"role": role, "content": []})
        found[-1]["content"] += _blocks(line)
    return found


def _blocks(line: Said) -> list[dict[str, Any]]:
    if line.role is Role.TOOL:
        result = {"type": "tool_result", "tool_use_id": line.data["call"], "content": line.text}
        return [result if line.data["ok"] else {**result, "is_error": True}]
    text = [{"type": "text", "text": line.text}] if line.text else []
    calls = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments or {})}
        for call in calls_of(line)
    ]
    return [*text, *calls]
