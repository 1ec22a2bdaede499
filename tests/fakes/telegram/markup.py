"""MarkdownV2, HTML and the old Markdown, as strictly as the server reads them: text and entities, or a Failure.

Offsets in errors are in bytes, as the server's are.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.fakes.telegram.errors import Failure, bad
from tests.fakes.telegram.text import Entity, units

if TYPE_CHECKING:
    from collections.abc import Callable

RESERVED = frozenset("_*[]()~`>#+-=|{}.!")
MARKS = {"__": "underline", "||": "spoiler", "*": "bold", "_": "italic", "~": "strikethrough"}
NAMES = {
    "underline": "Underline",
    "spoiler": "Spoiler",
    "bold": "Bold",
    "italic": "Italic",
    "pre": "Pre",
    "code": "Code",
}
TAGS = {
    **dict.fromkeys(("b", "strong"), "bold"),
    **dict.fromkeys(("i", "em"), "italic"),
    **dict.fromkeys(("u", "ins"), "underline"),
    **dict.fromkeys(("s", "strike", "del"), "strikethrough"),
    "tg-spoiler": "spoiler",
    "span": "spoiler",
    "a": "text_link",
    "code": "code",
    "pre": "pre",
    "blockquote": "blockquote",
    "tg-emoji": "custom_emoji",
}
TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9-]*)((?:\s+[^<>]*)?)>")
ATTRIBUTE = re.compile(r"""([a-zA-Z-]+)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s"'>]+))?""")
CHARACTER = re.compile(r"&(?:(lt|gt|amp|quot)|#(\d+)|#x([0-9a-fA-F]+));")
OLD = re.compile(r"```(?:(\w+)\n)?|[*_`\[]")
OLD_KINDS = {"*": "bold", "_": "italic", "`": "code", "```": "pre"}


def parse(text: str, mode: str) -> tuple[str, list[Entity]]:
    """The text without its markup, and the entities that the markup stands for."""
    reader = READERS.get(mode.lower())
    if reader is None:
        raise bad("unsupported parse_mode")
    return reader(text)


def cannot(why: str) -> Failure:
    return bad(f"can't parse entities: {why}")


@dataclass(slots=True)
class Open:
    kind: str
    mark: str
    offset: int
    at: int


@dataclass(slots=True)
class Reading:
    """A place in the markup, and what was read so far."""

    source: str
    at: int = 0
    text: list[str] = field(default_factory=list)
    entities: list[Entity] = field(default_factory=list)
    stack: list[Open] = field(default_factory=list)
    length: int = 0

    @property
    def byte(self) -> int:
        return len(self.source[: self.at].encode("utf-8", "surrogatepass"))

    def put(self, text: str) -> None:
        self.text.append(text)
        self.length += units(text)

    def open(self, kind: str, mark: str) -> None:
        self.stack.append(Open(kind, mark, self.length, self.byte))

    def close(self, **more: Any) -> None:
        top = self.stack.pop()
        if self.length > top.offset:
            self.entities.append({"type": top.kind, "offset": top.offset, "length": self.length - top.offset, **more})

    def done(self) -> tuple[str, list[Entity]]:
        return "".join(self.text), self.entities


def markdown_v2(source: str) -> tuple[str, list[Entity]]:
    reading = Reading(source)
    while reading.at < len(source):
        quote(reading)
        if reading.at < len(source):
            step(reading)
    while reading.stack and reading.stack[-1].kind.endswith("blockquote"):
        reading.close()
    if reading.stack:
        top = reading.stack[-1]
        raise cannot(f"Can't find end of {NAMES.get(top.kind, top.kind.capitalize())} entity at byte offset {top.at}")
    return reading.done()


def quote(reading: Reading) -> None:
    """A quotation goes over whole lines: it begins with a `>` and ends with the first line that has none."""
    source, at = reading.source, reading.at
    if at and source[at - 1] != "\n":
        return
    quoting = any(entry.kind.endswith("blockquote") for entry in reading.stack)
    wide = source.startswith("**>", at)
    if source.startswith(">", at) or wide:
        if not quoting or wide:
            if quoting:
                reading.close()
            reading.open("expandable_blockquote" if wide else "blockquote", ">")
        reading.at += 3 if wide else 1
    elif quoting and reading.stack[-1].kind.endswith("blockquote"):
        reading.close()


