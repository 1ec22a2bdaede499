"""Every setting once: its name, default, range and meaning; read at the start, frozen afterwards.

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
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import EnvSettingsSource

from cron.zones import read_zone
from gateway.addresses import ServerAddress
from gateway.env_file import EnvFile, read_env_file
from gateway.variables import PREFIX, Group, SettingsTree, Variable, variable_name, variables
from store.jobs import CatchUp
from store.records import DropPolicy, QueueMode

StoreMode = Literal["auto", "standalone", "managed"]
LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["console", "json"]
Origin = Literal["default", "environment", ".env"]


def _read_whole(value: object) -> object:
    # int() also takes "٣", "1_000" and "+5", and pydantic "2.0" and True; a setting takes digits.
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError("not a whole number")


def _read_choice(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _read_zone(value: str) -> str:
    return read_zone(value).key


Whole = Annotated[int, BeforeValidator(_read_whole)]


def _whole(default: int, low: int, high: int, unit: str, about: str) -> Any:
    return Field(default, ge=low, le=high, description=about, json_schema_extra={"unit": unit})


class LaneSettings(Group):
    """Lanes: how many runs of one kind go at once, per process"""

    main: Whole = _whole(2, 1, 10_000, "runs", "Runs that answer people.")
    subagent: Whole = _whole(4, 1, 10_000, "runs", "Runs of helpers that an agent starts for a part of its work.")
    delegate: Whole = _whole(100, 1, 10_000, "runs", "Runs of agents that another agent handed work to by name.")
    cron: Whole = _whole(1, 1, 10_000, "runs", "Runs of cron jobs.")
    heartbeat: Whole = _whole(1, 1, 10_000, "runs", "Runs that look at HEARTBEAT.md.")


class QueueSettings(Group):
    """Queue: what happens to messages while their conversation is busy"""

    mode: Annotated[QueueMode, BeforeValidator(_read_choice)] = Field(
        "queue",
        description="queue: each message waits for its turn, in order (followup is the same). collect: adjacent waiting"
        " messages of one sender become one turn. steer: the running agent gets the message at its next step."
        " interrupt: the run is cancelled, what waits is dropped, and the new message starts.",
    )
    cap: Whole = _whole(10, 1, 10_000, "turns", "How many turns of one conversation may wait.")
    drop: Annotated[DropPolicy, BeforeValidator(_read_choice)] = Field(
        "old",
        description="Who goes when that many wait already. old: the one that waited longest. new: the newcomer."
        " The sender is told either way.",
    )
    debounce: Whole = _whole(
        800,
        0,
        60_000,
        "milliseconds",
        "Messages that one sender writes this quickly after each other become one turn; 0 keeps them apart.",
    )


class SessionSettings(Group):
    """Session: the limits of one conversation"""

    max_dm: Whole = _whole(1, 1, 100, "runs", "How many runs a private conversation may have at once.")
    max_group: Whole = _whole(3, 1, 100, "runs", "How many runs a group conversation may have at once.")
    run_timeout: Whole = _whole(
        600, 1, 86_400, "seconds", "How long one run may take; the time it waited for a free slot does not count."
    )


class CronSettings(Group):
    """Cron: how scheduled jobs run where they say nothing of their own"""

    timezone: Annotated[str, AfterValidator(_read_zone)] = Field(
        "UTC",
        description="Where the times of a schedule are meant, unless the job or its tenant has a zone of its own.",
        json_schema_extra={"expected": "the name of a time zone, for instance Europe/Berlin"},
    )
    max_retries: Whole = _whole(3, 0, 20, "retries", "How often a run that failed is tried again.")
    retry_base: Whole = _whole(
        2, 1, 3_600, "seconds", "How long before the first retry; each later one waits twice as long."
    )
    retry_max: Whole = _whole(30, 1, 86_400, "seconds", "The longest wait before a retry.")
    lease: Whole = _whole(
        300,
        10,
        3_600,
        "seconds",
        "How long after a gateway has died another one takes its runs over. Renewed while the gateway lives.",
    )
    run_timeout: Whole = _whole(
        600, 1, 86_400, "seconds", "How long one run of a job may take, counted from when it has its slot."
    )
    catch_up: Annotated[CatchUp, BeforeValidator(_read_choice)] = Field(
        "one",
        description="What becomes of times that passed while nobody was there. one: the job runs once for all of them."
        " skip: it goes on with the next one.",
    )
    grace: Whole = _whole(
        604_800, 0, 31_536_000, "seconds", "What is later than this is not run any more but recorded as missed."
    )
    jitter_threshold: Whole = _whole(
        3, 1, 10_000, "jobs", "When more than this are due at once, their starts are spread out."
    )
    max_jitter: Whole = _whole(30, 0, 3_600, "seconds", "Over how long such starts are spread.")
    poll: Whole = _whole(
        30, 1, 3_600, "seconds", "How often the store is asked for due jobs although nothing was heard from it."
    )


class ShutdownSettings(Group):
    """Shutdown"""

    grace: Whole = _whole(
        10, 0, 600, "seconds", "How long runs may go on after goclaw was asked to stop; then they are cancelled."
    )


class DataSettings(Group):
    """Data: where standalone mode keeps everything"""

    dir: str = Field(
        "~/.goclaw",
        min_length=1,
        description="The directory of messages, sessions and jobs. Only one gateway at a time works in it."
        " It is made if it is missing.",
    )


class PostgresSettings(Group):
    """Postgres: where managed mode keeps everything, so that several gateways can share the work"""

    dsn: SecretStr | None = Field(
        None,
        description="The database, for instance postgresql://goclaw:password@localhost:5432/goclaw. Server 14 or newer."
        " `goclaw db status` tells whether it can be used.",
    )
    lease: Whole = _whole(
        15, 3, 300, "seconds", "How long after the gateway that works on messages has died another one takes over."
    )


class AnthropicSettings(Group):
    """Models: without a key and without agents.toml, the built-in demo agent answers"""

    api_key: SecretStr | None = Field(
        None, description="The key for Anthropic's models. With it, agents that name no backend use them."
    )
    base_url: ServerAddress | None = Field(
        None,
        description="Another server that speaks Anthropic's protocol, for instance http://localhost:8080.",
    )


class OpenaiSettings(Group):
    """OpenAI, and every server that speaks its protocol"""

    api_key: SecretStr | None = Field(None, description="The key for OpenAI's models, or for the server named below.")
    base_url: ServerAddress | None = Field(
        None,
        description="Another server that speaks OpenAI's protocol, for instance http://localhost:11434/v1.",
    )


class HttpSettings(Group):
    """HTTP: the API and the dashboard"""

    rate: Whole = _whole(
        50, 1, 100_000, "requests", "How many requests a token may make in a second; twice that at once."
    )
    hosts: str = Field(
        "",
        description="Other names under which the gateway is reached, separated by commas; a request under any other"
        " name is refused.",
    )


class LogSettings(Group):
    """Log"""

    format: Annotated[LogFormat, BeforeValidator(_read_choice)] = Field(
        "console", description="console: lines for people. json: an object per line for programs."
    )
    level: Annotated[LogLevel, BeforeValidator(_read_choice)] = Field(
        "warning", description="The least severe kind of event that is written to the log."
    )


class Settings(SettingsTree):
    """All settings of a goclaw process."""

    lane: LaneSettings = LaneSettings()
    queue: QueueSettings = QueueSettings()
    session: SessionSettings = SessionSettings()
    cron: CronSettings = CronSettings()
    shutdown: ShutdownSettings = ShutdownSettings()
    mode: Annotated[StoreMode, BeforeValidator(_read_choice)] = Field(
        "auto",
        description="standalone: one gateway, files in a directory. managed: a Postgres database that several gateways"
        " share. auto: managed if GOCLAW_POSTGRES_DSN is set, standalone if not.",
    )
    data: DataSettings = DataSettings()
    postgres: PostgresSettings = PostgresSettings()
    agents: str | None = Field(
        None,
        min_length=1,
        description="The file that declares agents. Without it, agents.toml in the current directory if it is there,"
        " else the agents main and research.",
    )
    workspace: str | None = Field(
        None,
        min_length=1,
        description="The directory in which each agent has a directory of its own for its files. Without it,"
        " `workspace` in the data directory.",
    )
    model: str | None = Field(
        None, min_length=1, description="The model of agents that name none. Without it, the backend's usual one."
    )
    host: str = Field(
        "127.0.0.1",
        min_length=1,
        description="The address that `goclaw run` listens on. Anything but this machine's own needs"
        " GOCLAW_GATEWAY_TOKEN.",
    )
    port: Whole = _whole(18_790, 0, 65_535, "", "The port that it listens on; 0 takes any that is free.")
    gateway_token: SecretStr | None = Field(
        None, min_length=16, description="A token for the API that may do everything, at least 16 characters long."
    )
    http: HttpSettings = HttpSettings()
    anthropic: AnthropicSettings = AnthropicSettings()
    openai: OpenaiSettings = OpenaiSettings()
    log: LogSettings = LogSettings()

    @property
    def managed(self) -> bool:
        return self.postgres.dsn is not None


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
