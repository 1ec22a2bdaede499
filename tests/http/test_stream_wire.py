"""Whatever comes over the wire, the server goes on, answers the next one, and its log has no traceback. (S12)"""

from __future__ import annotations

import inspect
import logging
import re
import socket
import struct
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import hypercorn.protocol.h11
import hypercorn.trio.task_group
import hypercorn.trio.tcp_server
import pytest
import trio
import trio.lowlevel

from gateway.access.limits import Limits
from gateway.http.app import make_app
from gateway.http.connection import Connection, Connections, Http1, Tasks
from gateway.http.server import serve
from tests.http.firing import fire, make_jobs, ran
from tests.http.readers import Line, after
from tests.http.world import open_served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tests.http.world import Served

QUICK = Limits(grace_s=0.2, send_s=1, idle_s=0.3, connections=60, per_address=40)
END_S = 10
TLS_HELLO = bytes.fromhex("16030100a5010000a10303") + bytes(range(200))
H2_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"


@asynccontextmanager
async def open_wire(limits: Limits) -> AsyncIterator[Served]:
    """A server with such limits, which must be well in the end."""
    async with open_served() as served, trio.open_nursery() as nursery:
        app = make_app(served.office)
        port = await nursery.start(partial(serve, app, served.office.streams, "127.0.0.1", 0, limits=limits))
        served.url = f"http://127.0.0.1:{port}"
        yield served
        await is_well(served)
        nursery.cancel_scope.cancel()


@pytest.fixture
async def wire(caplog: pytest.LogCaptureFixture) -> AsyncIterator[Served]:
    """A server with small limits, and nothing bad in its log after the test."""
    caplog.set_level(logging.INFO)
    async with open_wire(QUICK) as served:
        yield served
    assert not [one.getMessage() for one in caplog.records if one.exc_info or one.levelno >= logging.ERROR]


async def is_well(served: Served) -> None:
    async with served.client() as client:
        assert (await client.get("/healthz")).json() == {"status": "ok"}


@asynccontextmanager
async def connected(served: Served) -> AsyncIterator[trio.SocketStream]:
    parts = urlsplit(served.url)
    assert parts.hostname is not None
    assert parts.port is not None
    with trio.fail_after(END_S):
        async with await trio.open_tcp_stream(parts.hostname, parts.port) as stream:
            yield stream


async def rest(stream: trio.SocketStream) -> bytes:
    """Everything until the server closes; a reset is an end too."""
    got = b""
    try:
        async for data in stream:
            got += bytes(data)
    except trio.BrokenResourceError:
        pass
    return got


async def answered(served: Served, data: bytes, *, half_close: bool = False) -> bytes:
    async with connected(served) as stream:
        try:
            await stream.send_all(data)
            if half_close:
                await stream.send_eof()
        except trio.BrokenResourceError:
            pass
        return await rest(stream)


def get(served: Served, path: str = "/healthz", version: str = "1.1", *more: str) -> bytes:
    lines = [f"GET {path} HTTP/{version}", f"Host: {urlsplit(served.url).netloc}", *more, "", ""]
    return "\r\n".join(lines).encode()


async def test_what_is_leaned_on_inside_hypercorn_is_there() -> None:
    """A new version that renames any of it fails here, by name."""
    assert issubclass(Connection, hypercorn.trio.tcp_server.TCPServer)
    assert issubclass(Http1, hypercorn.protocol.h11.H11Protocol)
    assert issubclass(Tasks, hypercorn.trio.task_group.TaskGroup)
    for owner, names in {
        hypercorn.trio.tcp_server.TCPServer: ("run", "protocol_send", "_read_data", "_close", "_idle_timeout"),
        hypercorn.protocol.h11.H11Protocol: ("_check_protocol", "handle", "stream_send"),
        hypercorn.trio.task_group.TaskGroup: ("spawn_app", "spawn"),
    }.items():
        for name in names:
            assert callable(getattr(owner, name, None)), f"{owner.__name__}.{name} is gone"
    expected: dict[Callable[..., object], str] = {
        hypercorn.trio.tcp_server.TCPServer.__init__: "self app config context state stream",
        hypercorn.protocol.h11.H11Protocol.__init__: (
            "self app config context task_group connection_state ssl client server send"
        ),
        hypercorn.trio.task_group._handle: "app config scope receive send sync_spawn call_soon",
    }
    for function, parameters in expected.items():
        assert list(inspect.signature(function).parameters) == parameters.split(), function


