"""The blocks of a text, one below the other, drawn with what Telegram has. Pure.

Lists, headings and rules are drawn with characters. An empty line stays where the source has one, and there is one
around each heading. Code begins at the left edge also in a list, so that it can be copied. A quote within a quote or a
list keeps its ``>``: Telegram has a look only for the outermost.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from gateway.channels.telegram_inline import Inline, clean
from gateway.channels.telegram_split import Rich, rich_of, visible
from gateway.channels.telegram_table import as_list, read

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markdown_it.token import Token

INDENT: Final = "   "
BULLETS: Final = "•◦▪"
BOXES: Final = {False: "☐", True: "☑"}
RULE: Final = "─" * 10
LONG_QUOTE: Final = 1_000  # characters; what is longer is folded, and opens at a touch
_LANGUAGE = re.compile(r"[\w+#.-]{1,32}")


@dataclass(slots=True)
class Level:
    """An item of a list, or a quote that Telegram has no look for."""

    indent: str
    marker: str = ""  # until it is written
    line: int = 0

    def begin(self) -> str:
        marker, self.marker = self.marker, ""
        return marker or self.indent


@dataclass(slots=True)
class Numbers:
    ordered: bool
    last: int = -1


@dataclass(frozen=True, slots=True)
class Place:
    """The end of a block, or of an item of an outermost list: its line in the source, and how much text there is."""

    line: int
    length: int
    loose: bool
    labels: frozenset[str]
    hides: str = ""  # the definition of this label


@dataclass(frozen=True, slots=True)
class Settled:
    """How far a source cannot change any more: up to a line, and in the code that begins there some characters."""

    line: int
    code: int | None = None


class Page(Inline):
    def __init__(self, tokens: Sequence[Token], definitions: dict[str, Any]) -> None:
        super().__init__()
        self._definitions = definitions
        self._used = dict(reversed(list(_uses(tokens))))  # labels, and the line before which one was used first
        self._places: list[Place] = []
        self._levels: list[Level] = []
        self._lists: list[Numbers] = []
        self._line = 0  # everything before it is written
        self._after_heading = False
        self._quotes = 0
        self._quoted_from = -1
        self._last_code = (-1, 0)
        self._fill(tokens)

    @property
    def rich(self) -> Rich:
        text = self.text.rstrip()
        if not visible(text):
            return Rich("")
        found = [span.within(0, len(text), text) for span in self.spans]
        return rich_of(text, [span for span in found if span is not None])

    def settled(self, known: Settled) -> int:
        """How much of the text stays as it is, in characters, whatever follows."""
        length = 0
        for place in self._places:
            if place.line > known.line:
                break
            if place.loose or not all(self._defined_before(label, known.line) for label in place.labels):
                return length
            if place.hides and self._used[place.hides] > known.line:
                return length
            length = place.length
        if known.code is not None and self._last_code[0] == known.line:
            return min(self._last_code[1] + known.code, self.length)
        return length

    def _defined_before(self, label: str, line: int) -> bool:
        end: int = self._definitions[label]["map"][1]
        return end <= line

    # ── blocks ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _fill(self, tokens: Sequence[Token]) -> None:
        number = 0
        while number < len(tokens):
            token = tokens[number]
            if token.type == "table_open":
                end = next(at for at in range(number, len(tokens)) if tokens[at].type == "table_close")
                self._table(token, tokens[number:end])
                number = end
            else:
                self._block(token)
            if (token.level == 0 and token.nesting <= 0) or (token.type == "table_open" and token.level == 0):
                self._place(token.info if token.type == "definition" else "")
            number += 1

    def _block(self, token: Token) -> None:
        match token.type:
            case "inline":
                self._paragraph(token)
            case "heading_open":
                self._heading_open(token)
            case "heading_close":
                self.close()
                self._after_heading = True
            case "fence" | "code_block":
                self._code_block(token)
            case "hr":
                self._begin(token.map)
                self.write(RULE)
            case "verbatim" | "definition":
                self._verbatim(token)
            case "bullet_list_open" | "ordered_list_open":
                self._lists.append(Numbers(token.type == "ordered_list_open"))
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
            case "list_item_open":
                self._levels.append(Level(INDENT, self._marker(token), (token.map or [0])[0]))
            case "list_item_close":
                self._item_close(token)
            case "blockquote_open":
                self._quote_open()
            case "blockquote_close":
                self._quote_close()

    def _begin(self, lines: list[int] | None, *, apart: bool = False, code: bool = False) -> None:
        """A new line for a block, with what its lists and quotes put before it; code wants none of that."""
        first, end = lines or [self._line, self._line]
        if self.length:
            self.write_plain("\n\n" if apart or self._after_heading or first > self._line else "\n")
        self._after_heading = False
        self._line = end
        if self._quotes and self._quoted_from < 0:
            self._quoted_from = self.length
        if not code or any(level.marker for level in self._levels):
            before = "".join(level.begin() for level in self._levels)
            self.write_plain(before.rstrip() + "\n" if code else before)
        self.indent = "".join(level.indent for level in self._levels)

    def _paragraph(self, token: Token) -> None:
        if "done" in token.meta:
            level = self._levels[-1]
            level.marker = f"{level.marker if self._lists[-1].ordered else ''}{BOXES[token.meta['done']]} "
        if not self._looks:
            self._begin(token.map)
        self.inline(token.children or [])

    def _heading_open(self, token: Token) -> None:
        self._begin(token.map, apart=True)
        self.open("bold")

    def _verbatim(self, token: Token) -> None:
        self.loose = self.loose or (token.type == "definition" and token.info not in self._used)
        if token.info not in self._used:
            self._begin(token.map)
            self.write(token.content)

    def _code_block(self, token: Token) -> None:
        info, text = token.info.strip(), clean(token.content).rstrip()
        language, about = _language(info) if visible(text) else ("", info)
        if about:
            self._begin(token.map)
            self.write(about)
        if visible(text):
            self._begin(token.map, code=True)
            start, self._last_code = self.length, ((token.map or [0])[0], self.length)
            self.write_plain(text)
            self.mark("pre", start, language=language or None)

    def _table(self, token: Token, tokens: Sequence[Token]) -> None:
        table = read(tokens, self)
        grid = table.grid
        if not any(cell.text for row in table.rows for cell in row):
            return
        self._begin(token.map, code=bool(grid))
        start = self.length
        if grid:
            self.write_plain(grid)
            self.mark("pre", start)
        else:
            as_list(table, self)

    # ── what blocks stand in ─────────────────────────────────────────────────────────────────────────────────────────

    def _marker(self, token: Token) -> str:
        numbers = self._lists[-1]
        if not numbers.ordered:
            depth = sum(not one.ordered for one in self._lists)
            return f"{BULLETS[min(depth, len(BULLETS)) - 1]} "
        written = int(token.info)
        numbers.last = written if written > numbers.last else numbers.last + 1
        return f"{numbers.last}{token.markup} "

    def _item_close(self, token: Token) -> None:
        level = self._levels[-1]
        if level.marker:  # an item without anything in it
            level.marker = level.marker.rstrip()
            self._begin([level.line, level.line + 1])
        self._levels.pop()
        if token.level == 1:
            self._place("")

    def _quote_open(self) -> None:
        if self._quotes or self._levels:
            self._levels.append(Level("> "))
        else:
            self._quoted_from = -1
        self._quotes += 1

    def _quote_close(self) -> None:
        self._quotes -= 1
        if self._quotes or self._levels:
            self._levels.pop()
        elif self._quoted_from >= 0:
            long = self.length - self._quoted_from > LONG_QUOTE
            self.mark("expandable_blockquote" if long else "blockquote", self._quoted_from)

    def _place(self, hides: str) -> None:
        hides = hides if hides in self._used else ""
        self._places.append(Place(self._line, self.length, self.loose, frozenset(self.labels), hides))
        self.loose, self.labels = False, set()


def _uses(tokens: Sequence[Token], line: int = 0) -> Iterator[tuple[str, int]]:
    for token in tokens:
        at = token.map[1] if token.map else line
        if "label" in token.meta:
            yield token.meta["label"], at
        if token.children:
            yield from _uses(token.children, at)


def _language(info: str) -> tuple[str, str]:
    """What a fence says: the language, and anything else, which is shown."""
    first, _, rest = info.partition(" ")
    return (first, rest.strip()) if _LANGUAGE.fullmatch(first) else ("", info)
