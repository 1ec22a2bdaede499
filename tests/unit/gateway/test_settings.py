"""The promises of the settings: every problem at once, by name, and no surprise in what is in force."""

import contextlib
import re
from pathlib import Path
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, SecretStr, ValidationError

from gateway.loading import Loaded, Problem, SettingsError, load_settings, load_tree
from gateway.settings import Settings
from gateway.variables import Group, SettingsTree, env_example, variables

DEFAULTS = {
    "GOCLAW_LANE_MAIN": 2,
    "GOCLAW_LANE_SUBAGENT": 4,
    "GOCLAW_LANE_DELEGATE": 100,
    "GOCLAW_LANE_CRON": 1,
    "GOCLAW_LANE_HEARTBEAT": 1,
    "GOCLAW_QUEUE_MODE": "queue",
    "GOCLAW_QUEUE_CAP": 10,
    "GOCLAW_QUEUE_DROP": "old",
    "GOCLAW_QUEUE_DEBOUNCE": 800,
    "GOCLAW_SESSION_MAX_DM": 1,
    "GOCLAW_SESSION_MAX_GROUP": 3,
    "GOCLAW_SESSION_RUN_TIMEOUT": 600,
    "GOCLAW_CRON_TIMEZONE": "UTC",
    "GOCLAW_CRON_MAX_RETRIES": 3,
    "GOCLAW_CRON_RETRY_BASE": 2,
    "GOCLAW_CRON_RETRY_MAX": 30,
    "GOCLAW_CRON_LEASE": 300,
    "GOCLAW_CRON_RUN_TIMEOUT": 600,
    "GOCLAW_CRON_CATCH_UP": "one",
    "GOCLAW_CRON_GRACE": 604_800,
    "GOCLAW_CRON_JITTER_THRESHOLD": 3,
    "GOCLAW_CRON_MAX_JITTER": 30,
    "GOCLAW_CRON_POLL": 30,
    "GOCLAW_SHUTDOWN_GRACE": 10,
    "GOCLAW_MODE": "auto",
    "GOCLAW_DATA_DIR": "~/.goclaw",
    "GOCLAW_POSTGRES_DSN": None,
    "GOCLAW_POSTGRES_LEASE": 15,
    "GOCLAW_AGENTS": None,
    "GOCLAW_WORKSPACE": None,
    "GOCLAW_MODEL": None,
    "GOCLAW_HOST": "127.0.0.1",
    "GOCLAW_PORT": 18_790,
    "GOCLAW_GATEWAY_TOKEN": None,
    "GOCLAW_HTTP_RATE": 50,
    "GOCLAW_HTTP_HOSTS": None,
    "GOCLAW_TELEGRAM_TOKEN": None,
    "GOCLAW_TELEGRAM_ALLOW": None,
    "GOCLAW_TELEGRAM_API_URL": None,
    "GOCLAW_ANTHROPIC_API_KEY": None,
    "GOCLAW_ANTHROPIC_BASE_URL": None,
    "GOCLAW_OPENAI_API_KEY": None,
    "GOCLAW_OPENAI_BASE_URL": None,
    "GOCLAW_LOG_FORMAT": "console",
    "GOCLAW_LOG_LEVEL": "warning",
}

SECRET = {
    "GOCLAW_POSTGRES_DSN",
    "GOCLAW_GATEWAY_TOKEN",
    "GOCLAW_TELEGRAM_TOKEN",
    "GOCLAW_ANTHROPIC_API_KEY",
    "GOCLAW_OPENAI_API_KEY",
}

