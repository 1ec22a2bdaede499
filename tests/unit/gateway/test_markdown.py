"""Answers as lines for a terminal: nothing said gets lost, nothing can harm, nothing is wider than the terminal."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from gateway.channels.markdown import LONGEST, NO_BREAK, rendered

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
HARMFUL = {"Cc", "Cf", "Cs", "Zl", "Zp"}
MARKS = [
    "# ",
    "- ",
    "1. ",
    "> ",
    "```",
    "```python\n",
    "|a|b|\n|-|-|\n|",
    "**",
    "`",
    "[",
    "](",
    "<",
    "&#x202e;",
    "&#27;",
]
PARTS = st.text(max_size=8) | st.sampled_from(
    [*MARKS, "\n", "\n\n", "    ", "\t", "\x1b[2J", "中文", "👩\u200d🔬", "---\n"]
)


def lines(text: str, width: int = 80, label: str = "") -> list[str]:
    return COLOUR.sub("", rendered(text, width, label=label)).split("\n")[:-1]


@settings(deadline=None)
@given(st.lists(PARTS, max_size=12).map("".join), st.integers(10, 100))
def test_no_escape_sequence_survives(text: str, width: int) -> None:
    """Whatever is said, only colour and weight reach the terminal, and no line is wider than it. (S11)"""
    shown = COLOUR.sub("", rendered(text, width, label="main>"))
    assert not {char for char in shown if char not in "\n\u200c\u200d" and unicodedata.category(char) in HARMFUL}
    assert max(cell_len(line) for line in shown.split("\n")) <= width


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", ["plain"]),
        ("", []),
        ("two\nlines", ["two", "lines"]),
        ("# Title\ntext", ["Title", "", "text"]),
        ("- one\n- two\n  more", [" • one", " • two", "   more"]),
        ("3. one\n4. two", [" 3 one", " 4 two"]),
        ("> quoted", ["▌ quoted"]),
        ("a **bold** `code` ~~old~~", ["a bold code old"]),
        ("Use List<String> and <div>", ["Use List<String> and <div>"]),
        ("<div>\nblock\n</div>", ["<div>", "block", "</div>"]),
        ("[docs](https://x.org/a)", ["docs (https://x.org/a)"]),
        ("<https://x.org>", ["https://x.org"]),
        ("![a *cat*](cat.png)", ["a cat (cat.png)"]),
        ("[![a](b.png)](https://x.org)", ["a (b.png) (https://x.org)"]),
        ("```python\ndef f():\n    pass\n```", ["```python", "def f():", "    pass", "```"]),
        ("```\nx\n\n\n  y\n```", ["```", "x", "", "", "  y", "```"]),
        ("```no-such-language\nx\n```", ["```no-such-language", "x", "```"]),
        ("|a|b|\n|-|-:|\n|中文|1|", [" a     b", " ───────", " 中文  1"]),
    ],
)
def test_what_is_written_is_shown(text: str, expected: list[str]) -> None:
    """Marks become looks; words, addresses and ends of lines stay."""
    assert lines(text) == expected


def test_who_speaks_comes_first() -> None:
    """Before the first words, or on a line of its own where there is no text to be put before."""
    assert lines("hello", label="main>") == ["main> hello"]
    assert lines("- a", label="main>") == ["main>", " • a"]
    assert lines("", label="main>") == ["main>"]
    assert lines("one\n\ntwo", label="main>") == ["main> one", "", "two"]


def test_long_lines_are_broken_between_words() -> None:
    """At the width of the terminal, which is counted in columns and not in characters."""
    assert lines("one two three", 10) == ["one two", "three"]
    assert lines("中文中文中文", 10) == ["中文中文中", "文"]


def test_no_colour_if_none_is_wanted() -> None:
    """NO_COLOR leaves weight only."""
    text = "# a\n`b` **c**\n```python\nreturn 'x'\n```"
    codes = set(";".join(re.findall(r"\x1b\[([0-9;]*)m", rendered(text, 80, label="main>", colour=False))).split(";"))
    assert codes <= {"0", "1", "2", "3", "4", "9"}


def test_what_is_very_long_is_shown_as_it_is() -> None:
    """Nobody waits for the looks of a book."""
    shown = lines("**x** \x1b[2J" + "y" * LONGEST, label="main>")
    assert " ".join(shown).startswith("main> **x** [2Jyyy")
    assert sum(map(len, shown)) >= LONGEST


def test_what_is_lined_up_stays_so() -> None:
    """Blanks before a line are kept, in lists and code they mean what they always do."""
    text = "Try:\n  count    slowly\n  fail     at once\n\n- one\n  - two\n\n```\n  code\n```"
    shown = [line.replace(NO_BREAK, " ") for line in lines(text, 60)]
    assert shown[:3] == ["Try:", "  count    slowly", "  fail     at once"]
    assert [line.strip() for line in shown if "one" in line or "two" in line] == ["• one", "• two"]
    assert "  code" in shown
