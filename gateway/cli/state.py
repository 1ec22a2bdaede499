"""`goclaw status`, `goclaw top` and `goclaw lanes`: how the gateway is, once or all the time."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli import completing
from gateway.cli.picture import picture
from gateway.cli.reach import Api, ask_or_exit, part
from gateway.cli.shell import AsJson, ExitCode, group, hint, say, say_json, talk
from gateway.cli.tables import moment_of, show, table
from gateway.clock import utc_now

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

lanes = group(None, alone=True)

LANE_HINTS = {"not-found": "`goclaw lanes` lists those that there are."}
FRESH = timedelta(minutes=1)
"""Whoever was seen so lately is at work."""


def status(as_json: AsJson = False) -> None:
    """Tell how the gateway is: what runs, what waits, what is next. Exit code 3 if something is not well.

    \b
    goclaw status
    goclaw status --json
    """
    found, elsewhere = ask_or_exit(look)
    if as_json:
        say_json(found)
    else:
        show(picture(found, utc_now()))
    ill = [one for one in found["services"] if one["state"] in ("resting", "given up")]
    for one in ill:
        what = "has given up" if one["state"] == "given up" else "rests after a failure and goes on by itself"
        talk("unhealthy", "bold red", f"{one['name']} {what}: {one['error']}")
    if ill:
        hint("`goclaw logs -f` tells what happens.")
        raise typer.Exit(ExitCode.UNHEALTHY)
    if found["state"] == "stopped" and not elsewhere:
        talk("unhealthy", "bold red", "no gateway runs: nothing is answered and nothing fires")
        hint("`goclaw run` starts one.")
        raise typer.Exit(ExitCode.UNHEALTHY)
    if found["state"] == "stopped":
        names = ", ".join(elsewhere)
        talk("note", "bold", f"no gateway runs on this machine; others work on this database: {names}")


async def look(api: Api) -> tuple[dict[str, Any], list[str]]:
    """How it is, and who else works on the same store."""
    found = await api.get("/v1/status")
    if found["mode"] != "managed":
        return found, []
    workers = (await api.get("/v1/workers"))["items"]
    return found, [one["id"] for one in workers if one["status"] != "dead" and is_fresh(one, found["now"])]


def is_fresh(worker: Mapping[str, Any], now: str) -> bool:
    seen, at = moment_of(worker["seen_at"]), moment_of(now)
    return seen is not None and at is not None and at - seen < FRESH


def top(
    once: Annotated[bool, typer.Option("--once", help="One picture, and no more.")] = False, as_json: AsJson = False
) -> None:
    """Watch the gateway at work. Once a second: lanes, what runs, what is next. Ctrl-C or q leaves.

    \b
    goclaw top
    """
    from gateway.cli.shell import at_a_terminal, run_or_exit, settings_or_exit

    if as_json:
        say_json(ask_or_exit(look)[0])
    elif once or not at_a_terminal():
        show(picture(ask_or_exit(look)[0], utc_now()))
    else:
        from gateway.cli.watching import watch

        run_or_exit(watch, settings_or_exit().settings)


# ── lanes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@lanes.callback()
def overview(context: typer.Context, as_json: AsJson = False) -> None:
    """How much runs at the same time, and how to change it. Alone: the list.

    \b
    goclaw lanes
    """
    if context.invoked_subcommand is None:
        list_lanes(as_json)


@lanes.command("list")
def list_lanes(as_json: AsJson = False) -> None:
    """List the lanes: how many run, how many may, how many wait and for how long.

    \b
    goclaw lanes list
    """
    page = ask_or_exit(lambda api: api.get("/v1/lanes"))
    if as_json:
        say_json(page)
    else:
        show_lanes(page["items"])


def show_lanes(items: Sequence[Mapping[str, Any]]) -> None:
    rows = [
        (
            lane["name"],
            lane["active"],
            lane["limit"],
            lane["waiting"],
            lane["parked"],
            lane["stuck"],
            lane["started"],
            f"{lane['wait_p50_s']:.1f} s",
            f"{lane['wait_p99_s']:.1f} s",
        )
        for lane in items
    ]
    headings = ("lane", "running>", "limit>", "waiting>", "parked>", "stuck>", "started>", "wait>", "p99>")
    show(table(headings, rows))


@lanes.command("set")
def resize(
    name: Annotated[str, typer.Argument(metavar="LANE", help="Which lane.", autocompletion=completing.lanes)],
    limit: Annotated[int, typer.Argument(min=1, max=10_000, help="So many runs at the same time.")],
    as_json: AsJson = False,
) -> None:
    """Set how many runs a lane has at once, until the gateway ends.

    \b
    goclaw lanes set main 8
    """
    variable = f"GOCLAW_LANE_{name.upper()}={limit}"
    hints = {**LANE_HINTS, "not-running": f"`goclaw run` starts one. {variable} in .env is for good."}
    lane = ask_or_exit(lambda api: api.put(f"/v1/lanes/{part(name)}", {"limit": limit}), hints)
    if as_json:
        say_json(lane)
    else:
        say(f"{lane['name']}: {lane['active']} of {lane['limit']} running, {lane['waiting']} waiting")
    hint(f"this ends with the gateway; {variable} in .env is for good.")