# For every variable a value that is allowed and not the default, at the edge of its range where it has one.
OTHERS = {
    "GOCLAW_LANE_MAIN": 10_000,
    "GOCLAW_LANE_SUBAGENT": 1,
    "GOCLAW_LANE_DELEGATE": 10_000,
    "GOCLAW_LANE_CRON": 10_000,
    "GOCLAW_LANE_HEARTBEAT": 10_000,
    "GOCLAW_QUEUE_MODE": "interrupt",
    "GOCLAW_QUEUE_CAP": 10_000,
    "GOCLAW_QUEUE_DROP": "new",
    "GOCLAW_QUEUE_DEBOUNCE": 0,
    "GOCLAW_SESSION_MAX_DM": 100,
    "GOCLAW_SESSION_MAX_GROUP": 100,
    "GOCLAW_SESSION_RUN_TIMEOUT": 86_400,
    "GOCLAW_CRON_TIMEZONE": "Europe/Berlin",
    "GOCLAW_CRON_MAX_RETRIES": 0,
    "GOCLAW_CRON_RETRY_BASE": 3_600,
    "GOCLAW_CRON_RETRY_MAX": 86_400,
    "GOCLAW_CRON_LEASE": 10,
    "GOCLAW_CRON_RUN_TIMEOUT": 86_400,
    "GOCLAW_CRON_CATCH_UP": "skip",
    "GOCLAW_CRON_GRACE": 0,
    "GOCLAW_CRON_JITTER_THRESHOLD": 10_000,
    "GOCLAW_CRON_MAX_JITTER": 0,
    "GOCLAW_CRON_POLL": 3_600,
    "GOCLAW_SHUTDOWN_GRACE": 0,
    "GOCLAW_MODE": "standalone",
    "GOCLAW_DATA_DIR": "/data",
    "GOCLAW_POSTGRES_DSN": "postgresql://localhost/goclaw",
    "GOCLAW_POSTGRES_LEASE": 300,
    "GOCLAW_AGENTS": "crew.toml",
    "GOCLAW_WORKSPACE": "/files",
    "GOCLAW_MODEL": "small",
    "GOCLAW_HOST": "::1",
    "GOCLAW_PORT": 18_791,
    "GOCLAW_GATEWAY_TOKEN": "a token of some length",
    "GOCLAW_HTTP_RATE": 7,
    "GOCLAW_HTTP_HOSTS": "goclaw.example, other.example",
    "GOCLAW_TELEGRAM_TOKEN": "42:secret-3",
    "GOCLAW_TELEGRAM_ALLOW": "7, -1001",
    "GOCLAW_TELEGRAM_API_URL": "http://localhost:8081",
    "GOCLAW_ANTHROPIC_API_KEY": "secret-1",
    "GOCLAW_ANTHROPIC_BASE_URL": "http://localhost:8080",
    "GOCLAW_OPENAI_API_KEY": "secret-2",
    "GOCLAW_OPENAI_BASE_URL": "http://localhost:11434/v1",
    "GOCLAW_LOG_FORMAT": "json",
    "GOCLAW_LOG_LEVEL": "error",
}

BEYOND = {
    "GOCLAW_LANE_MAIN": ("0", "10001"),
    "GOCLAW_LANE_SUBAGENT": ("0", "10001"),
    "GOCLAW_LANE_DELEGATE": ("0", "10001"),
    "GOCLAW_LANE_CRON": ("0", "10001"),
    "GOCLAW_LANE_HEARTBEAT": ("0", "10001"),
    "GOCLAW_QUEUE_MODE": ("fast",),
    "GOCLAW_QUEUE_CAP": ("0", "10001"),
    "GOCLAW_QUEUE_DROP": ("both",),
    "GOCLAW_QUEUE_DEBOUNCE": ("-1", "60001"),
    "GOCLAW_SESSION_MAX_DM": ("0", "101"),
    "GOCLAW_SESSION_MAX_GROUP": ("0", "101"),
    "GOCLAW_SESSION_RUN_TIMEOUT": ("0", "86401"),
    "GOCLAW_CRON_TIMEZONE": ("Berlin", "europe/berlin", "../etc/passwd", "localtime"),
    "GOCLAW_CRON_MAX_RETRIES": ("-1", "21"),
    "GOCLAW_CRON_RETRY_BASE": ("0", "3601"),
    "GOCLAW_CRON_RETRY_MAX": ("0", "86401"),
    "GOCLAW_CRON_LEASE": ("9", "3601"),
    "GOCLAW_CRON_RUN_TIMEOUT": ("0", "86401"),
    "GOCLAW_CRON_CATCH_UP": ("all",),
    "GOCLAW_CRON_GRACE": ("-1", "31536001"),
    "GOCLAW_CRON_JITTER_THRESHOLD": ("0", "10001"),
    "GOCLAW_CRON_MAX_JITTER": ("-1", "3601"),
    "GOCLAW_CRON_POLL": ("0", "3601"),
    "GOCLAW_SHUTDOWN_GRACE": ("-1", "601"),
    "GOCLAW_MODE": ("shared",),
    "GOCLAW_POSTGRES_LEASE": ("2", "301"),
    "GOCLAW_TELEGRAM_ALLOW": ("@ann", "7,@ann", "*", "7 8", "seven", "+7"),
    "GOCLAW_LOG_FORMAT": ("xml",),
    "GOCLAW_LOG_LEVEL": ("loud",),
}


