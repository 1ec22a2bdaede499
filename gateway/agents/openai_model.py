"""OpenAI's models, and every server that speaks their protocol, over the vendor's SDK, whose import takes a second.

Compatible servers take liberties: they leave out usage, indices, ids or the reason of the end. All of that is put up
with; what cannot be made sense of is trouble like any other.
"""

from __future__ import annotations

import json
from contextlib import aclosing, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import openai
import trio

from gateway.agents.models import Finished, Room, TextPiece, calls_of, counted, estimate, read_call
from gateway.agents.trouble import broken_off, not_understood, refusal, too_slow, unreachable
from gateway.protocols import Usage
from store.records import Role, Said

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator

    from gateway.agents.models import ModelEvent, ModelRequest, Reason, ToolCall
    from gateway.agents.trouble import Server
    from gateway.protocols import Tool

CLOSE_S = 2.0
TIMEOUT = openai.Timeout(connect=10, read=300, write=60, pool=60)
REASONS: dict[str, Reason] = {
    "stop": "end",
    "tool_calls": "tools",
    "function_call": "tools",
    "length": "length",
    "content_filter": "refused",
}


def open_client(base_url: str, key: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=base_url, api_key=key, max_retries=0, timeout=TIMEOUT)


class OpenAIModel:
    """``own``: the server is OpenAI's own, which has another name for the limit of an answer than all others."""

    def __init__(self, client: openai.AsyncOpenAI, server: Server, *, own: bool) -> None:
        self.name = server.model
        self._client = client
        self._server = server
        self._limit = "max_completion_tokens" if own else "max_tokens"

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[ModelEvent]]:
        asked: dict[str, Any] = {
            "model": self.name,
            "messages": messages(request.system, request.messages),
            self._limit: request.max_tokens,
            "stream_options": {"include_usage": True},
        }
        if request.tools:
            asked["tools"] = [_tool(tool) for tool in request.tools]
        with self._translated():
            stream = await self._client.chat.completions.create(**asked, stream=True)
        try:
            async with aclosing(self._events(stream, request)) as events:
                yield events
        finally:
            with trio.move_on_after(CLOSE_S, shield=True):
                await stream.close()

    async def _events(self, stream: openai.AsyncStream[Any], request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        answer = _Answer()
        with self._translated():
            async for chunk in stream:
                if (piece := answer.take(chunk)) is not None:
                    yield TextPiece(piece)
        if answer.reason is None:
            raise broken_off()
        for call in answer.calls():
            yield call
        yield Finished(answer.usage or estimate(request, answer.text), answer.reason)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (openai.APITimeoutError, httpx2.TimeoutException):
            raise too_slow(self._server) from None
        except openai.APIStatusError as error:
            kind, headers = f"{error.code or error.type or ''}", error.response.headers
            raise refusal(self._server, error.status_code, kind, _words(error), headers) from None
        except openai.APIConnectionError as error:
            if isinstance(error.__cause__, httpx2.ConnectError):
                raise unreachable(self._server) from None
            raise broken_off() from None
        except openai.APIError as error:  # in the middle of a stream
            raise refusal(self._server, 200, f"{error.code or error.type or ''}", error.message, {}) from None
        except httpx2.HTTPError:
            raise broken_off() from None
        except (openai.OpenAIError, ValueError, AttributeError, TypeError, KeyError):
            # The SDK hands on whatever a server sends: fields may be missing, and of any type.
            raise not_understood() from None


def _words(error: openai.APIStatusError) -> str:
    """The server's own words; the SDK puts the status before them, which is told anyway."""
    told = error.body.get("message") if isinstance(error.body, dict) else None
    return told if isinstance(told, str) else error.message


class _Answer:
    """What the chunks have told so far."""

    def __init__(self) -> None:
        self.text = ""
        self.reason: Reason | None = None
        self.usage: Usage | None = None
        self._calls: dict[object, dict[str, str]] = {}
        self._last: object = None
        self._room = Room()

    def take(self, chunk: Any) -> str | None:
        """The piece of text in a chunk, if there is one."""
        if chunk.usage is not None:
            self.usage = Usage(counted(chunk.usage.prompt_tokens), counted(chunk.usage.completion_tokens))
        if not chunk.choices:
            return None
        choice = chunk.choices[0]
        if choice.finish_reason is not None:
            self.reason = REASONS.get(choice.finish_reason, "end")
        if choice.delta is None:
            return None
        for part in choice.delta.tool_calls or ():
            self._take_call(part)
        piece = choice.delta.content or getattr(choice.delta, "refusal", None)
        if not piece:
            return None
        self.text += self._room.take(piece)
        return str(piece)

    def _take_call(self, part: Any) -> None:
        """Pieces of a call belong together by their index; without one, an id begins the next call."""
        key = part.index if part.index is not None else part.id or self._last
        self._last = key
        call = self._calls.setdefault(key, {"id": "", "name": "", "raw": ""})
        call["id"] = call["id"] or part.id or ""
        if part.function is not None:
            call["name"] = call["name"] or self._room.take(part.function.name or "")
            call["raw"] += self._room.take(part.function.arguments or "")

    def calls(self) -> list[ToolCall]:
        return [
            read_call(call["id"] or f"call_{number}", call["name"], call["raw"])
            for number, call in enumerate(self._calls.values())
        ]


def _tool(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.about, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


def messages(system: str, lines: tuple[Said, ...]) -> list[dict[str, Any]]:
    """A repaired transcript as OpenAI's messages."""
    return [{"role": "system", "content": system}, *map(_message, lines)]


def _message(line: Said) -> dict[str, Any]:
    if line.role is Role.TOOL:
        return {"role": "tool", "tool_call_id": line.data["call"], "content": line.text}
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments or {}), ensure_ascii=False)},
        }
        for call in calls_of(line)
    ]
    message: dict[str, Any] = {"role": str(line.role), "content": line.text or None}
    return {**message, "tool_calls": calls} if calls else message