def step(reading: Reading) -> None:
    source, at = reading.source, reading.at
    character = source[at]
    if character == "\\" and at + 1 < len(source) and 0 < ord(source[at + 1]) < 127:
        reading.put(source[at + 1])
        reading.at += 2
    elif character == "`":
        raw(reading)
    elif (mark := mark_at(reading)) is not None:
        toggle(reading, mark)
    elif character == "[" or source.startswith("![", at):
        reading.open("custom_emoji" if character == "!" else "text_link", "]")
        reading.at += 2 if character == "!" else 1
    elif character == "]" and reading.stack and reading.stack[-1].mark == "]":
        link(reading)
    elif character in RESERVED:
        raise cannot(f"Character '{character}' is reserved and must be escaped with the preceding '\\'")
    else:
        reading.put(character)
        reading.at += 1


def mark_at(reading: Reading) -> str | None:
    top = reading.stack[-1].mark if reading.stack else ""
    for mark in MARKS:
        if reading.source.startswith(mark, reading.at) and not (
            mark == "__" and top == "_" and "__" not in marks(reading)
        ):
            return mark
    return None


def marks(reading: Reading) -> list[str]:
    return [entry.mark for entry in reading.stack]


def toggle(reading: Reading, mark: str) -> None:
    if reading.stack and reading.stack[-1].mark == mark:
        reading.close()
    elif mark in marks(reading):
        top = reading.stack[-1]
        raise cannot(f"Can't find end of {NAMES.get(top.kind, top.kind.capitalize())} entity at byte offset {top.at}")
    else:
        reading.open(MARKS[mark], mark)
    reading.at += len(mark)


def raw(reading: Reading) -> None:
    """Code, of a line or of a block: nothing in it is markup but the backslash."""
    fence = "```" if reading.source.startswith("```", reading.at) else "`"
    kind, start, more = ("pre" if fence == "```" else "code"), reading.byte, {}
    reading.open(kind, fence)
    reading.at += len(fence)
    if kind == "pre" and (named := re.compile(r"(\S*)\n").match(reading.source, reading.at)):
        more = {"language": named[1]} if named[1] else {}
        reading.at = named.end()
    while not reading.source.startswith(fence, reading.at):
        if reading.at >= len(reading.source):
            raise cannot(f"Can't find end of {NAMES[kind]} entity at byte offset {start}")
        if reading.source[reading.at] == "\\" and reading.source[reading.at + 1 : reading.at + 2] in ("`", "\\"):
            reading.at += 1
        reading.put(reading.source[reading.at])
        reading.at += 1
    reading.at += len(fence)
    reading.close(**more)


def link(reading: Reading) -> None:
    found = re.compile(r"\]\(((?:\\.|[^)\\])*)\)").match(reading.source, reading.at)
    if found is None:
        top = reading.stack[-1]
        raise cannot(f"Can't find end of a {top.kind} entity at byte offset {top.at}")
    address = re.sub(r"\\(.)", r"\1", found[1])
    if reading.stack[-1].kind == "custom_emoji":
        reading.close(custom_emoji_id=address.rpartition("id=")[2])
    else:
        reading.close(url=address)
    reading.at = found.end()


def html_(source: str) -> tuple[str, list[Entity]]:
    reading = Reading(source)
    opened: list[tuple[str, dict[str, Any]]] = []
    while reading.at < len(source):
        if source[reading.at] == "<":
            tag(reading, opened)
        elif found := CHARACTER.match(source, reading.at):
            reading.put(html.unescape(found[0]))
            reading.at = found.end()
        else:
            reading.put(source[reading.at])
            reading.at += 1
    if opened:
        raise cannot(f'Can\'t find end tag corresponding to start tag "{opened[-1][0]}"')
    return reading.done()


