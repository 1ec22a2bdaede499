"""A fake stays within its bounds, whatever is sent to it, and never keeps a test waiting."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import trio

from tests.fakes.openai import open_openai
from tests.fakes.script import Begin, Pause, Say, Wait, always

if TYPE_CHECKING:
    from tests.fakes.server import ModelServer

BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}]}).encode()
HELLO = always(Say("x"))


async def connect(server: ModelServer) -> trio.SocketStream:
    return await trio.open_tcp_stream("127.0.0.1", urlsplit(server.base_url).port or 0)


def post(body: bytes, path: str = "/v1/chat/completions", more: str = "") -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: x\r\n{more}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def last_words(stream: trio.SocketStream) -> str:
    """All that comes until the server closes."""
    return b"".join([bytes(data) async for data in stream]).decode()


async def told(stream: trio.SocketStream, words: str) -> str:
    heard = ""
    while words not in heard:
        heard += (await stream.receive_some()).decode() or f" (ended before {words!r}) {words}"
    return heard


async def test_one_connection_too_many_is_refused() -> None:
    """With an answer; when another has ended there is room again."""
    async with open_openai(HELLO, max_connections=1) as server:
        async with await connect(server) as first:
            await first.send_all(post(BODY))
            await told(first, '"usage"')
            async with await connect(server) as second:
                assert " 503 " in await last_words(second)
        await server.until(lambda: not server.connections)
        async with await connect(server) as third:
            await third.send_all(post(BODY))
            assert " 200 " in await told(third, '"usage"')


async def test_a_body_too_long_is_refused_and_the_answer_arrives() -> None:
    async with open_openai(HELLO, max_body=1000) as server, await connect(server) as stream:
        await stream.send_all(post(b"x" * 100_000))
        assert " 413 " in await told(stream, "longer than 1000 bytes")
        assert server.requests == []


async def test_rubbish_is_refused() -> None:
    """What is no HTTP, what is no JSON, what is no request of this wire, and what is elsewhere."""
    async with open_openai(HELLO) as server:
        async with await connect(server) as stream:
            await stream.send_all(b"hello?\r\n\r\n")
            assert " 400 " in await told(stream, "error")
        for body in (b"{", b"[]", b"{}", b'{"model": "m", "messages": [1]}', b'{"model": "m", "messages": []}'):
            async with await connect(server) as stream:
                await stream.send_all(post(body))
                assert " 400 " in await told(stream, "invalid_request_error")
        async with await connect(server) as stream:
            await stream.send_all(post(BODY, "/v1/responses"))
            assert " 404 " in await told(stream, "there is no POST /v1/responses here")
        assert server.others[-1] == ("POST", "/v1/responses", 404)


async def test_requests_that_come_ahead_are_answered_in_turn() -> None:
    """The watch for a client that leaves loses nothing of what it reads."""
    go_on = trio.Event()
    async with open_openai(always(Wait(go_on), Say("x"))) as server, await connect(server) as stream:
        await stream.send_all(post(BODY))
        await server.received()
        await stream.send_all(post(BODY, more="Connection: close\r\n"))
        go_on.set()
        assert (await last_words(stream)).count(" 200 ") == 2
        assert [request.finished for request in server.requests] == [True, True]


async def test_a_client_that_waits_to_be_asked_for_its_body_is_asked() -> None:
    async with open_openai(HELLO) as server, await connect(server) as stream:
        head = post(BODY, more="Expect: 100-continue\r\n").removesuffix(BODY)
        await stream.send_all(head)
        await told(stream, " 100 ")
        await stream.send_all(BODY)
        assert " 200 " in await told(stream, '"usage"')


async def test_the_end_waits_for_nobody() -> None:
    """Neither for a stream under way, nor for half of a request, nor for a client that never reads."""
    with trio.fail_after(30):
        async with open_openai(always(Begin(), Pause(math.inf))) as server:
            under_way, half, idle = [await connect(server) for _ in range(3)]
            await under_way.send_all(post(BODY))
            await half.send_all(post(BODY)[:-5])
            await server.until(lambda: server.open and server.connections == 3)
        assert not server.open
        assert (server.requests[0].finished, server.requests[0].cut) == (False, False)
        for stream in (under_way, half, idle):
            await trio.aclose_forcefully(stream)


async def test_models_are_listed() -> None:
    async with open_openai(HELLO, models=["one", "two"]) as server, await connect(server) as stream:
        await stream.send_all(b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
        assert '"one"' in await told(stream, '"two"')
