"""The command `goclaw`: data goes to stdout, talk to stderr, and bad input ends in a sentence, never in a traceback.

Exit codes: 0 all went well, 1 it failed, 2 the command line was not understood, 69 something that it needs is not to be
had (a directory, a database), 78 the settings cannot be used.
"""

import json
import logging
import os
from collections.abc import Awaitable, Callable
from enum import IntEnum
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar

import trio
import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from gateway.app import chat as run_chat
from gateway.settings import Loaded, Settings, SettingsError, Unknown, load_settings
from gateway.tenure import TenureOver
from gateway.variables import env_example, variables
from store.protocols import StoreError

ENV_FILE: Final = Path(".env")

Answer = TypeVar("Answer")

# Wide enough that no line for a pipe is ever folded.
_UNCUT: Final = 10_000


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1
    USAGE = 2
    UNAVAILABLE = 69
    CONFIG = 78


# Help without boxes and colours reads the same in a terminal, a file and a pipe.
app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
config = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
app.add_typer(config, name="config", help="Look at the settings.")


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
    """Chat in this terminal with the built-in demo agent."""
    settings = settings_or_exit().settings
    logging.basicConfig(level=settings.log.level.upper(), format="%(levelname)s %(name)s: %(message)s")
    run_or_exit(run_chat, settings)


@config.command()
def check() -> None:
    """Tell whether the settings can be used, and everything that is wrong with them."""
    loaded = settings_or_exit()
    changed = sum(origin != "default" for origin in loaded.origins.values())
    typer.echo(f"ok: {len(loaded.origins)} settings, {changed} set, {len(loaded.origins) - changed} at their default")


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


def settings_or_exit() -> Loaded[Settings]:
    """Load the settings of this process; warnings are told, and bad settings end the command with code 78."""
    try:
        loaded = load_settings(os.environ, ENV_FILE)
    except SettingsError as error:
        _tell_warnings(error.warnings)
        for problem in error.problems:
            talk("error", "bold red", str(problem))
        talk("hint", "bold", "`goclaw config example` lists every setting with its range.")
        raise typer.Exit(ExitCode.CONFIG) from None
    _tell_warnings(loaded.warnings)
    return loaded


def run_or_exit(main: Callable[[Settings], Awaitable[Answer]], settings: Settings) -> Answer:
    """Run it; what the store cannot do for it is told in a sentence and ends the command with code 69."""
    reasons: list[BaseException] = []
    try:
        return trio.run(main, settings)
    except* (StoreError, TenureOver) as caught:
        reasons += leaves(caught)
    for reason in reasons:
        talk("error", "bold red", str(reason))
    raise typer.Exit(ExitCode.UNAVAILABLE)


def leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    return [
        leaf
        for error in group.exceptions
        for leaf in (leaves(error) if isinstance(error, BaseExceptionGroup) else [error])
    ]


def talk(label: str, style: str, text: str) -> None:
    """Say something to the person at the terminal, beside the data on stdout."""
    _console(stderr=True).print(Text.assemble((f"{label}:", style), f" {text}"), soft_wrap=True)


def _tell_warnings(warnings: tuple[Unknown, ...]) -> None:
    for unknown in warnings:
        talk("warning", "bold yellow", str(unknown))


def _console(*, stderr: bool = False) -> Console:
    # rich itself goes plain for a pipe and TERM=dumb, but keeps bold type when NO_COLOR is set.
    colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    return Console(stderr=stderr, color_system=colours, markup=False, highlight=False, emoji=False)


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
    console = _console()
    if not console.is_terminal:
        console.width = _UNCUT
    console.print(table)
