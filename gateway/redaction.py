"""Takes secrets out of text, wherever they stand and however they are written. Pure.

Two nets: the values that are known to be secret, in every form in which libraries write them (as they are, percent-
encoded, with backslashes, as HTML, in base64 at any offset), and what looks like a secret although nobody has named it.

A value of fewer than six characters is looked for as a whole word only, and not in base64: it stands in half of all
words, and stars in their middle would rather tell it than hide it. An empty one is nobody's secret.
"""

from __future__ import annotations

import html
import re
from base64 import b64encode
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit

from pydantic import BaseModel, SecretStr

if TYPE_CHECKING:
    from collections.abc import Iterator

STARS = "***"
SHORT = 6

LOOKS_SECRET = tuple(
    (mark, re.compile(pattern), replacement)
    for mark, pattern, replacement in (
        ("sk-", r"(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{16,}", STARS),  # model keys
        ("", r"[0-9]{5,20}(?::|%(?:25)*3[aA])[A-Za-z0-9_-]{35,}", STARS),  # Telegram's bot tokens, in a URL too
        ("bearer", r"(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]{6,}", rf"\1{STARS}"),
        ("basic", r"(?i)\b(basic\s+)[A-Za-z0-9+/=_-]{16,}", rf"\1{STARS}"),
        ("x-api-key", r"(?i)(x-api-key[\"']?[:=,\s]{1,4}[\"']?)[^\s\"',}]+", rf"\1{STARS}"),
        ("://", r"(://[^\s:/@]{0,100}:)[^\s/]{1,500}@", rf"\1{STARS}@"),
    )
)

ESCAPES = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}


class Redactor:
    def __init__(self, *values: str) -> None:
        self._values: set[str] = set()
        self._patterns: tuple[re.Pattern[str], ...] = ()
        self.add(*values)

    def add(self, *values: str) -> None:
        """From now on these are secrets too."""
        self._values.update(value for value in values if value.strip())
        longest_first = sorted(self._values, key=lambda value: (-len(value), value))
        self._patterns = tuple(pattern for value in longest_first for pattern in patterns(value))

    def __call__(self, text: str) -> str:
        for pattern in self._patterns:
            text = pattern.sub(STARS, text)
        lowered = text.lower()
        for mark, looks_secret, replacement in LOOKS_SECRET:
            if mark in lowered:  # much quicker than the pattern, and most lines hold none
                text = looks_secret.sub(replacement, text)
        return text


def patterns(value: str) -> Iterator[re.Pattern[str]]:
    written = "".join(map(letter, value))
    if len(value) < SHORT:
        yield re.compile(rf"(?<![A-Za-z0-9]){written}(?![A-Za-z0-9])")
        return
    yield re.compile(written)
    # The last character may hold a few bits of it, and so may what fills up the group.
    yield re.compile(f"(?:{'|'.join(map(re.escape, in_base64(value)))})[A-Za-z0-9+/_-]?={{0,2}}")


def letter(char: str) -> str:
    """A pattern for everything that one character may be written as; letters and digits are left alone by everybody."""
    if char.isascii() and char.isalnum():
        return char
    octets = char.encode("utf-8", "surrogatepass")
    ways = [re.escape(char), "".join(f"%(?:25)*{either_case(octet)}" for octet in octets)]
    units = char.encode("utf-16-be", "surrogatepass")
    pairs = [units[at : at + 2].hex() for at in range(0, len(units), 2)]
    ways.append("".join(rf"\\+u{any_case(pair)}" for pair in pairs))
    ways.append(rf"\\+(?:x{any_case(f'{ord(char):02x}')}|U{any_case(f'{ord(char):08x}')})")
    ways.append("".join(rf"\\+x{either_case(octet)}" for octet in octets))  # inside bytes
    if char in ESCAPES:
        ways.append(rf"\\+{ESCAPES[char]}")
    elif char == "\\":
        ways.append(r"\\+")
    elif char == " ":
        ways.append(r"\+")
    elif char in "\"'/":
        ways.append(rf"\\+{char}")
    if html.escape(char) != char:
        ways.append(re.escape(html.escape(char)))
    return f"(?:{'|'.join(ways)})"


def either_case(octet: int) -> str:
    return any_case(f"{octet:02x}")


def any_case(digits: str) -> str:
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in digits)


def in_base64(value: str) -> list[str]:
    """The characters that stand for it whatever stands before and after it, for each of the three offsets."""
    octets = value.encode("utf-8", "surrogatepass")
    cores: dict[str, None] = {}
    for offset in range(3):
        encoded = b64encode(b"\0" * offset + octets + b"\0\0").decode()
        core = encoded[-(-8 * offset // 6) : 8 * (offset + len(octets)) // 6]
        cores[core] = cores[core.replace("+", "-").replace("/", "_")] = None
    return list(cores)


# ── which secrets there are ──────────────────────────────────────────────────────────────────────────────────────────


def secrets_of(settings: BaseModel) -> Iterator[str]:
    """Every secret value in the settings, and the passwords inside of those that are addresses."""
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, BaseModel):
            yield from secrets_of(value)
        elif isinstance(value, SecretStr):
            secret = value.get_secret_value()
            yield secret
            yield from passwords_in(secret)


def passwords_in(address: str) -> Iterator[str]:
    """The passwords of a URL or of a `key=value` list, as they are written there and as they are."""
    try:
        parts = urlsplit(address)
        written = [parts.password or "", *parse_qs(parts.query).get("password", [])]
    except ValueError:
        written = []
    listed = re.findall(r"\bpassword\s*=\s*(?:'((?:[^'\\]|\\.)*)'|([^\s'&]+))", address)
    written += [re.sub(r"\\(.)", r"\1", quoted) or bare for quoted, bare in listed]
    for password in written:
        yield from {password, unquote(password)}