async def test_garbage_is_refused(wire: Served) -> None:
    """Random bytes, TLS, HTTP/2, half a request, a huge head: an answer or an end, and nothing else happens."""
    random = Random(7)
    pieces = [
        *(random.randbytes(random.randint(1, 5_000)) for _ in range(30)),
        TLS_HELLO,
        H2_HELLO,
        b"\r\n" * 1_000,
        b"GET",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /" + b"a" * 100_000,
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20_000,
        b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET http://[::1 HTTP/1.1\r\nHost: [::1\r\n\r\n",
    ]

    async def send(piece: bytes) -> None:
        got = await answered(wire, piece)
        assert got == b"" or got.startswith((b"HTTP/1.1 4", b"HTTP/1.1 5")), (piece[:50], got[:200])
        assert not got.startswith(b"HTTP/1.1 500"), piece[:50]

    for some in (pieces[:20], pieces[20:40], pieces[40:]):
        async with trio.open_nursery() as nursery:
            for piece in some:
                nursery.start_soon(send, piece)


async def test_a_request_that_is_cut_anywhere_does_no_harm(wire: Served) -> None:
    """Closed or reset after any number of bytes, of a stream's request too."""
    secret = await wire.secret()
    whole = get(wire, "/v1/notifications/stream", "1.1", f"Authorization: Bearer {secret}")
    for at in range(0, len(whole) + 1, 5):
        async with connected(wire) as stream:
            await stream.send_all(whole[:at] or b"G")
            if at % 2:  # a reset instead of an end
                stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with trio.fail_after(END_S):
        while len(wire.office.streams):
            await trio.testing.wait_all_tasks_blocked(0.01)


async def test_a_connection_is_used_again(wire: Served) -> None:
    """Requests one after the other, and all at once: as many answers, in order."""
    async with connected(wire) as stream:
        for _ in range(3):
            await stream.send_all(get(wire))
            assert b'{"status":"ok"}' in bytes(await until(stream, b"}"))
        await stream.send_all(get(wire) * 2 + get(wire, "/v1/me") + get(wire, "/healthz", "1.1", "Connection: close"))
        got = await rest(stream)
    codes = re.findall(rb"HTTP/1.1 (\d+) ", got)
    assert codes == [b"200", b"200", b"401", b"200"]


async def until(stream: trio.SocketStream, end: bytes) -> bytes:
    got = b""
    while end not in got:
        data = await stream.receive_some()
        assert data, got
        got += bytes(data)
    return got


async def test_old_clients_are_answered(wire: Served) -> None:
    """HTTP/1.0: the answer, and then the end."""
    got = await answered(wire, get(wire, "/healthz", "1.0"))
    assert got.startswith(b"HTTP/1.1 200")
    assert got.endswith(b'{"status":"ok"}')


async def test_http_2_is_not_spoken(wire: Served) -> None:
    """An upgrade to it is passed over, whoever begins with it gets an error that HTTP/1.1 has."""
    upgrade = "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"
    got = await answered(wire, get(wire, "/healthz", "1.1", *upgrade))
    assert got.startswith(b"HTTP/1.1 200")
    assert got.endswith(b'{"status":"ok"}')
    assert (await answered(wire, H2_HELLO)).startswith(b"HTTP/1.1 4")


async def test_a_client_that_says_no_more_is_answered(wire: Served) -> None:
    """Half-closed after its request, as `nc -N` does it."""
    got = await answered(wire, get(wire), half_close=True)
    assert got.startswith(b"HTTP/1.1 200")


async def test_a_websocket_is_refused(wire: Served) -> None:
    """There is none here, whoever asks."""
    key = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="
    upgrade = "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", key
    got = await answered(
        wire, get(wire, "/v1/notifications/stream", "1.1", *(f"{one}==" if "Key" in one else one for one in upgrade))
    )
    assert got.startswith(b"HTTP/1.1 403")