def values(loaded: Loaded[Settings]) -> dict[str, object]:
    return {variable.name: variable.value_in(loaded.settings) for variable in variables(Settings)}


def problems(environ: dict[str, str], env_file: Path | None = None) -> tuple[Problem, ...]:
    with pytest.raises(SettingsError) as caught:
        load_settings(environ, env_file)
    assert str(caught.value).splitlines() == [str(problem) for problem in caught.value.problems]
    return caught.value.problems


def env_file(directory: Path, text: str) -> Path:
    file = directory / ".env"
    file.write_text(text, encoding="utf-8")
    return file


def test_nothing_set_means_the_documented_defaults() -> None:
    """Without any variable every setting has its default and says so."""
    loaded = load_settings({}, None)
    assert values(loaded) == DEFAULTS
    assert set(loaded.origins.values()) == {"default"}
    assert loaded.warnings == ()


def test_the_environment_is_read_only_when_handed_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings made in code do not depend on the variables of the process."""
    monkeypatch.setenv("GOCLAW_LANE_MAIN", "77")
    assert Settings().lane.main == 2
    assert load_settings({}, None).settings.lane.main == 2


@pytest.mark.parametrize("name", DEFAULTS)
def test_every_variable_reaches_its_own_setting(name: str, tmp_path: Path) -> None:
    """A variable changes the setting of its name and no other, from either source."""
    changed = DEFAULTS | {name: "***" if name in SECRET else OTHERS[name]}
    by_environment = load_settings({name: str(OTHERS[name])}, None)
    by_file = load_settings({}, env_file(tmp_path, f"{name}={OTHERS[name]}\n"))
    assert values(by_environment) == values(by_file) == changed
    assert (by_environment.origins[name], by_file.origins[name]) == ("environment", ".env")


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, some in BEYOND.items() for value in some])
def test_a_value_out_of_range_is_refused(name: str, value: str) -> None:
    """The first value beyond each end of a range, or outside the choices, is an error that names the variable."""
    (problem,) = problems({name: value})
    assert (problem.variable, problem.value) == (name, value)


def test_a_token_that_is_too_short_is_told_how_long_it_must_be() -> None:
    """And not shown."""
    (problem,) = problems({"GOCLAW_GATEWAY_TOKEN": "hunter2"})
    assert problem.expected == "text of at least 16 characters"
    assert "hunter2" not in str(problem)


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    """Of two values for one variable the environment's is in force, even over a bad one in the file."""
    file = env_file(tmp_path, "GOCLAW_LANE_MAIN=zero\nGOCLAW_LANE_CRON=5\n")
    loaded = load_settings({"GOCLAW_LANE_MAIN": "3"}, file)
    assert (loaded.settings.lane.main, loaded.settings.lane.cron) == (3, 5)
    assert loaded.origins["GOCLAW_LANE_MAIN"] == "environment"


