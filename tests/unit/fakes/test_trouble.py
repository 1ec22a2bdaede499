"""Trouble arrives as trouble: errors, broken streams and clients that leave, each as the real SDKs see it."""

from __future__ import annotations

import math
from typing import Any

import httpx2
import pytest
import trio

from tests.fakes.script import (
    Begin,
    CallTool,
    Disconnect,
    Garbage,
    Pause,
    Rule,
    Say,
    Status,
    Step,
    Truncate,
    Wait,
    always,
    in_turn,
    rules,
)
from tests.unit.fakes.sdks import KEY, LEFT_BEHIND, Sdk, both, leave, read, read_texts, talking

pytestmark = LEFT_BEHIND


@both
@pytest.mark.parametrize(
    ("code", "error"),
    [
        (400, "BadRequestError"),
        (401, "AuthenticationError"),
        (429, "RateLimitError"),
        (500, "InternalServerError"),
        (529, "InternalServerError"),
    ],
)
async def test_a_status_arrives_as_the_sdks_own_error(sdk: Sdk, code: int, error: str) -> None:
    """With its headers and its message, streamed or not, and asked once when there are to be no retries."""
    failing = always(Status(code, {"retry-after": "7"}, message="not now"))
    async with talking(sdk, failing) as (server, client):
        for ask in (sdk.ask, sdk.start):
            with pytest.raises(sdk.errors.APIStatusError, match="not now") as raised:
                await ask(client, "hello")
            assert raised.value.status_code == code
            assert raised.value.response.headers["retry-after"] == "7"
            assert issubclass(raised.type, (getattr(sdk.errors, error), getattr(sdk.errors, "OverloadedError", ())))
        assert [request.status for request in server.requests] == [code, code]


@both
async def test_an_attempt_is_counted_by_its_messages(sdk: Sdk) -> None:
    """The SDK's own retry is the second attempt; another question starts anew."""
    failing = rules(Rule("", [Status(500, {"retry-after-ms": "1"})], attempts=1), otherwise=always(Say("well")))
    async with talking(sdk, failing, max_retries=1) as (server, client):
        assert (await sdk.ask(client, "one")).texts == ["well"]
        assert (await sdk.ask(client, "two")).texts == ["well"]
        assert [request.asked.attempt for request in server.requests] == [1, 2, 1, 2]


BROKEN: list[tuple[Step, ...]] = [
    (Disconnect(),),
    (Disconnect(reset=True),),
    (Garbage(b"event: message_delta\ndata: {rubbish\n\n"),),
    (Garbage(b"\xff\xfe\n\n"),),
    (Garbage(b"rubbish\r\n", bare=True),),
    (Status(529, message="overloaded"),),
]


@both
@pytest.mark.parametrize("steps", BROKEN, ids=str)
async def test_a_broken_stream_raises(sdk: Sdk, steps: tuple[Step, ...]) -> None:
    """After the text that came before; which error it is differs between the SDKs."""
    async with talking(sdk, always(Say("so far"), *steps)) as (server, client):
        with pytest.raises((sdk.errors.APIError, httpx2.TransportError, ValueError)):
            await read(sdk, client, "hello")
        await server.until(lambda: not server.open)
        (request,) = server.requests
        assert server.text_sent(request) == "so far"
        assert request.dropped == isinstance(steps[0], Disconnect)
        assert not request.cut


@both
async def test_an_answer_without_its_end_raises_nothing(sdk: Sdk) -> None:
    """The SDKs do not mind: whoever reads must look for the reason of the end."""
    async with talking(sdk, always(Say("so far"), Truncate())) as (_, client):
        got = await read(sdk, client, "hello")
        assert (got.texts, got.reason) == (["so far"], None)


