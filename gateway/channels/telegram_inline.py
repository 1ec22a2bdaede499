"""What stands inside a paragraph, a heading or a cell, as text and looks. Pure.

Code has no other looks, and in a link it has none: Telegram allows neither. A link that Telegram would refuse is
followed by its address instead; so is a picture in a link. Titles of links are shown behind them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gateway.channels.telegram_marks import linkable
from gateway.channels.telegram_split import Span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it.token import Token

    from gateway.channels.telegram_split import Kind

_LOOKS: Final[dict[str, Kind]] = {"strong": "bold", "em": "italic", "s": "strikethrough"}
_SPOILER = re.compile(r"(?<![\w|])\|\|(?=[^\s|])([^|]+)(?<=\S)\|\|(?![\w|])")
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_CONTROL: Final[dict[int, str | None]] = {
    **dict.fromkeys((*range(32), *range(127, 160))),
    **dict.fromkeys(range(55296, 57344), "�"),
    **{ord(char): char for char in "\n\t"},
    **{ord(char): "\n" for char in "\r\x0b\x0c\x85\u2028\u2029"},
}


def clean(text: str) -> str:
    """Without control characters and halves of characters; every end of a line is one that Markdown knows."""
    return text if text.isprintable() else text.replace("\r\n", "\n").translate(_CONTROL)


@dataclass(slots=True)
class Look:
    kind: Kind | None  # none if it is there already
    start: int


@dataclass(slots=True)
class Link:
    start: int
    piece: int
    token: Token


class Inline:
    """Text that is being written. ``loose`` once a bracket was met that a definition yet to come may make a link."""

    def __init__(self) -> None:
        self.length = 0
        self.spans: list[Span] = []
        self.labels: set[str] = set()
        self.loose = False
        self.in_cell = False
        self.indent = ""
        self._pieces: list[str] = []
        self._looks: list[Look] = []
        self._links: list[Link] = []

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def write(self, text: str) -> None:
        """With the indentation of its list before every further line."""
        text = clean(text)
        self.write_plain(text.replace("\n", f"\n{self.indent}") if self.indent else text)

    def write_plain(self, text: str) -> None:
        self._pieces.append(text)
        self.length += len(text)

    def mark(self, kind: Kind, start: int, url: str | None = None, language: str | None = None) -> None:
        if self.length > start:
            self.spans.append(Span(start, self.length, kind, url, language))

    def inline(self, tokens: Sequence[Token]) -> None:
        for token in tokens:
            name = token.type
            if name in {"text", "text_special"}:
                self._words(token.content)
            elif name in {"softbreak", "hardbreak"}:
                self.write("\n")
            elif name == "code_inline":
                self._code(token.content)
            elif name in {"link_open", "image"}:
                self._links.append(Link(self.length, len(self._pieces), token))
            elif name.endswith("_open"):
                self.open(_LOOKS[name.removesuffix("_open")])
            elif name.endswith("_close") and name != "link_close":
                self.close()
            if name == "image":
                self.inline(token.children or [])
            if name in {"link_close", "image"}:
                self._link(self._links.pop())

    def open(self, kind: Kind) -> None:
        known = any(look.kind == kind for look in self._looks)
        self._looks.append(Look(None if known else kind, self.length))

    def close(self) -> None:
        look = self._looks.pop()
        if look.kind is not None:
            self.mark(look.kind, look.start)

    def _words(self, text: str) -> None:
        self.loose = self.loose or "]" in text
        text = _BREAK.sub("\n", text) if self.in_cell else text
        done = 0
        for found in _SPOILER.finditer(text) if "||" in text else ():
            self.write(text[done : found.start()])
            start, done = self.length, found.end()
            self.write(found[1])
            self.mark("spoiler", start)
        self.write(text[done:])

    def _code(self, text: str) -> None:
        start = self.length
        if self._links:
            self.write(text)
            return
        for look in self._looks:
            if look.kind is not None:
                self.mark(look.kind, look.start)
        self.write(text)
        self.mark("code", start)
        for look in self._looks:
            look.start = self.length

    def _link(self, link: Link) -> None:
        attrs = link.token.attrs
        address = clean(str(attrs.get("href", attrs.get("src", "")))).strip()
        said = "".join(self._pieces[link.piece :])
        title = str(attrs.get("title", ""))
        if title and title.casefold() != said.casefold():
            self.write(f" ({title})" if said.strip() else title)
        if "label" in link.token.meta:
            self.labels.add(link.token.meta["label"])
        url = linkable(address)
        shown = address.removeprefix("mailto:")
        if self.length == link.start or not (said.strip() or title):
            self.write(shown)
        elif said in {address, shown}:
            return
        elif url is None or self._links:
            self.write(f" ({shown})" if shown else "")
        else:
            self.mark("text_link", link.start, url)
