"""Small things said to people: counts, lists, excerpts, and errors in one line. Pure."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def joined(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def excerpt(text: str, length: int = 40) -> str:
    """Enough of a message to recognise it by."""
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1].rstrip()}…"


def one_line(error: BaseException | None) -> str:
    """What went wrong, short enough for a chat; the log has the rest."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = " ".join(str(error).split())
    return text[:200] or type(error).__name__
