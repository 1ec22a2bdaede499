"""Text with looks as Telegram has it, and how it becomes messages that Telegram takes. Pure.

A message holds at most 4,096 UTF-16 units and 100 entities. A cut is made between paragraphs, else lines, else
sentences, else words, else characters as people see them: the best kind that leaves a part at least half full, or, if
none does, the best that there is. A heading is not left behind. Code that fits into one message is not cut for the sake
of a fuller part; code that is cut goes on in the next part, with its language.

What may get lost: white space around a cut and at both ends of a text; in code, the end of the line where the cut is,
and lines without anything on them beside it. What nobody can see is no message of its own. Of more than 100 entities
the least important looks go (italic before bold before code ...); links, blocks of code, quotes and what is hidden
never do: where there are more than 100 of these, the part ends earlier.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT: Final = 4_096
MOST_ENTITIES: Final = 100
VIRAMA: Final = 9  # the class of marks that bind a consonant of India to the next

Kind = Literal[
    "bold", "italic", "strikethrough", "spoiler", "code", "pre", "text_link", "blockquote", "expandable_blockquote"
]
_QUOTES: Final = frozenset({"blockquote", "expandable_blockquote"})
BLOCKS: Final = _QUOTES | {"pre"}
KEPT: Final = BLOCKS | {"text_link", "spoiler"}
_VERBATIM: Final = frozenset({"pre", "code"})
_WORTH: Final = {"italic": 0, "strikethrough": 1, "bold": 2, "code": 3}
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_CLOSE = "\"'\u00bb\u201d\u2019)\\]"  # quotes and brackets behind the end of a sentence
_WIDE_ENDS, _WIDE_CLOSE = "\u3002\uff01\uff1f", "\u300d\u300f\u201d\u2019\uff09"
_SENTENCE = re.compile(rf"(?:(?<!\d)\.|[!?\u2026\u061f])[{_CLOSE}]*(?=\s)|[{_WIDE_ENDS}]+[{_WIDE_CLOSE}]*")
_EMPTY_LINES = re.compile(r"(?:[^\S\n]*\n)+")
_NEW_LINES = re.compile(r"\n{1,2}")
_BLANKS = re.compile(r"\s+")
_UNSEEN = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"


@dataclass(frozen=True, slots=True)
class Entity:
    """A look of a stretch of text; offset and length in UTF-16 units, as Telegram counts."""

    kind: Kind
    offset: int
    length: int
    url: str | None = None
    language: str | None = None

    @property
    def end(self) -> int:
        return self.offset + self.length


@dataclass(frozen=True, slots=True)
class Rich:
    text: str
    entities: tuple[Entity, ...] = ()

    @property
    def units(self) -> int:
        return utf16_length(self.text)


@dataclass(frozen=True, slots=True)
class Span:
    """An entity while offsets are still those of Python."""

    start: int
    end: int
    kind: Kind
    url: str | None = None
    language: str | None = None

    def within(self, start: int, end: int, text: str) -> Span | None:
        """What of it lies there; looks begin and end on something that can be seen."""
        first, last = max(self.start, start), min(self.end, end)
        if self.kind != "pre":
            while first < last and text[first].isspace():
                first += 1
            while first < last and text[last - 1].isspace():
                last -= 1
        return Span(first, last, self.kind, self.url, self.language) if first < last else None


@dataclass(frozen=True, slots=True)
class Cut:
    part: Rich
    looked: int  # how far the text was read, in characters, before it was known what this part is


def split(rich: Rich, limit: int = LIMIT) -> tuple[Rich, ...]:
    """The messages that a text becomes; none if there is nothing to be seen in it. A part is its own only part."""
    return tuple(cut.part for cut in cuts(rich, limit))


def cuts(rich: Rich, limit: int = LIMIT) -> Iterator[Cut]:
    """One after the other, each decided without a look at what comes after it."""
    if limit < 2:
        msg = f"A message of {limit} units cannot hold every character; the least is 2."
        raise ValueError(msg)
    return Splitter(rich, limit).cuts()


def utf16_length(text: str) -> int:
    return len(text) if text.isascii() else len(text) + sum(1 for _ in _ASTRAL.finditer(text))


def visible(text: str) -> bool:
    """Whether there is anything that a person, or Telegram, takes for text."""
    return any(char not in _UNSEEN and not _unseen(char) for char in text)


def _unseen(char: str) -> bool:
    return unicodedata.category(char) in {"Zs", "Zl", "Zp", "Cc", "Cf"} or "\ufe00" <= char <= "\ufe0f"


class Ruler:
    """Python's offsets and UTF-16's of one text."""

    def __init__(self, text: str) -> None:
        self._astral = [] if text.isascii() else [found.start() for found in _ASTRAL.finditer(text)]
        self._units = [index + number for number, index in enumerate(self._astral)]

    def units(self, index: int) -> int:
        return index + bisect_left(self._astral, index)

    def index(self, units: int) -> int:
        """The last character's edge at or before this unit."""
        return units - bisect_right(self._units, units - 1)