def test_the_last_of_two_lines_counts(tmp_path: Path) -> None:
    """A file that sets a variable twice means the later line."""
    assert load_settings({}, env_file(tmp_path, "GOCLAW_LANE_CRON=5\nGOCLAW_LANE_CRON=6\n")).settings.lane.cron == 6


@pytest.mark.parametrize(
    "value", ["2.0", "1e3", "٣", "0x10", "true", "True", "1_000", "+5", "zero", "1 2", "²", "9" * 5000]
)
def test_a_whole_number_is_written_in_digits(value: str) -> None:
    """What Python or pydantic would kindly read as a number is refused when it is not plain digits."""
    (problem,) = problems({"GOCLAW_LANE_MAIN": value})
    assert problem.expected == "a whole number from 1 to 10000"


@given(st.text(st.characters()))
def test_any_text_is_either_digits_in_range_or_one_problem(text: str) -> None:
    """Whatever stands in a number's variable, it is taken as written or refused by name; nothing else happens."""
    digits = text.strip()
    if re.fullmatch("[0-9]{1,18}", digits) and 1 <= int(digits) <= 10_000:
        assert load_settings({"GOCLAW_LANE_MAIN": text}, None).settings.lane.main == int(digits)
    else:
        (problem,) = problems({"GOCLAW_LANE_MAIN": text})
        assert problem.variable == "GOCLAW_LANE_MAIN"
        assert str(problem).isprintable()


@pytest.mark.parametrize("blank", ["", " ", "\t"])
@pytest.mark.parametrize("name", DEFAULTS)
def test_an_empty_value_is_an_error_and_not_the_default(name: str, blank: str, tmp_path: Path) -> None:
    """An empty value is refused by name wherever it stands, and the message says how to get the default."""
    for found in (problems({name: blank}), problems({}, env_file(tmp_path, f"{name}={blank}\n"))):
        assert [problem.variable for problem in found] == [name]
        assert "left out for its default" in found[0].expected


def test_an_empty_variable_does_not_uncover_the_file(tmp_path: Path) -> None:
    """An empty environment variable is an error even when the file has a good value for it."""
    (problem,) = problems({"GOCLAW_LANE_MAIN": ""}, env_file(tmp_path, "GOCLAW_LANE_MAIN=3\n"))
    assert problem.place == "the environment"


def test_blanks_and_case_of_choices_do_not_matter() -> None:
    """Blanks around any value and capital letters in a choice are forgiven."""
    loaded = load_settings({"GOCLAW_LANE_MAIN": " 3\t", "GOCLAW_LOG_LEVEL": " DEBUG "}, None)
    assert (loaded.settings.lane.main, loaded.settings.log.level) == (3, "debug")


def test_a_message_names_variable_value_expectation_and_place() -> None:
    """A person can correct a value from the message alone."""
    assert [str(problem) for problem in problems({"GOCLAW_LANE_MAIN": "zero", "GOCLAW_QUEUE_DROP": "both"})] == [
        'GOCLAW_LANE_MAIN="zero": expected a whole number from 1 to 10000 (set in the environment)',
        'GOCLAW_QUEUE_DROP="both": expected one of old, new (set in the environment)',
    ]


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    """Bad lines, bad values and empty ones, from both sources, come in one error, and the warnings with them."""
    file = env_file(tmp_path, "just words\nGOCLAW_QUEUE_CAP=many\nGOCLAW_LANE_MIAN=3\n")
    with pytest.raises(SettingsError) as caught:
        load_settings({"GOCLAW_LANE_MAIN": "0", "GOCLAW_LOG_LEVEL": ""}, file)
    assert [(one.variable, one.place) for one in caught.value.problems] == [
        (None, f"{file}, line 1"),
        ("GOCLAW_LANE_MAIN", "the environment"),
        ("GOCLAW_QUEUE_CAP", f"{file}, line 2"),
        ("GOCLAW_LOG_LEVEL", "the environment"),
    ]
    assert [one.variable for one in caught.value.warnings] == ["GOCLAW_LANE_MIAN"]


