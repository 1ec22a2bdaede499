"""Lines from real pipes and files: whole, in order, once, whatever bytes come in and however they are cut."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import trio_test, wait_all_tasks_blocked

from gateway.channels.lines import CHUNK, LONGEST_LINE, LineReader, LineTooLong

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def pipe() -> Iterator[tuple[int, int]]:
    """The two ends of a pipe; whoever closes one of them early may."""
    ends = os.pipe()
    try:
        yield ends
    finally:
        for end in ends:
            try:
                os.close(end)
            except OSError:
                continue


async def all_lines(reader: LineReader) -> list[str | LineTooLong]:
    """Everything up to the end, an error where one was raised."""
    found: list[str | LineTooLong] = []
    with trio.fail_after(20):
        while True:
            try:
                lines = await reader.read()
            except LineTooLong as error:
                found.append(error)
                continue
            if lines is None:
                return found
            assert lines
            found += lines


async def write_and_close(fd: int, *chunks: bytes) -> None:
    """Write from a thread, because a pipe holds less than some tests want to say."""

    def write() -> None:
        for chunk in chunks:
            left = memoryview(chunk)
            while left:
                left = left[os.write(fd, left) :]
        os.close(fd)

    await trio.to_thread.run_sync(write)


async def through_a_pipe(*chunks: bytes) -> list[str | LineTooLong]:
    with pipe() as (reading, writing):
        found: list[str | LineTooLong] = []

        async def read() -> None:
            found.extend(await all_lines(LineReader(reading)))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await write_and_close(writing, *chunks)
        return found


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a\n", ["a"]),
        (b"a", ["a"]),
        (b"a\nb", ["a", "b"]),
        (b"a\n\nb\n", ["a", "", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\r\nb\r", ["a", "b"]),
        (b"a\rb\n", ["a\rb"]),
        ("ümläut 🦀\n中文".encode(), ["ümläut 🦀", "中文"]),
        (b"caf\xe9\n\xff\xfe\nok\n", ["caf\ufffd", "\ufffd\ufffd", "ok"]),
        (b"\xf0\x9f\n\xa6\x80\n", ["\ufffd", "\ufffd\ufffd"]),
        (b"a\x00b\n\x00\n", ["a\x00b", "\x00"]),
        (b"a\x0bb\x0cc\x85\xe2\x80\xa8d\n", ["a\x0bb\x0cc\ufffd\u2028d"]),
        (b"x" * 200_000 + b"\n", ["x" * 200_000]),
    ],
)
async def test_lines_come_out_whole(data: bytes, lines: list[str], tmp_path: Path) -> None:
    """The same from a pipe and from a file: only line feeds end a line, and what is no UTF-8 is marked."""
    assert await through_a_pipe(data) == lines
    file = tmp_path / "input"
    file.write_bytes(data)
    with file.open("rb") as opened:
        assert await all_lines(LineReader(opened.fileno())) == lines


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(max_size=8) | st.sampled_from([b"\n", b"\r\n", b"\xf0\x9f\xa6\x80"]), max_size=12))
def test_it_does_not_matter_where_the_input_is_cut(chunks: list[bytes]) -> None:
    """However the bytes arrive, the lines are those of the whole."""

    @trio_test
    async def check() -> None:
        whole = b"".join(chunks)
        expected = [line.removesuffix(b"\r").decode(errors="replace") for line in whole.split(b"\n")]
        if whole.endswith(b"\n") or not whole:
            expected.pop()
        with pipe() as (reading, writing):
            reader = LineReader(reading)
            found: list[str] = []
            for chunk in filter(None, chunks):
                os.write(writing, chunk)
                if b"\n" in chunk:  # else there is nothing to be had yet
                    found += await reader.read() or []
            os.close(writing)
            found += [line for line in await all_lines(reader) if isinstance(line, str)]
        assert found == expected

    check()


async def test_a_line_is_handed_out_as_soon_as_it_is_there() -> None:
    """A reader waits without spinning, and does not wait for more than a line."""
    with pipe() as (reading, writing):
        reader, found = LineReader(reading), list[str]()

        async def read() -> None:
            found.extend(await reader.read() or [])

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            os.write(writing, b"hal")
            await wait_all_tasks_blocked(0.01)
            assert found == []
            os.write(writing, b"lo\nunfin")
        assert found == ["hallo"]
        os.close(writing)
        assert await reader.read() == ["unfin"]
        assert await reader.read() is None
        assert await reader.read() is None


@pytest.mark.parametrize("times", [1, 3])
async def test_a_line_that_is_too_long_is_skipped_and_told_once(times: int) -> None:
    """However long it is, it is told once, nothing of it comes out, and the lines around it do."""
    long = b"x" * (LONGEST_LINE + CHUNK) * times
    found = await through_a_pipe(b"before\n", long + b"\nafter\nlast")
    assert [one if isinstance(one, str) else "too long" for one in found] == ["before", "too long", "after", "last"]


async def test_every_long_line_is_told() -> None:
    """Two of them are told twice; what lies between them is kept."""
    long = b"x" * (LONGEST_LINE + CHUNK) + b"\n"
    found = await through_a_pipe(long, b"between\n", long)
    assert [one if isinstance(one, str) else "too long" for one in found] == ["too long", "between", "too long"]


async def test_a_long_line_without_an_end_is_told_once_and_is_no_line() -> None:
    """Input that ends in the middle of a line that is too long leaves nothing behind."""
    (error,) = await through_a_pipe(b"x" * (LONGEST_LINE * 2))
    assert isinstance(error, LineTooLong)
    assert "1,000,000" in str(error)


async def test_a_line_of_the_longest_length_is_kept() -> None:
    """The limit itself is allowed."""
    (line,) = await through_a_pipe(b"x" * LONGEST_LINE + b"\n")
    assert line == "x" * LONGEST_LINE


async def test_no_input_is_the_end() -> None:
    """Nothing to read from is the same as nothing more to read."""
    null = os.open(os.devnull, os.O_RDONLY)
    try:
        assert await all_lines(LineReader(null)) == []
    finally:
        os.close(null)


async def test_a_closed_descriptor_is_the_end() -> None:
    """A program started without standard input does not fail over it."""
    reading, writing = os.pipe()
    os.close(reading)
    os.close(writing)
    assert await all_lines(LineReader(reading)) == []


async def test_a_directory_is_the_end(tmp_path: Path) -> None:
    """What cannot be read ends quietly."""
    place = os.open(tmp_path, os.O_RDONLY)
    try:
        assert await all_lines(LineReader(place)) == []
    finally:
        os.close(place)


async def test_the_descriptor_keeps_its_blocking_mode() -> None:
    """A terminal shares it with every program in it."""
    with pipe() as (reading, writing):
        os.write(writing, b"a\n")
        assert os.get_blocking(reading)
        assert await LineReader(reading).read() == ["a"]
        assert os.get_blocking(reading)


async def test_a_cancelled_read_loses_nothing() -> None:
    """Half a line that was read before a cancel is still there for the next read."""
    with pipe() as (reading, writing):
        reader = LineReader(reading)
        os.write(writing, b"hal")
        with trio.move_on_after(0.01):
            await reader.read()
        os.write(writing, b"lo\n")
        with trio.fail_after(20):
            assert await reader.read() == ["hallo"]
