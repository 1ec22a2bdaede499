"""Lists of Telegram's words, written as people write lists."""

from __future__ import annotations


def listed(*lines: str) -> tuple[str, ...]:
    """The words of the lines, in order."""
    return tuple(word for line in lines for word in line.split())
