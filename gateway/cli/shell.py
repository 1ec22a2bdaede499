"""What every command of `goclaw` shares: exit codes, words for the person at the terminal, settings, a way to run.

Data goes to stdout, talk to stderr, and bad input ends in a sentence, never in a traceback.
"""

import os
from collections.abc import Awaitable, Callable
from enum import IntEnum
from pathlib import Path
from typing import Final, Literal, TypeVar

import trio
import typer
from rich.console import Console
from rich.text import Text

from gateway.agents.catalog import CatalogError
from gateway.agents.spec import Catalog
from gateway.hiring import read_catalog
from gateway.loading import Loaded, SettingsError, Unknown, load_settings
from gateway.settings import Settings
from gateway.tenure import TenureOver
from store.protocols import StoreError

ENV_FILE: Final = Path(".env")

Answer = TypeVar("Answer")
Asked = TypeVar("Asked")


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1
    USAGE = 2
    UNAVAILABLE = 69
    """Something that it needs is not to be had: a directory, a database."""
    CONFIG = 78
    """The settings cannot be used."""


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


def catalog_or_exit(settings: Settings) -> Catalog:
    """The declared agents; what is wrong with them ends the command with code 78."""
    try:
        return read_catalog(settings)
    except CatalogError as error:
        for problem in error.problems:
            talk("error", "bold red", str(problem))
        raise typer.Exit(ExitCode.CONFIG) from None


def run_or_exit(main: Callable[[Asked], Awaitable[Answer]], asked: Asked) -> Answer:
    """Run it; what the store cannot do for it is told in a sentence and ends the command with code 69."""
    reasons: list[BaseException] = []
    try:
        return trio.run(main, asked)
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
    console(stderr=True).print(Text.assemble((f"{label}:", style), f" {text}"), soft_wrap=True)


def _tell_warnings(warnings: tuple[Unknown, ...]) -> None:
    for unknown in warnings:
        talk("warning", "bold yellow", str(unknown))


def console(*, stderr: bool = False) -> Console:
    # rich itself goes plain for a pipe and TERM=dumb, but keeps bold type when NO_COLOR is set.
    colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    return Console(stderr=stderr, color_system=colours, markup=False, highlight=False, emoji=False)
