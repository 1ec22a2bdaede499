"""Markdown as Telegram shows it, by example: what becomes a look, what stays as it was written, where messages end.

``python -m tests.unit.gateway.test_telegram_text`` writes the golden file anew. Read what changed line by line: a
wrong golden file is worse than none.
"""

from __future__ import annotations

import json
import re
import sys
from itertools import pairwise
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from gateway.channels.telegram_marks import linkable
from gateway.channels.telegram_split import LIMIT, MOST_ENTITIES
from gateway.channels.telegram_text import Entity, Rich, growing, grown, plain, render, split

VECTORS = Path(__file__).parents[2] / "vectors" / "telegram"
TORTURE = VECTORS / "torture.md"
GOLDEN = VECTORS / "torture.json"
SLOWEST_S = 20.0  # of the processor's time, for what takes a second


def covered(rich: Rich, entity: Entity) -> str:
    return rich.text.encode("utf-16-le")[2 * entity.offset : 2 * entity.end].decode("utf-16-le")


def looks(rich: Rich) -> list[str]:
    """Each as ``kind: words``, with its address or language behind it."""
    found = [(f"{one.kind}: {covered(rich, one)}", one.url or one.language) for one in rich.entities]
    return [f"{words} ({more})" if more else words for words, more in found]


def golden() -> dict[str, Any]:
    rich = render(TORTURE.read_text())
    entities = [[one.kind, one.offset, one.length, covered(rich, one), one.url, one.language] for one in rich.entities]
    return {"text": rich.text.split("\n"), "entities": entities}


def test_everything_that_markdown_has() -> None:
    """The torture file comes out as somebody has read it and found it right."""
    assert golden() == json.loads(GOLDEN.read_text())