def tag(reading: Reading, opened: list[tuple[str, dict[str, Any]]]) -> None:
    found = TAG.match(reading.source, reading.at)
    if found is None:
        begun = re.compile(r"</?([^\s<>]*)").match(reading.source, reading.at)
        raise cannot(f'Unsupported start tag "{begun[1] if begun else ""}" at byte offset {reading.byte}')
    ends, name, written = found[1], found[2].lower(), found[3]
    attributes = {key.lower(): html.unescape(value.strip("\"'")) for key, value in ATTRIBUTE.findall(written)}
    if ends:
        end_tag(reading, opened, name)
    elif name not in TAGS or (name == "span" and attributes.get("class") != "tg-spoiler"):
        raise cannot(f'Unsupported start tag "{name}" at byte offset {reading.byte}')
    else:
        opened.append((name, attributes))
        reading.open(TAGS[name], name)
    reading.at = found.end()


def end_tag(reading: Reading, opened: list[tuple[str, dict[str, Any]]], name: str) -> None:
    if not opened:
        raise cannot(f"Unexpected end tag at byte offset {reading.byte}")
    expected, attributes = opened.pop()
    if name != expected:
        raise cannot(f'Unmatched end tag at byte offset {reading.byte}, expected "</{expected}>", found "</{name}>"')
    top = reading.stack[-1]
    if top.kind == "text_link" and "href" not in attributes:
        reading.stack.pop()  # an anchor without an address is but its text
    elif top.kind == "text_link":
        reading.close(url=attributes["href"])
    elif top.kind == "custom_emoji":
        reading.close(custom_emoji_id=attributes.get("emoji-id", ""))
    else:
        if top.kind == "blockquote" and "expandable" in attributes:
            top.kind = "expandable_blockquote"
        reading.close()
        fold(reading, attributes)


def fold(reading: Reading, attributes: dict[str, Any]) -> None:
    """`<pre><code class="language-x">` is one block with a language, not code within it."""
    inner, language = reading.entities[-1:], attributes.get("class", "")
    if not inner or inner[0]["type"] != "code" or not reading.stack or reading.stack[-1].kind != "pre":
        return
    if reading.stack[-1].offset == inner[0]["offset"] and language.startswith("language-"):
        reading.entities.pop()
        length = reading.length - reading.stack[-1].offset
        reading.entities.append(
            {
                "type": "pre",
                "offset": inner[0]["offset"],
                "length": length,
                "language": language.removeprefix("language-"),
            }
        )
        reading.stack[-1].offset = reading.length  # nothing is left for the outer one


def markdown(source: str) -> tuple[str, list[Entity]]:
    """The old Markdown: no nesting, and what is not closed is an error."""
    reading = Reading(source)
    while reading.at < len(source):
        found = OLD.match(source, reading.at)
        if source[reading.at] == "\\" and source[reading.at + 1 : reading.at + 2] in tuple("_*`["):
            reading.put(source[reading.at + 1])
            reading.at += 2
        elif found is None:
            reading.put(source[reading.at])
            reading.at += 1
        else:
            old_entity(reading, found)
    return reading.done()


def old_entity(reading: Reading, found: re.Match[str]) -> None:
    mark = "```" if found[0].startswith("```") else found[0]
    start = reading.byte
    linked = re.compile(r"\[([^\]]*)\]\(([^)]*)\)").match(reading.source, reading.at) if mark == "[" else None
    end = reading.source.find("]" if mark == "[" else mark, found.end())
    if end < 0:
        raise cannot(f"Can't find end of the entity starting at byte offset {start}")
    reading.open(OLD_KINDS.get(mark, "text_link"), mark)
    reading.put(reading.source[found.end() : end])
    if mark != "[":
        reading.close(**({"language": found[1]} if found[1] else {}))
    elif linked:
        reading.close(url=linked[2])
    else:
        reading.stack.pop()
    reading.at = linked.end() if linked else end + len(mark)


READERS: dict[str, Callable[[str], tuple[str, list[Entity]]]] = {
    "markdownv2": markdown_v2,
    "html": html_,
    "markdown": markdown,
}