def test_a_long_or_strange_value_is_shown_short_and_safe() -> None:
    """A value cannot flood the terminal or send it control codes."""
    (problem,) = problems({"GOCLAW_LANE_MAIN": "\x1b[2J\u202e" + "x" * 5000})
    assert "\\x1b[2J\\u202e" in str(problem)
    assert len(str(problem)) < 200


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("GOCLAW_LANE_MIAN", "GOCLAW_LANE_MAIN"),
        ("GOCLAW_LANES_CRON", "GOCLAW_LANE_CRON"),
        ("GOCLAW_MAX_DM", "GOCLAW_SESSION_MAX_DM"),
        ("GOCLAW_LANE-MAIN", "GOCLAW_LANE_MAIN"),
        ("goclaw_lane_main", "GOCLAW_LANE_MAIN"),
        ("GOCLAW_LANE", "GOCLAW_LANE_MAIN"),
        ("GOCLAW_COLOUR", None),
        ("GOCLAW_", None),
    ],
)
def test_an_unknown_variable_is_a_warning_with_a_guess(name: str, suggestion: str | None) -> None:
    """A name that is no setting never stops the start; the warning offers the nearest name if there is one."""
    loaded = load_settings({name: '{"main": 5}'}, None)
    assert [(one.variable, one.suggestion) for one in loaded.warnings] == [(name, suggestion)]
    assert values(loaded) == DEFAULTS


def test_a_warning_says_where_the_name_was_found(tmp_path: Path) -> None:
    """An unknown name is reported with its line or as part of the environment, and without its value."""
    file = env_file(tmp_path, "\nGOCLAW_LANE_MIAN=hunter2\n")
    warnings = load_settings({"GOCLAW_TOKN": "hunter2"}, file).warnings
    assert [str(one) for one in warnings] == [
        f"GOCLAW_LANE_MIAN (set in {file}, line 2) is not a setting; did you mean GOCLAW_LANE_MAIN?",
        "GOCLAW_TOKN (set in the environment) is not a setting",
    ]


def test_variables_of_other_programs_are_ignored(tmp_path: Path) -> None:
    """What does not carry the prefix is none of goclaw's business."""
    assert load_settings({"LANE_MAIN": "x", "PATH": ""}, env_file(tmp_path, "LANE_MAIN=x\n")).warnings == ()


@given(st.binary())
def test_no_file_content_brings_anything_but_a_settings_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    """Any bytes in `.env` are either read or reported as problems of the settings."""
    file = tmp_path_factory.getbasetemp() / "any.env"
    file.write_bytes(data)
    with contextlib.suppress(SettingsError):
        load_settings({}, file)


def test_settings_are_frozen() -> None:
    """Nobody changes a setting after the start."""
    settings = Settings()
    with pytest.raises(ValidationError):
        settings.lane.main = 3  # type: ignore[misc]
    with pytest.raises(ValidationError):
        settings.lane = settings.lane  # type: ignore[misc]


def test_the_example_names_every_setting_and_changes_none(tmp_path: Path) -> None:
    """The example file as it is sets nothing; its lines uncommented set every variable that has a default to it."""
    example = env_example(Settings)
    assert set(load_settings({}, env_file(tmp_path, example)).origins.values()) == {"default"}
    assert "# GOCLAW_POSTGRES_DSN=\n" in example
    uncommented = re.sub(r"^# (?=GOCLAW_\w+=.)", "", example, flags=re.MULTILINE)
    loaded = load_settings({}, env_file(tmp_path, uncommented))
    assert values(loaded) == DEFAULTS
    assert {name for name, origin in loaded.origins.items() if origin == "default"} == {
        name for name, value in DEFAULTS.items() if value is None
    }
    assert loaded.warnings == ()


