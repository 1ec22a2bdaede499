"""The terminal where there is none: pipes and files get the replies and nothing else, and nothing said can harm."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unicodedata
from typing import TYPE_CHECKING

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import trio_test

from gateway.channels.printable import printable
from gateway.channels.screen import Piece, PlainScreen
from gateway.channels.terminal import SESSION, Terminal
from gateway.protocols import ChannelError, Delivery

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.records import Cursor, Incoming

KINDS = ["notice", "reply", "bye"]


async def progress(parts: int, live: str) -> None:
    await trio.lowlevel.checkpoint()


def delivery(text: str, turn: str = "") -> Delivery:
    return Delivery(SESSION, text, turn, 0, "", progress)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(KINDS), st.text(max_size=5))))
def test_without_a_terminal_there_are_only_replies(pieces: list[tuple[str, str]]) -> None:
    """A pipe or file gets each reply as lines: no prompt, no work in progress, no escape sequence."""

    @trio_test
    async def shown() -> bytes:
        with tempfile.TemporaryFile() as file:
            screen = PlainScreen(file.fileno())
            async with screen.open():
                for kind, text in pieces:
                    await screen.put(Piece(kind, text))
            file.seek(0)
            return file.read()

    expected = "".join(f"{printable(text)}\n" for kind, text in pieces if kind == "reply")
    assert shown() == expected.encode()


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[2J\x1b[H",
        "\x1b]0;title\x07",
        "\x1b]52;c;cGF5\x1b\\",
        "\x9b31m",
        "\x90q\x9c",
        "\x07\x08\x7f\x00",
        "a\rb",
        "a\x0bb\x0cc",
        "a\x85b",
        "\x1c\x1d\x1e\x1f",
        "\u202eevil",
        "\u2066x\u2069",
        "\u2028\u2029",
        "\ud800",
    ],
)
def test_nothing_said_can_move_the_cursor(text: str) -> None:
    """Escape sequences, carriage returns, other controls and reversed writing lose their power."""
    controls = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert not [char for char in printable(text) if char not in "\n\t" and unicodedata.category(char) in controls]


@pytest.mark.parametrize(
    "text", ["plain", "two\nlines\tand a tab", "ümläut", "中文", "🦀", "non\u00a0breaking", "\u3000"]
)
def test_text_stays_as_it_is(text: str) -> None:
    """What people write in any alphabet is shown."""
    assert printable(text) == text


@pytest.mark.parametrize("text", ["👩\u200d🔬", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "❤\ufe0f"])
def test_joined_characters_stay_joined(text: str) -> None:
    """The invisible joiners that emoji and Persian are written with are part of the text."""
    assert printable(text) == text


class Desk:
    """Takes in what the terminal reads; ``drained`` waits for the gate."""

    def __init__(self) -> None:
        self.batches: list[list[Incoming]] = []
        self.gate = trio.Event()
        self.gate.set()

    async def receive(self, batch: Sequence[Incoming], cursor: Cursor | None = None) -> None:
        await trio.lowlevel.checkpoint()
        self.batches.append([*batch])

    async def drained(self) -> None:
        await self.gate.wait()

    @property
    def texts(self) -> list[list[str]]:
        return [[incoming.text for incoming in batch] for batch in self.batches]


async def read_all(data: bytes) -> tuple[Desk, Terminal]:
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        desk, terminal = Desk(), Terminal(reading, null)
        with trio.fail_after(20):
            await terminal.read(desk)
        return desk, terminal
    finally:
        os.close(reading)
        os.close(null)


async def test_what_is_typed_at_once_is_handed_in_at_once() -> None:
    """Pasted lines are one batch, so that a stop among them is seen before anything starts. (L11)"""
    desk, _ = await read_all(b"one\n\n  \ntwo\n/stop\n")
    assert desk.texts == [["one", "two", "/stop"]]
    assert not [incoming for batch in desk.batches for incoming in batch if incoming.session != SESSION]


async def test_no_two_lines_look_like_one_delivery() -> None:
    """The same words twice are two messages, also over two chats. (lesson 15)"""
    first, _ = await read_all(b"again\nagain\n")
    second, _ = await read_all(b"again\n")
    keys = [incoming.key for desk in (first, second) for batch in desk.batches for incoming in batch]
    assert len(set(keys)) == 3


async def test_leaving_ends_the_waiting_for_answers() -> None:
    """At the end of the input it waits for all answers, unless it is told to leave; asking twice is told apart."""
    reading, writing = os.pipe()
    os.close(writing)
    desk, terminal = Desk(), Terminal(reading, reading)
    desk.gate = trio.Event()
    try:
        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(terminal.read, desk)
                await trio.testing.wait_all_tasks_blocked(0.01)
                assert len(nursery.child_tasks) == 1
                assert not terminal.leaving
                assert terminal.leave()
        assert terminal.leaving
        assert not terminal.leave()
    finally:
        os.close(reading)


async def test_replies_are_written_in_order_and_then_confirmed() -> None:
    """``send`` returns when the bytes are out, and everything shown before it is out too. (P6)"""
    reading, writing = os.pipe()
    terminal = Terminal(reading, writing)
    try:
        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(terminal.write)
                terminal.show(SESSION, "turn", "not for a pipe")
                terminal.hint(SESSION, "nor this")
                terminal.tell("nor that")
                terminal.clear(SESSION, "turn")
                await terminal.send(delivery("one"))
                await terminal.send(delivery("two\nlines"))
                await terminal.flush()
                nursery.cancel_scope.cancel()
        assert os.read(reading, 1000) == b"one\ntwo\nlines\n"
    finally:
        os.close(reading)
        os.close(writing)


async def test_a_reader_that_has_gone_is_a_final_refusal() -> None:
    """Nobody there to read: told as such, not tried for ever, and the next piece is tried again."""
    reading, writing = os.pipe()
    os.close(reading)
    terminal = Terminal(writing, writing)
    try:
        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(terminal.write)
                for _ in range(2):
                    with pytest.raises(ChannelError) as caught:
                        await terminal.send(delivery("anybody?"))
                    assert not caught.value.retriable
                await terminal.flush()
                nursery.cancel_scope.cancel()
    finally:
        os.close(writing)


async def test_half_a_character_is_written_as_something() -> None:
    """A lone surrogate in a reply is no reason to lose the reply. (P6)"""
    reading, writing = os.pipe()
    terminal = Terminal(reading, writing)
    try:
        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(terminal.write)
                await terminal.send(delivery("a\ud800b"))
                nursery.cancel_scope.cancel()
        assert os.read(reading, 1000) in (b"ab\n", b"a?b\n")
    finally:
        os.close(reading)
        os.close(writing)


def test_a_pipe_does_not_wait_for_what_only_a_terminal_needs() -> None:
    """Neither the input line nor the looks of answers are imported where there is no terminal."""
    program = (
        "import sys; from gateway.channels.terminal import Terminal; Terminal();"
        "print({*sys.modules} & {'prompt_toolkit', 'rich'})"
    )
    ended = subprocess.run([sys.executable, "-c", program], stdin=subprocess.DEVNULL, capture_output=True, check=True)
    assert ended.stdout == b"set()\n"
