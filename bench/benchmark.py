"""What a benchmark is: a way to measure, a way to show it, and the numbers it wants to reach.

    measure(size) ──▶ result (plain values, ready for JSON) ──▶ tables(result), targets(result)

To add one: a module that ends in a `Benchmark`, and its line in `bench/__main__.py`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Target:
    """A number that somebody wants, beside the number there is."""

    name: str
    wanted: str
    measured: str
    met: bool


@dataclass(frozen=True, slots=True)
class Benchmark:
    name: str
    about: str
    measure: Callable[[bool], Result]
    """Takes whether to be quick: a fraction of the load, one round, numbers that prove only that it ran."""
    tables: Callable[[Result], str]
    targets: Callable[[Result], list[Target]]


def say(text: str) -> None:
    """Progress goes where it cannot mix with results."""
    print(text, file=sys.stderr, flush=True)


def table(title: str, head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Columns of text, the first to the left and the others to the right."""
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    lines.insert(1, ["─" * width for width in widths])
    text = [
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    return "\n".join([title, "", *text])


def target_table(targets: Iterable[Target]) -> str:
    rows = [(target.name, target.wanted, target.measured, "ok" if target.met else "missed") for target in targets]
    return table("Targets", ("what", "wanted", "measured", ""), rows)