@pytest.mark.parametrize(
    ("markdown", "text", "expected"),
    [
        ("plain", "plain", []),
        ("", "", []),
        ("\u200b \n\u00a0", "", []),
        ("**a** _b_ ~~c~~", "a b c", ["bold: a", "italic: b", "strikethrough: c"]),
        ("`a` ||b||", "a b", ["code: a", "spoiler: b"]),
        ("***both***", "both", ["bold: both", "italic: both"]),
        ("**a `b` c**", "a b c", ["bold: a", "code: b", "bold: c"]),
        ("# *a* **b**", "a b", ["bold: a b", "italic: a"]),
        ("# a\nb\n## c", "a\n\nb\n\nc", ["bold: a", "bold: c"]),
        ("**open", "**open", []),
        ("snake_case_name __init__.py __call__() a*b*c x**2 + y**2", None, []),
        ("__init__ and __bold__", "init and bold", ["bold: init", "bold: bold"]),
        ("Hyper**T**ext", "HyperText", ["bold: T"]),
        ("**重要。**文字", "重要。文字", ["bold: 重要。"]),
        ("a || b || c, `x||y||`", "a || b || c, x||y||", ["code: x||y||"]),
        ("Use List<String> and <div>", None, []),
        ("<div>\nblock <b>\n</div>", None, []),
        ("&lt;b&gt; &amp;amp;", "<b> &amp;", []),
        (r"\*a\* \_ 1\. \\", r"*a* _ 1. \ ".strip(), []),
        ("a  \nb\\\nc\nd", "a\nb\nc\nd", []),
        ("[a](https://x.org/b_c_d)", "a", ["text_link: a (https://x.org/b_c_d)"]),
        ("[`a`](https://x.org)", "a", ["text_link: a (https://x.org)"]),
        ("[a](b.md) [c](ftp://d) [e](#f)", "a (b.md) c (ftp://d) e (#f)", []),
        ("[a](mailto:b@x.org) <b@x.org>", "a (b@x.org) b@x.org", []),
        ("[https://x.org](https://x.org) <https://y.org>", "https://x.org https://y.org", []),
        ("(https://x.org/_a_) **https://x.org/b_c**", "(https://x.org/_a_) https://x.org/b_c", ["bold: https://x.org/b_c"]),
        ("![a](https://x.org/b.png) ![](c.png)", "a c.png", ["text_link: a (https://x.org/b.png)"]),
        ("[![a](b)](https://x.org)", "a (b)", ["text_link: a (b) (https://x.org)"]),
        ("[a][1] [1]\n\n[1]: https://x.org", "a 1", ["text_link: a (https://x.org)", "text_link: 1 (https://x.org)"]),
        ("a[^1]\n\n[^1]: note\n[b]: c", None, []),
        ("[a]: https://x.org", None, []),
        ("- a\n  - b\n    - c\n- d", "• a\n   ◦ b\n      ▪ c\n• d", []),
        ("3. a\n4. b\n\ntext\n\n5) c", "3. a\n4. b\n\ntext\n\n5) c", []),
        ("1. a\n1. b\n1. c", "1. a\n2. b\n3. c", []),
        ("- [ ] a\n- [x] b\n\n[x]: https://x.org", "☐ a\n☑ b\n\n[x]: https://x.org", []),
        ("```py\nx < 1\n\n  y\n```", "x < 1\n\n  y", ["pre: x < 1\n\n  y (py)"]),
        ("a\n```\nb", "a\nb", ["pre: b"]),
        ("````\n```\na\n```\n````", "```\na\n```", ["pre: ```\na\n```"]),
        ("```\n```", "", []),
        ("1. a\n   ```\n   b\n   ```\n   c", "1. a\nb\n   c", ["pre: b"]),
        ("> a\n> b\n\nc", "a\nb\n\nc", ["blockquote: a\nb"]),
        ("> a\n> > b\n> c", "a\n> b\n> c", ["blockquote: a\n> b\n> c"]),
        ("> # a", "a", ["blockquote: a", "bold: a"]),
        ("a\n\n---\nb", "a\n\n──────────\nb", []),
        ("|a|b|\n|-|-:|\n|中|1|", "a  | b\n---+--\n中 | 1", ["pre: a  | b\n---+--\n中 | 1"]),
        ("|a|b|\n|-|-|\n|1|[c](https://x.org)|", "a: 1\nb: c", ["bold: a:", "bold: b:", "text_link: c (https://x.org)"]),
        ("|a|\n|-|\n|1|2|", "a\n-----\n1 | 2", ["pre: a\n-----\n1 | 2"]),
        (r"$x_1$ \(a_b\) \[c = d\] \(see\) $5 and $*6*", r"$x_1$ \(a_b\) \[c = d\] (see) $5 and $6", ["italic: 6"]),
        ("$$\na\n+ b\n$$", None, []),
        ("@me /stop@bot #tag", None, []),
        ("a\r\nb\rc\u2028d\x00\x1b[1m\ud800", "a\nb\nc\nd[1m\ufffd", []),
        ("\u202babc\u202c \u200f\u2067x\u2069 a\u200bb", None, []),
    ],
)  # fmt: skip
def test_what_becomes_of_it(markdown: str, text: str | None, expected: list[str]) -> None:
    """Marks become looks; all else stays, also what only looks like a mark."""
    rich = render(markdown)
    assert rich.text == (markdown if text is None else text)
    assert looks(rich) == expected


def test_a_wide_table_is_a_list() -> None:
    """What would break its lines on a phone is told line by line, a row after the other."""
    rich = render(f"|Name|What it does|\n|-|-|\n|a|{'word ' * 10}|\n|b||\n||c<br>d|")
    assert rich.text == f"Name: a\nWhat it does: {'word ' * 10}".rstrip() + "\n\nName: b\n\nWhat it does: c\nd"
    assert looks(rich)[:2] == ["bold: Name:", "bold: What it does:"]