def test_the_example_tells_meaning_range_unit_and_default() -> None:
    """Above each variable stands what it means and what it may be."""
    assert (
        "# How long one run may take; the time it waited for a free slot does not count.\n"
        "# A whole number from 1 to 86400 (seconds). Default: 600.\n"
        "# GOCLAW_SESSION_RUN_TIMEOUT=600\n"
    ) in env_example(Settings)


def test_a_zone_that_does_not_exist_is_told_with_an_example() -> None:
    """A time zone is checked when goclaw starts, not when the first job is made."""
    (problem,) = problems({"GOCLAW_CRON_TIMEZONE": "Berlin"})
    assert str(problem) == (
        'GOCLAW_CRON_TIMEZONE="Berlin": expected the name of a time zone, for instance Europe/Berlin'
        " (set in the environment)"
    )


DSN = "postgresql://goclaw:hunter2@localhost/goclaw"


@pytest.mark.parametrize(
    ("environ", "managed"),
    [
        ({}, False),
        ({"GOCLAW_MODE": "standalone"}, False),
        ({"GOCLAW_POSTGRES_DSN": DSN}, True),
        ({"GOCLAW_POSTGRES_DSN": DSN, "GOCLAW_MODE": "Managed"}, True),
    ],
)
def test_a_database_is_used_as_soon_as_one_is_named(environ: dict[str, str], managed: bool) -> None:
    """The mode need not be set: without a database there are files, with one there is the database."""
    assert load_settings(environ, None).settings.managed is managed


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"GOCLAW_MODE": "managed"}, "standalone, or GOCLAW_POSTGRES_DSN set to a database"),
        ({"GOCLAW_MODE": "standalone", "GOCLAW_POSTGRES_DSN": DSN}, "managed, or GOCLAW_POSTGRES_DSN left out"),
    ],
)
def test_a_mode_that_contradicts_the_database_is_refused(environ: dict[str, str], expected: str) -> None:
    """Neither of the two is quietly ignored, and the password is not repeated. (P12)"""
    (problem,) = problems(environ)
    assert (problem.variable, problem.expected) == ("GOCLAW_MODE", expected)
    assert "hunter2" not in str(problem)


class VaultSettings(Group):
    """Vault"""

    key: Annotated[SecretStr | None, Field(min_length=10)] = Field(None, description="Opens it.")
    pin: SecretStr = Field(SecretStr("default-pin"), min_length=6, description="Opens it too.")


class TreeWithSecrets(SettingsTree):
    """A tree like the product's, with secrets in it."""

    vault: VaultSettings = VaultSettings()


def test_a_secret_is_read_and_never_shown() -> None:
    """A secret is there for the program, and stars are there for people."""
    loaded = load_tree(TreeWithSecrets, {"GOCLAW_VAULT_KEY": "hunter2hunter2"}, None)
    assert loaded.settings.vault.key == SecretStr("hunter2hunter2")
    assert [one.value_in(loaded.settings) for one in variables(TreeWithSecrets)] == ["***", "***"]
    assert "hunter2" not in repr(loaded)


def test_a_refused_secret_is_not_repeated() -> None:
    """The message about a bad secret names the variable and hides the value."""
    with pytest.raises(SettingsError) as caught:
        load_tree(TreeWithSecrets, {"GOCLAW_VAULT_KEY": "hunter2", "GOCLAW_VAULT_PIN": "4711"}, None)
    assert [one.variable for one in caught.value.problems] == ["GOCLAW_VAULT_KEY", "GOCLAW_VAULT_PIN"]
    assert all(one.value == "***" for one in caught.value.problems)
    assert caught.value.__cause__ is None
    assert not {"hunter2", "4711"} & set(re.findall(r"\w+", str(caught.value)))


def test_the_example_gives_no_secret_away() -> None:
    """A secret's default does not stand in the example file."""
    assert "# GOCLAW_VAULT_PIN=\n" in env_example(TreeWithSecrets)
    assert "default-pin" not in env_example(TreeWithSecrets)
