"""The command `goclaw`: the chat, and the settings. `gateway.cli.store` adds what is about the store."""

import json
from functools import partial
from importlib.metadata import version
from typing import Annotated, Final

import typer
from rich.table import Column, Table

from gateway.addresses import is_loopback
from gateway.chat import chat as run_chat
from gateway.cli import store as cli_store
from gateway.cli.shell import ExitCode, catalog_or_exit, console, run_or_exit, settings_or_exit, talk
from gateway.loading import Loaded
from gateway.logs import configure
from gateway.serve import serve
from gateway.settings import Settings
from gateway.variables import env_example, variables
from gateway.work import Setup

# Wide enough that no line for a pipe is ever folded.
_UNCUT: Final = 10_000


# Help without boxes and colours reads the same in a terminal, a file and a pipe.
app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
config = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
app.add_typer(config, name="config", help="Look at the settings.")
app.add_typer(cli_store.db, name="db", help="Look after the store.")
app.add_typer(cli_store.migrate, name="migrate", help="Copy what is kept to another store.")


def main() -> None:
    app()


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"goclaw {version('goclaw')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def goclaw(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """A gateway between people who chat and AI agents. Without a command: a chat in this terminal."""
    if context.invoked_subcommand is None:
        chat()


@app.command()
def chat() -> None:
    """Chat in this terminal: the same as goclaw alone."""
    run_or_exit(run_chat, setup_or_exit())


@app.command()
def run() -> None:
    """Run the gateway with its API, until SIGTERM or Ctrl-C."""
    setup = setup_or_exit()
    refuse_open_door(setup.settings)
    run_or_exit(partial(serve, tell=lambda text: talk("goclaw", "bold", text)), setup)


def setup_or_exit() -> Setup:
    settings = settings_or_exit().settings
    catalog = catalog_or_exit(settings)
    redactor = configure(settings)
    redactor.add(*catalog.secrets())
    return Setup(settings, catalog, redactor, redactor.add)


def refuse_open_door(settings: Settings) -> None:
    """Whatever others can reach needs a token. (S6)"""
    if not is_loopback(settings.host) and settings.gateway_token is None:
        where = f'GOCLAW_HOST="{settings.host}" can be reached from elsewhere'
        talk("error", "bold red", f"{where}: set GOCLAW_GATEWAY_TOKEN too, or GOCLAW_HOST=127.0.0.1.")
        raise typer.Exit(ExitCode.CONFIG)


@config.command()
def check() -> None:
    """Tell whether the settings can be used, and everything that is wrong with them."""
    loaded = settings_or_exit()
    agents = catalog_or_exit(loaded.settings).agents
    changed = sum(origin != "default" for origin in loaded.origins.values())
    typer.echo(f"ok: {len(loaded.origins)} settings, {changed} set, {len(loaded.origins) - changed} at their default")
    typer.echo(f"ok: {', '.join(f'{name} ({spec.backend})' for name, spec in agents.items())}")


@config.command()
def example() -> None:
    """Print a .env file with every setting, its meaning, range and default."""
    typer.echo(env_example(Settings), nl=False)


@config.command()
def show(as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False) -> None:
    """Print every setting in force and where it came from."""
    rows = _rows(settings_or_exit())
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
    else:
        _print_table(rows)


def _rows(loaded: Loaded[Settings]) -> list[dict[str, object]]:
    return [
        {
            "variable": variable.name,
            "value": variable.value_in(loaded.settings),
            "unit": variable.unit,
            "origin": loaded.origins[variable.name],
        }
        for variable in variables(Settings)
    ]


def _print_table(rows: list[dict[str, object]]) -> None:
    columns = [Column(name, overflow="fold") for name in ("variable", "value", "unit", "origin")]
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        cells = ["" if cell is None else str(cell) for cell in row.values()]
        table.add_row(*cells, style="dim" if row["origin"] == "default" else "")
    screen = console()
    if not screen.is_terminal:
        screen.width = _UNCUT
    screen.print(table)