def test_a_long_quote_is_folded() -> None:
    """It opens at a touch; a short one is open."""
    assert [one.kind for one in render("> " + "word " * 300).entities] == ["expandable_blockquote"]


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("https://x.org", "https://x.org"),
        ("tg://user?id=1", "tg://user?id=1"),
        ("https://x.org/a b", "https://x.org/a%20b"),
        ("https://müller.example/ß", "https://xn--mller-kva.example/%C3%9F"),
        ("https://[::1]:80/", "https://[::1]:80/"),
        *[(bad, None) for bad in ("", "a.md", "https://", "https:///a", "http://localhost/", "https://a..b")],
        *[(bad, None) for bad in ("mailto:a@x.org", "ftp://x.org", "https://-x.org", "https://x.org:123456")],
        ("https://x.org/" + "a" * 3000, None),
    ],
)  # fmt: skip
def test_what_telegram_takes_as_a_link(address: str, expected: str | None) -> None:
    """One address that it does not take would cost the whole message its looks."""
    assert linkable(address) == expected


# ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("aaaa bbbb cc\n\ndd\neeee", ["aaaa bbbb cc", "dd\neeee"]),
        ("aaaa\nbbbb cccc\ndddd eeee", ["aaaa\nbbbb cccc", "dddd eeee"]),
        ("Aaaa bb. Cccc dd. Eeee ff gg", ["Aaaa bb. Cccc dd.", "Eeee ff gg"]),
        ("甲乙丙丁甲乙丙丁甲乙丙。丁甲乙丙丁甲乙丙丁甲乙", ["甲乙丙丁甲乙丙丁甲乙丙。", "丁甲乙丙丁甲乙丙丁甲乙"]),
        ("aaaa bbbb cccc dddd eeee", ["aaaa bbbb cccc dddd", "eeee"]),
        ("a" * 45, ["a" * 20, "a" * 20, "a" * 5]),
        ("👩‍🔬👩‍🔬👩‍🔬👩‍🔬👩‍🔬", ["👩‍🔬👩‍🔬👩‍🔬👩‍🔬", "👩‍🔬"]),
        ("aaa🇩🇪🇫🇷🇩🇪🇫🇷🇩🇪", ["aaa🇩🇪🇫🇷🇩🇪🇫🇷", "🇩🇪"]),
        ("e\u0301" * 11, ["e\u0301" * 10, "e\u0301"]),
        ("e" + "\u0301" * 29, ["e" + "\u0301" * 19, "\u0301" * 10]),
        ("한" * 9 + "\u1112\u1161\u11ab" * 4, ["한" * 9 + "\u1112\u1161\u11ab" * 3, "\u1112\u1161\u11ab"]),
        ("\u0915\u094d\u0937" * 7, ["\u0915\u094d\u0937" * 6, "\u0915\u094d\u0937"]),
        ("word " + "a" * 20, ["word", "a" * 20]),
    ],
)  # fmt: skip
def test_where_a_message_ends(text: str, parts: list[str]) -> None:
    """Between paragraphs, else lines, sentences, words, characters as people see them."""
    assert [part.text for part in split(Rich(text), 20)] == parts


def test_code_that_is_cut_goes_on_in_its_language() -> None:
    """Closed in one message and opened in the next, cut between lines, with the indentation of each."""
    code = "\n".join(f"    line({number})" for number in range(20))
    parts = split(render(f"Look:\n```python\n{code}\n```\nDone."), 100)
    assert all(len(part.entities) == 1 and part.entities[0].language == "python" for part in parts[:-1])
    lines = [line for part in parts for line in part.text.split("\n")]
    assert lines == ["Look:", *code.split("\n"), "Done."]


def test_code_that_fits_is_not_cut() -> None:
    """It begins in the next message rather than to be cut for the sake of a fuller one."""
    parts = split(render("word " * 12 + "\n\n```\n" + "code line\n\n" * 6 + "```"), 100)
    assert [[one.kind for one in part.entities] for part in parts] == [[], ["pre"]]


def test_a_heading_stands_above_its_text() -> None:
    """It is not the last line of a message."""
    parts = split(render("word " * 12 + "\n\n## Heading\n" + "text " * 12), 80)
    assert [part.text.split("\n")[0] for part in parts] == [("word " * 12).strip(), "Heading"]


def test_looks_go_on_in_the_next_message() -> None:
    """Bold that is cut is bold on both sides, and never on blanks."""
    parts = split(render("**" + "word " * 9 + "word**"), 24)
    assert [looks(part) for part in parts] == [["bold: word word word word word"]] * 2


