"""`goclaw config`: the settings in force, whether they can be used, and an example of them all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli import tables
from gateway.cli.shell import AsJson, catalog_or_exit, group, say, say_json, settings_or_exit

if TYPE_CHECKING:
    from gateway.loading import Loaded
    from gateway.settings import Settings

config = group("Look at the settings.")


@config.command()
def show(
    origin: Annotated[bool, typer.Option("--origin", help="Also where each value came from.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print every setting in force; those that somebody has set stand out.

    \b
    goclaw config show --origin
    """
    rows = rows_of(settings_or_exit())
    if as_json:
        say_json(rows)
    else:
        print_table(rows, origin=origin)


@config.command()
def check(as_json: AsJson = False) -> None:
    """Tell whether the settings can be used, and everything that is wrong with them.

    \b
    goclaw config check
    """
    loaded = settings_or_exit()
    agents = catalog_or_exit(loaded.settings).agents
    changed = sum(origin != "default" for origin in loaded.origins.values())
    if as_json:
        backends = {name: spec.backend for name, spec in agents.items()}
        say_json({"ok": True, "settings": len(loaded.origins), "set": changed, "agents": backends})
        return
    say(f"ok: {len(loaded.origins)} settings, {changed} set, {len(loaded.origins) - changed} at their default")
    say(f"ok: {', '.join(f'{name} ({spec.backend})' for name, spec in agents.items())}")


@config.command()
def example() -> None:
    """Print a .env file with every setting, its meaning, range and default.

    \b
    goclaw config example > .env.example
    """
    from gateway.settings import Settings
    from gateway.variables import env_example

    say(env_example(Settings), end="")


def rows_of(loaded: Loaded[Settings]) -> list[dict[str, object]]:
    from gateway.settings import Settings
    from gateway.variables import variables

    return [
        {
            "variable": variable.name,
            "value": variable.value_in(loaded.settings),
            "unit": variable.unit,
            "origin": loaded.origins[variable.name],
        }
        for variable in variables(Settings)
    ]


def print_table(rows: list[dict[str, object]], *, origin: bool) -> None:
    from rich.table import Column, Table

    names = ("variable", "value", "unit", "origin") if origin else ("variable", "value", "unit")
    made = Table(*(Column(name, overflow="fold") for name in names), box=None, pad_edge=False, header_style="bold")
    for row in rows:
        cells = ["" if row[name] is None else str(row[name]) for name in names]
        made.add_row(*cells, style="dim" if row["origin"] == "default" else "")
    tables.show(made)