@pytest.mark.parametrize("said", [b"", b"GET /healthz HTTP/1.1\r\n", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"])
async def test_a_head_that_does_not_come_is_not_waited_for(wire: Served, said: bytes) -> None:
    """A byte now and then does not help: the whole head has its time."""
    async with connected(wire) as stream:
        try:
            await stream.send_all(said or b"G")
            for _ in range(1_000):
                await trio.sleep(QUICK.idle_s / 10)
                await stream.send_all(b"x")
        except trio.BrokenResourceError:
            return
        raise AssertionError("it is still listened to")


async def test_the_end_of_a_wanted_stream_is_not_the_idle_time(wire: Served) -> None:
    """A stream may be silent for much longer than a connection between two requests."""
    async with connected(wire) as stream:
        secret = await wire.secret()
        await stream.send_all(get(wire, "/v1/notifications/stream", "1.1", f"Authorization: Bearer {secret}"))
        await until(stream, b"event: open")
        with trio.move_on_after(3 * QUICK.idle_s) as silent:
            await stream.receive_some()
        assert silent.cancelled_caught


async def test_an_answer_comes_although_the_body_is_not_read(wire: Served) -> None:
    """Refused before its body, as large as it may be: the client reads why, and nothing of it stays behind."""
    body = b"x" * 990_000
    head = f"POST /v1/messages HTTP/1.1\r\nHost: {urlsplit(wire.url).netloc}\r\nContent-Length: {len(body)}\r\n\r\n"
    for _ in range(QUICK.per_address + 5):
        got = await answered(wire, head.encode() + body)
        assert got.startswith(b"HTTP/1.1 401"), got[:100]
    async with wire.client("wrong") as client:
        for size in (10, 900_000, 5_000_000):
            answer = await client.post("/v1/messages", content=b"x" * size)
            assert answer.status_code in (401, 413, 429)


async def test_too_many_connections_are_refused_politely() -> None:
    """With a problem that says so; as soon as one is gone the next may come."""
    async with open_wire(replace(QUICK, idle_s=30)) as wire:
        async with trio.open_nursery() as holding:
            for _ in range(QUICK.per_address):
                await holding.start(held, wire)
            for _ in range(5):
                refused = await answered(wire, get(wire))
                assert refused.startswith(b"HTTP/1.1 503")
                assert b"too-many-connections" in refused
            holding.cancel_scope.cancel()
        for _ in range(1_000):
            if (await answered(wire, get(wire, "/healthz", "1.1", "Connection: close"))).startswith(b"HTTP/1.1 200"):
                return
        raise AssertionError("nobody is let in again")


def test_an_address_has_only_so_many_connections() -> None:
    """And all together have only so many; whoever leaves makes room."""
    connections = Connections(Limits(connections=3, per_address=2))
    assert [connections.take(one) for one in "aaabb"] == [True, True, False, True, False]
    connections.leave("a")
    assert connections.take("b")
    assert len(connections) == 3


async def test_nothing_is_sent_any_more_after_the_cut() -> None:
    """Also what was not being sent when it came: nobody who does not read holds up the end."""
    connections = Connections(QUICK)
    connections.cut()
    with connections.sending() as late:
        await trio.sleep_forever()
    assert late.cancelled_caught


async def test_a_slow_peer_gets_all_and_a_deaf_one_is_cut_off(wire: Served) -> None:
    """Each piece has the time of a send, not all of them together; who takes nothing for so long is gone. (S12)"""
    async with wire.client(await wire.secret(), Connection="close") as client:  # none is kept so long here
        await fire([client], await make_jobs(client, 10, "x" * 8_000), 100)
        newest = await ran(wire.store, 100)
    secret = await wire.secret()
    async with narrow(wire.url) as slow, narrow(wire.url) as deaf:
        line, gone, began = Line(slow), Line(deaf), trio.current_time()
        seen: list[int | None] = []
        for one in (line, gone):
            await one.ask(wire.url, secret, **after(0))
        while not seen or seen[-1] != newest:
            seen += [event.id for event in await line.read(4_000) if event.kind == "notification"]
            await trio.sleep(QUICK.send_s / 30)
        await gone.rest()
        assert gone.end == "cut"
        assert trio.current_time() - began > QUICK.send_s
        assert seen == list(range(1, newest + 1))


@pytest.mark.faults
async def test_the_usual_limits_hold(caplog: pytest.LogCaptureFixture) -> None:
    """1,200 connections from one address, and 100 more that are told so; afterwards all is well."""
    async with open_served(deadline_s=300) as served, trio.open_nursery() as nursery:
        for _ in range(Limits().per_address):
            await nursery.start(held, served)
        for _ in range(100):
            assert (await answered(served, get(served))).startswith(b"HTTP/1.1 503")
        nursery.cancel_scope.cancel()
    assert not [record for record in caplog.records if record.exc_info]


async def held(served: Served, task_status: trio.TaskStatus[None]) -> None:
    parts = urlsplit(served.url)
    async with await trio.open_tcp_stream(parts.hostname or "", parts.port or 0):
        task_status.started()
        await trio.sleep_forever()


@asynccontextmanager
async def narrow(url: str) -> AsyncIterator[trio.SocketStream]:
    """A connection with little room on the way."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    ours = trio.socket.from_stdlib_socket(raw)
    async with trio.SocketStream(ours) as stream:
        await ours.connect((urlsplit(url).hostname, urlsplit(url).port))
        yield stream
