"""Markdown as lines for a terminal: sixteen colours of the person's own palette, so light and dark both work. Pure.

What comes out holds no escape sequence but those for colour and weight: the text is made harmless before it is parsed,
and again afterwards, because a reference such as ``&#x202e;`` is a harmful character only once it was parsed. Nothing
that was said gets lost: HTML is shown as it was written, links and pictures with their address, lines end where the
agent ended them.
"""

from __future__ import annotations

import re
from io import StringIO
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.color import ColorSystem
from rich.console import Console
from rich.markdown import CodeBlock, Heading, HorizontalRule, Markdown
from rich.rule import Rule
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.text import Text
from rich.theme import Theme

from gateway.channels.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import ConsoleOptions, RenderResult
    from rich.segment import Segment

NARROWEST = 10
NO_BREAK = "\N{NO-BREAK SPACE}"
_INDENTED = re.compile(r"( {1,3})(?=[^\s`~>#|])")
_ITEM = re.compile(r" *(?:[-+*]|\d+[.)])(?: |$)")
LONGEST = 100_000  # characters; what is longer is shown as it is
LONGEST_CODE = 10_000
# Languages whose highlighting is known to be quick. A regular expression that takes long would hold up everything.
# fmt: off
LANGUAGES = frozenset({
    "bash", "c", "c++", "cpp", "css", "diff", "go", "html", "ini", "java", "javascript", "js", "json", "kotlin",
    "make", "nix", "php", "py", "python", "rb", "ruby", "rust", "sh", "shell", "sql", "toml", "ts",
    "typescript", "xml", "yaml", "yml", "zsh",
})
# fmt: on
THEME = Theme(
    {
        "markdown.label": "bold magenta",
        "markdown.code": "cyan",
        "markdown.code_block": "none",
        "markdown.block_quote": "italic",
        "markdown.hr": "dim",
        "markdown.item.bullet": "bold",
        "markdown.item.number": "bold",
        "markdown.address": "dim underline",
        "markdown.h1": "bold underline",
        "markdown.h2": "bold underline",
        "markdown.h3": "bold",
        "markdown.h4": "bold",
        "markdown.h5": "italic bold",
        "markdown.h6": "italic",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
    }
)
# Of the palette's colours those that can be read on white and on black.
SHADES = ANSISyntaxTheme(
    {
        ("Comment",): Style(dim=True),
        ("Keyword",): Style(color="magenta"),
        ("Literal", "String"): Style(color="green"),
        ("Literal", "Number"): Style(color="cyan"),
        ("Name", "Function"): Style(bold=True),
        ("Name", "Class"): Style(bold=True),
        ("Name", "Tag"): Style(color="magenta"),
        ("Name", "Attribute"): Style(color="cyan"),
        ("Generic", "Deleted"): Style(color="red"),
        ("Generic", "Inserted"): Style(color="green"),
        ("Generic", "Heading"): Style(bold=True),
    }
)


def rendered(text: str, width: int, *, label: str = "", colour: bool = True) -> str:
    """The text as lines of at most ``width`` columns, each with its end; ``label`` says before it who speaks."""
    console = Console(file=StringIO(), width=max(width, NARROWEST), theme=THEME, force_terminal=True, _environ={})
    safe = indented(printable(text).expandtabs())
    said = Said(safe, label) if len(safe) <= LONGEST else Text.assemble((f"{label} ", "markdown.label"), safe)
    lines = trimmed([written(line, colour) for line in console.render_lines(said, pad=False)])
    alone = weighed(console.get_style("markdown.label"), colour).render(label)
    if label and lines[:1] == [alone]:  # and belongs to what follows
        lines[1:] = trimmed(lines[1:])
    return "".join(f"{line}\n" for line in lines)


