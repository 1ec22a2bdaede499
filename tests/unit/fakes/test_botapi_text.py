"""Whatever the text, its entities cover after the server's cleaning what they covered before."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.fakes.telegram.errors import Failure
from tests.fakes.telegram.markup import parse
from tests.fakes.telegram.text import BLANKED, DROPPED, part, settle, units

TEXTS = st.text(st.sampled_from("ab \n\r\t😀é\u202e\u200b\u0333👨‍👩‍👧ם<*_`."), max_size=30)
# What telegramify-markdown 1.4.1 makes of headings, lists, quotes, code and a table for the real server.
MARKDOWN_V2 = (
    "📌 __*Head & _stress_*__\n"
    "\n"
    "Some *bold _both_* text with `List<String>` and a [link](https://x.org/a_(b\\)?c=d) \\- 1\\.5 \\> 1\\!\n"
    "\n"
    "⦁ one\n"
    "  ⦁ nested\n"
    "1\\. two\n"
    "\n"
    ">quoted\n"
    "\n"
    "```python\n"
    "def f(x): return \\`x\\` * 2  # \\\\\n"
    "```\n"
    "```\n"
    "a | b  \n"
    "--+----\n"
    "1 | 2 h\n"
    "```\n"
)


def cleaned(text: str) -> str:
    return BLANKED.sub(" ", DROPPED.sub("", text)).rstrip(" \n")


@given(TEXTS, st.integers(0, 30), st.integers(0, 30))
@example("a\r😀\u202eb", 1, 3)
@example("  ab  ", 1, 4)
def test_an_entity_covers_the_same_after_cleaning(text: str, start: int, length: int) -> None:
    """It may lose white space at its end, or vanish with a text that has nothing to be seen."""
    start = min(start, len(text))
    covered = text[start : start + length]
    offset, size = units(text[:start]), units(covered)
    seen, entities = settle(text, [{"type": "bold", "offset": offset, "length": size}])
    given_back = [entity for entity in entities if entity["type"] == "bold"]
    assert units(seen) == len(seen.encode("utf-16-le")) // 2
    if given_back:
        assert part(seen, given_back[0]).rstrip(" \n") == cleaned(covered)
    else:
        assert not seen or not cleaned(covered)


@given(TEXTS, st.sampled_from(["MarkdownV2", "HTML", "Markdown"]))
def test_markup_is_read_or_refused(text: str, mode: str) -> None:
    """It never breaks, and what it gives is settled without complaint."""
    try:
        plain, entities = parse(text, mode)
    except Failure as failure:
        refused = failure.description
    else:
        refused = ""
        settle(plain, entities)
    assert refused == "" or refused.startswith("Bad Request: can't parse entities: ")


@given(TEXTS)
def test_escaped_markup_is_the_text_itself(text: str) -> None:
    """With a backslash before every reserved character nothing is markup."""
    escaped = "".join(f"\\{character}" if character in "_*[]()~`>#+-=|{}.!\\" else character for character in text)
    assert parse(escaped, "MarkdownV2") == (text, [])


def test_what_others_write_as_markdown_is_read() -> None:
    """What a library makes as MarkdownV2 for the real server is understood, and so are its entities."""
    text, entities = parse(MARKDOWN_V2, "MarkdownV2")
    assert {"bold", "italic", "code", "text_link", "pre"} <= {entity["type"] for entity in entities}
    covered = [(entity["type"], part(text, entity)) for entity in entities]
    assert ("code", "List<String>") in covered
    assert ("text_link", "link") in covered
    assert next(words for kind, words in covered if kind == "pre").startswith("def f(x): return `x` * 2  # \\")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/stop", ["/stop"]),
        ("a/b http://x.org/stop", ["http://x.org/stop"]),
        ("see (https://x.org/a).", ["https://x.org/a"]),
        ("mail ann@x.org or @ann_fake", ["ann@x.org", "@ann_fake"]),
        ("#tag and #1", ["#tag"]),
    ],
)
def test_what_the_server_finds_by_itself(text: str, found: list[str]) -> None:
    seen, entities = settle(text, [])
    assert [part(seen, entity) for entity in entities] == found
