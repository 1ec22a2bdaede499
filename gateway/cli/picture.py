"""How the gateway looks: state, lanes as gauges, what runs, what is next, what rests. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gateway.cli.tables import STYLES, cell, flat, moment_of, relative, rough

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

GAUGE: Final = 10
RUNNING_SHOWN: Final = 12
TITLES: Final = {
    "running": "works",
    "waiting": "waits: another gateway works on the messages",
    "stopped": "does not run here",
}


def picture(found: Mapping[str, Any], now: datetime, *, shown: int = RUNNING_SHOWN) -> RenderableType:
    from rich.console import Group

    parts: list[RenderableType] = [headline(found, now), "", lanes(found["lanes"])]
    if found["running"]:
        parts += ["", running(found["running"], now, shown)]
    if found["next"]:
        parts += ["", coming(found["next"], now)]
    parts += ["", closing(found, now)]
    return Group(*parts)


def headline(found: Mapping[str, Any], now: datetime) -> Text:
    from rich.text import Text

    style = {"running": "bold green", "waiting": "bold yellow"}.get(found["state"], "bold red")
    started = moment_of(found["started_at"])
    up = f", for {rough(now - started)}" if started is not None and found["state"] != "stopped" else ""
    return Text.assemble(
        ("goclaw ", "bold"), (TITLES[found["state"]], style), f"{up} ({found['version']}, {found['mode']})"
    )


def lanes(items: Sequence[Mapping[str, Any]]) -> Table:
    made = grid(("lane", "", "used>", "waiting>"))
    for lane in items:
        extra = [f"{lane['stuck']} stuck"] if lane["stuck"] else []
        extra += [f"{lane['parked']} wait for helpers"] if lane["parked"] else []
        made.add_row(
            lane["name"],
            gauge(lane),
            f"{lane['active']}/{lane['limit']}",
            cell(lane["waiting"]),
            cell(", ".join(extra)),
        )
    return made


def gauge(lane: Mapping[str, Any]) -> Text:
    """How full it is, without colours too."""
    from rich.text import Text

    full = round(GAUGE * min(lane["active"] / lane["limit"], 1)) or (1 if lane["active"] else 0)
    style = "red" if lane["stuck"] else "yellow" if lane["waiting"] else "green"
    return Text.assemble(("█" * full, style), ("·" * (GAUGE - full), "dim"))


def running(items: Sequence[Mapping[str, Any]], now: datetime, shown: int) -> Table:
    made = grid(("running", "what", "agent", "for>"), fold=("running",))
    for one in items[:shown]:
        since = moment_of(one["since"])
        span = "" if since is None else rough(now - since)
        made.add_row(cell(one["session"]), cell(one["of"]), cell(one["agent"]), span)
    if len(items) > shown:
        made.add_row(cell(f"and {len(items) - shown} more"))
    return made


def coming(jobs: Iterable[Mapping[str, Any]], now: datetime) -> Table:
    made = grid(("next", "", "when"), fold=("", "when"))
    for job in jobs:
        moment = moment_of(job["next_at"])
        due = "due now" if moment is not None and moment <= now else relative(job["next_at"], now)
        made.add_row(due, cell(f"#{job['id']} {flat(job['name'] or job['message'], 40)}"), cell(job["words"]))
    return made


def closing(found: Mapping[str, Any], now: datetime) -> Text:
    """Counts, and what is not well."""
    from rich.text import Text

    schedules = found["schedules"]
    counts = ", ".join(f"{schedules[word]} {word}" for word in ("active", "paused") if schedules.get(word))
    said = Text(f"schedules: {counts or 'none'}")
    for one in found["services"]:
        if one["state"] != "running":
            said.append(f"\n{one['name']} ")
            said.append(one["state"], STYLES.get(one["state"], ""))
            said.append(f", {relative(one['since'], now)}{': ' if one['error'] else ''}{flat(one['error'], 200)}")
    if found["services"] and all(one["state"] == "running" for one in found["services"]):
        said.append(f"; all {len(found['services'])} services run")
    return said


def grid(columns: Sequence[str], fold: Sequence[str] = ()) -> Table:
    from rich.table import Column, Table

    return Table(
        *(
            Column(
                name.rstrip(">"),
                justify="right" if name.endswith(">") else "left",
                no_wrap=name not in fold,
                overflow="fold" if name in fold else "ellipsis",
            )
            for name in columns
        ),
        box=None,
        pad_edge=False,
        header_style="bold",
    )
