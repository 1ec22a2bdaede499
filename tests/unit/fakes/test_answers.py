"""What a script says arrives through the real SDKs: texts, calls, ends and numbers, streamed and whole."""

from __future__ import annotations

from typing import Any

import anthropic
import openai
import pytest
import trio

from tests.fakes.anthropic import open_anthropic
from tests.fakes.openai import open_openai
from tests.fakes.script import Asked, Call, CallTool, Count, End, Message, Ping, Result, Say, Step, Steps, Wait, always
from tests.unit.fakes.sdks import LEFT_BEHIND, Sdk, both, leave, read, read_texts, talking

pytestmark = LEFT_BEHIND
TOOLS: list[Step] = [
    Say("Let me see. "),
    CallTool("weather", {"city": "Zürich"}),
    CallTool("clock", {"zones": ["UTC", "CET"]}),
]


@both
async def test_streamed_text_arrives_piece_by_piece(sdk: Sdk) -> None:
    """A piece is with the client before the next one is said."""
    go_on = trio.Event()
    async with talking(sdk, always(Say("one "), Wait(go_on), Say("two", chunk=1))) as (server, client):
        stream = await sdk.start(client, "hello")
        assert await read_texts(sdk, stream, 1) == ["one "]
        assert [server.text_sent(request) for request in server.open] == ["one "]
        go_on.set()
        assert await read_texts(sdk, stream, 3) == ["t", "w", "o"]
        await leave(stream)


@both
@pytest.mark.parametrize("whole", [True, False])
async def test_several_calls_in_one_answer_arrive_whole(sdk: Sdk, whole: bool) -> None:
    """Names, ids and arguments, in order, after the text; the reason says that there are calls."""
    async with talking(sdk, always(*TOOLS)) as (server, client):
        got = await (sdk.ask if whole else lambda *said: read(sdk, *said))(client, "what is it like?")
        assert "".join(got.texts) == "Let me see. "
        assert [tuple(call[1:]) for call in got.calls] == [
            ("weather", '{"city": "Z\\u00fcrich"}'),
            ("clock", '{"zones": ["UTC", "CET"]}'),
        ]
        assert [Call(*call) for call in got.calls] == server.requests[0].calls
        assert len({call[0] for call in got.calls}) == 2
        assert got.reason == {"openai": "tool_calls", "anthropic": "tool_use"}[sdk.name]


@both
@pytest.mark.parametrize("whole", [True, False])
async def test_broken_arguments_arrive_as_they_were_sent(sdk: Sdk, whole: bool) -> None:
    """A model that writes half of a JSON document is not mended on the way."""
    async with talking(sdk, always(CallTool("weather", raw='{"city": "Ro'))) as (_, client):
        got = await (sdk.ask if whole else lambda *said: read(sdk, *said))(client, "hello")
        assert got.calls[0][1:] == ["weather", '{"city": "Ro']


@both
@pytest.mark.parametrize("whole", [True, False])
async def test_usage_arrives(sdk: Sdk, whole: bool) -> None:
    """A quarter of the characters, rounded up, or what the script says."""
    async with talking(sdk, always(Say("123456789"))) as (server, client):
        ask = sdk.ask if whole else lambda *said: read(sdk, *said)
        got = await ask(client, "12345")
        assert (got.tokens_in, got.tokens_out) == (2, 3)
        server.script = always(Say("x"), Count(1000, 70))
        got = await ask(client, "12345")
        assert (got.tokens_in, got.tokens_out) == (1000, 70)


async def test_openai_tells_usage_in_a_stream_only_when_asked() -> None:
    """As the real server does: without `include_usage` no event has any."""
    async with (
        open_openai(always(Say("x"))) as server,
        openai.AsyncOpenAI(base_url=server.base_url, api_key="k") as client,
    ):
        stream = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "x"}], stream=True
        )
        assert [event.usage async for event in stream if event.usage] == []


@both
async def test_the_reason_of_the_end_is_the_wires_own_word(sdk: Sdk) -> None:
    async with talking(sdk, always(Say("x"), End("length"))) as (_, client):
        got = await read(sdk, client, "hello")
        assert got.reason == {"openai": "length", "anthropic": "max_tokens"}[sdk.name]


@both
async def test_signs_of_life_say_nothing(sdk: Sdk) -> None:
    async with talking(sdk, always(Ping(), Say("a"), Ping(), Say("b"))) as (_, client):
        assert (await read(sdk, client, "hello")).texts == ["a", "b"]


@both
async def test_requests_follow_each_other_on_one_connection(sdk: Sdk) -> None:
    """Keep-alive, after a whole answer, after a streamed one and after an error."""
    async with talking(sdk, always(Say("x"))) as (server, client):
        await sdk.ask(client, "one")
        await read(sdk, client, "two")
        server.require_key = "another"
        with pytest.raises(sdk.errors.AuthenticationError):
            await sdk.ask(client, "three")
        server.require_key = None
        await sdk.ask(client, "four")
        assert {request.connection for request in server.requests} == {1}
        assert [request.finished for request in server.requests] == [True] * 4


CONVERSATION = (
    Message("user", "what is it like?"),
    Message("assistant", "Let me see.", (Call("c1", "weather", '{"city": "Rome"}'), Call("c2", "clock", "{}"))),
    Message("tool", results=(Result("c1", "sunny"), Result("c2", "noon"))),
)

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
TO_OPENAI: dict[str, Any] = {
    "model": "m",
    "max_completion_tokens": 9,
    "messages": [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": [{"type": "text", "text": "what is it like?"}]},
        {
            "role": "assistant",
            "content": "Let me see.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}},
                {"id": "c2", "type": "function", "function": {"name": "clock", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
        {"role": "tool", "tool_call_id": "c2", "content": "noon"},
    ],
    "tools": [{"type": "function", "function": {"name": "weather", "description": "w", "parameters": SCHEMA}}],
}
TO_ANTHROPIC: dict[str, Any] = {
    "model": "m",
    "max_tokens": 9,
    "system": "Be short.",
    "messages": [
        {"role": "user", "content": "what is it like?"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Let me see."},
                {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Rome"}},
                {"type": "tool_use", "id": "c2", "name": "clock", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "sunny"},
                {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "noon"}]},
            ],
        },
    ],
    "tools": [{"name": "weather", "description": "w", "input_schema": SCHEMA}],
}


async def test_both_wires_are_asked_in_the_same_words() -> None:
    """One conversation with calls and results is the same to the script, whichever SDK sent it."""
    asked: list[Asked] = []

    def script(request: Asked) -> Steps:
        asked.append(request)
        return [Say("Sunny.")]

    async with open_openai(script) as server, openai.AsyncOpenAI(base_url=server.base_url, api_key="k") as first:
        await first.chat.completions.create(**TO_OPENAI)
    async with open_anthropic(script) as server, anthropic.AsyncAnthropic(base_url=server.base_url, api_key="k") as two:
        await two.messages.create(**TO_ANTHROPIC)
    assert asked[0] == asked[1]
    assert asked[0].messages == CONVERSATION
    assert (asked[0].system, asked[0].tools[0].schema, asked[0].max_tokens) == ("Be short.", SCHEMA, 9)
