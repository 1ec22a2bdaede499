"""The real SDKs, each asked and read in the same words, so that one test can hold both to one promise."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import anthropic
import openai
import pytest
import trio

from tests.fakes.anthropic import open_anthropic
from tests.fakes.openai import open_openai

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.fakes.script import Script
    from tests.fakes.server import ModelServer

KEY = "sk-test"

# OpenAI's SDK leaves its generators where they are at `[DONE]`, both do when they raise; neither can be helped.
LEFT_BEHIND = pytest.mark.filterwarnings(
    r"ignore:Async generator '(openai|anthropic|httpx2|httpcore2)\.:ResourceWarning",
)


@dataclass(slots=True)
class Got:
    """An answer as it arrived. A call is its id, its name and the text of its arguments."""

    texts: list[str] = field(default_factory=list)
    calls: list[list[str]] = field(default_factory=list)
    reason: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None


class Served(Protocol):
    """Whatever has an address."""

    @property
    def base_url(self) -> str: ...


class Sdk(Protocol):
    name: str

    @property
    def errors(self) -> Any: ...
    def client(self, server: Served, **options: Any) -> Any: ...
    def serve(self, script: Script, **options: Any) -> Any: ...
    async def ask(self, client: Any, text: str, **options: Any) -> Got: ...
    async def start(self, client: Any, text: str, **options: Any) -> Any: ...
    def take(self, event: Any, got: Got) -> None: ...


class OpenAISdk:
    name = "openai"
    errors = openai
    serve = staticmethod(open_openai)

    def client(self, server: Served, **options: Any) -> Any:
        return openai.AsyncOpenAI(base_url=server.base_url, **{"api_key": KEY, "max_retries": 0, **options})

    async def ask(self, client: Any, text: str, **options: Any) -> Got:
        answer = await client.chat.completions.create(model="m", messages=said(text), **options)
        choice, usage = answer.choices[0], answer.usage
        calls = [[call.id, call.function.name, call.function.arguments] for call in choice.message.tool_calls or ()]
        texts = [choice.message.content] if choice.message.content else []
        return Got(texts, calls, choice.finish_reason, usage.prompt_tokens, usage.completion_tokens)

    async def start(self, client: Any, text: str, **options: Any) -> Any:
        options = {"stream_options": {"include_usage": True}, **options}
        return await client.chat.completions.create(model="m", messages=said(text), stream=True, **options)

    def take(self, event: Any, got: Got) -> None:
        if event.usage:
            got.tokens_in, got.tokens_out = event.usage.prompt_tokens, event.usage.completion_tokens
        for choice in event.choices:
            got.reason = choice.finish_reason or got.reason
            got.texts += [choice.delta.content] if choice.delta.content else []
            for call in choice.delta.tool_calls or ():
                if call.id:
                    got.calls.append([call.id, call.function.name, ""])
                got.calls[call.index][2] += call.function.arguments


class AnthropicSdk:
    name = "anthropic"
    errors = anthropic
    serve = staticmethod(open_anthropic)

    def client(self, server: Served, **options: Any) -> Any:
        return anthropic.AsyncAnthropic(base_url=server.base_url, **{"api_key": KEY, "max_retries": 0, **options})

    async def ask(self, client: Any, text: str, **options: Any) -> Got:
        answer = await client.messages.create(model="m", max_tokens=9, messages=said(text), **options)
        got = Got([], [], answer.stop_reason, answer.usage.input_tokens, answer.usage.output_tokens)
        for block in answer.content:
            if block.type == "text":
                got.texts.append(block.text)
            else:
                written = block.input if isinstance(block.input, str) else json.dumps(block.input)
                got.calls.append([block.id, block.name, written])
        return got

    async def start(self, client: Any, text: str, **options: Any) -> Any:
        return await client.messages.create(model="m", max_tokens=9, messages=said(text), stream=True, **options)

    def take(self, event: Any, got: Got) -> None:
        match event.type:
            case "message_start":
                got.tokens_in = event.message.usage.input_tokens
            case "content_block_start" if event.content_block.type == "tool_use":
                got.calls.append([event.content_block.id, event.content_block.name, ""])
            case "content_block_delta" if event.delta.type == "text_delta":
                got.texts.append(event.delta.text)
            case "content_block_delta":
                got.calls[-1][2] += event.delta.partial_json
            case "message_delta":
                got.reason, got.tokens_out = event.delta.stop_reason, event.usage.output_tokens


SDKS: list[Sdk] = [OpenAISdk(), AnthropicSdk()]
both = pytest.mark.parametrize("sdk", SDKS, ids=lambda sdk: sdk.name)


@asynccontextmanager
async def talking(sdk: Sdk, script: Script, **options: Any) -> AsyncIterator[tuple[ModelServer, Any]]:
    """A server and a client of it, closed whatever happens."""
    async with sdk.serve(script) as server:
        client = sdk.client(server, **options)
        try:
            yield server, client
        finally:
            with trio.CancelScope(shield=True):
                await client.close()


async def read(sdk: Sdk, client: Any, text: str, **options: Any) -> Got:
    """A streamed answer to its end."""
    stream, got = await sdk.start(client, text, **options), Got()
    async for event in stream:
        sdk.take(event, got)
    return got


async def read_texts(sdk: Sdk, stream: Any, count: int) -> list[str]:
    """As many pieces of text, and not an event more."""
    got = Got()
    while len(got.texts) < count:
        sdk.take(await anext(stream), got)
    return got.texts


async def leave(stream: Any) -> None:
    """Out of a stream before its end. Its generators end by being cancelled; `close` would leave them half-run."""
    with trio.CancelScope() as scope:
        scope.cancel()
        async for _ in stream:
            continue
    with trio.CancelScope(shield=True):
        await stream.close()


def said(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]
