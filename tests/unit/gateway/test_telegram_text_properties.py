"""Whatever an agent writes arrives whole, in messages that Telegram takes."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from datetime import UTC, datetime
from urllib.parse import unquote

import telegram
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gateway.channels.telegram_split import MOST_ENTITIES, joined, visible
from gateway.channels.telegram_text import Entity, Rich, growing, grown, plain, render, split, utf16_length

# fmt: off
MARKS = [
    "\n", "\n", "\n\n", "\n\n", " ", " ", "  \n", "\t", "# ", "\n- ", "\n  - ", "\n    - ", "\n* ", "\n1. ", "\n3) ",
    "\n> ", "\n> > ", "\n- [ ] ", "\n- [x] ", "```", "\n```\n", "\n```python\n", "\n~~~\n", "\n    ", "|", "\n|",
    "\n|1|2|\n|-|-:|\n|", "\n---\n", "\n===\n", "\n***\n", "**", "**", "*", "_", "__", "~~", "||", "`", "``", "[", "]",
    "![", "](", ")", "](https://x.org/", "](tg://user?id=1)", "](mailto:a@x.org)", "](x)", "<https://x.org/>",
    "https://x.org/_a_/", "[1]", "[1]: https://x.org/1\n", "\n\n[1]: https://x.org/2\n\n", "[^1]: ", "[2]: ", "<",
    ">", "<div>", "<br>", "\\", "\\(", "\\)", "\n\\[\n", "\n\\]\n", "$", "$$", "\n$$\n", "!", "1", "22", "@", "/", ". ",
    "? ", "\x1b", "\0", "\r\n", "\ud800", "\u200b",
]
LETTERS = [
    "ж", "д", "жар дом", "Ж", "слово", "中文", "。", "日本", "שלום", "مرحبا", "é", "ж\u0301\u0327", "👩\u200d🔬", "🇩🇪",
    "🇫🇷🇩", "👍🏽", "한국", "\u1100\u1161\u11a8", "\u2764\ufe0f", "\U0001d54f", "😀😀", "ж" * 30, "д ж " * 20,
]
# fmt: on
PIECES = st.sampled_from(MARKS) | st.sampled_from(LETTERS)
MARKDOWN = st.lists(PIECES, max_size=40).map("".join)
TEXT = st.text(max_size=300) | MARKDOWN | st.lists(PIECES | st.text(max_size=5), max_size=20).map("".join)
LINE = st.lists(PIECES, max_size=6).map("".join)
LONG = st.lists(st.tuples(LINE, st.sampled_from(["\n", "\n\n"])).map("".join), max_size=20).map("".join)
PLAIN = st.lists(st.sampled_from([*LETTERS, " ", "\n", "a"]), max_size=60).map("".join)
LIMITS = st.integers(2, 120) | st.just(4096)
DRAWN = "•◦▪☐☑─\ufffd\u200b"
BLOCKS = {"blockquote", "expandable_blockquote"}


def told(text: str) -> str:
    """What it says that is no mark: everything beyond ASCII but white space, nor what lists are drawn with."""
    return "".join(char for char in text if char > "\u00a0" and not char.isspace() and char not in DRAWN)


def everything(rich: Rich) -> str:
    """The text, and what became part of a look."""
    return rich.text + "".join(unquote(one.url or "") + (one.language or "") for one in rich.entities)


def covered(rich: Rich, entity: Entity) -> str:
    return rich.text.encode("utf-16-le")[2 * entity.offset : 2 * entity.end].decode("utf-16-le")


def seen(text: str) -> str:
    return "".join(char for char in text if not char.isspace() and visible(char))


@settings(deadline=None, derandomize=True, max_examples=300)
@given(MARKDOWN)
def test_every_visible_character_arrives(text: str) -> None:
    """Letters of every script, emoji and their marks are there as often as they were written."""
    missing = Counter(told(text.replace("\ud800", ""))) - Counter(told(everything(render(text))))
    assert not missing


@settings(deadline=None, derandomize=True, max_examples=300)
@given(MARKDOWN)
def test_it_arrives_in_its_order(text: str) -> None:
    """Where nothing is moved behind a link or into a table, the text reads as it was written."""
    assume("](" not in text and "|" not in text and "]: " not in text)
    rich = render(text)
    assume(not any(one.language and told(one.language) for one in rich.entities))
    assert told(rich.text) == told(text.replace("\ud800", ""))


@settings(deadline=None, derandomize=True, max_examples=300)
@given(TEXT, LIMITS)
def test_telegram_takes_every_message(text: str, limit: int) -> None:
    """No part is too long or empty, and every look is one that Telegram's own library accepts, in its place."""
    for part in split(render(text), limit):
        assert 0 < part.units <= limit
        assert visible(part.text)
        assert part.text == part.text.rstrip()
        assert len(part.entities) <= MOST_ENTITIES
        assert not {char for char in part.text if unicodedata.category(char) in {"Cc", "Cs"}} - {"\n", "\t"}
        accepted(part)
        nested(part.entities)


