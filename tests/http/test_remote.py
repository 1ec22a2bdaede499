"""A chat in the terminal that talks to the gateway that runs already: real processes, and the part that follows."""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import trio

from gateway.remote import Remote, found
from gateway.stores import data_directory
from store.protocols import CannotOpen
from tests.flow.edges import FakeChannel
from tests.flow.process import COUNTED_2, COUNTING, PROMPT, Process, in_terminal, over_pipes
from tests.flow.world import incoming
from tests.http.world import open_served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

SETTINGS: dict[str, Any] = {"port": 0, "queue_debounce": 0, "shutdown_grace": 0}
HERE = r"The gateway at http\S+ answers\s+here\."


def listening(gateway: Process) -> None:
    gateway.expect("goclaw listens on")


def test_a_chat_beside_a_running_gateway(tmp_path: Path) -> None:
    """It says who answers, shows work in progress, stops it with Ctrl-C, answers commands, and leaves well. (P6, P7)"""
    with over_pipes(tmp_path, "run", **SETTINGS) as gateway:
        listening(gateway)
        with in_terminal(tmp_path, **SETTINGS) as chat:
            chat.expect(HERE)
            chat.expect(PROMPT)
            chat.type("count to 100\n")
            chat.expect(COUNTING)
            chat.expect(COUNTED_2)
            chat.type("\x03")
            chat.expect("Stopped 1 run.\n" + PROMPT)
            chat.type("/status\n")
            chat.expect("Lanes:")
            chat.type("hello\n")
            chat.expect("I am the demo agent")
            chat.type("\x04")
            chat.expect("Bye.\n")
            output = chat.ends_with(0)
            assert "Stopped.\n" not in output
        assert gateway.popen.poll() is None


def test_a_gateway_that_is_killed_and_started_again_answers_once(tmp_path: Path) -> None:
    """It has another port and another token then; what was typed meanwhile is answered too. (P1)"""
    with in_terminal_beside(tmp_path) as (gateway, chat):
        chat.type("count to 3\n")
        chat.expect(COUNTING)
        gateway.kill()
        chat.type("hello\n")
        with over_pipes(tmp_path, "run", **SETTINGS) as again:
            listening(again)
            for _ in range(2):
                chat.expect(r"I counted to 3\.|I am the demo agent")
            chat.type("\x04")
            output = chat.ends_with(0)
    assert output.count("I counted to 3.") == 1
    assert output.count("I am the demo agent") == 1


def test_whoever_waits_for_a_gateway_that_is_gone_may_leave(tmp_path: Path) -> None:
    """Ctrl-C leaves when there is nobody who could stop anything."""
    with in_terminal_beside(tmp_path) as (gateway, chat):
        chat.type("count to 100\n")
        chat.expect(COUNTED_2)
        gateway.kill()
        chat.read_for(1)
        chat.type("\x03")
        chat.expect("Bye.\n")
        chat.ends_with(0)


@contextmanager
def in_terminal_beside(place: Path) -> Iterator[tuple[Process, Process]]:
    """A gateway, and a chat beside it that has its prompt."""
    with over_pipes(place, "run", **SETTINGS) as gateway:
        listening(gateway)
        with in_terminal(place, **SETTINGS) as chat:
            chat.expect(HERE)
            chat.expect(PROMPT)
            yield gateway, chat


# ── in this process ──────────────────────────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def talking(place: Path, gone_s: float = 30, **settings: Any) -> AsyncIterator[tuple[Remote, FakeChannel]]:
    """A reader's way to a gateway that is served here."""
    async with (
        open_served(place=place, **settings) as served,
        found(data_directory(served.office.settings)) as client,
        trio.open_nursery() as nursery,
    ):
        assert client is not None
        channel = FakeChannel("terminal")
        yield Remote(client, channel, nursery, data_directory(served.office.settings), gone_s), channel
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("text", ["one\u2028two\x85three\u2029four", "🦀 \x0b\x0c\x1c ½", "x" * 90_000])
async def test_any_answer_is_shown_as_it_is(tmp_path: Path, text: str) -> None:
    """Characters at which others end a line are in the middle of it here. (P6)"""
    async with talking(tmp_path) as (remote, channel):
        await remote.receive([incoming(text, channel="terminal")])
        await remote.drained()
        (reply,) = channel.replies()
        assert reply.startswith(f"You said: {text.strip()}")


async def test_one_that_is_asked_too_often_is_asked_again(tmp_path: Path) -> None:
    """Nothing that was typed is given up because of a limit. (P1)"""
    async with talking(tmp_path, http_rate=1) as (remote, channel):
        for number in range(4):
            await remote.receive([incoming(f"say {number}", channel="terminal")])
        await remote.drained()
        assert [reply.partition("\n")[0] for reply in channel.replies()] == [f"You said: say {n}" for n in range(4)]


async def test_a_refusal_says_why_and_what_to_do(tmp_path: Path) -> None:
    """A text that is too long, for instance."""
    async with talking(tmp_path) as (remote, channel):
        await remote.receive([incoming("x" * 100_001, channel="terminal")])
        await remote.drained()
        (reply,) = channel.replies()
        assert "100000" in reply


@pytest.mark.parametrize("taken", [True, False])
async def test_a_gateway_that_ends_for_good_is_told(tmp_path: Path, taken: bool) -> None:
    """One clear line: what was taken in is kept, what was not is named. (P1)"""
    text, said = "count to 1000" if taken else "hello there", list[str]()
    with trio.fail_after(30):
        async with httpx2.AsyncClient(trust_env=False) as client:
            channel = FakeChannel("terminal")
            try:
                async with trio.open_nursery() as nursery:
                    async with open_served(place=tmp_path, shutdown_grace=0) as served:
                        client.base_url = httpx2.URL(served.url)
                        remote = Remote(client, channel, nursery, data_directory(served.office.settings), 0.5)
                        if taken:
                            await remote.receive([incoming(text, channel="terminal")])
                            assert remote.busy
                    if not taken:
                        await remote.receive([incoming(text, channel="terminal")])
            except* CannotOpen as told:
                (error,) = told.exceptions
                said.append(str(error))
    assert len(said) == 1
    assert "the gateway has ended" in said[0]
    assert ("answered at its next start" if taken else 'Not taken in: "hello there"') in said[0]