def test_at_most_a_hundred_looks_go_the_least_important_first() -> None:
    """Telegram forgets what is beyond a hundred, so we choose; links and code blocks are never dropped."""
    (part,) = split(render("*i* **b** `c` " * 50))
    assert len(part.entities) == MOST_ENTITIES
    assert {one.kind for one in part.entities} == {"bold", "code"}
    parts = split(render("*i* [l](https://x.org) " * 150))
    assert [sum(one.kind == "text_link" for one in part.entities) for part in parts] == [100, 50]


def test_a_long_answer_arrives_whole_and_in_order() -> None:
    """35,000 characters with everything in them: no word is lost, doubled or moved."""
    words = [f"w{number}" for number in range(5_500)]
    text = "".join(word + separator(number) for number, word in enumerate(words))
    assert len(text) > 35_000
    parts = split(render(text))
    assert all(part.units <= LIMIT for part in parts)
    assert re.findall(r"w\d+", "\n".join(part.text for part in parts)) == words


def separator(number: int) -> str:
    kinds = {
        7: " **x** ",
        40: "\n\n",
        55: "\n- ",
        90: "\n\n```py\n",
        130: "\n```\n\n",
        200: "\n\n# ",
        333: " 👩‍🔬 `x` ",
    }
    return next((mark for every, mark in reversed(kinds.items()) if number % every == 0), " ")


def test_without_looks_addresses_are_told() -> None:
    """Behind the words that they belong to, and only where the message has room."""
    text = "[a](https://x.org/1) and [b](https://x.org/2)"
    assert plain(text) == ("a (https://x.org/1) and b (https://x.org/2)",)
    assert plain(text, 30) == ("a (https://x.org/1) and b",)


def test_a_limit_that_cannot_hold_a_character_is_refused() -> None:
    """An emoji takes two units."""
    with pytest.raises(ValueError, match="the least is 2"):
        split(Rich("a"), 1)


# ── a text that is still being written ───────────────────────────────────────────────────────────────────────────────

ANSWER = """\
# Plan for today

Here is **bold text**, *italic words*, `code here` and ~~gone~~; see [the docs](https://example.org/a_b?c=d) or
https://example.org/_x_/. A snake_case_name stays, 2 * 3 = 6, and ||a secret||.

Steps:
- first **bold** item
- second with `code`
  - nested *one*
  - nested two
1. number one
2. number two
   ```python
   def f():
       return "`"
   ```
3. three

Title
-----

> A quote with **bold**
> and a second line

- [ ] open task
- [x] done

***

```sh
echo "**not bold**"
```

~~~
x
~~~
The end is **near** and $x_1$ and ***both***.
"""


def test_a_growing_answer_only_grows() -> None:
    """Letter by letter: what is shown is always how the finished answer begins, and no mark flashes up as text."""
    whole = render(ANSWER)
    known = {(one.kind, one.offset) for one in whole.entities}
    for end in range(len(ANSWER) + 1):
        shown = growing(ANSWER[:end])
        assert whole.text.startswith(shown.text), ANSWER[:end]
        assert {(one.kind, one.offset) for one in shown.entities} <= known, ANSWER[:end]


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("a **b", "a b"),
        ("a **", "a"),
        ("a `b", "a b"),
        ("a ``", "a"),
        ("a [b](https://x", "a b"),
        ("a\n```", "a"),
        ("a\n```py\n", "a"),
        ("```py\na\n``", "a"),
        ("a\n-", "a"),
        ("a\n1", "a"),
        ("a\n| b | c |", "a"),
        ("a\n| b | c |\n|--", "a"),
        ("2 * 3 and snake_case", "2 * 3 and snake_case"),
    ],
)
def test_what_is_open_is_closed(markdown: str, text: str) -> None:
    """Half a mark is not shown, and what it marks looks as it will."""
    assert growing(markdown).text == text


