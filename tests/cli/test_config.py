"""The promises of `goclaw config` and of the command as a whole."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.cli.app import app
from gateway.settings import Settings
from gateway.variables import env_example, variables

GOCLAW = Path(sys.executable).with_name("goclaw")


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory to start goclaw in, in an environment that says nothing about it."""
    for name in os.environ:
        if name.startswith("GOCLAW_") or name in {"NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS"}:
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cli(directory: Path) -> CliRunner:
    return CliRunner()


def test_help_names_every_command(cli: CliRunner) -> None:
    """`goclaw --help` tells what it can do and succeeds."""
    result = cli.invoke(app, ["--help"])
    assert result.exit_code == 0
    assert "config" in result.stdout


def test_check_says_ok_on_stdout(cli: CliRunner, directory: Path) -> None:
    """Good settings are summed up in one line and nothing is said beside it."""
    (directory / ".env").write_text("GOCLAW_LANE_MAIN=3\n")
    result = cli.invoke(app, ["config", "check"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "ok: 45 settings, 1 set, 44 at their default\nok: main (demo), research (demo)\n"


def test_check_tells_warnings_on_stderr_and_succeeds(cli: CliRunner) -> None:
    """An unknown variable is talked about, and the settings are still fine."""
    result = cli.invoke(app, ["config", "check"], env={"GOCLAW_LANE_MIAN": "3"})
    assert result.exit_code == 0
    assert result.stdout.startswith("ok:")
    assert result.stderr == (
        "warning: GOCLAW_LANE_MIAN (set in the environment) is not a setting; did you mean GOCLAW_LANE_MAIN?\n"
    )


@pytest.mark.parametrize("command", [["config", "check"], ["config", "show"], ["config", "show", "--json"]])
def test_bad_settings_end_with_78_and_every_problem(cli: CliRunner, directory: Path, command: list[str]) -> None:
    """Each problem has its line on stderr, stdout stays empty, and the exit code means configuration."""
    (directory / ".env").write_text("words\n")
    result = cli.invoke(app, command, env={"GOCLAW_LANE_MAIN": "zero", "GOCLAW_LOG_LEVEL": ""})
    assert (result.exit_code, result.stdout) == (78, "")
    assert [line.split(":")[:2] for line in result.stderr.splitlines()[:-1]] == [
        ["error", " .env, line 1"],
        ["error", ' GOCLAW_LANE_MAIN="zero"'],
        ["error", ' GOCLAW_LOG_LEVEL=""'],
    ]
    assert "config example" in result.stderr.splitlines()[-1]


def test_example_prints_the_example_file(cli: CliRunner) -> None:
    """`goclaw config example > .env.example` renews the file, whatever the settings are."""
    result = cli.invoke(app, ["config", "example"], env={"GOCLAW_LANE_MAIN": "zero"})
    assert (result.exit_code, result.stdout, result.stderr) == (0, env_example(Settings), "")


def test_show_tells_value_and_origin_of_every_variable(cli: CliRunner, directory: Path) -> None:
    """Every setting has a line with its value in force and the place it came from."""
    (directory / ".env").write_text("GOCLAW_LANE_MAIN=3\nGOCLAW_LANE_CRON=4\n")
    result = cli.invoke(app, ["config", "show", "--origin"], env={"GOCLAW_LANE_CRON": "5"})
    lines = [line.split() for line in result.stdout.splitlines()]
    assert [line[0] for line in lines[1:]] == [variable.name for variable in variables(Settings)]
    assert ["GOCLAW_LANE_MAIN", "3", "runs", ".env"] in lines
    assert ["GOCLAW_LANE_CRON", "5", "runs", "environment"] in lines
    assert ["GOCLAW_QUEUE_MODE", "queue", "default"] in lines


def test_show_as_json_is_for_programs(cli: CliRunner) -> None:
    """The JSON form holds the same facts with their types, and warnings do not get into it."""
    result = cli.invoke(app, ["config", "show", "--json"], env={"GOCLAW_LANE_MAIN": "3", "GOCLAW_NO": "1"})
    rows = json.loads(result.stdout)
    assert len(rows) == len(variables(Settings))
    assert rows[0] == {"variable": "GOCLAW_LANE_MAIN", "value": 3, "unit": "runs", "origin": "environment"}
    assert "GOCLAW_NO" in result.stderr


@pytest.mark.parametrize("settings", [{"GOCLAW_NO": "1"}, {"GOCLAW_LANE_MAIN": "zero"}])
@pytest.mark.parametrize(
    ("terminal", "coloured"),
    [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
)
def test_colours_only_where_they_are_wanted(
    cli: CliRunner, settings: dict[str, str], terminal: dict[str, str], coloured: bool
) -> None:
    """A pipe and NO_COLOR get plain text; a terminal gets colours."""
    result = cli.invoke(app, ["config", "show"], env=settings | terminal)
    assert ("\x1b" in result.output) is coloured


def test_a_narrow_terminal_does_not_cut_piped_data(cli: CliRunner) -> None:
    """Data for a pipe keeps one line per setting however narrow the window is."""
    result = cli.invoke(app, ["config", "show"], env={"COLUMNS": "20"})
    assert len(result.stdout.splitlines()) == 1 + len(variables(Settings))
    assert "GOCLAW_SESSION_RUN_TIMEOUT" in result.stdout


@pytest.mark.parametrize(
    "arguments", [["confg"], ["config", "shw"], ["config", "show", "--yaml"], ["config", "check", "x"]]
)
def test_a_command_line_that_is_not_understood_ends_with_2(cli: CliRunner, arguments: list[str]) -> None:
    """A wrong command or option is answered with usage on stderr."""
    result = cli.invoke(app, arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage: " in result.stderr


def test_the_installed_command_ends_in_a_sentence(directory: Path) -> None:
    """The real command gives bad input a message and code 78, without a traceback or a colour code."""
    (directory / ".env").write_bytes(b"GOCLAW_LANE_MAIN=\xff\n")
    ended = subprocess.run([GOCLAW, "config", "check"], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (78, "")
    assert ended.stderr.splitlines()[0] == "error: .env, line 1: expected UTF-8 text"
    assert "Traceback" not in ended.stderr
