"""Markdown as agents write it for a chat, parsed so that nothing that was said gets lost. Pure.

CommonMark with tables, strikethrough and task lists, and with what CommonMark would swallow or mangle kept as it was
written: HTML, mathematics, bare addresses with ``_`` in them, cells beyond a table's header, definitions that lead
nowhere or that nobody uses, and what is nested deeper than anybody can read. Bold ends before a letter of
Chinese or Japanese as well.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt
from markdown_it.common.normalize_url import normalizeLink
from markdown_it.rules_block import reference, table
from markdown_it.rules_block.table import escapedSplit, getLine
from markdown_it.rules_inline import image
from markdown_it.rules_inline.state_inline import Delimiter

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

DEEPEST = 18  # levels of the parser; a list within a list takes two
DEEPEST_BRACKETS = 6  # what is nested deeper is no link
LONGEST_BLOCK = 100  # lines up to which the end of a formula is looked for
DEEPEST_IMAGE = 3
LONGEST_MATHS = 1_000  # characters up to which the end of a formula is looked for
LONGEST_ADDRESS = 2_048
_LABEL = r"[\w\u00a1-\U0010ffff](?:[\w\u00a1-\U0010ffff-]*[\w\u00a1-\U0010ffff])?"
_HOST = rf"(?:{_LABEL}(?:\.{_LABEL})+|\[[0-9a-fA-F:.]+\])"  # `localhost` is refused
_WEB = re.compile(rf"https?://(?:[^\s/?#@\\]*@)?{_HOST}\.?(?::\d{{1,5}})?(?:[/?#][^\x00-\x20\x7f]*)?", re.IGNORECASE)
_TELEGRAM = re.compile(r"tg://[a-z]+(?:[/?#][^\x00-\x20\x7f]*)?", re.IGNORECASE)
_ADDRESS = re.compile(r"://[^\s<>\[\]\"`|\\^{}*\u3000-\u303f\uff00-\uffef]+")
_SCHEME = re.compile(r"(?<![^\W_])https?$", re.IGNORECASE)
_DOLLARS = re.compile(r"\$\$[^$]{1,1000}\$\$|\$(?![\s$])[^$\n]{0,1000}?(?<!\s)\$(?!\d)")
_OPENERS = {r"\(": r"\)", r"\[": r"\]", "$$": "$$"}
_FORMULA = re.compile(r"[\\^={}+]|\b[a-zA-Z]_")  # else `\[` is a bracket that somebody escaped
_LETTERS = re.compile(r"\s*[a-zA-Z]{1,2}\s*")
_DUNDER = re.compile(r"__[a-zA-Z0-9]{1,64}(?:_[a-zA-Z0-9]{1,64}){0,8}__(?=\.\w|\()")
_TASK = re.compile(r"\[([ xX])\](?=\s|$)")
_SCRIPT = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]")


def parsed(text: str) -> tuple[list[Token], dict[str, Any]]:
    """The tokens of a text, and the definitions of links by their labels."""
    env: dict[str, Any] = {"references": {}}
    return PARSER.parse(text, env), env["references"]


def blocks(text: str) -> list[Token]:
    """The tokens of a text with everything inside its paragraphs left unread, which takes a third of the time."""
    tokens: list[Token] = []
    PARSER.block.parse(text, PARSER, {"references": {}}, tokens)
    return tokens


def linkable(address: str) -> str | None:
    """The address as Telegram wants it, or None for one that it refuses, and the whole message with it.

    It takes ``mailto:`` for a web page; an address of mail in the text is one by itself.
    """
    known = address.replace(" ", "%20")
    if len(known) > LONGEST_ADDRESS or not (_WEB.fullmatch(known) or _TELEGRAM.fullmatch(known)):
        return None
    try:
        proper = known if known.isascii() else normalizeLink(known)
    except ValueError:
        return None
    return proper if len(proper) <= LONGEST_ADDRESS else None


def without_tail(address: str) -> str:
    """The address alone, when it stands before a full stop or inside brackets."""
    end, open_brackets = len(address), address.count("(") - address.count(")")
    while end and (address[end - 1] in ".,;:!?'_~" or (address[end - 1] == ")" and open_brackets < 0)):
        open_brackets += address[end - 1] == ")"
        end -= 1
    return address[:end]


# ── blocks ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def deep(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """What is nested deeper than this is shown as it was written."""
    if silent or state.level < DEEPEST:
        return False
    line = start
    while line < end and (state.isEmpty(line) or state.sCount[line] >= state.blkIndent):
        line += 1
    return _as_written(state, start, line)


def formula(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    r"""``$$`` or ``\[`` at the start of a line, to the line where it ends: in it ``+ y`` is no list."""
    opener = getLine(state, start)[:2]
    if opener not in ("$$", r"\[") or state.is_code_block(start):
        return False
    for line in range(start, min(end, start + LONGEST_BLOCK)):
        text = getLine(state, line)
        if state.isEmpty(line) or state.sCount[line] < state.blkIndent or (line > start and text.startswith(r"\[")):
            return False
        if _OPENERS[opener] in (text[2:] if line == start else text):
            whole = state.getLines(start, line + 1, state.blkIndent, False).strip()
            meant = whole.endswith(_OPENERS[opener]) and _meant(whole)
            return meant and (silent or _as_written(state, start, line + 1))
    return False


def definition(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """``[label]: address``. Footnotes and definitions without a usable address are text."""
    known: dict[str, Any] = state.env["references"]
    before = len(known)
    if state.src.startswith("[^", state.bMarks[start] + state.tShift[start]) or not reference(
        state, start, end, silent
    ):
        return False
    label = next(reversed(known)) if len(known) > before else ""
    if label and linkable(known[label]["href"]) is None:
        del known[label]
        state.line = start
        return False
    return _as_written(state, start, state.line, "definition", label)


def _as_written(state: StateBlock, start: int, end: int, kind: str = "verbatim", label: str = "") -> bool:
    token = state.push(kind, "", 0)
    token.content = state.getLines(start, end, state.blkIndent, False).rstrip("\n")
    token.map, token.info = [start, end], label
    state.line = end
    return True


def whole_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A table; cells beyond its header go into the last column instead of nowhere."""
    first = len(state.tokens)
    if not table(state, start, end, silent):
        return False
    line = start
    cells: list[Token] = []
    for token in state.tokens[first:]:
        if token.type == "tr_open" and token.map is not None:
            line, cells = token.map[0], []
        elif token.type == "inline":
            cells.append(token)
        elif token.type == "tr_close" and line > start:
            written = [cell.strip() for cell in escapedSplit(getLine(state, line).strip())]
            written = written[1:] if written and not written[0] else written
            written = written[:-1] if written and not written[-1] else written
            if len(written) > len(cells):
                cells[-1].content = " | ".join(written[len(cells) - 1 :])
    return True


def boxes(state: StateCore) -> None:
    """``- [x] done``: the box right behind the mark is taken out before anybody can take it for a link."""
    tokens = state.tokens
    for number in range(2, len(tokens)):
        if tokens[number].type == "inline" and tokens[number - 2].type == "list_item_open":
            found = _TASK.match(tokens[number].content)
            if found is not None:
                tokens[number].meta["done"] = found[1] != " "
                tokens[number].content = tokens[number].content[found.end() :].lstrip()


# ── inside a paragraph ───────────────────────────────────────────────────────────────────────────────────────────────


def address(state: StateInline, silent: bool) -> bool:
    """``https://x.org/_a_/`` is one address, and nothing in it is emphasis. Telegram finds it by itself."""
    if state.src[state.pos] != ":" or not state.src.startswith("://", state.pos):
        return False
    if _SCHEME.search(state.src, max(state.pos - 6, 0), state.pos) is None:
        return False
    found = _ADDRESS.match(state.src, state.pos, state.posMax)
    rest = without_tail(found[0]) if found else ""
    if len(rest) <= len("://"):
        return False
    return _taken(state, rest, silent)


def maths(state: StateInline, silent: bool) -> bool:
    r"""``$x_1$``, ``$$…$$``, ``\(…\)`` and ``\[…\]`` as they were written."""
    src, pos = state.src, state.pos
    if src[pos] == "$":
        before = src[pos - 1] if pos else " "
        found = None if before.isalnum() or before == "$" else _DOLLARS.match(src, pos, state.posMax)
        return found is not None and _taken(state, found[0], silent)
    closer = _OPENERS.get(src[pos : pos + 2]) if src[pos] == "\\" else None
    if closer is None:
        return False
    end = src.find(closer, pos + 2, min(pos + LONGEST_MATHS, state.posMax))
    return end > 0 and _meant(src[pos : end + 2]) and _taken(state, src[pos : end + 2], silent)


def _meant(formula: str) -> bool:
    r"""``\(x\)`` and ``\[a = b\]``, but not ``\(see there\)`` or ``\[1\]``."""
    inner = formula[2:-2]
    letters = formula[1] == "(" and _LETTERS.fullmatch(inner) is not None
    return formula[0] == "$" or letters or _FORMULA.search(inner) is not None


def _taken(state: StateInline, text: str, silent: bool) -> bool:
    if not silent:
        state.append_pending(text)
    state.pos += len(text)
    return True


def emphasis(state: StateInline, silent: bool) -> bool:
    """As CommonMark has it, but a product is none, and scripts without blanks need none around ``*`` either."""
    marker = state.src[state.pos]
    if silent or marker not in "*_":
        return False
    scanned = state.scanDelims(state.pos, marker == "*")
    after = state.pos + scanned.length
    opens, closes = scanned.can_open, scanned.can_close
    if marker == "*":
        left = state.src[state.pos - 1] if state.pos else " "
        right = state.src[after] if after < state.posMax else " "
        product = _product(left, right, scanned.length)
        closes = not product and (closes or (not left.isspace() and _SCRIPT.match(right) is not None))
        opens = not product and (opens or (not right.isspace() and _SCRIPT.match(left) is not None))
    for _ in range(scanned.length):
        state.push("text", "", 0).content = marker
        token = len(state.tokens) - 1
        state.delimiters.append(Delimiter(ord(marker), scanned.length, token, -1, opens, closes))
    state.pos = after
    return True


def _product(left: str, right: str, length: int) -> bool:
    """``w*h*d`` and ``x**2``, but not ``Hyper**T**ext``."""
    words = all(char.isalnum() and not _SCRIPT.match(char) for char in (left, right))
    return words and (length == 1 or left.isdigit() or right.isdigit())


def dunder(state: StateInline, silent: bool) -> bool:
    """``__init__.py`` and ``__call__()`` are names."""
    found = _DUNDER.match(state.src, state.pos, state.posMax) if state.src[state.pos] == "_" else None
    return found is not None and _taken(state, found[0], silent)


def brackets(state: StateInline, silent: bool) -> bool:
    """A bracket that nothing closes is text; too many in each other end the search for a link, or it takes for ever."""
    if not state.src.startswith(("[", "!["), state.pos):
        return False
    if silent and state.level >= DEEPEST_BRACKETS:
        state.pos = state.posMax
        return True
    return state.html_terminator_last("]") < state.pos and _taken(state, state.src[state.pos], silent)


def picture(state: StateInline, silent: bool) -> bool:
    """Pictures within the words of pictures, to a depth that somebody may have meant."""
    if state.src[state.pos] != "!" or state.env.get("depth", 0) >= DEEPEST_IMAGE:
        return False
    state.env["depth"] = state.env.get("depth", 0) + 1
    try:
        return image(state, silent)
    finally:
        state.env["depth"] -= 1


def _made() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": DEEPEST + 2, "store_labels": True})
    parser.enable(["strikethrough", "table"])
    parser.normalizeLink = lambda url: url  # type: ignore[method-assign]  # shown as it was written
    block, inline = parser.block.ruler, parser.inline.ruler
    block.before("table", "deep", deep)
    block.at("table", whole_table, {"alt": ["paragraph", "reference"]})
    block.before("fence", "formula", formula, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    block.at("reference", definition)
    parser.core.ruler.before("inline", "boxes", boxes)
    inline.before("newline", "address", address)
    inline.before("escape", "maths", maths)
    inline.before("emphasis", "dunder", dunder)
    inline.at("emphasis", emphasis)
    inline.before("link", "brackets", brackets)
    inline.at("image", picture)
    return parser


PARSER = _made()