def accepted(part: Rich) -> None:
    known = part.entities
    entities = [telegram.MessageEntity(one.kind, one.offset, one.length, one.url, None, one.language) for one in known]
    chat = telegram.Chat(1, telegram.Chat.PRIVATE)
    message = telegram.Message(1, datetime(2026, 1, 1, tzinfo=UTC), chat, text=part.text, entities=entities)
    for ours, theirs in zip(known, entities, strict=True):
        assert theirs.type in telegram.MessageEntity.ALL_TYPES
        assert message.parse_entity(theirs) == covered(part, ours)
        assert ours.length > 0
        assert ours.end <= part.units


def nested(entities: tuple[Entity, ...]) -> None:
    """Sorted, apart or inside each other, code in nothing but quotes, quotes and links not in themselves."""
    assert [*entities] == sorted(entities, key=lambda one: (one.offset, -one.end))
    for number, outer in enumerate(entities):
        for inner in entities[number + 1 :]:
            if inner.offset >= outer.end:
                break
            assert inner.end <= outer.end
            assert outer.kind not in {"code", "pre"}
            assert inner.kind not in BLOCKS
            assert inner.kind not in {"code", "pre"} or outer.kind in BLOCKS
            assert inner.kind != outer.kind


@settings(deadline=None, derandomize=True, max_examples=300)
@given(TEXT, LIMITS)
def test_parts_are_the_whole(text: str, limit: int) -> None:
    """Nothing is lost or doubled by cutting but white space, and a part is its own only part."""
    rich = render(text)
    parts = split(rich, limit)
    assert "".join(seen(part.text) for part in parts) == seen(rich.text)
    for part in parts:
        assert split(part, limit) == (part,)


@settings(deadline=None, derandomize=True, max_examples=300)
@given(TEXT, LIMITS)
def test_looks_survive_the_cut(text: str, limit: int) -> None:
    """Every visible character has in its part the looks that it had in the whole."""
    rich = render(text)
    assume(len(rich.entities) <= MOST_ENTITIES)
    assert [one for part in split(rich, limit) for one in looks(part)] == looks(rich)


def looks(rich: Rich) -> list[tuple[str, frozenset[tuple[str, str | None, str | None]]]]:
    found: list[tuple[str, frozenset[tuple[str, str | None, str | None]]]] = []
    at = 0
    for char in rich.text:
        if seen(char):
            here = frozenset((one.kind, one.url, one.language) for one in rich.entities if one.offset <= at < one.end)
            found.append((char, here))
        at += utf16_length(char)
    return found


@settings(deadline=None, derandomize=True, max_examples=200)
@given(PLAIN, st.integers(30, 80))
def test_what_is_seen_as_one_is_not_cut(text: str, limit: int) -> None:
    """Emoji of several parts, flags, marks and syllables stay whole; none of these is longer than a message."""
    at = 0
    rich = render(text)
    for part in split(rich, limit)[:-1]:
        at = rich.text.index(part.text, at) + len(part.text)
        assert not joined(rich.text, at)


@settings(deadline=None, derandomize=True, max_examples=500)
@given(LONG, st.integers(10, 60) | st.integers(60, 200), st.data())
def test_a_finished_part_never_changes(text: str, limit: int, data: st.DataObject) -> None:
    """Parts that are called finished are the first ones of every longer text, also of the complete one."""
    first = data.draw(st.integers(0, len(text)))
    second = data.draw(st.integers(first, len(text)))
    early, later = grown(text[:first], limit), grown(text[:second], limit)
    assert later.parts[: early.finished] == early.parts[: early.finished]
    assert split(render(text), limit)[: early.finished] == early.parts[: early.finished]
    assert early.finished < max(len(early.parts), 1)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(TEXT, LIMITS)
def test_without_looks_it_is_the_same_text(text: str, limit: int) -> None:
    """When looks are refused: as many messages, none too long, each with the words of its like."""
    rich = split(render(text), limit)
    bare = plain(text, limit)
    assert len(bare) == len(rich)
    for words, part in zip(bare, rich, strict=True):
        assert 0 < utf16_length(words) <= limit
        assert re.sub(r" \(\S*\)", "", words) == re.sub(r" \(\S*\)", "", part.text)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(TEXT)
def test_a_growing_text_is_shown_whatever_it_is(text: str) -> None:
    """Every beginning of a text can be shown, and is taken by Telegram."""
    for part in split(growing(text)):
        accepted(part)
        nested(part.entities)
