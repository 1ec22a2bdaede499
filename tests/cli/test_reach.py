"""How a command finds the gateway, or the store; and how both share a directory that only one process can have."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx2
import pytest
import trio
from starlette.responses import StreamingResponse
from trio.testing import wait_all_tasks_blocked

from gateway.cli.inside import Inside
from gateway.cli.reach import reached
from gateway.clock import utc_now
from gateway.stores import open_store
from store.files.disk import Disk
from store.memory import MemoryStore
from store.protocols import InUse
from tests.http.world import DEADLINE_S, open_served_without_gateway, settings_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from starlette.types import Receive, Scope, Send


@contextmanager
def in_use(place: Path) -> Iterator[None]:
    """Another process has the directory."""
    disk = Disk()
    place.mkdir(exist_ok=True)
    lock = disk.lock(place / "LOCK")
    try:
        yield
    finally:
        disk.let_go(lock)


async def test_a_directory_that_a_command_has_is_waited_for(tmp_path: Path) -> None:
    """A gateway that starts while a command has the directory begins when that is done."""
    settings = settings_for(tmp_path)
    begun = trio.Event()

    async def start() -> None:
        async with open_store(settings, patience_s=DEADLINE_S):
            begun.set()

    with trio.fail_after(DEADLINE_S):
        async with trio.open_nursery() as nursery:
            with in_use(tmp_path):
                nursery.start_soon(start)
                await wait_all_tasks_blocked(0.02)
                assert not begun.is_set()
            await begun.wait()


async def test_a_directory_that_stays_in_use_is_refused(tmp_path: Path) -> None:
    """After a while, with the words of who has it."""
    with in_use(tmp_path), pytest.raises(InUse, match="is in use by"):
        async with open_store(settings_for(tmp_path), patience_s=0.1):
            pass


async def test_a_command_looks_again_for_a_gateway_that_is_just_starting(tmp_path: Path) -> None:
    """The directory is taken and nobody answers yet: as soon as somebody does, that one is asked."""
    settings = settings_for(tmp_path)
    answered = trio.Event()

    async def ask() -> None:
        async with reached(settings) as api:
            assert api.served
            assert (await api.get("/v1/me"))["name"] == "local"
            answered.set()

    with trio.fail_after(DEADLINE_S), in_use(tmp_path):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await wait_all_tasks_blocked(0.02)
            assert not answered.is_set()
            async with open_served_without_gateway(MemoryStore(utc_now), tmp_path):
                await answered.wait()


async def test_an_answer_of_this_process_comes_as_it_is_made() -> None:
    """The first piece is there before the last one exists, and whoever stops reading ends what makes them."""
    go_on, ended = trio.Event(), trio.Event()

    async def pieces() -> AsyncIterator[str]:
        try:
            yield "one\n"
            await go_on.wait()
            yield "two\n"
            await trio.sleep_forever()
        finally:
            ended.set()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await StreamingResponse(pieces())(scope, receive, send)

    with trio.fail_after(DEADLINE_S):
        async with trio.open_nursery() as nursery:
            transport = Inside(app, nursery)
            async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                async with client.stream("GET", "/") as answer:
                    lines = answer.aiter_lines()
                    assert await anext(lines) == "one"
                    go_on.set()
                    assert await anext(lines) == "two"
                await ended.wait()
