"""The promise of the locator: the line of every key, whatever stands around it."""

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.agents.toml_lines import Locator, syntax_error

DOCUMENT = '''\
# [agent.comment]
top = 1
[agent.main]   # the first
model = "x"
"quoted key" = 2
'literal.key' = 3
"uni\\u0063ode" = 3
instructions = """
[agent.fake]
model = "inside" # no key
\\""" still inside
"""
literal = \'\'\'
[agent.other]
window = 3\'\'\'
[agent . "main" . limits]
depth = 3
a.b.c = 5
[agent.research]
limits = { depth = 1, "run_timeout" = "10m", deep = { er = [1, { x = 2 }] } }
tools = [
  # a comment with ] and [agent.no]
  "read_file",
  "]",

  "delegate",
]
date = 1979-05-27T07:32:00Z
[[many]]
x = 1
[[many]]
x = 2
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("top",), 2),
        (("agent", "main"), 3),
        (("agent", "main", "model"), 4),
        (("agent", "main", "quoted key"), 5),
        (("agent", "main", "literal.key"), 6),
        (("agent", "main", "unicode"), 7),
        (("agent", "main", "instructions"), 8),
        (("agent", "main", "literal"), 13),
        (("agent", "main", "limits"), 16),
        (("agent", "main", "limits", "depth"), 17),
        (("agent", "main", "limits", "a", "b", "c"), 18),
        (("agent", "main", "limits", "a"), 18),
        (("agent", "research"), 19),
        (("agent", "research", "limits", "run_timeout"), 20),
        (("agent", "research", "limits", "deep", "er", 1, "x"), 20),
        (("agent", "research", "tools"), 21),
        (("agent", "research", "tools", 0), 23),
        (("agent", "research", "tools", 1), 24),
        (("agent", "research", "tools", 2), 26),
        (("agent", "research", "date"), 28),
        (("many", 0, "x"), 30),
        (("many", 1, "x"), 32),
    ],
)
def test_every_key_has_its_line(path: tuple[str | int, ...], line: int) -> None:
    tomllib.loads(DOCUMENT)
    assert Locator(DOCUMENT).line(*path) == line


def test_what_only_looks_like_a_key_has_the_line_of_its_table() -> None:
    assert Locator(DOCUMENT).line("agent", "fake") == 3
    assert Locator(DOCUMENT).line("agent", "main", "nothing") == 3
    assert Locator(DOCUMENT).line("nobody") == 1


def test_windows_line_ends_count_once() -> None:
    assert Locator("a = 1\r\n[t]\r\n\r\nb = 'x'\r\n").line("t", "b") == 4


@given(st.text(alphabet="[]{}=.,#'\"\\ \n\rab1", max_size=60))
def test_no_text_upsets_it(text: str) -> None:
    assert 1 <= Locator(text).line("a", "b") <= text.count("\n") + 1


VALUES = st.recursive(
    st.sampled_from(
        [
            "1",
            "'a'",
            '"b # [x]"',
            '"""\nk = 1\n[t]\n"""',
            "'''\nz = [\n'''",
            "true",
            "1979-05-27 07:32:00",
            '"\\""',
            "''",
        ]
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: "[\n" + ", # c ]\n".join(items) + "]"),
        st.lists(inner, max_size=3).map(
            lambda items: "{ " + ", ".join(f"k{n} = {i}" for n, i in enumerate(items)) + " }"
        ),
    ),
    max_leaves=6,
)


@given(st.lists(VALUES, min_size=1, max_size=6))
def test_the_line_of_a_key_does_not_depend_on_the_values_before_it(values: list[str]) -> None:
    """Every key of a random document is found where it was written, and found again below its table."""
    lines: dict[str, int] = {}
    text = "[table]\n"
    for number, value in enumerate(values):
        lines[f"key{number}"] = text.count("\n") + 1
        text += f"key{number} = {value}\n"
    parsed: dict[str, Any] = tomllib.loads(text)
    found = Locator(text)
    assert {key: found.line("table", key) for key in parsed["table"]} == lines


@pytest.mark.parametrize(
    ("text", "line"),
    [("a = 1\nb = \nc = 2\n", 2), ("a = 1\na = 2\n", 2), ('a = """\nopen\n', 2), ("[t]\nx = [1,\n", 2), ("=", 1)],
)
def test_what_cannot_be_read_has_a_line(text: str, line: int) -> None:
    with pytest.raises(tomllib.TOMLDecodeError) as caught:
        tomllib.loads(text)
    found, words = syntax_error(caught.value, text)
    assert found == line
    assert "line" not in words