def indented(text: str) -> str:
    """Markdown forgets blanks before a line of a paragraph; people line things up with them."""
    kept, fenced, listing = [], False, False
    for line in text.split("\n"):
        fenced ^= line.lstrip().startswith(("```", "~~~"))
        listing = bool(line.strip()) and (listing or _ITEM.match(line) is not None)
        found = None if fenced or listing else _INDENTED.match(line)
        kept.append(line if found is None else found[1].replace(" ", NO_BREAK) + line[found.end(1) :])
    return "\n".join(kept)


def trimmed(lines: list[str]) -> list[str]:
    """Without blank lines around."""
    full = [number for number, line in enumerate(lines) if line]
    return lines[full[0] : full[-1] + 1] if full else []


def written(line: list[Segment], colour: bool) -> str:
    """A finished line: harmless once more, and without blanks at its end."""
    segments = [(printable(text), style or Style.null()) for text, style, control in line if not control]
    while segments and not segments[-1][0].rstrip():
        segments.pop()
    if segments:
        segments[-1] = (segments[-1][0].rstrip(), segments[-1][1])
    return "".join(weighed(style, colour).render(text, color_system=ColorSystem.STANDARD) for text, style in segments)


def weighed(style: Style, colour: bool) -> Style:
    """Without a hyperlink, whose address may be anything, and without colour if none is wanted."""
    style = style.update_link(None) if style.link else style
    return style if colour else style.without_color


class Code(CodeBlock):
    """Between dim fences and not indented, so that it can be copied."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip("\n")
        name = self.lexer_name.lower()
        known = name in LANGUAGES and len(code) <= LONGEST_CODE
        yield Text(f"```{'' if name == 'text' else self.lexer_name}", style="dim")
        if known:
            yield Syntax(code, name, theme=SHADES, word_wrap=True)
        else:
            yield Text(code)
        yield Text("```", style="dim")


class Title(Heading):
    """At the left, whatever its level."""

    LEVEL_ALIGN = {}  # noqa: RUF012


class Divider(HorizontalRule):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Rule(style="markdown.hr", characters="─")


class Said(Markdown):
    elements = Markdown.elements | {"fence": Code, "code_block": Code, "heading_open": Title, "hr": Divider}
    inlines = Markdown.inlines | {"label", "address"}

    def __init__(self, text: str, label: str) -> None:
        super().__init__("", hyperlinks=False)
        parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
        tokens = parser.parse(text)
        for token in tokens:
            if token.children is not None:
                token.children = [*simple(token.children)]
        self.parsed = labelled(tokens, label) if label else tokens


def simple(tokens: Iterable[Token]) -> Iterator[Token]:
    """Links and pictures as text with an address, and every end of a line kept."""
    links: list[tuple[str, list[str]]] = []
    for token in tokens:
        if token.type == "link_open":
            links.append((str(token.attrs.get("href", "")), []))
        elif token.type == "link_close":
            href, texts = links.pop()
            if href.removeprefix("mailto:") != "".join(texts):
                yield from styled("address", f" ({href})")
        elif token.type == "image":
            about = "".join(child.content for child in token.children or [])
            yield Token("text", "", 0, content=f"{about} ({token.attrs.get('src', '')})".strip())
        else:
            if links:
                links[-1][1].append(token.content)
            yield Token("hardbreak", "br", 0) if token.type == "softbreak" else token


def labelled(tokens: list[Token], label: str) -> list[Token]:
    """In front of the first words if these are plain text, on a line of its own otherwise."""
    if tokens and tokens[0].type == "paragraph_open":
        tokens[1].children = [*styled("label", label), Token("text", "", 0, content=" "), *(tokens[1].children or [])]
        return tokens
    inline = Token("inline", "", 0, children=[*styled("label", label)])
    return [Token("paragraph_open", "p", 1), inline, Token("paragraph_close", "p", -1), *tokens]


def styled(tag: str, text: str) -> Iterator[Token]:
    yield Token(f"{tag}_open", tag, 1)
    yield Token("text", "", 0, content=text)
    yield Token(f"{tag}_close", tag, -1)
