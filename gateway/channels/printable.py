"""Text that strangers wrote, made harmless for a terminal. Pure."""

from __future__ import annotations

import unicodedata

KEPT = "\n\t\u200c\u200d"  # and the two joiners that Persian and emoji are written with


def printable(text: str) -> str:
    """Without what would move the cursor or change the terminal; agents repeat what strangers write."""
    return "".join(char for char in text if char in KEPT or char.isprintable() or unicodedata.category(char) == "Zs")
