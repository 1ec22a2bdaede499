"""How the settings are read: once, at the start; frozen afterwards.

    environment ─┐
                 ├─> names known? ─> values sound? ─> Loaded(settings, where each value came from, warnings)
    .env ────────┘       │                 │
                      warning         SettingsError with all problems at once

A variable is the prefix, the group and the field: GOCLAW_ + LANE + MAIN. The environment wins over `.env`, `.env` over
the default. Blanks around a value do not matter. An empty value is an error like any other bad value, since nobody can
tell whether it was meant as "none" or as "the default"; leaving the variable out is the way to ask for the default.
An unknown GOCLAW_ variable is a warning. The value of a secret is never shown, and neither is that of an unknown
variable, which may be a secret under a misspelt name.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TypeVar

from pydantic import ValidationError
from pydantic_settings import EnvSettingsSource

from gateway.env_file import EnvFile, read_env_file
from gateway.settings import Settings
from gateway.variables import PREFIX, SettingsTree, Variable, variable_name, variables

Origin = Literal["default", "environment", ".env"]
Tree = TypeVar("Tree", bound=SettingsTree)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong; without a `variable` it is the `place`, a file or one of its lines, that cannot be read."""

    variable: str | None
    value: str | None
    expected: str
    place: str

    def __str__(self) -> str:
        if self.variable is None:
            return f"{self.place}: expected {self.expected}"
        return f'{self.variable}="{self.value}": expected {self.expected} (set in {self.place})'


@dataclass(frozen=True, slots=True)
class Unknown:
    """A variable that looks like a setting and is none."""

    variable: str
    place: str
    suggestion: str | None

    def __str__(self) -> str:
        hint = f"; did you mean {self.suggestion}?" if self.suggestion else ""
        return f"{self.variable} (set in {self.place}) is not a setting{hint}"


class SettingsError(Exception):
    """The settings cannot be used; `problems` holds every reason, and the text gives each a line of its own."""

    def __init__(self, problems: tuple[Problem, ...], warnings: tuple[Unknown, ...]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems
        self.warnings = warnings


@dataclass(frozen=True, slots=True)
class Loaded(Generic[Tree]):
    """Settings in force; `origins` tells for every variable where its value came from."""

    settings: Tree
    origins: Mapping[str, Origin]
    warnings: tuple[Unknown, ...]


def load_settings(environ: Mapping[str, str], env_file: Path | None) -> Loaded[Settings]:
    """Read all settings from `environ` and `env_file`, or raise `SettingsError` with everything that is wrong."""
    loaded = load_tree(Settings, environ, env_file)
    if clash := mode_clash(loaded):
        raise SettingsError((clash,), loaded.warnings)
    return loaded


def mode_clash(loaded: Loaded[Settings]) -> Problem | None:
    """Files and a database at once is nobody's intention, and neither is a shared database that is not named."""
    settings = loaded.settings
    place = "the environment" if loaded.origins["GOCLAW_MODE"] == "environment" else ".env"
    if settings.mode == "standalone" and settings.postgres.dsn is not None:
        return Problem("GOCLAW_MODE", "standalone", "managed, or GOCLAW_POSTGRES_DSN left out", place)
    if settings.mode == "managed" and settings.postgres.dsn is None:
        return Problem("GOCLAW_MODE", "managed", "standalone, or GOCLAW_POSTGRES_DSN set to a database", place)
    return None


def load_tree(tree: type[Tree], environ: Mapping[str, str], env_file: Path | None) -> Loaded[Tree]:
    """Do what `load_settings` does for any tree of settings."""
    file = EnvFile() if env_file is None else read_env_file(env_file)
    given = _gather(environ, file, env_file)
    known = {variable.name: variable for variable in variables(tree)}
    settings, bad_values = _validate(tree, known, given)
    warnings = _unknown(given, known)
    problems = (*_unreadable(file, env_file), *bad_values)
    if settings is None or problems:
        raise SettingsError(problems, warnings)
    origins: dict[str, Origin] = {name: given[name].origin if name in given else "default" for name in known}
    return Loaded(settings, origins, warnings)


@dataclass(frozen=True, slots=True)
class _Given:
    """A value as somebody wrote it, and where."""

    value: str
    origin: Origin
    place: str


class _GivenSource(EnvSettingsSource):
    """pydantic-settings' own reading of names, over values that were handed in."""

    def __init__(self, tree: type[SettingsTree], values: Mapping[str, str | None]) -> None:
        super().__init__(tree)
        self.env_vars = values


def _gather(environ: Mapping[str, str], file: EnvFile, env_file: Path | None) -> dict[str, _Given]:
    given = {one.name: _Given(one.value.strip(), ".env", f"{env_file}, line {one.line}") for one in file.assignments}
    given |= {name: _Given(value.strip(), "environment", "the environment") for name, value in environ.items()}
    return {name: one for name, one in given.items() if name.upper().startswith(PREFIX)}


def _unreadable(file: EnvFile, env_file: Path | None) -> list[Problem]:
    return [
        Problem(None, None, one.expected, f"{env_file}" if one.line is None else f"{env_file}, line {one.line}")
        for one in file.unreadable
    ]


def _validate(
    tree: type[Tree], known: Mapping[str, Variable], given: Mapping[str, _Given]
) -> tuple[Tree | None, list[Problem]]:
    # Only exact names go in: pydantic-settings would also take a group as JSON, and names in lower case.
    written = {name: given[name].value for name in known if name in given}
    bad = {name for name, value in written.items() if not value}
    settings = None
    try:
        settings = tree(**_GivenSource(tree, {name.lower(): value for name, value in written.items() if value})())
    except ValidationError as error:
        bad |= {variable_name(*map(str, item["loc"][:2])) for item in error.errors()}
    return settings, [_problem(known[name], given[name]) for name in sorted(bad, key=list(known).index)]


def _problem(variable: Variable, given: _Given) -> Problem:
    if not given.value:
        return Problem(variable.name, "", f"{variable.expected}, or the variable left out for its default", given.place)
    shown = "***" if variable.secret else _printable(given.value)
    return Problem(variable.name, shown, variable.expected, given.place)


def _unknown(given: Mapping[str, _Given], known: Mapping[str, Variable]) -> tuple[Unknown, ...]:
    return tuple(
        Unknown(_printable(name), one.place, _closest(name, known)) for name, one in given.items() if name not in known
    )


def _closest(name: str, known: Mapping[str, Variable]) -> str | None:
    # The prefix is left out: it makes any two names look alike.
    wanted = name.upper().removeprefix(PREFIX)
    close = difflib.get_close_matches(wanted, [one.removeprefix(PREFIX) for one in known], n=1, cutoff=0.6)
    return PREFIX + close[0] if close else None


def _printable(text: str, limit: int = 60) -> str:
    short = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in short)
