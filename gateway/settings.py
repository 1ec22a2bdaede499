"""Every setting once: its name, default, range and meaning. `gateway.loading` reads them."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from cron.zones import read_zone
from gateway.access.doorman import EXPECTED as NUMBERS
from gateway.access.doorman import read_allowlist
from gateway.addresses import ServerAddress
from gateway.variables import Group, SettingsTree
from store.jobs import CatchUp
from store.records import DropPolicy, QueueMode

StoreMode = Literal["auto", "standalone", "managed"]
LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["console", "json"]


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


def _read_allowlist(value: str) -> str:
    read_allowlist(value)
    return value


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


class TelegramSettings(Group):
    """Telegram: with a token, the gateway answers there too"""

    token: SecretStr | None = Field(None, description="The bot's token, as @BotFather on Telegram tells it.")
    allow: Annotated[str, AfterValidator(_read_allowlist)] | None = Field(
        None,
        description="Who may talk to the bot. A group is named by its own number, and in it the bot answers whoever"
        " calls it; the log tells the number of one that is not. Whoever is not on the list is shown a code with which"
        " `goclaw pair approve` lets them in.",
        json_schema_extra={"expected": NUMBERS},
    )
    api_url: ServerAddress | None = Field(
        None,
        description="Another server that speaks Telegram's Bot API, for instance http://localhost:8081.",
    )


class HttpSettings(Group):
    """HTTP: the API and the dashboard"""

    rate: Whole = _whole(
        50, 1, 100_000, "requests", "How many requests a token may make in a second; twice that at once."
    )
    hosts: str | None = Field(
        None,
        min_length=1,
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
    telegram: TelegramSettings = TelegramSettings()
    anthropic: AnthropicSettings = AnthropicSettings()
    openai: OpenaiSettings = OpenaiSettings()
    log: LogSettings = LogSettings()

    @property
    def managed(self) -> bool:
        return self.postgres.dsn is not None
