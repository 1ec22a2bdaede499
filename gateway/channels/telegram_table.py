"""Tables for a small screen: columns in letters of one width, or a list if they do not fit. Pure.

Telegram has no tables. A block of code keeps columns, but a phone breaks its lines after about forty columns, and then
nobody can read it; links in it are lost. Such tables become lines of ``header: value``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len

from gateway.channels.telegram_inline import Inline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it.token import Token

    from gateway.channels.telegram_split import Span

WIDEST: Final = 42


@dataclass(frozen=True, slots=True)
class Cell:
    text: str
    spans: tuple[Span, ...]

    @property
    def linked(self) -> bool:
        return any(span.kind in {"text_link", "spoiler"} for span in self.spans)


@dataclass(frozen=True, slots=True)
class Table:
    """The first row is the header; every row has as many cells."""

    rows: tuple[tuple[Cell, ...], ...]
    sides: tuple[str, ...]

    @property
    def grid(self) -> str:
        """The table in columns, or nothing if it is better as a list."""
        if any(cell.linked for row in self.rows for cell in row):
            return ""
        lines = [[cell.text.split("\n") for cell in row] for row in self.rows]
        widths = [max(_width(cell) for cell in column) for column in zip(*lines, strict=True)]
        if sum(widths) + 3 * (len(widths) - 1) > WIDEST:
            return ""
        rows = ["\n".join(self._line(line, widths) for line in zip_longest(*row, fillvalue="")) for row in lines]
        return "\n".join([rows[0], "-+-".join("-" * width for width in widths), *rows[1:]])

    def _line(self, line: Sequence[str], widths: Sequence[int]) -> str:
        cells = zip(line, widths, self.sides, strict=True)
        return " | ".join(_padded(text, width, side) for text, width, side in cells).rstrip()


def _width(lines: Sequence[str]) -> int:
    return max(cell_len(line) for line in lines)


def _padded(text: str, width: int, side: str) -> str:
    space = width - cell_len(text)
    before = {"right": space, "center": space // 2}.get(side, 0)
    return " " * before + text + " " * (space - before)


def read(tokens: Sequence[Token], into: Inline) -> Table:
    """From the tokens of a table; what its cells say about labels and brackets goes ``into`` the text around it."""
    rows: list[list[Cell]] = []
    sides: list[str] = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "th_open":
            sides.append(str(token.attrs.get("style", "")).removeprefix("text-align:"))
        elif token.type == "inline":
            rows[-1].append(_cell(token, into))
    return Table(tuple(tuple(row) for row in rows), tuple(sides))


def _cell(token: Token, into: Inline) -> Cell:
    cell = Inline()
    cell.in_cell = True
    cell.inline(token.children or [])
    into.loose = into.loose or cell.loose
    into.labels |= cell.labels
    text = cell.text.replace("\t", " ")
    kept = len(text) - len(text.lstrip())  # never more than a blank that a reference made
    spans = [span.within(kept, len(text.rstrip()), text) for span in cell.spans]
    moved = tuple(_moved(span, -kept) for span in spans if span is not None)
    return Cell(text.strip(), moved)


def _moved(span: Span, by: int) -> Span:
    return type(span)(span.start + by, span.end + by, span.kind, span.url, span.language)


def as_list(table: Table, into: Inline) -> None:
    """A line per value, an empty line between rows."""
    header, *rows = table.rows
    if not rows:
        _values(header, into, " | ")
    names = [_name(cell) for cell in header]
    for number, row in enumerate(row for row in rows if any(cell.text for cell in row)):
        into.write("\n\n" if number else "")
        _lines(names, row, into)


def _lines(names: Sequence[str], row: Sequence[Cell], into: Inline) -> None:
    first = True
    for name, cell in zip(names, row, strict=True):
        if cell.text:
            into.write("" if first else "\n")
            first = False
            if name:
                start = into.length
                into.write(f"{name}:")
                into.mark("bold", start)
                into.write(" ")
            _values([cell], into, "")


def _values(cells: Sequence[Cell], into: Inline, between: str) -> None:
    for number, cell in enumerate(cells):
        into.write(between if number else "")
        if "\n" in cell.text and into.indent:  # the spans would be off
            into.write(cell.text)
            continue
        start = into.length
        into.write(cell.text)
        into.spans.extend(_moved(span, start) for span in cell.spans)


def _name(cell: Cell) -> str:
    urls = [span.url for span in cell.spans if span.url is not None]
    name = cell.text.removesuffix(":") + "".join(f" ({url})" for url in urls)
    return " ".join(name.split())
