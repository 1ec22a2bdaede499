"""Markdown as Telegram shows it: plain text and the looks of its stretches. Pure.

    markdown ─▶ telegram_marks (tokens) ─▶ telegram_page (inline, table) ─▶ Rich ─▶ telegram_split ─▶ messages

What was said arrives: every visible character of the text is there, in its order, except for the marks that became
looks. Ends of lines stay where the agent put them.

    render(markdown)     the whole of a finished text
    split(rich)          its messages
    grown(markdown)      the messages of a text that is still being written, and how many of them are finished for good
    plain(either)        the messages without looks, for when Telegram refuses these
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.channels.telegram_inline import clean
from gateway.channels.telegram_marks import blocks, parsed
from gateway.channels.telegram_page import Page, Settled
from gateway.channels.telegram_split import LIMIT, Entity, Kind, Rich, cuts, split, utf16_length

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it.token import Token

__all__ = ["LIMIT", "Entity", "Growth", "Kind", "Rich", "growing", "grown", "plain", "render", "split", "utf16_length"]

LONGEST_HALF_LINE = 60
MOST_OPEN = 10  # marks; beyond, nothing is closed
_ENDED = {"paragraph_open", "heading_open", "table_open", "blockquote_open", "hr", "definition"}  # by an empty line
_EMPTY_LINE_AT_END = re.compile(r"\n[ \t]*\n\Z")
_HALF_LINE = re.compile(
    r"[ \t>]*(?:(?:[-+*]|\d{1,9}[.)])[ \t]+)*"
    r"(?:[-=*+#>|~`_:$\\ \t]*|\d{1,9}[.)]?|\[[ xX]?\]?|(?:`{3,}|~{3,})[^`\n]*)[ \t]*"
)
_FENCE_AT_END = re.compile(r"(?:\A|\n)[ \t>]*(?:`{3,}|~{3,})[^`\n]*\s*\Z")
_NEW_BLOCK = re.compile(
    r"(?:\A|\n)(?:[ \t]*\n)*[ \t>]*(?:(?:[-+*]|\d{1,9}[.)]|#{1,6})[ \t]+|(?:`{3,}|~{3,})[^\n]*\n)|\n[ \t>]*\n"
)
_HALF_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\Z|(?<![\w\\])!?\[([^\[\]\n]*)\]?\Z")
_MARK = re.compile(r"\\.|`+|\*+|_+|~+|\|+", re.DOTALL)
_OPENS = {"*", "**", "***", "_", "__", "___", "~~", "||"}


@dataclass(frozen=True, slots=True)
class Growth:
    """The messages of a text so far. The first ``finished`` stay as they are whatever is still to be written."""

    parts: tuple[Rich, ...]
    finished: int


def render(markdown: str) -> Rich:
    return Page(*parsed(clean(markdown))).rich


def growing(markdown: str) -> Rich:
    """A text that is not finished: what is open at its end looks as if it were closed, half a mark is not shown."""
    text = clean(markdown)
    return Page(*parsed(half_written(text, blocks(complete(text))))).rich


def grown(markdown: str, limit: int = LIMIT) -> Growth:
    """The same as messages. The last one is still growing; those before it are finished, or nearly so.

    A part is finished once no continuation can change it, in ``grown`` or in ``render``. It is not while the block that
    it ends in is open, or if a definition that is still to come could make a link of brackets in or before it.
    """
    text = clean(markdown)
    whole = complete(text)
    tokens = blocks(whole)
    page = Page(*parsed(half_written(text, tokens)))
    settled = page.settled(settled_by(whole, tokens))
    parts: list[Rich] = []
    finished = 0
    for cut in cuts(page.rich, limit):
        parts.append(cut.part)
        finished += finished == len(parts) - 1 and cut.looked <= settled
    return Growth(tuple(parts), finished)


def plain(text: str | Rich, limit: int = LIMIT) -> tuple[str, ...]:
    """The same messages without looks. A link's address stands behind it where the message has room for it."""
    rich = render(text) if isinstance(text, str) else text
    return tuple(_with_addresses(part, limit) for part in split(rich, limit))


def _with_addresses(part: Rich, limit: int) -> str:
    units, room = part.text.encode("utf-16-le"), limit - part.units
    pieces, done = [], 0
    for entity in part.entities:
        shown = f" ({entity.url})" if entity.url else ""
        if shown and utf16_length(shown) <= room:
            room -= utf16_length(shown)
            pieces += [units[2 * done : 2 * entity.end].decode("utf-16-le"), shown]
            done = entity.end
    return "".join([*pieces, units[2 * done :].decode("utf-16-le")])


# ── a text that is still being written ───────────────────────────────────────────────────────────────────────────────


