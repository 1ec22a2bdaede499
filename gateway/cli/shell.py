"""What every command of `goclaw` shares: exit codes, data and talk, settings, a way to run.

Data goes to stdout, talk to stderr, and bad input ends in a sentence, never in a traceback.
"""

from __future__ import annotations

import json
import os
import sys
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NoReturn, TypeVar

import typer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rich.console import Console

    from gateway.agents.spec import Catalog
    from gateway.loading import Loaded, Unknown
    from gateway.settings import Settings
    from gateway.work import Setup

ENV_FILE: Final = Path(".env")

Answer = TypeVar("Answer")
Asked = TypeVar("Asked")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1
    USAGE = 2
    UNHEALTHY = 3
    """It was found out, and it is not good."""
    UNAVAILABLE = 69
    """Something that it needs is not to be had: a directory, a database, a gateway that answers."""
    CONFIG = 78
    """The settings cannot be used."""
    INTERRUPTED = 130


def group(about: str | None, *, alone: bool = False) -> typer.Typer:
    """Commands that belong together. ``alone``: the name of the group is a command too, and says itself what it is."""
    # Help without boxes and colours reads the same in a terminal, a file and a pipe.
    said = {} if about is None else {"help": about}
    return typer.Typer(no_args_is_help=not alone, invoke_without_command=alone, rich_markup_mode=None, **said)  # type: ignore[arg-type]


# ── data and talk ────────────────────────────────────────────────────────────────────────────────────────────────────


def say(text: str, *, end: str = "\n") -> None:
    """Data, on stdout. Whoever has stopped reading has read enough."""
    try:
        sys.stdout.write(text + end)
        sys.stdout.flush()
    except BrokenPipeError:
        turn_away_stdout()
        raise typer.Exit(ExitCode.OK) from None


def turn_away_stdout() -> None:
    """What is still to be written there is written nowhere, so that the end of the process stays quiet."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say_json(data: Any) -> None:
    say(json.dumps(data, indent=2, ensure_ascii=False))


def talk(label: str, style: str, text: str) -> None:
    """Say something to the person at the terminal, beside the data on stdout."""
    from rich.text import Text

    from gateway.channels.printable import printable

    mark = (f"{label}: ", style) if label else ""
    console(stderr=True).print(Text.assemble(mark, printable(text)), soft_wrap=True)


def hint(text: str) -> None:
    talk("hint", "bold", text)


def fail(text: str, advice: str = "", code: ExitCode = ExitCode.FAILED) -> NoReturn:
    """What went wrong, what to do, and the end of the command."""
    talk("error", "bold red", text)
    if advice:
        hint(advice)
    raise typer.Exit(code)


def console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    # rich itself goes plain for a pipe and TERM=dumb, but keeps bold type when NO_COLOR is set.
    colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    return Console(stderr=stderr, color_system=colours, markup=False, highlight=False, emoji=False)


def at_a_terminal() -> bool:
    """Whether somebody sees what is written, and it may be more than lines one after the other."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def confirm(impact: str, *, yes: bool) -> None:
    """Ask before something is gone for good. Where nobody can be asked, ``--yes`` is needed."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        fail(f"{impact} Nothing was done, since nobody can be asked here.", "add --yes to do it", ExitCode.USAGE)
    talk("", "", impact)
    if not typer.confirm("Do it?", err=True):
        talk("", "", "Nothing was done.")
        raise typer.Exit(ExitCode.FAILED)


# ── settings, and a way to run ───────────────────────────────────────────────────────────────────────────────────────


def settings_or_exit() -> Loaded[Settings]:
    """Load the settings of this process; warnings are told, and bad settings end the command with code 78."""
    from gateway.loading import SettingsError, load_settings

    try:
        loaded = load_settings(os.environ, ENV_FILE)
    except SettingsError as error:
        tell_warnings(error.warnings)
        for problem in error.problems:
            talk("error", "bold red", str(problem))
        hint("`goclaw config example` lists every setting with its range.")
        raise typer.Exit(ExitCode.CONFIG) from None
    tell_warnings(loaded.warnings)
    return loaded


def tell_warnings(warnings: tuple[Unknown, ...]) -> None:
    for unknown in warnings:
        talk("warning", "bold yellow", str(unknown))


def catalog_or_exit(settings: Settings) -> Catalog:
    """The declared agents; what is wrong with them ends the command with code 78."""
    from gateway.agents.catalog import CatalogError
    from gateway.hiring import read_catalog

    try:
        return read_catalog(settings)
    except CatalogError as error:
        for problem in error.problems:
            talk("error", "bold red", str(problem))
        raise typer.Exit(ExitCode.CONFIG) from None


def setup_or_exit(settings: Settings, *, keep_log: bool = False) -> Setup:
    """All that a gateway is started with. ``keep_log``: what is logged goes to a file too, for `goclaw logs`."""
    from gateway.logs import configure
    from gateway.stores import data_directory
    from gateway.work import Setup
    from store.protocols import StoreError

    catalog = catalog_or_exit(settings)
    try:
        redactor = configure(settings, directory=data_directory(settings) / "logs" if keep_log else None)
    except StoreError as error:
        fail(str(error), code=ExitCode.UNAVAILABLE)
    redactor.add(*catalog.secrets())
    return Setup(settings, catalog, redactor, redactor.add)


def run_or_exit(main: Callable[[Asked], Awaitable[Answer]], asked: Asked) -> Answer:
    """Run it; what the store cannot do for it is told in a sentence and ends the command with code 69."""
    import trio

    from gateway.tenure import TenureOver
    from store.protocols import StoreError

    reasons: list[BaseException] = []
    left = False
    try:
        return trio.run(main, asked)
    except* (StoreError, TenureOver) as caught:
        reasons += leaves(caught)
    except* KeyboardInterrupt:
        left = True
    if left and not reasons:
        raise typer.Exit(ExitCode.INTERRUPTED)
    for reason in reasons:
        talk("error", "bold red", str(reason))
    raise typer.Exit(ExitCode.UNAVAILABLE)


def leaves(errors: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    return [
        leaf
        for error in errors.exceptions
        for leaf in (leaves(error) if isinstance(error, BaseExceptionGroup) else [error])
    ]
