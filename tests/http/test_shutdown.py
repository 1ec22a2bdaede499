"""The end of a server with everything still open, and of single streams whose token is good for nothing any more."""

from __future__ import annotations

import signal
import socket
import time
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import orjson
import pytest
import trio

from gateway.clock import utc_now
from gateway.collector import paced_collector
from gateway.http import service
from gateway.local import find
from store.memory import MemoryStore
from store.postgres import open_postgres
from tests.flow.process import over_pipes
from tests.http.firing import fire, make_jobs, ran
from tests.http.readers import Event, Line, after, open_line
from tests.http.world import open_served
from tests.postgres.databases import execute

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from store.protocols import Store
    from tests.http.world import Served

FAST: dict[str, Any] = {"lane_cron": 20, "cron_max_jitter": 0}
AT_ONCE_S = 2.0
REVOKED_S = 1.0
MESSAGES: dict[str, Any] = {"path": "/v1/messages", "method": "POST", "Accept": "text/event-stream"}


async def follow_message(served: Served, lines: AsyncExitStack, secret: str, text: str, **about: str) -> Line:
    """A message that is followed and has been accepted."""
    body = orjson.dumps({"text": text, **about})
    line = await lines.enter_async_context(open_line(served.url, secret, **MESSAGES, body=body))
    await line.until("accepted")
    return line


async def all_end(lines: list[Line]) -> None:
    async with trio.open_nursery() as nursery:
        for line in lines:
            nursery.start_soon(line.rest)


async def end_with_all_connected(place: Path, readers: int, messages: int, deaf: int) -> None:
    """Ask the server to end, take the time until nobody is served any more, and see how each stream has ended."""
    with paced_collector():  # as `goclaw run` has it
        await end_with_all_connected_now(place, readers, messages, deaf)


async def end_with_all_connected_now(place: Path, readers: int, messages: int, deaf: int) -> None:
    calm: list[Line] = []
    async with (
        open_served(deadline_s=300, shutdown_grace=0, lane_main=messages + 1, **FAST) as served,
        AsyncExitStack() as lines,
        trio.open_nursery() as reading,
    ):
        secret, streams = await served.secret(), served.office.streams
        async with served.client(secret) as client:
            await fire([client], await make_jobs(client, 10, "x" * 8_000), 200 if deaf else 1)
            newest = await ran(served.store, 200 if deaf else 1)
        async with trio.open_nursery() as nursery:
            served.url = await nursery.start(partial(service.run, served.office, place, "token", any_port=True))
            calm += [await lines.enter_async_context(open_line(served.url, secret)) for _ in range(readers)]
            for line in calm:
                await line.until("open")
            calm += [
                await follow_message(served, lines, secret, "count to 1000", chat=f"chat {number}")
                for number in range(messages)
            ]
            for _ in range(deaf):
                await lines.enter_async_context(deaf_reader(served.url, secret))
            assert len(streams) == readers + messages + deaf
            asked = time.monotonic()
            nursery.cancel_scope.cancel()
            reading.start_soon(all_end, calm)
        took_s = time.monotonic() - asked
        assert took_s < AT_ONCE_S
        assert newest
        assert len(streams) == 0
        await refused(served.url)
    assert [line.end for line in calm] == ["clean"] * len(calm)