def complete(text: str) -> str:
    """Its complete lines: what they mean can be known."""
    return text[: text.rfind("\n") + 1]


def settled_by(text: str, tokens: Sequence[Token]) -> Settled:
    """By the complete lines and their tokens: everything before the last block, or the last item of the last list.

    An empty line settles most blocks, too. Of code that goes on, every complete line is settled.
    """
    outer = [token for token in tokens if token.level == 0 and token.nesting >= 0 and token.map]
    if not outer:
        return Settled(0)
    last = outer[-1]
    first: int = (last.map or [0])[0]
    if last.type == "fence":
        return Settled(first, len(clean(last.content).rstrip()))
    if last.type in _ENDED and _EMPTY_LINE_AT_END.search(text, max(len(text) - LONGEST_HALF_LINE, 0)):
        return Settled(text.count("\n"))
    if last.type.endswith("_list_open"):
        items = [token for token in tokens if token.level == 1 and token.type == "list_item_open" and token.map]
        first = (items[-1].map or [0])[0]
    return Settled(first)


def half_written(text: str, tokens: Sequence[Token]) -> str:
    """With what is open at the end closed, and without marks of which nobody can say yet what they are."""
    head = complete(text)
    text = head if _is_half(text[len(head) :]) else text
    last = next((token for token in reversed(tokens) if token.nesting == 0), None)
    in_code = last is not None and last.type in {"fence", "code_block"} and not _closed(head, last)
    if (found := _FENCE_AT_END.search(text, max(text.rstrip().rfind("\n"), 0))) is not None:
        return text[: found.start()]
    return text if in_code else _closed_inside(_without_header(text))


def _is_half(line: str) -> bool:
    """A line that may become anything, or the row of a table."""
    start = line.lstrip(" \t>")
    row = start.startswith("|") and not start.startswith("||")
    return row or (len(line) <= LONGEST_HALF_LINE and _HALF_LINE.fullmatch(line) is not None)


def _closed(text: str, fence: Token) -> bool:
    lines = text.split("\n")
    last = lines[fence.map[1] - 1].strip(" \t>") if fence.map else ""
    return bool(fence.markup) and last.startswith(fence.markup) and not last.strip(fence.markup[0])


def _without_header(text: str) -> str:
    """A line with bars is a table's header or not, as the next line will say."""
    before, _, last = text.removesuffix("\n").rpartition("\n")
    alone = last.lstrip(" >").startswith("|") and not before.rpartition("\n")[2].lstrip(" >").startswith("|")
    return before if alone else text


def _closed_inside(text: str) -> str:
    """Code, bold and the like that the last paragraph, item or cell leaves open."""
    if text.endswith("\n"):
        text = text.rstrip() if not text.endswith("\n\n") else text
    begin = 0
    for found in _NEW_BLOCK.finditer(text, max(text.rfind("\n\n"), 0)):
        begin = found.end()
    if text[text.rfind("\n") + 1 :].lstrip(" >").startswith("|"):
        begin = max(begin, text.rfind("|") + 1)
    last = _HALF_LINK.sub(lambda found: found[1] or found[2] or "", text[begin:].removesuffix("\\"))
    kept, closers = _open_marks(last)
    return text[:begin] + (last[:kept].rstrip() + closers if closers or kept < len(last) else last)


def _open_marks(text: str) -> tuple[int, str]:
    """How much of the text to keep, and what closes the marks that it leaves open."""
    marks: list[str] = []
    at = 0
    while (found := _MARK.search(text, at)) is not None and len(marks) < MOST_OPEN:
        at, run = found.end(), found[0]
        if run[0] == "\\":
            continue
        if run[0] == "`":
            close = re.compile(rf"(?<!`){run}(?!`)").search(text, at)
            if close is None:
                rest = text[at:].rstrip("`").strip()
                return (len(text.rstrip("`")), run + _closing(marks)) if rest else (found.start(), _closing(marks))
            at = close.end()
        elif run in marks and not text[found.start() - 1].isspace():
            del marks[len(marks) - 1 - marks[::-1].index(run) :]
        elif at == len(text):
            return found.start(), _closing(marks)
        elif run in _OPENS and _may_open(text, found.start(), at):
            marks.append(run)
    return len(text), _closing(marks) if len(marks) < MOST_OPEN else ""


def _may_open(text: str, start: int, end: int) -> bool:
    """A single mark inside a word opens nothing."""
    inside = start > 0 and text[start - 1].isalnum() and (end - start == 1 or text[start] == "_")
    return not text[end].isspace() and not inside


def _closing(marks: list[str]) -> str:
    return "".join(reversed(marks))