def test_messages_are_finished_one_by_one() -> None:
    """Of a long answer all but what is still open is finished, also inside one long block of code or one long list."""
    paragraphs = [f"Paragraph {number} with **bold** words. " * 10 for number in range(40)]
    for text in ("\n\n".join(paragraphs), "```\n" + "\n".join(paragraphs), "- " + "\n- ".join(paragraphs)):
        counts = [(len(now.parts), now.finished) for now in (grown(text[:end]) for end in range(0, len(text), 999))]
        assert counts[-1][0] >= 3
        assert all(parts - finished <= 2 for parts, finished in counts)
        assert all(before[1] <= after[1] for before, after in pairwise(counts))


def test_a_definition_to_come_keeps_a_message_open() -> None:
    """Brackets may still become a link, so their message is not called finished; without them it is."""
    rest = "word " * 100 + "\n\n" + "more " * 100
    assert grown("see [1]\n\n" + rest, 200).finished == 0
    assert grown("see (1)\n\n" + rest, 200).finished > 1
    assert grown("[1]: https://x.org\n\nsee [1]\n\n" + rest, 200).finished > 1


# ── pace ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

# fmt: off
REPEATED = {
    "[": "[", "![": "![", "*": "*", ">": ">", "> ": "> ", "|": "|", "`": "`", "- ": "- ", "1. ": "1. ", "\\": "\\",
    "$": "$", "~~a": "~~a ", "_a": "_a ", "**a": "**a ", "*_": "*a_", "[]": "[](", "[[]()": "[[](", "[a][": "[a][",
    "](": "](", "<": "<", "&": "&", "fences": "```\n", "items": "-\n", "spoilers": "||a", "addresses": "http://a.b ",
    "maths": "\\(", "formulas": "\\[\n", "headings": "# a\n", "quotes": "> a\n\n", "definitions": "[^1]: a\n",
    "lines": "x\n", "joiners": "\u200d", "flags": "\U0001f1e6", "marks": "\u0301", "emoji": "😀", "letters": "x",
    "code": "**a `b` ", "italic": "*a* ", "links": "[a](http://a.b) ", "blank code": "```\n\n\n",
}
# fmt: on


def shapes(size: int) -> dict[str, str]:
    once = {name: mark * (size // len(mark)) for name, mark in REPEATED.items()}
    half = size // 2
    return once | {
        "closed brackets": "[" * half + "]" * half,
        "closed links": "[" * (size // 5) + "](x)" * (size // 5),
        "closed pictures": "![" * (size // 6) + "](x)" * (size // 6),
        "table": "|a|b|\n|-|-|\n" + "|x|y|\n" * (size // 6),
        "wide table": "|a" * (size // 4) + "\n" + "|-" * (size // 4),
        "address": "http://a.b/" + ")" * size,
        "nested list": "".join("  " * depth + "- a\n" for depth in range(int(size**0.5))),
        "nested quotes": "".join(">" * depth + " a\n" for depth in range(int((2 * size) ** 0.5))),
        "code": "```\n" + "x\n" * half,
    }


def calls(text: str) -> int:
    count = 0

    def counted(*_: object) -> None:
        nonlocal count
        count += 1

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        grown(text)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("name", shapes(10))
def test_twice_the_text_takes_twice_the_work(name: str) -> None:
    """Nobody can hold up the gateway with marks that nothing closes: work is counted, not timed."""
    assert calls(shapes(10_000)[name]) < 2.7 * calls(shapes(5_000)[name]) + 2_000


@pytest.mark.parametrize(
    "name", ["[", "![", "*", ">", "> ", "|", "`", "- ", "$", "closed brackets", "nested list", "marks"]
)
def test_200_kilobytes_of_marks(name: str) -> None:
    """They become messages in about a second; what would take minutes fails."""
    began = process_time()
    text = shapes(200_000)[name]
    split(render(text))
    grown(text)
    assert process_time() - began < SLOWEST_S


if __name__ == "__main__":
    made = {name: [json.dumps(row, ensure_ascii=False) for row in rows] for name, rows in golden().items()}
    written = ",\n".join(f'"{name}": [\n  ' + ",\n  ".join(rows) + "\n]" for name, rows in made.items())
    GOLDEN.write_text(f"{{\n{written}\n}}\n")
