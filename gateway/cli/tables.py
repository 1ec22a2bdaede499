"""How data looks to people: tables, facts and moments. A pipe gets one line for each row, however long it is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from gateway.channels.printable import printable
from gateway.cli.shell import console, say

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from zoneinfo import ZoneInfo

    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

# Wide enough that no line for a pipe is ever folded.
UNCUT: Final = 10_000
NARROW: Final = 110

STYLES = {
    "active": "green",
    "running": "green",
    "good": "green",
    "approved": "green",
    "succeeded": "green",
    "done": "green",
    "executing": "cyan",
    "pending": "",
    "waiting": "yellow",
    "paused": "yellow",
    "resting": "bold red",
    "given up": "bold red",
    "failed": "red",
    "timed_out": "red",
    "expired": "red",
    "revoked": "red",
    "denied": "red",
    "disabled": "red",
    "skipped": "yellow",
    "stopped": "dim",
    "cancelled": "dim",
    "completed": "dim",
}
"""What a state looks like, where there are colours."""


def show(what: RenderableType) -> None:
    """Print it as wide as the terminal is, or uncut."""
    screen = console()
    if not screen.is_terminal:
        screen.width = UNCUT
    with screen.capture() as captured:
        screen.print(what)
    say("\n".join(line.rstrip() for line in captured.get().splitlines()))


def narrow() -> bool:
    """Whether somebody looks at it in a window that is not wide."""
    screen = console()
    return screen.is_terminal and screen.width < NARROW


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, fold: Sequence[str] = ()) -> Table:
    """Rows under their headings. A column ending in `>` stands on the right; those of ``fold`` are never cut."""
    from rich.table import Column, Table

    made = Table(
        *(
            Column(
                name.rstrip(">"),
                justify="right" if name.endswith(">") else "left",
                overflow="fold" if name in fold else "ellipsis",
                no_wrap=name not in fold,
            )
            for name in columns
        ),
        box=None,
        pad_edge=False,
        header_style="bold",
    )
    for row in rows:
        made.add_row(*(cell(one) for one in row))
    return made


def cell(one: object) -> Text:
    from rich.text import Text

    if isinstance(one, Text):
        return one
    return Text("" if one is None else flat(str(one)))


def state(word: str) -> Text:
    from rich.text import Text

    return Text(word.replace("_", " "), STYLES.get(word, ""))


def flat(text: str, longest: int = 0) -> str:
    """On one line, harmless, and not longer than that."""
    line = printable(" ".join(text.split()))
    return line if not longest or len(line) <= longest else f"{line[: longest - 1].rstrip()}…"


def facts(pairs: Iterable[tuple[str, object]]) -> None:
    """A name and what it is on each line; what is empty is left out."""
    from rich.table import Column, Table

    columns = Column(no_wrap=True, style="bold"), Column(overflow="fold")
    made = Table(*columns, box=None, pad_edge=False, show_header=False)
    for name, value in pairs:
        if value not in (None, "", []):
            made.add_row(name, cell(value))
    show(made)


# ── time ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def moment_of(text: str | None) -> datetime | None:
    """A time as the API writes it."""
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)


def here(moment: datetime) -> datetime:
    """In the zone of whoever looks."""
    return moment.astimezone()


def at(text: str | None, zone: ZoneInfo | None = None) -> str:
    """A moment in that zone, or in that of whoever looks, to the second only where that tells more."""
    moment = moment_of(text)
    if moment is None:
        return ""
    local = here(moment) if zone is None else moment.astimezone(zone)
    return f"{local:%a %Y-%m-%d %H:%M}{f':{local.second:02}' if local.second else ''}"


def relative(text: str | None, now: datetime) -> str:
    """`in 3 h 20 min`, `2 min ago`."""
    moment = moment_of(text)
    if moment is None:
        return ""
    span = rough(abs(moment - now))
    return f"in {span}" if moment > now else f"{span} ago"


def rough(span: timedelta) -> str:
    """To what people want to know: its two largest units."""
    seconds = round(span.total_seconds())
    units = (("d", seconds // 86_400), ("h", seconds // 3_600 % 24), ("min", seconds // 60 % 60), ("s", seconds % 60))
    first = next((place for place, (_, count) in enumerate(units) if count), len(units) - 1)
    return " ".join(f"{count} {unit}" for unit, count in units[first : first + 2] if count or first == len(units) - 1)


def took(run: dict[str, Any], now: datetime) -> str:
    started, ended = moment_of(run["started_at"]), moment_of(run["ended_at"])
    return "" if started is None else rough((ended or now) - started)
