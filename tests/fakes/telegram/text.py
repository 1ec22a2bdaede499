"""Texts and their entities as Telegram keeps them: counted in UTF-16 units, cleaned, trimmed, with links found.

The server changes what it is sent: it drops control and direction marks, and the white space at both ends. A text
that is empty afterwards is refused, and so is an entity that does not lie within the text or within its neighbour.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

from tests.fakes.telegram.errors import bad
from tests.fakes.telegram.words import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

Entity: TypeAlias = dict[str, Any]

MOST_ENTITIES = 100
GIVEN = frozenset(
    listed(
        "bold italic underline strikethrough spoiler code pre text_link text_mention custom_emoji blockquote",
        "expandable_blockquote date_time",
    )
)
FOUND = frozenset(listed("mention hashtag cashtag bot_command url email phone_number bank_card"))
"""These the server finds by itself; when they are given they are taken for what they are in the text."""

MARK = "\uffff"
"""Stands where a character will be dropped; it is no character, so no text has it."""
DROPPED = re.compile("[\r\u2028-\u202e\u0333\u033f\u030a]")
BLANKED = re.compile("[\x00-\x09\x0b-\x1f]")
INVISIBLE = re.compile("[\\s\u200b-\u200f\u2060\ufeff\u00ad]*")
PATTERNS = (
    ("url", re.compile(r"(?:https?://|www\.)[^\s<>\"]+[^\s<>\".,:;!?')\]]", re.IGNORECASE)),
    ("url", re.compile(r"(?<![\w.@+-])[a-z0-9-]+\.(?:com|org|net|io|dev)\b(?:/\S*)?", re.IGNORECASE)),
    ("email", re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")),
    ("bot_command", re.compile(r"(?<![\w/<>@#.])/[A-Za-z0-9_]{1,64}(?:@[A-Za-z0-9_]{3,32})?(?![\w/])")),
    ("mention", re.compile(r"(?<!\w)@[A-Za-z][A-Za-z0-9_]{3,31}\b")),
    ("hashtag", re.compile(r"(?<!\w)#\w*[^\W\d]\w*")),
)


def units(text: str) -> int:
    """The length that Telegram counts."""
    return len(text) + sum(1 for character in text if character > "\uffff")


def part(text: str, entity: Entity) -> str:
    """What the entity covers."""
    start, end = 2 * entity["offset"], 2 * (entity["offset"] + entity["length"])
    return text.encode("utf-16-le", "surrogatepass")[start:end].decode("utf-16-le", "replace")


def settle(text: str, entities: Sequence[Entity]) -> tuple[str, list[Entity]]:
    """A text as it will be seen, with the entities that will be shown; a Failure if it cannot be."""
    given = [read(entity) for entity in entities]
    kept = check(text, [entity for entity in given if entity["type"] in GIVEN])
    text, kept = trim(*clean(text, kept))
    if INVISIBLE.fullmatch(text):
        return "", []
    found = [entity for entity in detect(text) if not any(overlap(entity, other) for other in kept if hides(other))]
    return text, ordered([*kept, *found])[:MOST_ENTITIES]


def read(entity: Any) -> Entity:
    if not isinstance(entity, dict):
        raise bad("can't parse entities: Expected an Object as a MessageEntity")
    for name in ("type", "offset", "length"):
        if name not in entity:
            raise bad(f"can't parse MessageEntity: Can't find field \"{name}\"")
    if entity["type"] not in GIVEN | FOUND:
        raise bad("can't parse MessageEntity: Unsupported type specified")
    if entity["type"] == "text_link" and "url" not in entity:
        raise bad("can't parse MessageEntity: Can't find field \"url\"")
    return {**entity, "offset": int(entity["offset"]), "length": int(entity["length"])}


def ordered(entities: Sequence[Entity]) -> list[Entity]:
    return sorted(entities, key=lambda entity: (entity["offset"], -entity["length"]))


def check(text: str, entities: Sequence[Entity]) -> list[Entity]:
    """The entities in order, each within the text and within those that it begins in."""
    length, halves, around = units(text), inside_of_pairs(text), list[int]()
    kept = [entity for entity in ordered(entities) if entity["length"] > 0]
    for entity in kept:
        start, end = entity["offset"], entity["offset"] + entity["length"]
        if not 0 <= start < length:
            raise bad(f"entity begins after the end of the text at UTF-16 offset {start}")
        around = [limit for limit in around if limit > start]
        if end > min([length, *around]):
            raise bad(
                f"entity beginning at UTF-16 offset {start} ends after the end of the text at UTF-16 offset {end}"
            )
        if start in halves:
            raise bad(f"entity begins in a middle of a UTF-16 symbol at byte offset {start}")
        if end in halves:
            raise bad(
                f"entity beginning at UTF-16 offset {start} ends in a middle of a UTF-16 symbol at byte offset {end}"
            )
        around.append(end)
    return kept


def inside_of_pairs(text: str) -> set[int]:
    """The offsets that lie in the middle of a character."""
    halves, offset = set(), 0
    for character in text:
        offset += 1
        if character > "\uffff":
            halves.add(offset)
            offset += 1
    return halves


def clean(text: str, entities: Sequence[Entity]) -> tuple[str, list[Entity]]:
    text = BLANKED.sub(" ", DROPPED.sub(MARK, text))
    gone = [offset for offset, unit in enumerate(spread(text)) if unit == MARK]
    return text.replace(MARK, ""), [moved(entity, gone) for entity in entities]


def spread(text: str) -> list[str]:
    """One member for each UTF-16 unit."""
    return [member for character in text for member in ((character, "") if character > "\uffff" else (character,))]


def moved(entity: Entity, gone: Sequence[int]) -> Entity:
    start, end = entity["offset"], entity["offset"] + entity["length"]
    before, within = sum(place < start for place in gone), sum(start <= place < end for place in gone)
    return {**entity, "offset": start - before, "length": entity["length"] - within}


def trim(text: str, entities: Sequence[Entity]) -> tuple[str, list[Entity]]:
    """White space goes at the end, and at the beginning as far as no entity begins there."""
    text = text.rstrip(" \n")
    first = min((entity["offset"] for entity in entities), default=len(text))
    cut = min(len(text) - len(text.lstrip(" \n")), first)
    text, length = text[cut:], units(text) - cut
    kept = []
    for entity in entities:
        start = entity["offset"] - cut
        clipped = {**entity, "offset": start, "length": min(entity["length"], length - start)}
        if clipped["length"] > 0:
            kept.append(clipped)
    return text, kept


def detect(text: str) -> list[Entity]:
    """What the server finds by itself, the first kind first where two overlap."""
    found: list[Entity] = []
    for kind, pattern in PATTERNS:
        for match in pattern.finditer(text):
            entity = {"type": kind, "offset": units(text[: match.start()]), "length": units(match[0])}
            if not any(overlap(entity, other) for other in found):
                found.append(entity)
    return ordered(found)


def overlap(one: Entity, other: Entity) -> bool:
    return bool(one["offset"] < other["offset"] + other["length"] and other["offset"] < one["offset"] + one["length"])


def hides(entity: Entity) -> bool:
    """Whether nothing is found inside of it."""
    return entity["type"] in ("code", "pre", "text_link", "text_mention", "custom_emoji")