@asynccontextmanager
async def deaf_reader(url: str, secret: str) -> AsyncIterator[None]:
    """Somebody who asks for everything and then reads nothing, with little room for it on the way."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    deaf = trio.socket.from_stdlib_socket(raw)
    async with trio.SocketStream(await joined(deaf, url)) as stream:
        await Line(stream).ask(url, secret, **after("0"))
        await deaf.recv(1, socket.MSG_PEEK)  # it is served, and takes nothing
        yield


async def joined(deaf: trio.socket.SocketType, url: str) -> trio.socket.SocketType:
    parts = urlsplit(url)
    await deaf.connect((parts.hostname, parts.port))
    return deaf


async def refused(url: str) -> None:
    """Whoever comes now is refused, and not kept waiting."""
    with trio.fail_after(REVOKED_S), pytest.raises(OSError, match="connect"):
        async with open_line(url, "nobody"):
            raise AssertionError("somebody listens")


async def test_a_server_ends_at_once_with_all_connected(tmp_path: Path) -> None:
    """Under two seconds with 20 readers and followed messages; each stream ends whole, nobody new is let in."""
    await end_with_all_connected(tmp_path, readers=20, messages=3, deaf=0)


async def test_nobody_who_does_not_read_holds_up_the_end(tmp_path: Path) -> None:
    """They are cut off after the grace; the others end whole, and all of it takes under two seconds."""
    await end_with_all_connected(tmp_path, readers=5, messages=1, deaf=3)


@pytest.mark.faults
@pytest.mark.parametrize(("readers", "messages", "deaf"), [(200, 0, 0), (200, 50, 20), (1_000, 0, 0)])
async def test_a_server_ends_at_once_with_very_many_connected(
    tmp_path: Path, readers: int, messages: int, deaf: int
) -> None:
    """The same with hundreds of them. (under 2 s)"""
    await end_with_all_connected(tmp_path, readers, messages, deaf)


# ── the real process ─────────────────────────────────────────────────────────────────────────────────────────────────


async def in_thread(call: Callable[..., Any], *args: object) -> Any:
    return await trio.to_thread.run_sync(partial(call, *args))


@pytest.mark.parametrize("times", [1, 2])
async def test_a_service_managers_stop_ends_streams_and_process(tmp_path: Path, times: int) -> None:
    """SIGTERM with streams open: each ends whole, exit code 0 in time. A second one ends it at once."""
    settings: dict[str, Any] = {"port": 0, "queue_debounce": 0, "shutdown_grace": 600 if times == 2 else 0}
    with over_pipes(tmp_path, "run", **settings) as process:
        await in_thread(process.expect, "goclaw listens on")
        local = find(tmp_path / "data")
        assert local is not None
        async with AsyncExitStack() as lines:
            streams = [await lines.enter_async_context(open_line(local.url, local.token)) for _ in range(20)]
            for line in streams:
                await line.until("open")
            body = orjson.dumps({"text": "count to 1000"})
            message = await lines.enter_async_context(open_line(local.url, local.token, **MESSAGES, body=body))
            await message.until("delta")
            asked = time.monotonic()
            process.signal(signal.SIGTERM)
            if times == 2:
                await all_end([*streams, message])  # it has heard the first one, and waits for the run
                assert process.popen.poll() is None
                asked = time.monotonic()
                process.signal(signal.SIGTERM)
            await in_thread(process.ends_with, 0)
            assert time.monotonic() - asked < AT_ONCE_S
            await all_end([*streams, message])
            assert [line.end for line in [*streams, message]] == ["clean"] * 21
            assert find(tmp_path / "data") is None


# ── tokens ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def revoke(served: Served, token: str) -> None:
    assert await served.store.revoke_token("theirs", token)


async def revoke_over_http(served: Served, token: str) -> None:
    async with served.client(await served.secret()) as operator:
        assert (await operator.delete(f"/v1/tokens/{token}", params={"tenant": "theirs"})).status_code == 200


async def disable(served: Served, token: str) -> None:
    assert await served.store.enable_tenant("theirs", False)


async def remove(served: Served, token: str) -> None:
    assert await served.store.delete_tenant("theirs")


async def expire(served: Served, token: str) -> None:
    """It does by itself."""
    (kept,) = [one for one in await served.store.tokens("theirs") if one.new.id == token]
    assert kept.new.expires_at is not None
    await trio.sleep((kept.new.expires_at - utc_now()).total_seconds())


@pytest.mark.parametrize("end", [revoke, disable, remove])
async def test_streams_end_with_their_token(whole: Store, tmp_path: Path, end: Callable[..., Awaitable[None]]) -> None:
    """Within a second, whole, and nothing comes after it; the streams of others go on. (S13)"""
    await end_with_token(whole, tmp_path, end)


@pytest.mark.parametrize("end", [revoke_over_http, expire])
async def test_streams_end_however_their_token_does(tmp_path: Path, end: Callable[..., Awaitable[None]]) -> None:
    """The same for one that is revoked over the API, and one whose time is over. (S13)"""
    await end_with_token(MemoryStore(utc_now), tmp_path, end)


async def end_with_token(whole: Store, tmp_path: Path, end: Callable[..., Awaitable[None]]) -> None:
    async with open_served(whole, tmp_path, shutdown_grace=0, **FAST) as served, AsyncExitStack() as lines:
        other = await served.tenant("others")
        await served.store.create_tenant("theirs", "Theirs", "UTC")
        expires_at = utc_now() + timedelta(seconds=1.5) if end is expire else None
        token, secret = await served.token(tenant="theirs", expires_at=expires_at)
        theirs = [await lines.enter_async_context(open_line(served.url, secret)) for _ in range(3)]
        theirs.append(await follow_message(served, lines, secret, "count to 1000"))
        bystander = await lines.enter_async_context(open_line(served.url, other))
        for line in (*theirs[:3], bystander):
            await line.until("open")
        await end(served, token)
        ended = time.monotonic()
        late = other if end in (disable, remove) else await served.secret(tenant="theirs")
        rests: list[list[Event]] = []

        async def read(line: Line) -> None:
            rests.append(await line.rest())

        async with trio.open_nursery() as nursery:
            for line in theirs:
                nursery.start_soon(read, line)
        assert time.monotonic() - ended < REVOKED_S
        assert [line.end for line in theirs] == ["clean"] * 4
        for one in (late, other):
            async with served.client(one) as client:
                await fire([client], await make_jobs(client, 1), 1)
        assert (await bystander.until("notification")).data["kind"] == "run.started"
        assert {event.kind for rest in rests for event in rest} <= {"delta", "hint", "clear"}


async def test_nothing_is_told_after_a_revocation_was_confirmed() -> None:
    """Revoked over the API, the stream is over before anything else can be told. (S13)"""
    async with open_served(**FAST) as served, AsyncExitStack() as lines:
        token, secret = await served.token("read")
        async with served.client(await served.secret()) as client:
            jobs = await make_jobs(client, 5)
            line = await lines.enter_async_context(open_line(served.url, secret))
            await line.until("open")
            assert (await client.delete(f"/v1/tokens/{token}")).status_code == 200
            await fire([client], jobs, 5)
            assert await line.rest() == []
            assert line.end == "clean"


async def test_streams_end_when_a_token_may_do_less(database: str, tmp_path: Path) -> None:
    """A scope that is taken away in the database ends what needed it, and nothing else. (S13)"""
    async with open_postgres(database) as store, open_served(store, tmp_path) as served, AsyncExitStack() as lines:
        secret = await served.secret("read", "chat")
        reads = await lines.enter_async_context(open_line(served.url, secret))
        await reads.until("open")
        chats = await follow_message(served, lines, secret, "count to 3")
        # The only token that there is.
        await in_thread(execute, database, "UPDATE api_tokens SET scopes = '[\"chat\"]'")
        with trio.fail_after(REVOKED_S):
            await reads.rest()
        assert reads.end == "clean"
        assert (await chats.until("end")).data["answer"] == "I counted to 3."
