"""Work in progress on a terminal: the end of what grows, apart by turn, and words that pass."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from gateway.channels.live import HINT_S, Live, tail


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def drawn(live: Live, width: int = 40, height: int = 10) -> list[str]:
    text = "".join(text for _, text in live.drawn(width, height))
    return text.split("\n")[:-1]


def test_pieces_follow_each_other() -> None:
    """What a turn shows grows below a line that says who works, and for how long."""
    clock = Clock()
    live = Live(clock)
    assert not live.any
    live.show("1", "main", "1 ")
    live.show("1", "main", "2 ")
    clock.now = 3.4
    status, text = drawn(live)
    assert status.endswith(" main 3 s")
    assert text == "1 2"


def test_turns_do_not_mix() -> None:
    """Each has lines of its own, and one that ends takes nothing of another with it."""
    live = Live(Clock())
    live.show("1", "main", "a")
    live.show("2", "research", "x")
    live.show("1", "main", "b")
    assert [line.split(" ", 1)[-1] for line in drawn(live)] == ["main 0 s", "ab", "research 0 s", "x"]
    live.answered("1")
    assert [line.split(" ", 1)[-1] for line in drawn(live)] == ["research 0 s", "x"]
    live.clear("2")
    live.clear("2")
    assert not live.any


def test_a_hint_passes() -> None:
    """It is gone after a while, or when an answer comes."""
    clock = Clock()
    live = Live(clock)
    live.hint("Queued,\n2 before you")
    assert drawn(live) == ["Queued, 2 before you"]
    clock.now = HINT_S
    assert not live.any
    live.hint("again")
    live.answered("")
    assert drawn(live) == []


def test_more_turns_than_room() -> None:
    """They are counted."""
    live = Live(Clock())
    for turn in "123":
        live.show(turn, "main", "text")
    assert [line.split(" ", 1)[1] for line in drawn(live, height=2)] == ["3 at work"]


def test_the_end_of_a_text() -> None:
    """The last lines, broken between words and never within a wide character."""
    assert tail("one\ntwo\nthree\n", 10, 2) == ["two", "three"]
    assert tail("aa bb cc", 5, 5) == ["aa bb", "cc"]
    assert tail("中文中文", 5, 5) == ["中文", "中文"]
    assert tail("", 5, 5) == tail(" \n", 5, 5) == []


@given(st.lists(st.text(max_size=30), max_size=5), st.integers(4, 40), st.integers(1, 10))
def test_it_never_takes_more_room_than_there_is(texts: list[str], width: int, height: int) -> None:
    """Whatever is shown: no more lines and columns than given, and nothing that moves the cursor."""
    live = Live(Clock())
    for number, text in enumerate(texts):
        live.show(str(number % 3), "main", text)
        live.hint(text)
    lines = drawn(live, width, height)
    assert len(lines) <= height
    assert all(cell_len(line) <= width for line in lines)
    assert not [char for line in lines for char in line if char in "\x1b\r\x9b\x08"]