@both
@pytest.mark.parametrize("steps", [(Disconnect(),), (Say("half"), Disconnect()), (Disconnect(reset=True),)], ids=str)
async def test_a_whole_answer_that_breaks_off_raises(sdk: Sdk, steps: tuple[Step, ...]) -> None:
    async with talking(sdk, always(*steps)) as (server, client):
        with pytest.raises(sdk.errors.APIConnectionError):
            await sdk.ask(client, "hello")
        assert server.requests[0].dropped


SILENT: list[tuple[Step, ...]] = [
    (Say("x"), Wait(trio.Event())),
    (Say("x"), Pause(math.inf)),
    (Say("x" * 10_000, chunk=1, pause_s=3600),),
    (Say("x"), CallTool("a"), Pause(3600)),
]


@both
@pytest.mark.parametrize("steps", SILENT, ids=lambda steps: type(steps[-1]).__name__)
async def test_a_client_that_closes_is_noticed_while_the_model_is_silent(sdk: Sdk, steps: tuple[Step, ...]) -> None:
    """At once, not when the next word is to be sent."""
    async with talking(sdk, always(*steps)) as (server, client):
        stream = await sdk.start(client, "hello")
        await read_texts(sdk, stream, 1)
        (request,) = server.open
        await leave(stream)
        await server.until(lambda: request.cut)
        assert (request.finished, server.open, server.text_sent(request)) == (False, (), "x")


@both
async def test_a_client_that_is_cancelled_is_noticed(sdk: Sdk) -> None:
    """Before the first byte of the answer, and after it."""
    async with talking(sdk, in_turn(Pause(math.inf), [Begin(), Pause(math.inf)])) as (server, client):
        for number, status in ((1, None), (2, 200)):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(read, sdk, client, "hello")
                await server.until(lambda: [request.status for request in server.open] == [status])  # noqa: B023
                nursery.cancel_scope.cancel()
            await server.until(lambda: not server.connections)
            assert server.requests[number - 1].cut


@both
async def test_a_client_that_has_all_has_cut_nothing(sdk: Sdk) -> None:
    """Closing right after the last event is no cut, however often it is tried."""
    async with sdk.serve(always(Say("all"))) as server:
        for _ in range(20):
            async with sdk.client(server) as client:
                await read(sdk, client, "hello")
                assert not server.open
            await server.until(lambda: not server.connections)
        assert [(request.finished, request.cut) for request in server.requests] == [(True, False)] * 20


@both
async def test_only_the_right_key_is_let_in(sdk: Sdk) -> None:
    """Each request's key is remembered; another than the one required is an AuthenticationError."""
    async with talking(sdk, always(Say("x"))) as (server, client):
        server.require_key = KEY
        await sdk.ask(client, "hello")
        server.require_key = "another"
        with pytest.raises(sdk.errors.AuthenticationError):
            await sdk.ask(client, "hello")
        assert [request.key for request in server.requests] == [KEY, KEY]


UNANSWERED: dict[str, list[dict[str, Any]]] = {
    "openai": [
        {"role": "user", "content": "x"},
        {
            "role": "assistant",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "a", "arguments": "{}"}}],
        },
        {"role": "user", "content": "and?"},
    ],
    "anthropic": [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "a", "input": {}}]},
        {"role": "user", "content": "and?"},
    ],
}


@both
async def test_a_call_without_a_result_is_refused(sdk: Sdk) -> None:
    """As the real servers refuse it, so that no script answers what no model would be shown."""
    async with talking(sdk, always(Say("x"))) as (_, client):
        with pytest.raises(sdk.errors.BadRequestError, match="c1"):
            await sdk.ask(client, "", extra_body={"messages": UNANSWERED[sdk.name]})


@both
async def test_an_error_in_the_test_comes_out_as_it_is(sdk: Sdk) -> None:
    """Not in a group, with a stream under way, and without waiting for it."""

    async def stumble() -> None:
        async with talking(sdk, always(Begin(), Pause(math.inf))) as (_, client):
            await sdk.start(client, "hello")
            raise LookupError

    with pytest.raises(LookupError):
        await stumble()