def rich_of(text: str, spans: list[Span], start: int = 0) -> Rich:
    """The text, with spans whose offsets count from ``start``."""
    ruler = Ruler(text)
    entities = []
    for span in sorted(spans, key=_order):
        first, last = ruler.units(span.start - start), ruler.units(span.end - start)
        entities.append(Entity(span.kind, first, last - first, span.url, span.language))
    return Rich(text, tuple(entities))


def _order(span: Span) -> tuple[int, int, int]:
    """By place, and what contains before what is contained."""
    return span.start, -span.end, 0 if span.kind in _QUOTES else 2 if span.kind in _VERBATIM else 1


class Splitter:
    def __init__(self, rich: Rich, limit: int) -> None:
        self._text = rich.text
        self._limit = limit
        self._ruler = Ruler(rich.text)
        index, known = self._ruler.index, rich.entities
        found = [Span(index(one.offset), index(one.end), one.kind, one.url, one.language) for one in known]
        self._spans = sorted(found, key=_order)
        self._starts = [span.start for span in self._spans]
        self._kept = [span.start for span in self._spans if span.kind in KEPT]
        self._edges = sorted({edge for span in self._spans if span.kind in BLOCKS for edge in (span.start, span.end)})
        self._code = [span for span in self._spans if span.kind == "pre"]
        self._below_headings = {at for span in self._spans for at in self._below(span)}
        self._verbatim = [span for span in self._spans if span.kind in _VERBATIM]
        self._open: list[Span] = []  # those of the parts before that go on
        self._next = 0

    def cuts(self) -> Iterator[Cut]:
        start = self._begin(0)
        while start < len(self._text):
            reach = self._reach(start)
            end = len(self._text) if reach == len(self._text) else self._choose(start, reach)
            part = self._part(start, end)
            if visible(part.text):
                yield Cut(part, reach + 2)
            start = self._begin(end)

    def _reach(self, start: int) -> int:
        """How far a part may go that begins here."""
        reach = max(self._ruler.index(self._ruler.units(start) + self._limit), start + 1)
        first = bisect_left(self._kept, start)
        still = sum(span.kind in KEPT and span.end > start for span in [*self._open, *self._passed(start)])
        over = first + max(MOST_ENTITIES - still, 1)
        if over < len(self._kept) and self._kept[over] < reach:
            reach = max(self._kept[over], start + 1)
        return min(reach, len(self._text))

    def _passed(self, start: int) -> list[Span]:
        return self._spans[self._next : bisect_left(self._starts, start)]

    # ── where to cut ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _choose(self, start: int, reach: int) -> int:
        half = start + max((reach - start) // 2, 1)
        for low in (half, start + 1):
            for found in (self._paragraph, self._line, self._sentence, self._word):
                end = found(low, reach)
                while end >= low and end in self._below_headings:
                    end = found(low, end - 1)
                if end >= low and not self._text[start:end].isspace():
                    return end
        return self._character(start, reach)

    def _paragraph(self, low: int, reach: int) -> int:
        """An empty line outside of code, or where a block begins or ends."""
        number = bisect_right(self._edges, reach) - 1
        best = self._edges[number] if number >= 0 and self._edges[number] >= low else -1
        at = self._text.rfind("\n\n", low, reach + 2)
        while at >= 0 and (code := self._inside(self._code, at)) is not None:
            at = self._text.rfind("\n\n", low, code.start) if code.start > low else -1
        return max(best, at)

    def _line(self, low: int, reach: int) -> int:
        return self._text.rfind("\n", low, reach + 1)

    def _sentence(self, low: int, reach: int) -> int:
        best = -1
        for found in _SENTENCE.finditer(self._text, max(low - 1, 0), min(reach + 1, len(self._text))):
            if low <= found.end() <= reach:
                best = found.end()
        return -1 if best >= 0 and self._inside(self._verbatim, best) is not None else best

    def _word(self, low: int, reach: int) -> int:
        return max(self._text.rfind(blank, low, reach + 1) for blank in " \t\n\u3000\u200b")

    def _character(self, start: int, reach: int) -> int:
        at = reach
        while at > start and joined(self._text, at):
            at -= 1
        return at if at > start else reach

    def _below(self, span: Span) -> range:
        """Where no message ends: between a line that is all bold and what it stands above."""
        whole = span.kind == "bold" and (span.start == 0 or self._text[span.start - 1] == "\n")
        found = _NEW_LINES.match(self._text, span.end) if whole else None
        return range(span.end, found.end() + 1) if found else range(0)

    @staticmethod
    def _inside(spans: list[Span], at: int) -> Span | None:
        """The one of these, none of which overlap, that a cut here would cut in two."""
        number = bisect_left(spans, at, key=lambda span: span.start) - 1
        return spans[number] if number >= 0 and spans[number].end > at else None

    def _begin(self, at: int) -> int:
        """Where the next part begins: with something to be seen, and in code with the whole of a line."""
        code = self._inside(self._code, at)
        if code is not None:
            blank = _EMPTY_LINES.match(self._text, at, code.end)
            return blank.end() if blank else at
        found = _BLANKS.match(self._text, at)
        end = found.end() if found else at
        number = bisect_left(self._code, at, key=lambda span: span.start)
        return min(end, self._code[number].start) if number < len(self._code) else end

    # ── what is in it ────────────────────────────────────────────────────────────────────────────────────────────────

    def _part(self, start: int, end: int) -> Rich:
        text = self._text[start:end].rstrip()
        last = bisect_left(self._starts, end)
        here = [span for span in [*self._open, *self._spans[self._next : last]] if span.end > start]
        self._open, self._next = [span for span in here if span.end > end], last
        found = [span.within(start, start + len(text), self._text) for span in here]
        return rich_of(text, _fewer([span for span in found if span is not None]), start)


def _fewer(spans: list[Span]) -> list[Span]:
    if len(spans) <= MOST_ENTITIES:
        return spans
    ranked = sorted(range(len(spans)), key=lambda number: (-_WORTH.get(spans[number].kind, 9), number))
    return [spans[number] for number in sorted(ranked[:MOST_ENTITIES])]


def joined(text: str, at: int) -> bool:
    """Whether the characters on both sides are seen as one: marks, emoji, flags, syllables of Korean, and `\\r\\n`."""
    if at <= 0 or at >= len(text):
        return False
    before, after = text[at - 1], text[at]
    if after < "\u0300":
        return before == "\r" and after == "\n"
    if _extends(after) or (before == "\u200d" and after > "\u2000") or (unicodedata.combining(before) == VIRAMA):
        return True
    if _regional(after) and _regional(before):
        return _flags_before(text, at) % 2 == 1
    return _hangul(before) in _BEFORE.get(_hangul(after), "")


def _extends(char: str) -> bool:
    """Combining marks, joiners, variations, colours of skin and the letters inside flags of regions."""
    return (
        unicodedata.category(char) in {"Mn", "Me", "Mc"}
        or char in "\u200c\u200d\uff9e\uff9f"
        or "\U0001f3fb" <= char <= "\U0001f3ff"
        or "\U000e0020" <= char <= "\U000e007f"
    )


def _regional(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _flags_before(text: str, at: int) -> int:
    count = 0
    while count < at and count < LIMIT and _regional(text[at - 1 - count]):
        count += 1
    return count


_BEFORE: Final = {"L": "L", "V": "LVS", "T": "VTSF", "S": "L", "F": "L"}


def _hangul(char: str) -> str:
    """Leading, vowel, trailing, or a syllable (S without, F with a trailing consonant)."""
    if "\u1100" <= char <= "\u115f" or "\ua960" <= char <= "\ua97c":
        return "L"
    if "\u1160" <= char <= "\u11a7" or "\ud7b0" <= char <= "\ud7c6":
        return "V"
    if "\u11a8" <= char <= "\u11ff" or "\ud7cb" <= char <= "\ud7fb":
        return "T"
    if "\uac00" <= char <= "\ud7a3":
        return "S" if (ord(char) - 0xAC00) % 28 == 0 else "F"
    return "-"
